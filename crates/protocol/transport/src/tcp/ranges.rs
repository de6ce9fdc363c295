//! Sets of segment numbers as disjoint ranges: the out-of-order segments that a receiver holds, and a sender's
//! knowledge of them.

/// Segments from `start` up to `end`, which is excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The first segment.
    pub start: u64,
    /// One more than the last segment.
    pub end: u64,
}

impl Range {
    /// How many segments it contains.
    pub const fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Whether it contains the other range.
    #[inline]
    pub(super) const fn covers(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether it contains no segment.
    pub const fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// A set of segment numbers. Ranges are ascending and do not touch.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    /// The first `gone` entries are discarded, at most half of the list: the rest is one slice and rarely moves.
    list: Vec<Range>,
    gone: usize,
}

impl Ranges {
    pub(super) fn clear(&mut self) {
        self.list.clear();
        self.gone = 0;
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// All ranges, in ascending order.
    #[inline]
    pub(super) fn all(&self) -> &[Range] {
        self.list.get(self.gone..).unwrap_or_default()
    }

    /// The lowest number.
    #[inline]
    pub(super) fn first(&self) -> Option<u64> {
        self.all().first().map(|range| range.start)
    }

    /// The range that contains `seq`. Most calls ask for one of the three highest, which acknowledgments report.
    #[inline]
    pub(super) fn containing(&self, seq: u64) -> Option<Range> {
        for range in self.all().iter().rev().take(3) {
            if seq >= range.start {
                return (seq < range.end).then_some(*range);
            }
        }
        self.find(seq)
    }

    fn find(&self, seq: u64) -> Option<Range> {
        let all = self.all();
        let at = all.partition_point(|range| range.end <= seq);
        all.get(at).copied().filter(|range| range.start <= seq)
    }

    /// `seq` if it is not in the set, or else the next number that is not.
    #[inline]
    pub(super) fn skip(&self, seq: u64) -> u64 {
        self.containing(seq).map_or(seq, |range| range.end)
    }

    /// Adds a range; returns how many of its segments are new.
    #[inline]
    pub(super) fn insert(&mut self, new: Range) -> u64 {
        if new.is_empty() {
            return 0;
        }
        // Most calls extend the highest range.
        if let Some(highest) = self.list.last_mut()
            && (highest.start..=highest.end).contains(&new.start)
        {
            let before = highest.end;
            highest.end = before.max(new.end);
            return highest.end - before;
        }
        self.join(new)
    }

    /// Merges `new` with the ranges that it touches.
    fn join(&mut self, new: Range) -> u64 {
        let all = self.all();
        let from = all.partition_point(|range| range.end < new.start);
        let touched = all[from..]
            .iter()
            .take_while(|range| range.start <= new.end);
        let mut joined = new;
        let (mut known, mut count) = (0, 0);
        for range in touched {
            known += range
                .end
                .min(new.end)
                .saturating_sub(range.start.max(new.start));
            joined.start = joined.start.min(range.start);
            joined.end = joined.end.max(range.end);
            count += 1;
        }
        let from = self.gone + from;
        self.list.splice(from..from + count, [joined]);
        new.len() - known
    }

    /// Removes everything below `seq`; returns how many segments that were.
    pub(super) fn cut_below(&mut self, seq: u64) -> u64 {
        let mut below = 0;
        while let Some(range) = self.list.get_mut(self.gone) {
            if range.end > seq {
                below += seq.saturating_sub(range.start);
                range.start = range.start.max(seq);
                break;
            }
            below += range.len();
            self.gone += 1;
        }
        if self.gone > self.list.len() / 2 {
            self.list.drain(..self.gone);
            self.gone = 0;
        }
        below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        /// Compares with a set of single numbers.
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
                let all: Vec<u64> = ranges.all().iter().flat_map(|r| r.start..r.end).collect();
                prop_assert_eq!(all, set.iter().copied().collect::<Vec<_>>());
                prop_assert!(ranges.all().windows(2).all(|pair| pair[0].end < pair[1].start));
                for seq in 0..75 {
                    let found = ranges.containing(seq);
                    prop_assert_eq!(found.is_some(), set.contains(&seq));
                    prop_assert!(found.is_none_or(|r| (r.start..r.end).contains(&seq)));
                }
            }
        }
    }
}
