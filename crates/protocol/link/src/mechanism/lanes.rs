//! Order within flows: which frame must be delivered before which.
//!
//! A flow is hashed to a *lane*, which it may share with other flows. Each frame states how far back the
//! previous frame of its lane is, unless the peer is known to have that. A receiver needs no lanes: it
//! delivers a frame once the frame that far back has been delivered, regardless of other holes.
//!
//! ```text
//! lane 1   0 ◄────── 3 ◄─ 4      4 says 1, 3 says 3
//! lane 2       1 ◄───────── 5    5 says 4: it is delivered though 3 and 4 are missing
//! ```
//! A frame that is too far from the previous one, or must not overtake any, waits for all earlier frames.

use std::hash::{Hash, Hasher};

use airlane_base::{Payload, Seq};

use super::send_window::SendWindow;
use crate::flow::{LANES, Lane};
use crate::wire::Header;

/// The newest frame of each lane.
#[derive(Clone, Debug)]
pub(crate) struct Lanes {
    newest: Box<[Option<Seq>]>,
}

impl Default for Lanes {
    fn default() -> Self {
        Self {
            newest: vec![None; LANES].into(),
        }
    }
}

impl Lanes {
    /// The `back` field for the next packet's frame.
    pub(crate) fn next<P: Payload>(&mut self, lane: Lane, sent: &SendWindow<P>) -> u16 {
        let newest = self.newest[usize::from(lane.number) % LANES].replace(sent.next());
        if lane.behind_all {
            return Header::BEHIND_ALL;
        }
        let back = newest.and_then(|seq| sent.behind_next(seq)).unwrap_or(0);
        u16::try_from(back).unwrap_or(Header::BEHIND_ALL)
    }
}

/// Hashes only the lanes in use; most are not.
impl Hash for Lanes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let all = self.newest.iter().enumerate();
        all.filter(|(_, seq)| seq.is_some())
            .for_each(|lane| lane.hash(state));
    }
}
