//! A sender's knowledge of the segments above `snd_una`: which arrived out of order, which are lost, and how many are
//! in flight (RFC 6675, sections 3 and 4, in segments).
//!
//! A segment is lost if at least `threshold` segments above it have arrived. The lost segments are the missing ones
//! at the lower end of the window, so one number identifies them ([`loss_edge`](Scoreboard::loss_edge)). The
//! retransmissions of a recovery are sent in ascending order without a gap, so one more number tells which of them
//! were sent.

use super::ranges::{Range, Ranges};
use super::segment::MOST_BLOCKS;
use super::window::SendWindow;

#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    /// Segments that must arrive above a missing one before it counts as lost.
    threshold: u64,
    /// Segments delivered above `snd_una`.
    sacked: Ranges,
    /// Segments in `sacked`.
    count: u64,
    /// One more than the highest segment that was sent again in this recovery (RFC 6675's HighRxt).
    high_rxt: u64,
    /// Segments in `sacked` below `high_rxt`.
    below_rxt: u64,
    /// The blocks of the last report, which later ones repeat.
    reported: [Range; MOST_BLOCKS],
}

impl Scoreboard {
    pub(super) fn new(threshold: u32) -> Self {
        Self {
            threshold: u64::from(threshold),
            sacked: Ranges::default(),
            count: 0,
            high_rxt: 0,
            below_rxt: 0,
            reported: Default::default(),
        }
    }

    /// Discards everything reported (RFC 2018, section 8: the receiver may have discarded segments that it reported).
    pub(super) fn clear(&mut self) {
        self.sacked.clear();
        self.reported = Default::default();
        self.count = 0;
        self.high_rxt = 0;
        self.below_rxt = 0;
    }

    /// A recovery begins: none of its retransmissions has been sent.
    pub(super) fn begin_recovery(&mut self) {
        self.high_rxt = 0;
        self.below_rxt = 0;
    }

    /// Takes the blocks of an acknowledgment, once `window` has processed its number. Segments never sent, or
    /// acknowledged since, are ignored. If the oldest segment was reported, the receiver has discarded it, so nothing
    /// is known of the others either (RFC 2018, section 8).
    #[inline]
    pub(super) fn update(&mut self, window: &SendWindow, blocks: &[Range]) {
        // Most acknowledgments are in order and report nothing else.
        if !blocks.is_empty() || !self.sacked.is_empty() {
            self.learn(window, blocks);
        }
    }

    fn learn(&mut self, window: &SendWindow, blocks: &[Range]) {
        if self.sacked.first().is_some_and(|first| first < window.una) {
            let below = self.sacked.cut_below(window.una.min(self.high_rxt));
            self.below_rxt -= below;
            self.count -= below + self.sacked.cut_below(window.una);
        }
        let before = self.reported;
        for (block, reported) in blocks.iter().zip(&mut self.reported) {
            if block.end > window.max {
                continue;
            }
            *reported = *block;
            if before.iter().any(|before| before.covers(block)) {
                continue;
            }
            let mut start = block.start.max(window.una);
            if start < self.high_rxt {
                let end = self.high_rxt.min(block.end);
                let below = self.sacked.insert(Range { start, end });
                self.below_rxt += below;
                self.count += below;
                start = end;
            }
            let end = block.end;
            self.count += self.sacked.insert(Range { start, end });
        }
        if self.sacked.first() == Some(window.una) {
            self.clear();
        }
    }

    /// The number of segments delivered above `snd_una`.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Segments below this number that have not arrived are lost; `una` if none is.
    pub(super) fn loss_edge(&self, window: &SendWindow) -> u64 {
        if self.count < self.threshold {
            return window.una;
        }
        let mut above = self.threshold;
        for range in self.sacked.all().iter().rev() {
            if range.len() >= above {
                return range.end - above;
            }
            above -= range.len();
        }
        window.una
    }

    /// Whether the oldest segment is lost.
    pub(super) fn shows_loss(&self) -> bool {
        self.count >= self.threshold
    }

    /// The segments in flight: neither delivered nor lost, plus the retransmissions.
    pub(super) fn pipe(&self, window: &SendWindow) -> u64 {
        let lost = if self.shows_loss() {
            let below = self.loss_edge(window) - window.una;
            below - (self.count - self.threshold)
        } else {
            0
        };
        let again = self.high_rxt.saturating_sub(window.una);
        let again = again.saturating_sub(self.below_rxt);
        window.flight_size() - self.count - lost + again
    }

    /// The lowest segment that was neither delivered nor retransmitted in this recovery.
    pub(super) fn next_hole(&self, window: &SendWindow) -> u64 {
        self.skip(self.high_rxt.max(window.una))
    }

    /// `seq`, or the first segment after it that was not delivered.
    pub(super) fn skip(&self, seq: u64) -> u64 {
        self.sacked.skip(seq)
    }

    /// One more than the highest segment delivered; `una` if there is none.
    pub(super) fn high_sacked(&self, window: &SendWindow) -> u64 {
        let highest = self.sacked.all().last();
        highest.map_or(window.una, |range| range.end)
    }

    /// The highest segment that was not delivered, retransmitted or not.
    pub(super) fn highest_hole(&self, window: &SendWindow) -> Option<u64> {
        let above = match self.sacked.all().last() {
            Some(range) if range.end == window.max => range.start,
            _ => window.max,
        };
        (above > window.una).then(|| above - 1)
    }

    /// The hole at `seq`, the lowest remaining one, is retransmitted.
    pub(super) fn on_resent(&mut self, window: &SendWindow, seq: u64) {
        let from = self.high_rxt.max(window.una);
        // All segments in between were delivered.
        self.below_rxt += seq - from;
        self.high_rxt = seq + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Tracks every segment on its own, in the words of RFC 6675.
    #[derive(Debug, Default)]
    struct Naive {
        una: u64,
        max: u64,
        sacked: BTreeSet<u64>,
        resent: BTreeSet<u64>,
    }

    impl Naive {
        fn outstanding(&self) -> impl Iterator<Item = u64> + '_ {
            (self.una..self.max).filter(|seq| !self.sacked.contains(seq))
        }

        fn is_lost(&self, seq: u64) -> bool {
            self.sacked.range(seq..).count() >= 3
        }

        fn pipe(&self) -> u64 {
            self.outstanding()
                .map(|seq| u64::from(!self.is_lost(seq)) + u64::from(self.resent.contains(&seq)))
                .sum()
        }

        fn next_hole(&self) -> u64 {
            let mut holes = (self.una..).filter(|seq| {
                !self.sacked.contains(seq) && self.resent.last().is_none_or(|high| seq > high)
            });
            holes.next().unwrap()
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_model_of_single_segments(
            steps in prop::collection::vec((0u8..6, 0u64..30, 1u64..6), 0..80),
        ) {
            let mut window = SendWindow::new(1, 1000, 1000);
            window.write(u64::MAX);
            let mut board = Scoreboard::new(3);
            let mut naive = Naive::default();
            for (step, at, len) in steps {
                match step {
                    0 => {
                        window.max += len;
                        naive.max += len;
                    }
                    1 => {
                        let ack = (naive.una + at / 4).min(naive.max);
                        window.acknowledge(ack);
                        board.update(&window, &[]);
                        naive.una = ack;
                        naive.sacked = naive.sacked.split_off(&ack);
                        naive.resent = naive.resent.split_off(&ack);
                    }
                    2 if naive.next_hole() < naive.max => {
                        let hole = board.next_hole(&window);
                        board.on_resent(&window, hole);
                        naive.resent.insert(hole);
                    }
                    2 => {}
                    3 => {
                        board.begin_recovery();
                        naive.resent.clear();
                    }
                    _ => {
                        // Includes blocks below the acknowledged number and above what was sent.
                        let start = (naive.una + at).saturating_sub(5);
                        let block = Range { start, end: start + len };
                        board.update(&window, &[block]);
                        if block.end <= naive.max {
                            naive.sacked.extend(start.max(naive.una)..block.end);
                        }
                    }
                }
                if naive.sacked.contains(&naive.una) {
                    naive.sacked.clear();
                    naive.resent.clear();
                }
                prop_assert_eq!(board.count, naive.sacked.len() as u64);
                prop_assert_eq!(board.pipe(&window), naive.pipe());
                prop_assert_eq!(board.next_hole(&window), naive.next_hole());
                let edge = board.loss_edge(&window);
                for seq in naive.outstanding() {
                    prop_assert_eq!(naive.is_lost(seq), seq < edge);
                }
            }
        }
    }
}
