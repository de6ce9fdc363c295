//! What one end offers the other: its services.

use airlane_base::random::fnv1a;

/// A service of one end, as its hello carries it.
///
/// ```text
///  0      number
///  1..5   instance: identifies the service among those of this number in this session
///  5..9   the receiver's instance that it is paired with, 0 if none
///  9..17  digest of the terms that both ends must share
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ServiceOffer {
    /// Number of the service.
    pub service: u8,
    /// Identifies the service among those of this number.
    pub instance: u32,
    /// The peer's instance that it is paired with, 0 if none.
    pub partner: u32,
    /// Digest of the scheme's terms as its sender sees them.
    pub terms: u64,
}

/// One service of this end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnService {
    /// The offer.
    pub offer: ServiceOffer,
    /// The terms that the peer's service must have.
    pub fits: u64,
}

impl ServiceOffer {
    /// Length of an encoded offer, bytes.
    pub(super) const LEN: usize = 17;

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.service);
        out.extend_from_slice(&self.instance.to_be_bytes());
        out.extend_from_slice(&self.partner.to_be_bytes());
        out.extend_from_slice(&self.terms.to_be_bytes());
    }
}

/// Digest of an end's offers, never 0.
pub(super) fn digest(offers: impl IntoIterator<Item = ServiceOffer>) -> u64 {
    let mut bytes = Vec::new();
    offers
        .into_iter()
        .for_each(|offer| offer.encode(&mut bytes));
    fnv1a(&bytes).max(1)
}

/// Whether a session may begin: no service that both ends have may differ. A service of one end alone waits.
pub(super) fn fit(own: &[OwnService], offers: &[ServiceOffer]) -> bool {
    let same = |own: &&OwnService, offer: &ServiceOffer| own.offer.service == offer.service;
    // Each end has a service 0.
    offers.iter().any(|offer| offer.service == 0)
        && offers.iter().all(|offer| {
            let mine = own.iter().find(|own| same(own, offer));
            mine.is_none_or(|mine| mine.fits == offer.terms)
        })
}
