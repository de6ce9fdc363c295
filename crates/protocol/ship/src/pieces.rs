//! The packets of one CLAP connection: ranges of bytes, split into pieces that fit into a datagram.

use airlane_transport::clap::MOST_PACKETS;

use crate::ranges::Ranges;

/// Maximum number of ranges in one message; the rest follows in another round.
const MOST_RANGES: usize = 100_000;

/// The bytes of each packet. Both ends compute them from the same ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    ranges: Ranges,
    /// The number of the first piece of each range.
    firsts: Vec<u32>,
    starts: Vec<(u64, u64)>,
    block: u64,
    count: u32,
}

impl Pieces {
    /// Splits as many of `ranges` as one connection can have, from the first on.
    pub(crate) fn of(ranges: &Ranges, block: usize) -> Self {
        let block = block.max(1) as u64;
        let mut pieces = Self {
            block,
            ..Self::default()
        };
        for (from, len) in ranges.iter().take(MOST_RANGES) {
            let room = u64::from(MOST_PACKETS - pieces.count);
            let len = len.min(room * block);
            if len == 0 {
                break;
            }
            pieces.firsts.push(pieces.count);
            pieces.starts.push((from, len));
            pieces.ranges.push(from, len);
            pieces.count += len.div_ceil(block) as u32;
        }
        pieces
    }

    /// The ranges that are split.
    pub(crate) const fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    pub(crate) const fn count(&self) -> u32 {
        self.count
    }

    /// The piece with the byte `at`.
    pub(crate) fn find(&self, at: u64) -> Option<u32> {
        let place = self
            .starts
            .partition_point(|(from, _)| *from <= at)
            .checked_sub(1)?;
        let (from, len) = self.starts[place];
        let n = self.firsts[place] + ((at - from) / self.block) as u32;
        (at < from + len).then_some(n)
    }

    /// First byte and length of a piece.
    pub(crate) fn get(&self, n: u32) -> Option<(u64, usize)> {
        if n >= self.count {
            return None;
        }
        let place = self.firsts.partition_point(|first| *first <= n) - 1;
        let (from, len) = self.starts[place];
        let skipped = u64::from(n - self.firsts[place]) * self.block;
        Some((from + skipped, (len - skipped).min(self.block) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_ranges_in_order_and_at_most_a_block_long() {
        let mut ranges = Ranges::none();
        ranges.push(10, 25);
        ranges.push(100, 10);
        ranges.push(200, 1);
        let pieces = Pieces::of(&ranges, 10);
        let all: Vec<_> = (0..pieces.count()).filter_map(|n| pieces.get(n)).collect();
        assert_eq!(all, [(10, 10), (20, 10), (30, 5), (100, 10), (200, 1)]);
        assert_eq!(pieces.get(5), None);
        let found: Vec<_> = [9, 10, 34, 35, 109, 200].map(|at| pieces.find(at)).into();
        assert_eq!(found, [None, Some(0), Some(2), None, Some(3), Some(4)]);
        assert_eq!(pieces.ranges(), &ranges);
    }

    #[test]
    fn pieces_beyond_one_connection_wait() {
        let pieces = Pieces::of(&Ranges::all(u64::MAX / 2), 1_000);
        assert_eq!(pieces.count(), MOST_PACKETS);
        assert_eq!(pieces.ranges().bytes(), u64::from(MOST_PACKETS) * 1_000);
    }
}
