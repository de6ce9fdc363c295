//! What both ends say about themselves inside the session, so that `doctor` can compare them.

use airlane_session::About;

use crate::Cidr;
use crate::status::{build, commit};

/// Hellos that go with a question; a peer that does not answer so many has no answer.
const ASKED: u8 = 8;

/// What this end says, and what the peer has said in this session.
#[derive(Debug)]
pub(crate) struct AboutEnds {
    ours: About,
    pub(crate) theirs: Option<About>,
    asked: u8,
}

impl AboutEnds {
    /// About an end whose interface has these addresses.
    pub(crate) fn new(addresses: &[Cidr]) -> Self {
        Self {
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

    /// Another session begins, with whoever is there now.
    pub(crate) fn forget(&mut self) {
        (self.theirs, self.asked) = (None, 0);
    }

    /// A question for the peer in a session, as long as it has not said anything.
    pub(crate) fn question(&mut self, session: u32) -> Option<About> {
        let asks = self.theirs.is_none() && self.asked < ASKED;
        self.asked += u8::from(asks);
        asks.then(|| About {
            asks,
            ..self.answer(session)
        })
    }

    /// What this end says about itself in a session.
    pub(crate) fn answer(&self, session: u32) -> About {
        About {
            session,
            ..self.ours.clone()
        }
    }

    /// Takes what the peer has said: the versions of both ends, if that was new and they differ.
    pub(crate) fn take(&mut self, about: About) -> Option<[&str; 2]> {
        let is_new = self.theirs.is_none();
        let theirs = &self.theirs.insert(about).version;
        let ours = &self.ours.version;
        (is_new && ours != theirs).then_some([ours, theirs])
    }
}
