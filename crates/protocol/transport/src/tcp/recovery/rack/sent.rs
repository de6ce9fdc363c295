//! Every segment that is outstanding, on its own: when its last copy left, whether it has come, whether it is
//! lost; and the order in which they left.
//!
//! A segment is in the order of departures once for each copy; only the entry of its last copy counts. Invariant:
//! `sacked` and `lost` are the numbers of segments above `snd_una` that have come, and that are lost and have not
//! left again; no segment is both.

use std::collections::VecDeque;

use airlane_base::Instant;

use crate::tcp::ranges::Ranges;
use crate::tcp::{MOST_BLOCKS, Range};

/// One segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// When its last copy left.
    pub(super) left: Instant,
    /// Whether it has left more than once.
    pub(super) again: bool,
    lost: bool,
    /// Whether it was reported.
    come: bool,
}

/// The segments from `una` to the highest that has left.
#[derive(Clone, Debug, Default)]
pub(super) struct Sent {
    una: u64,
    segments: VecDeque<Segment>,
    arrived: Ranges,
    /// The blocks of the last report.
    told: [Range; MOST_BLOCKS],
    sacked: u64,
    lost: u64,
    /// Copies by when they left, oldest first; neither lost nor, the first one, come or left again.
    order: VecDeque<(u64, Instant)>,
    /// What is lost, in the order in which that was found; some have come or left again since.
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

    /// Segments that are on their way.
    #[inline]
    pub(super) fn pipe(&self) -> u64 {
        self.segments.len() as u64 - self.sacked - self.lost
    }

    /// Segments above `una` that have come.
    pub(super) const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// A copy of `seq` leaves: of the next one for the first time, or of an earlier one.
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

    /// Everything below `ack` has come; `each` sees those that are news.
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

    /// Blocks report segments; `each` sees those that are news. What never left is ignored, and what was told last is
    /// told again and again.
    pub(super) fn report(&mut self, blocks: &[Range], mut each: impl FnMut(u64, &Segment)) {
        let told = self.told;
        for (at, block) in blocks.iter().enumerate() {
            if block.end > self.una + self.segments.len() as u64 {
                continue;
            }
            self.told[at] = *block;
            if !told.iter().any(|told| told.covers(block)) {
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

    /// The copy that left first of those that count: its number, and when.
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

    /// A segment that has neither come nor is lost already is lost.
    pub(super) fn lose(&mut self, seq: u64) {
        let Some(segment) = self.get_mut(seq) else {
            return;
        };
        if !segment.come && !std::mem::replace(&mut segment.lost, true) {
            self.lost += 1;
            self.to_resend.push_back(seq);
        }
    }

    /// The oldest segment is lost, and leaves again before all others that are: without it nothing is
    /// acknowledged, and the timer would only be doubled. If it was reported, then the receiver has dropped it since,
    /// and who knows what else (RFC 2018, section 8).
    pub(super) fn lose_oldest(&mut self) {
        if self.segments.front().is_some_and(|oldest| oldest.come) {
            self.forget_reports();
        }
        self.lose(self.una);
        self.to_resend.push_front(self.una);
    }

    /// What was reported is on its way. This is rare, and may take its time.
    fn forget_reports(&mut self) {
        for (seq, segment) in (self.una..).zip(&mut self.segments) {
            if std::mem::take(&mut segment.come) {
                self.order.push_back((seq, segment.left));
            }
        }
        self.arrived.clear();
        self.told = Default::default();
        self.sacked = 0;
        self.sort();
    }

    fn sort(&mut self) {
        let order = self.order.make_contiguous();
        order.sort_unstable_by_key(|(seq, left)| (*left, *seq));
    }

    /// What is lost and has not left again: the first that was found.
    #[inline]
    pub(super) fn next_lost(&mut self) -> Option<u64> {
        if self.lost == 0 {
            // Most ask in vain.
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

    /// Whether a copy of a segment from `from` on is on its way. This is rare, and may take its time.
    pub(super) fn has_copies(&self, from: u64) -> bool {
        let outstanding = (self.una..).zip(&self.segments);
        outstanding
            .skip_while(|(seq, _)| *seq < from)
            .any(|(_, segment)| segment.again && !segment.lost && !segment.come)
    }

    /// Nothing that has not left again was lost. This is rare, and may take its time.
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

    /// Each segment by its number: when it left last, whether it has come, whether it is lost.
    type Naive = BTreeMap<u64, (Instant, bool, bool)>;

    #[test]
    fn a_copy_of_the_oldest_that_is_lost_too_leaves_before_what_was_found_earlier() {
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
