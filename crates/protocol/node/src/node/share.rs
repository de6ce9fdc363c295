//! Each peer's share of a turn of the event loop under load.
//!
//! A datagram costs its decryption, and each packet of its frame costs a buffer and a write, which is most of
//! the cost. When a peer's frames have used up its share, its further frames in this turn are dropped and
//! counted, so that frames of many small packets do not take the time of other peers. A peer that sends one
//! packet in each frame never reaches the limit: a turn takes fewer datagrams than that.

/// Packets or frames that are read before the other side gets its turn, exceeded only by the rest of one system call.
pub const BATCH: usize = 256;
/// Datagrams and packets of one peer in one turn.
pub(crate) const SHARE: usize = 8 * BATCH;

/// Cost of a hello or probe, in packets: each may be answered, after the ports have been drained.
pub(crate) const HELLO: usize = 64;

/// Whether the peers' shares are enforced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Pressure {
    /// There is time for all.
    #[default]
    Free,
    /// The previous turn did not empty the socket, and there are several peers.
    Shared,
}

impl Pressure {
    /// The pressure after a turn that took this many datagrams, with this many peers.
    pub(crate) const fn after(datagrams: usize, peers: usize) -> Self {
        match datagrams >= BATCH && peers > 1 {
            true => Self::Shared,
            false => Self::Free,
        }
    }
}

/// A peer's cost in this turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent(usize);

impl Spent {
    /// Begins a turn.
    pub(crate) const fn begin(&mut self) {
        self.0 = 0;
    }

    /// Adds datagrams or packets.
    pub(crate) const fn add(&mut self, more: usize) {
        self.0 = self.0.saturating_add(more);
    }

    /// Whether the next frame exceeds the share; `waiting` packets are still to be written.
    pub(crate) const fn is_all(self, pressure: Pressure, waiting: usize) -> bool {
        matches!(pressure, Pressure::Shared) && self.0.saturating_add(waiting) >= SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of one peer that are accepted in a turn, each of `packets` packets.
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
    fn hellos_count_against_the_share() {
        let mut spent = Spent::default();
        let hellos = (0..BATCH).take_while(|_| {
            spent.add(HELLO);
            !spent.is_all(Pressure::Shared, 0)
        });
        let taken = hellos.count();
        assert!((8..BATCH / 4).contains(&taken), "{taken}");
    }

    #[test]
    fn large_aggregates_get_a_share_and_others_their_full_batch() {
        let busy = Pressure::after(BATCH, 2);
        // The most datagrams that a turn may take.
        let most = BATCH + 8 * 64 - 1;
        assert_eq!(taken(busy, most, 1), most);
        let greedy = taken(busy, most, 64);
        assert!((20..=SHARE / 65 + 1).contains(&greedy), "{greedy}");
        assert_eq!(taken(Pressure::after(BATCH - 1, 2), most, 64), most);
        assert_eq!(taken(Pressure::after(most, 1), most, 64), most, "alone");
    }
}
