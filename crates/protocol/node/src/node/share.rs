//! What one peer may have of a turn of the loop, where there are several and more comes than can be taken.
//!
//! A datagram costs to open, and each packet of its frame costs a buffer and a write, which is most of it. A peer
//! whose frames have cost its share has those behind them dropped and counted until the next turn, so that
//! frames of many small packets buy nobody the time of the others. Who sends one packet in each frame never
//! gets there: a turn takes fewer datagrams than that.

/// Packets or frames read in a row before the other side gets its turn, and some more: as many as
/// one call gives.
pub const BATCH: usize = 256;
/// Datagrams and packets of one peer in one turn.
pub(crate) const SHARE: usize = 8 * BATCH;

/// What a hello costs, or a probe: each may have an answer, and the ports drained before it, which is as much as so
/// many packets.
pub(crate) const HELLO: usize = 64;

/// Whether there is anything to share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pressure {
    /// There is time for all.
    #[default]
    Free,
    /// The turn before did not empty the socket, and there are several peers.
    Shared,
}

impl Pressure {
    /// After a turn that took so many datagrams of so many peers.
    pub(crate) const fn after(datagrams: usize, peers: usize) -> Self {
        match datagrams >= BATCH && peers > 1 {
            true => Self::Shared,
            false => Self::Free,
        }
    }
}

/// What a peer has cost in this turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent(usize);

impl Spent {
    /// A turn begins.
    pub(crate) const fn begin(&mut self) {
        self.0 = 0;
    }

    /// Adds so many datagrams or packets.
    pub(crate) const fn add(&mut self, more: usize) {
        self.0 = self.0.saturating_add(more);
    }

    /// Whether the next frame is too much; `waiting` packets are still to be written.
    pub(crate) const fn is_all(self, pressure: Pressure, waiting: usize) -> bool {
        matches!(pressure, Pressure::Shared) && self.0.saturating_add(waiting) >= SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of one peer that are taken in a turn, of so many packets each.
    fn taken(pressure: Pressure, frames: usize, packets: usize) -> usize {
        let (mut spent, mut waiting, mut taken) = (Spent::default(), 0, 0);
        spent.begin();
        for _ in 0..frames {
            spent.add(1);
            if spent.is_all(pressure, waiting) {
                continue;
            }
            (taken, waiting) = (taken + 1, waiting + packets);
            if waiting >= BATCH {
                spent.add(std::mem::take(&mut waiting));
            }
        }
        taken
    }

    #[test]
    fn hellos_count_too() {
        let mut spent = Spent::default();
        let hellos = (0..BATCH).take_while(|_| {
            spent.add(HELLO);
            !spent.is_all(Pressure::Shared, 0)
        });
        let taken = hellos.count();
        assert!((8..BATCH / 4).contains(&taken), "{taken}");
    }

    #[test]
    fn frames_of_many_packets_get_a_share_and_others_are_never_short() {
        let busy = Pressure::after(BATCH, 2);
        // As many datagrams as a turn may take.
        let most = BATCH + 8 * 64 - 1;
        assert_eq!(taken(busy, most, 1), most);
        let greedy = taken(busy, most, 64);
        assert!((20..=SHARE / 65 + 1).contains(&greedy), "{greedy}");
        assert_eq!(taken(Pressure::after(BATCH - 1, 2), most, 64), most);
        assert_eq!(taken(Pressure::after(most, 1), most, 64), most, "alone");
    }
}
