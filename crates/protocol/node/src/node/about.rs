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
    /// Whether the peer's addresses have come and have not been compared.
    is_news: bool,
}

impl AboutEnds {
    /// Describes an end whose interface has these addresses.
    pub(crate) fn new(addresses: &[Cidr]) -> Self {
        Self {
            is_news: false,
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

    /// The peer's addresses, once in each session.
    pub(crate) fn take_addresses(&mut self) -> Option<Vec<Cidr>> {
        let theirs = self
            .theirs
            .as_ref()
            .filter(|_| std::mem::take(&mut self.is_news))?;
        let all = theirs.addresses.iter().filter_map(|at| at.parse().ok());
        Some(all.collect())
    }

    /// Stores the peer's description. Returns both versions if it is the first one and they differ.
    pub(crate) fn take(&mut self, about: About) -> Option<[&str; 2]> {
        let is_new = self.theirs.is_none();
        self.is_news |= is_new;
        let theirs = &self.theirs.insert(about).version;
        let ours = &self.ours.version;
        (is_new && ours != theirs).then_some([ours, theirs])
    }
}
