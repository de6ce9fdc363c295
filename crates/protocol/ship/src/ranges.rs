//! A set of byte positions: disjoint ranges in order, with gaps between them.

use serde::{Deserialize, Serialize};

/// A set of bytes, such as those that are missing: first byte and length of each range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// The empty set.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// The first `len` bytes.
    pub fn all(len: u64) -> Self {
        let mut all = Self::none();
        all.push(0, len);
        all
    }

    /// Adds bytes after all others.
    pub fn push(&mut self, from: u64, len: u64) {
        match self.0.last_mut() {
            _ if len == 0 => {}
            Some((start, before)) if *start + *before == from => *before += len,
            _ => self.0.push((from, len)),
        }
    }

    /// Checks that the ranges are in order, do not overlap and end within `total`.
    ///
    /// # Errors
    /// Names the range that is invalid.
    pub fn check(&self, total: u64) -> Result<(), String> {
        let mut end = 0;
        for &(from, len) in &self.0 {
            let ends = from.checked_add(len).filter(|ends| *ends <= total);
            match ends {
                Some(ends) if len > 0 && from >= end => end = ends,
                _ => return Err(format!("{len} bytes from {from} of {total}")),
            }
        }
        Ok(())
    }

    /// First byte and length of each range.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().copied()
    }

    /// Number of ranges.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Number of bytes.
    pub fn bytes(&self) -> u64 {
        self.0.iter().map(|(_, len)| len).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first of these bytes at or after `at`.
    pub fn first_from(&self, at: u64) -> Option<u64> {
        let place = self.0.partition_point(|(from, len)| from + len <= at);
        self.0.get(place).map(|(from, _)| (*from).max(at))
    }

    /// Those of the `len` bytes from `start` on, counted from `start`.
    #[must_use]
    pub fn within(&self, start: u64, len: u64) -> Self {
        let mut within = Self::none();
        let first = self
            .0
            .partition_point(|(from, count)| from + count <= start);
        for &(from, count) in &self.0[first..] {
            if from >= start + len {
                break;
            }
            let (begin, end) = (from.max(start), (from + count).min(start + len));
            within.push(begin - start, end - begin);
        }
        within
    }

    /// The union of both sets.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut all: Vec<_> = self.iter().chain(other.iter()).collect();
        all.sort_unstable();
        let mut both = Self::none();
        for (from, len) in all {
            let end = both.0.last().map_or(0, |(from, len)| from + len);
            let start = from.max(end);
            both.push(start, (from + len).saturating_sub(start));
        }
        both
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn of(numbers: &BTreeSet<u64>) -> Ranges {
        let mut ranges = Ranges::none();
        numbers.iter().for_each(|n| ranges.push(*n, 1));
        ranges
    }

    fn numbers(ranges: &Ranges) -> BTreeSet<u64> {
        ranges
            .iter()
            .flat_map(|(from, len)| from..from + len)
            .collect()
    }

    proptest! {
        #[test]
        fn ranges_agree_with_a_set_of_bytes(
            a in prop::collection::btree_set(0u64..60, 0..40),
            b in prop::collection::btree_set(0u64..60, 0..40),
            at in 0u64..61,
        ) {
            let (x, y) = (of(&a), of(&b));
            prop_assert_eq!(x.check(60), Ok(()));
            prop_assert_eq!(x.bytes(), a.len() as u64);
            prop_assert_eq!(x.first_from(at), a.range(at..).next().copied());
            let both = x.with(&y);
            prop_assert_eq!(both.check(60), Ok(()));
            prop_assert_eq!(numbers(&both), &a | &b);
            let inside: BTreeSet<u64> = a.range(at..at + 9).map(|n| n - at).collect();
            prop_assert_eq!(numbers(&x.within(at, 9)), inside);
            // Adjacent ranges are merged.
            prop_assert_eq!(&both, &of(&numbers(&both)));
        }
    }

    #[test]
    fn overlapping_empty_and_excessive_ranges_are_refused() {
        for wrong in [
            vec![(0, 0)],
            vec![(0, 2), (1, 1)],
            vec![(5, 6)],
            vec![(u64::MAX, 2)],
            vec![(4, 1), (0, 1)],
        ] {
            assert!(Ranges(wrong.clone()).check(10).is_err(), "{wrong:?}");
        }
    }
}
