//! Random bytes derived from the seed that the caller drew from the operating system.
//!
//! The generator is ChaCha20, rekeyed from its own output after each draw. Its state therefore reveals no earlier
//! output: past ephemeral keys remain secret even if the memory is read later.

use std::fmt;

use airlane_base::Duration;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};
use zeroize::Zeroize;

pub(crate) struct Entropy(ChaCha20Rng);

impl Entropy {
    pub(crate) fn new(mut seed: [u8; 32]) -> Self {
        let fresh = Self(ChaCha20Rng::from_seed(seed));
        seed.zeroize();
        fresh
    }

    /// `N` random bytes.
    pub(crate) fn draw<const N: usize>(&mut self) -> [u8; N] {
        let (mut next, mut drawn) = ([0; 32], [0; N]);
        self.0.fill_bytes(&mut next);
        self.0.fill_bytes(&mut drawn);
        *self = Self::new(next);
        next.zeroize();
        drawn
    }

    /// Uniform in `[0, most)`, in nanoseconds.
    pub(crate) fn below(&mut self, most: Duration) -> Duration {
        // The bias of the remainder is below one in a million for spans of seconds.
        let draw = u64::from_be_bytes(self.draw());
        Duration::from_nanos(draw % most.as_nanos().max(1))
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_differ_and_repeat_with_the_seed() {
        let draws = |seed| {
            let mut entropy = Entropy::new([seed; 32]);
            (0..100)
                .map(|_| entropy.draw::<32>())
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(draws(1).len(), 100);
        assert_eq!(draws(1), draws(1));
        assert!(draws(1).is_disjoint(&draws(2)));
    }
}
