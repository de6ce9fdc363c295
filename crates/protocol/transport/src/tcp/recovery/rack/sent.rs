//! The state of every segment in flight: when its last copy was sent, whether it was delivered, whether it is lost;
//! and the order in which they were sent.
//!
//! A segment appears in the send order once for each copy, and only the entry of its last copy counts. Invariant:
//! `sacked` and `lost` count the segments above `snd_una` that were delivered, and those that are lost and not sent
//! again; no segment is both.

use std::collections::VecDeque;

use airlane_base::Instant;

use crate::tcp::ranges::Ranges;
use crate::tcp::{MOST_BLOCKS, Range};

/// One segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// When its last copy was sent.
    pub(super) left: Instant,
    /// Whether it was sent more than once.
    pub(super) again: bool,
    lost: bool,
    /// Whether it was reported as delivered.
    come: bool,
}

/// The segments from `una` to the highest one sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    una: u64,
    segments: VecDeque<Segment>,
    arrived: Ranges,
    /// The blocks of the last report.
    reported: [Range; MOST_BLOCKS],
    sacked: u64,
    lost: u64,
    /// Copies in the order in which they were sent, oldest first. None is lost, and the first is neither delivered
    /// nor sent again.
    order: VecDeque<(u64, Instant)>,
    /// Lost segments, in the order of detection; some were delivered or sent again since.
    to_resend: VecDeque<u64>,
}

impl Sent {
    #[inline]
    fn get(&self, seq: u64) -> Option<&Segment> {
        self.segments.get(seq.checked_sub(self.una)? as usize)
    }

    #[inline]
    fn get_mut(&mut self, seq: u64) -> Option<&mut Segment> {
        self.segments.get_mut(seq.checked_sub(self.una)? as usize)
    }

    /// Segments in flight.
    #[inline]
    pub(super) fn pipe(&self) -> u64 {
        self.segments.len() as u64 - self.sacked - self.lost
    }

    /// Segments above `una` that were delivered.
    pub(super) const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// A copy of `seq` is sent: the first of a new segment, or a retransmission.
    pub(super) fn on_sent(&mut self, now: Instant, seq: u64) {
        match self.get_mut(seq) {
            None => self.segments.push_back(Segment {
                left: now,
                again: false,
                lost: false,
                come: false,
            }),
            Some(segment) => {
                let was_lost = std::mem::take(&mut segment.lost);
                segment.left = now;
                segment.again = true;
                self.lost -= u64::from(was_lost);
            }
        }
        self.order.push_back((seq, now));
    }

    /// Everything below `ack` was delivered; `each` is called for the segments for which this is new.
    pub(super) fn acknowledge(&mut self, ack: u64, mut each: impl FnMut(u64, &Segment)) {
        if ack <= self.una {
            return;
        }
        while self.una < ack {
            let Some(segment) = self.segments.pop_front() else {
                break;
            };
            if segment.come {
                self.sacked -= 1;
            } else {
                self.lost -= u64::from(segment.lost);
                each(self.una, &segment);
            }
            self.una += 1;
        }
        self.arrived.cut_below(self.una);
    }

    /// Blocks report delivered segments; `each` is called for those that are new. Segments that were never sent are
    /// ignored, and blocks that the previous report had are skipped.
    pub(super) fn report(&mut self, blocks: &[Range], mut each: impl FnMut(u64, &Segment)) {
        let before = self.reported;
        for (at, block) in blocks.iter().enumerate() {
            if block.end > self.una + self.segments.len() as u64 {
                continue;
            }
            self.reported[at] = *block;
            if !before.iter().any(|before| before.covers(block)) {
                self.report_block(*block, &mut each);
            }
        }
    }

    fn report_block(&mut self, block: Range, each: &mut impl FnMut(u64, &Segment)) {
        let from = block.start.max(self.una);
        let mut seq = self.arrived.skip(from);
        if seq >= block.end {
            return;
        }
        while let Some(segment) = self.get_mut(seq).filter(|_| seq < block.end) {
            if std::mem::replace(&mut segment.come, true) {
                seq = self.arrived.skip(seq);
                continue;
            }
            let was_lost = std::mem::take(&mut segment.lost);
            let segment = *segment;
            self.lost -= u64::from(was_lost);
            each(seq, &segment);
            seq += 1;
        }
        let end = block.end;
        self.sacked += self.arrived.insert(Range { start: from, end });
    }

    /// The oldest copy that counts: its segment and when it was sent.
    pub(super) fn oldest(&mut self) -> Option<(u64, Instant)> {
        while let Some((seq, left)) = self.order.front().copied() {
            let counts = |segment: &Segment| segment.left == left && !segment.lost && !segment.come;
            if self.get(seq).is_some_and(counts) {
                return Some((seq, left));
            }
            self.order.pop_front();
        }
        None
    }

    /// Marks a segment as lost unless it was delivered or is already lost.
    pub(super) fn lose(&mut self, seq: u64) {
        let Some(segment) = self.get_mut(seq) else {
            return;
        };
        if !segment.come && !std::mem::replace(&mut segment.lost, true) {
            self.lost += 1;
            self.to_resend.push_back(seq);
        }
    }

    /// Marks the oldest segment as lost, to be sent before all other lost ones: nothing is acknowledged without it,
    /// and the timer would only back off. If it was reported as delivered, the receiver has discarded it since, and
    /// perhaps others too (RFC 2018, section 8).
    pub(super) fn lose_oldest(&mut self) {
        if self.segments.front().is_some_and(|oldest| oldest.come) {
            self.forget_reports();
        }
        self.lose(self.una);
        self.to_resend.push_front(self.una);
    }

    /// Treats reported segments as in flight again. This is rare, so it need not be fast.
    fn forget_reports(&mut self) {
        for (seq, segment) in (self.una..).zip(&mut self.segments) {
            if std::mem::take(&mut segment.come) {
                self.order.push_back((seq, segment.left));
            }
        }
        self.arrived.clear();
        self.reported = Default::default();
        self.sacked = 0;
        self.sort();
    }

    fn sort(&mut self) {
        let order = self.order.make_contiguous();
        order.sort_unstable_by_key(|(seq, left)| (*left, *seq));
    }

    /// The lost segment to send next: the first detected one that was not sent again.
    #[inline]
    pub(super) fn next_lost(&mut self) -> Option<u64> {
        if self.lost == 0 {
            // Most calls find nothing.
            if !self.to_resend.is_empty() {
                self.to_resend.clear();
            }
            return None;
        }
        while let Some(seq) = self.to_resend.front().copied() {
            if self.get(seq).is_some_and(|segment| segment.lost) {
                return Some(seq);
            }
            self.to_resend.pop_front();
        }
        None
    }

    /// Whether a retransmission of a segment from `from` on is in flight. This is rare, so it need not be fast.
    pub(super) fn has_copies(&self, from: u64) -> bool {
        let outstanding = (self.una..).zip(&self.segments);
        outstanding
            .skip_while(|(seq, _)| *seq < from)
            .any(|(_, segment)| segment.again && !segment.lost && !segment.come)
    }

    /// Clears the loss mark of every segment that was not sent again. This is rare, so it need not be fast.
    pub(super) fn find_all(&mut self) {
        while let Some(seq) = self.to_resend.pop_back() {
            if let Some(segment) = self.get_mut(seq)
                && std::mem::take(&mut segment.lost)
            {
                let left = segment.left;
                self.lost -= 1;
                self.order.push_back((seq, left));
            }
        }
        self.sort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::Duration;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Each segment by its number: when it was last sent, whether it was delivered, whether it is lost.
    type Naive = BTreeMap<u64, (Instant, bool, bool)>;

    #[test]
    fn a_lost_retransmission_of_the_oldest_leaves_first() {
        let mut sent = Sent::default();
        (0..4).for_each(|seq| sent.on_sent(Instant::ORIGIN, seq));
        (0..3).for_each(|seq| sent.lose(seq));
        sent.on_sent(Instant::ORIGIN, 0);
        assert_eq!(sent.next_lost(), Some(1));
        sent.lose_oldest();
        assert_eq!((sent.next_lost(), sent.pipe()), (Some(0), 1));
        sent.on_sent(Instant::ORIGIN, 0);
        assert_eq!((sent.next_lost(), sent.pipe()), (Some(1), 2));
    }

    proptest! {
        #[test]
        fn agrees_with_a_model_of_single_segments(
            steps in prop::collection::vec((0u8..7, 0u64..30, 1u64..6), 0..120),
        ) {
            let (mut sent, mut naive) = (Sent::default(), Naive::new());
            let (mut una, mut max) = (0, 0);
            for (at, (step, number, len)) in steps.into_iter().enumerate() {
                let now = Instant::ORIGIN + Duration::from_millis(at as u64);
                let seq = una + number.min(max - una);
                let mut news = vec![];
                let mut expected = vec![];
                match step {
                    0 | 1 => {
                        sent.on_sent(now, max);
                        naive.insert(max, (now, false, false));
                        max += 1;
                    }
                    2 => {
                        sent.acknowledge(seq, |seq, _| news.push(seq));
                        let rest = naive.split_off(&seq);
                        expected = naive.iter().filter(|(_, state)| !state.1).map(|(seq, _)| *seq).collect();
                        naive = rest;
                        una = seq;
                    }
                    3 | 4 => {
                        let block = Range { start: seq, end: seq + len };
                        sent.report(&[block], |seq, _| news.push(seq));
                        if block.end <= max {
                            for (seq, state) in naive.range_mut(block.start..block.end) {
                                if !state.1 {
                                    expected.push(*seq);
                                }
                                (state.1, state.2) = (true, false);
                            }
                        }
                    }
                    5 => {
                        sent.lose(seq);
                        if let Some(state) = naive.get_mut(&seq) {
                            state.2 = !state.1;
                        }
                    }
                    _ if len == 5 => {
                        sent.find_all();
                        naive.values_mut().for_each(|state| state.2 = false);
                    }
                    _ => {
                        if let Some(seq) = sent.next_lost() {
                            sent.on_sent(now, seq);
                            let state = naive.get_mut(&seq).unwrap();
                            prop_assert!(state.2);
                            *state = (now, false, false);
                        }
                    }
                }
                prop_assert_eq!(news, expected);
                let count = |which: &dyn Fn(&(Instant, bool, bool)) -> bool| {
                    naive.values().filter(|state| which(state)).count() as u64
                };
                prop_assert_eq!(sent.sacked(), count(&|state| state.1));
                prop_assert_eq!(sent.pipe(), count(&|state| !state.1 && !state.2));
                prop_assert_eq!(sent.next_lost().is_some(), count(&|state| state.2) > 0);
                let on_way = naive.iter().filter(|(_, state)| !state.1 && !state.2);
                let oldest = on_way.map(|(seq, state)| (state.0, *seq)).min();
                prop_assert_eq!(sent.oldest().map(|(seq, left)| (left, seq)), oldest);
            }
        }
    }
}
