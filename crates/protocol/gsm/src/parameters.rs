//! The parameters that both stations of a link share, and their encoding in an XID frame.

use airlane_base::{Duration, SeqSpace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::NUMBERS;

/// What ends the patience of a sender that hears nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Persistence {
    /// A poll has been repeated this often without an answer.
    Polls(u32),
    /// A frame, or a poll, has been repeated this often.
    Frames(u32),
    /// Octets have waited so long for their acknowledgment.
    Time(Duration),
}

/// GSM 04.22, N2.
impl Default for Persistence {
    fn default() -> Self {
        Self::Polls(6)
    }
}

impl Persistence {
    /// The shortest time allowed, if this one is shorter.
    pub fn too_soon(self) -> Option<Duration> {
        let shortest = Duration::from_millis(10);
        matches!(self, Self::Time(bound) if bound < shortest).then_some(shortest)
    }
}

/// How a receiver asks for what is missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Repair {
    /// One by one.
    #[default]
    Selective,
    /// Everything from the first missing frame on.
    GoBack,
}

/// The parameters that both stations of a link share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// Frames that may be unacknowledged, 1 to 61.
    pub window: u8,
    /// How long an acknowledgment may take if all frames have one block; longer frames add to it
    /// ([`Self::t1_between`]).
    pub t1: Duration,
    /// When a sender gives up and both begin anew.
    pub persistence: Persistence,
    /// How a receiver asks for what is missing.
    pub repair: Repair,
    /// Duration of a block. Each end knows that of its own link.
    pub block: Duration,
    /// The size of the sequence number space: 62, or fewer in a small model to be checked exhaustively. The window is
    /// smaller by at least one.
    pub numbers: u8,
}

/// The defaults of GSM 04.22.
impl Default for Parameters {
    fn default() -> Self {
        Self {
            window: 61,
            t1: Duration::from_millis(480),
            persistence: Persistence::default(),
            repair: Repair::default(),
            block: Duration::from_millis(20),
            numbers: NUMBERS,
        }
    }
}

impl Parameters {
    pub(crate) const fn space(&self) -> SeqSpace {
        SeqSpace::new(self.numbers as u64)
    }

    /// T1 for frames of `ours` and `peers` blocks. Each additional block of ours adds its time once, and each of the
    /// peer's twice: in the frame that is being sent already, and in the one that answers.
    pub fn t1_between(&self, ours: u8, peers: u8) -> Duration {
        let more = |blocks: u8| u64::from(blocks.saturating_sub(1));
        self.t1 + self.block * (more(ours) + 2 * more(peers))
    }

    /// The items of an XID frame, with the same window in both directions.
    pub fn xid(&self) -> Vec<u8> {
        let t1 = (self.t1.as_nanos() / 10_000_000).min(255) as u8;
        let mut items = vec![0x11, 0, 0x21, self.window, 0x31, self.window, 0x41, t1];
        if let Persistence::Polls(n2) | Persistence::Frames(n2) = self.persistence {
            items.extend([0x51, n2.min(255) as u8]);
        }
        items.push(0);
        items
    }

    /// The parameters after the peer's XID frame: the smaller window, and the longer times and counts. None if its
    /// items are truncated, or ask for something that no link supports.
    pub fn agreed(mut self, mut items: &[u8]) -> Option<Self> {
        loop {
            let (head, rest) = items.split_first()?;
            let (kind, len) = (head >> 4, usize::from(head & 15));
            if kind == 0 {
                return Some(self);
            }
            let (value, rest) = rest.split_at_checked(len)?;
            items = rest;
            match (kind, value) {
                (1, [_]) | (6 | 7, _) => {}
                (2 | 3, [window]) => {
                    if !(1..=61).contains(window) {
                        return None;
                    }
                    self.window = self.window.min(*window);
                }
                (4, [t1]) => {
                    self.t1 = self.t1.max(Duration::from_millis(u64::from(*t1) * 10));
                }
                (5, [n2]) => match &mut self.persistence {
                    Persistence::Polls(own) | Persistence::Frames(own) => {
                        *own = (*own).max(u32::from(*n2));
                    }
                    Persistence::Time(_) => {}
                },
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_stations_agree_whoever_asks() {
        let ours = Parameters::default();
        let theirs = Parameters {
            window: 20,
            t1: Duration::from_millis(780),
            persistence: Persistence::Polls(128),
            ..ours
        };
        let agreed = ours.agreed(&theirs.xid()).unwrap();
        assert_eq!(Some(agreed), theirs.agreed(&ours.xid()));
        assert_eq!((agreed.window, agreed.t1), (20, theirs.t1));
        assert_eq!(agreed.persistence, Persistence::Polls(128));
        assert_eq!(ours.agreed(&[0x21, 62, 0]), None);
        assert_eq!(ours.agreed(&[0x21]), None);
    }

    proptest! {
        #[test]
        fn any_negotiation_items_give_valid_parameters(items in prop::collection::vec(any::<u8>(), 0..30)) {
            let agreed = Parameters::default().agreed(&items);
            prop_assert!(agreed.is_none_or(|agreed| (1..=61).contains(&agreed.window)));
        }
    }
}
