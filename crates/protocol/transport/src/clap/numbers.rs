//! A set of packet numbers of one file, one bit each.

/// Some of the numbers `0..len`.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    words: Vec<u64>,
    len: u32,
    count: u32,
    /// No word below this index holds a number, so the lowest number is found without a scan from the start.
    low: usize,
}

const BITS: u32 = u64::BITS;

impl Numbers {
    /// The empty set.
    pub(super) fn none(len: u32) -> Self {
        let words = vec![0; len.div_ceil(BITS) as usize];
        Self {
            low: words.len(),
            words,
            len,
            count: 0,
        }
    }

    /// The full set.
    pub(super) fn all(len: u32) -> Self {
        let mut all = Self::none(len);
        all.words.fill(u64::MAX);
        if let Some(last) = all.words.last_mut()
            && !len.is_multiple_of(BITS)
        {
            *last = (1 << (len % BITS)) - 1;
        }
        (all.count, all.low) = (len, 0);
        all
    }

    /// How many numbers the set holds.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn contains(&self, n: u32) -> bool {
        let word = self.words.get((n / BITS) as usize);
        word.is_some_and(|word| word >> (n % BITS) & 1 == 1)
    }

    /// Adds a number; true if it was missing.
    pub(super) fn insert(&mut self, n: u32) -> bool {
        if n >= self.len || self.contains(n) {
            return false;
        }
        let place = (n / BITS) as usize;
        self.words[place] |= 1 << (n % BITS);
        self.low = self.low.min(place);
        self.count += 1;
        true
    }

    /// Removes a number; true if it was present.
    pub(super) fn remove(&mut self, n: u32) -> bool {
        if !self.contains(n) {
            return false;
        }
        self.words[(n / BITS) as usize] &= !(1 << (n % BITS));
        self.count -= 1;
        self.advance();
        true
    }

    /// Moves `low` up to the first word with a number.
    fn advance(&mut self) {
        while self.words.get(self.low) == Some(&0) {
            self.low += 1;
        }
    }

    /// The lowest number.
    pub(super) fn first(&self) -> Option<u32> {
        self.first_from(0)
    }

    /// The lowest number that is not below `from`.
    pub(super) fn first_from(&self, from: u32) -> Option<u32> {
        let start = ((from / BITS) as usize).max(self.low);
        for (place, word) in self.words.iter().enumerate().skip(start) {
            let mut word = *word;
            if place == (from / BITS) as usize {
                word &= u64::MAX << (from % BITS);
            }
            if word != 0 {
                return Some(place as u32 * BITS + word.trailing_zeros());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_end_with_the_file() {
        for len in [0, 1, 63, 64, 65, 1_000] {
            let mut all = Numbers::all(len);
            assert_eq!(all.count(), len);
            assert!(!all.contains(len) && !all.insert(len));
            assert_eq!(all.first_from(len), None);
            (0..len).for_each(|n| assert!(all.remove(n)));
            assert!(all.is_empty() && all.first().is_none());
        }
    }

    proptest! {
        #[test]
        fn numbers_agree_with_a_set(
            len in 1u32..300,
            steps in prop::collection::vec((any::<bool>(), 0u32..320, 0u32..320), 0..300),
        ) {
            let mut numbers = Numbers::none(len);
            let mut model = BTreeSet::new();
            for (add, n, from) in steps {
                match add {
                    true => prop_assert_eq!(numbers.insert(n), n < len && model.insert(n)),
                    false => prop_assert_eq!(numbers.remove(n), model.remove(&n)),
                }
                prop_assert_eq!(numbers.count() as usize, model.len());
                prop_assert_eq!(numbers.first(), model.first().copied());
                prop_assert_eq!(numbers.first_from(from), model.range(from..).next().copied());
            }
        }
    }
}
