//! The port's record of how a service is paired with the peer's service of the same number.

use airlane_session::ServiceOffer;

/// The instance of every service at the beginning of a session.
pub(super) const FIRST: u32 = 1;

/// The pairing of a service with the peer's.
#[derive(Clone, Debug)]
pub(super) struct Agreement {
    pub(super) instance: u32,
    /// The peer's instance that this one exchanges frames with.
    pub(super) partner: Option<u32>,
    /// Whether the peer's service has paired with this one.
    pub(super) open: bool,
}

/// The peer's offers, and the next instance number.
#[derive(Clone, Debug)]
pub(super) struct PeerOffers {
    pub(super) offers: Vec<ServiceOffer>,
    pub(super) next_instance: u32,
}

impl Agreement {
    /// The state of a new service: open where there is no peer to agree with.
    pub(super) fn new(peer: Option<&mut PeerOffers>) -> Self {
        match peer {
            None => Self {
                instance: FIRST,
                partner: Some(FIRST),
                open: true,
            },
            Some(peer) => {
                let instance = peer.next_instance;
                peer.next_instance += 1;
                Self {
                    instance,
                    partner: None,
                    open: false,
                }
            }
        }
    }
}
