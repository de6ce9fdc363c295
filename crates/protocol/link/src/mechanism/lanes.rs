//! Order within flows: which frame has to go up before which.
//!
//! A flow has a *lane*, which it may share with others by chance. Each frame says how far back the frame before
//! it in its lane is, unless the peer is known to have that. A receiver needs no lanes: it gives a frame up when
//! the one so far back has gone up, whatever is missing elsewhere.
//!
//! ```text
//! lane 1   0 ◄────── 3 ◄─ 4      4 says 1, 3 says 3
//! lane 2       1 ◄───────── 5    5 says 4: it goes up though 3 and 4 are missing
//! ```
//! A frame that is too far behind the one before it, or that must not overtake any, waits for all.

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
    /// What the frame of the next packet says of the one that goes up before it.
    pub(crate) fn next<P: Payload>(&mut self, lane: Lane, sent: &SendWindow<P>) -> u16 {
        let newest = self.newest[usize::from(lane.number) % LANES].replace(sent.next());
        if lane.behind_all {
            return Header::BEHIND_ALL;
        }
        let back = newest.and_then(|seq| sent.behind_next(seq)).unwrap_or(0);
        u16::try_from(back).unwrap_or(Header::BEHIND_ALL)
    }
}

/// Of lanes that are in use: most are not.
impl Hash for Lanes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let all = self.newest.iter().enumerate();
        all.filter(|(_, seq)| seq.is_some())
            .for_each(|lane| lane.hash(state));
    }
}
