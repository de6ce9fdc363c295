//! What both ends say about themselves inside the session, so that `doctor` can compare them.

use airlane_base::Instant;
use airlane_session::{About, SessionState};

use super::PeerLink;
use crate::netlink::Cidr;
use crate::node::below::Below;
use crate::node::drops::Reason;
use crate::status::{build, commit};

/// Hellos that go with a question; a peer that does not answer so many has no answer.
const ASKED: u8 = 8;

/// What this end says, and what the peer has said in this session.
#[derive(Debug)]
pub(in crate::node) struct AboutEnds {
    ours: About,
    pub(in crate::node) theirs: Option<About>,
    asked: u8,
}

impl AboutEnds {
    /// About an end whose interface has these addresses.
    pub(super) fn new(addresses: &[Cidr]) -> Self {
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
    pub(super) fn forget(&mut self) {
        (self.theirs, self.asked) = (None, 0);
    }
}

impl PeerLink {
    /// Asks a peer in the session about itself, as long as it has not said so.
    pub(super) fn ask_about(&mut self, now: Instant, below: &mut Below) {
        let confirmed = self.session.state() == SessionState::Confirmed;
        if confirmed && self.about.theirs.is_none() && self.about.asked < ASKED {
            self.about.asked += 1;
            self.tell_about(now, true, below);
        }
    }

    fn tell_about(&mut self, now: Instant, asks: bool, below: &mut Below) {
        let about = About {
            session: self.session.id().unwrap_or_default(),
            asks,
            ..self.about.ours.clone()
        };
        self.push_beside(now, &about.encode(), below);
    }

    /// The peer has said something about itself.
    pub(super) fn handle_about(
        &mut self,
        now: Instant,
        about: About,
        below: &mut Below,
    ) -> Result<(), Reason> {
        if !self.session.check(now, about.session) {
            return Err(Reason::StaleSession);
        }
        if about.asks {
            self.tell_about(now, false, below);
        }
        if self.about.theirs.is_none() && about.version != self.about.ours.version {
            let (peer, here) = (self.who(), &self.about.ours.version);
            tracing::info!(%peer, here, there = about.version.escape_debug().to_string(), "the peer runs another version");
        }
        self.about.theirs = Some(about);
        Ok(())
    }
}
