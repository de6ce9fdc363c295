//! How one service stands with the peer's of its number: what the port keeps of it.

use airlane_session::ServiceOffer;

/// The instance of every service at the beginning of a session.
pub(super) const FIRST: u32 = 1;

/// How a service stands with the peer's of its number.
#[derive(Clone, Debug)]
pub(super) struct Agreement {
    pub(super) instance: u32,
    /// The peer's instance that this one exchanges frames with.
    pub(super) partner: Option<u32>,
    /// The peer's has paired with this one.
    pub(super) open: bool,
}

/// What the peer offers, and which number an instance gets next.
#[derive(Clone, Debug)]
pub(super) struct PeerOffers {
    pub(super) offers: Vec<ServiceOffer>,
    pub(super) next_instance: u32,
}

impl Agreement {
    /// Of a service that begins: without a peer to ask, it is open.
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
