//! Sets of segment numbers as disjoint ranges: what a receiver holds ahead of a hole, and what a sender
//! knows of it.

use std::collections::VecDeque;

/// Segments from `start` up to, and without, `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub start: u64,
    /// One more than the last.
    pub end: u64,
}

impl Range {
    /// How many segments it holds.
    pub const fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether it holds none.
    pub const fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// A set of segment numbers. Ranges ascend and do not touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    list: VecDeque<Range>,
}

impl Ranges {
    pub(super) fn clear(&mut self) {
        self.list.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// From the highest down.
    #[inline]
    pub(super) fn descending(&self) -> impl Iterator<Item = &Range> {
        (0..self.list.len()).rev().map(|at| &self.list[at])
    }

    /// The range that holds `seq`. Most ask for one of the three highest, which acknowledgments report.
    #[inline]
    pub(super) fn containing(&self, seq: u64) -> Option<Range> {
        for range in self.descending().take(3) {
            if seq >= range.start {
                return (seq < range.end).then_some(*range);
            }
        }
        self.find(seq)
    }

    fn find(&self, seq: u64) -> Option<Range> {
        let at = self.list.partition_point(|range| range.end <= seq);
        self.list
            .get(at)
            .copied()
            .filter(|range| range.start <= seq)
    }

    /// `seq`, or the first number behind it that is not held.
    pub(super) fn skip(&self, seq: u64) -> u64 {
        self.containing(seq).map_or(seq, |range| range.end)
    }

    /// Adds a range; how many segments of it are new.
    pub(super) fn insert(&mut self, new: Range) -> u64 {
        if new.is_empty() {
            return 0;
        }
        // Most add to the highest.
        if let Some(highest) = self.list.back_mut()
            && (highest.start..=highest.end).contains(&new.start)
        {
            let before = highest.end;
            highest.end = before.max(new.end);
            return highest.end - before;
        }
        // Those that it touches become one with it.
        let from = self.list.partition_point(|range| range.end < new.start);
        let mut joined = new;
        let mut known = 0;
        let mut to = from;
        while let Some(range) = self.list.get(to).filter(|range| range.start <= new.end) {
            known += range
                .end
                .min(new.end)
                .saturating_sub(range.start.max(new.start));
            joined.start = joined.start.min(range.start);
            joined.end = joined.end.max(range.end);
            to += 1;
        }
        if from == to {
            self.list.insert(from, joined);
        } else {
            self.list[from] = joined;
            if to > from + 1 {
                self.list.drain(from + 1..to);
            }
        }
        new.len() - known
    }

    /// Forgets everything below `seq`; how many segments that were.
    pub(super) fn cut_below(&mut self, seq: u64) -> u64 {
        let mut gone = 0;
        while let Some(range) = self.list.front_mut() {
            if range.end > seq {
                gone += seq.saturating_sub(range.start);
                range.start = range.start.max(seq);
                break;
            }
            gone += range.len();
            self.list.pop_front();
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Against a set of single numbers.
        #[test]
        fn agrees_with_a_set(steps in prop::collection::vec((0u64..60, 0u64..12, any::<bool>()), 0..60)) {
            let (mut ranges, mut set) = (Ranges::default(), BTreeSet::new());
            for (start, len, cut) in steps {
                if cut {
                    let gone = ranges.cut_below(start / 2);
                    let left = set.split_off(&(start / 2));
                    prop_assert_eq!(gone, set.len() as u64);
                    set = left;
                } else {
                    let before = set.len();
                    set.extend(start..start + len);
                    let new = ranges.insert(Range { start, end: start + len });
                    prop_assert_eq!(new, (set.len() - before) as u64);
                }
                let all: Vec<u64> = ranges.list.iter().flat_map(|r| r.start..r.end).collect();
                prop_assert_eq!(all, set.iter().copied().collect::<Vec<_>>());
                let apart = ranges.list.iter().zip(ranges.list.iter().skip(1));
                prop_assert!(apart.into_iter().all(|(one, next)| one.end < next.start));
                for seq in 0..75 {
                    let found = ranges.containing(seq);
                    prop_assert_eq!(found.is_some(), set.contains(&seq));
                    prop_assert!(found.is_none_or(|r| (r.start..r.end).contains(&seq)));
                }
            }
        }
    }
}
