//! The versions and addresses that the two ends exchange in a session, so that `doctor` can compare them.

use airlane_session::About;

use crate::Cidr;
use crate::status::{build, commit};

/// Hellos that carry the question; a peer that answers none of them does not know the message.
const ASKED: u8 = 8;

/// The description of this end, and of the peer once received in this session.
#[derive(Debug)]
pub(crate) struct AboutEnds {
    ours: About,
    pub(crate) theirs: Option<About>,
    asked: u8,
    addresses: Vec<Cidr>,
    routes: Vec<Cidr>,
}

impl AboutEnds {
    /// Describes an end whose interface has these addresses and routes.
    pub(crate) fn new(addresses: &[Cidr], routes: Vec<Cidr>) -> Self {
        Self {
            addresses: addresses.to_vec(),
            routes,
            ours: About {
                session: 0,
                asks: false,
                version: build(env!("CARGO_PKG_VERSION"), commit()),
                addresses: addresses.iter().map(ToString::to_string).collect(),
            },
            theirs: None,
            asked: 0,
        }
    }

    /// Forgets the peer's description when a new session begins, since the peer may have been replaced.
    pub(crate) fn forget(&mut self) {
        (self.theirs, self.asked) = (None, 0);
    }

    /// A question to the peer, until it has answered or the limit is reached.
    pub(crate) fn question(&mut self, session: u32) -> Option<About> {
        let asks = self.theirs.is_none() && self.asked < ASKED;
        self.asked += u8::from(asks);
        asks.then(|| About {
            asks,
            ..self.answer(session)
        })
    }

    /// This end's description for a session.
    pub(crate) fn answer(&self, session: u32) -> About {
        About {
            session,
            ..self.ours.clone()
        }
    }

    /// Why the peer's addresses do not fit this end's, if they do not.
    pub(crate) fn misfit(&self) -> Option<&'static str> {
        let theirs = self.theirs.iter().flat_map(|about| &about.addresses);
        let theirs: Vec<Cidr> = theirs.filter_map(|at| at.parse().ok()).collect();
        let is_same = |at: &Cidr| self.addresses.iter().any(|own| own.address == at.address);
        if theirs.iter().any(is_same) {
            return Some("both ends have the same address under [tun]");
        }
        let mut ways = self.addresses.iter().chain(&self.routes);
        let leads = ways.any(|way| theirs.iter().any(|at| way.covers(at.address)));
        let is_none = theirs.is_empty() || self.addresses.is_empty() || !self.routes.is_empty();
        (!leads && !is_none).then_some("no address of this end is in a network of the peer's")
    }

    /// Stores the peer's description. Returns both versions if it is the first one and they differ.
    pub(crate) fn take(&mut self, about: About) -> Option<[&str; 2]> {
        let is_new = self.theirs.is_none();
        let theirs = &self.theirs.insert(about).version;
        let ours = &self.ours.version;
        (is_new && ours != theirs).then_some([ours, theirs])
    }
}
