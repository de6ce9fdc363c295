//! Named random streams: one generator per purpose, so that a change to one model never disturbs the draws of another.
//!
//! The generator is ChaCha with 8 rounds. Its key is *(seed, run)*, and its stream number is a stable hash of the name,
//! for instance `"link.radio.down.errors"`.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};

/// The source of all streams of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
    run: u64,
}

impl Streams {
    /// The streams of repetition `run` under `seed`.
    pub const fn new(seed: u64, run: u64) -> Self {
        Self { seed, run }
    }

    /// The stream with this name. The same name always gives the same sequence.
    pub fn stream(self, name: &str) -> Rng {
        let mut key = [0u8; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        key[8..16].copy_from_slice(&self.run.to_le_bytes());
        let mut inner = ChaCha8Rng::from_seed(key);
        inner.set_stream(fnv1a(name.as_bytes()));
        Rng { inner }
    }
}

/// FNV-1a, 64 bit. It is stable, unlike the standard library's hasher.
pub const fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

/// One random stream. The samplers are our own, so that a new version of a library cannot change results.
#[derive(Clone, Debug)]
pub struct Rng {
    inner: ChaCha8Rng,
}

impl Rng {
    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.inner.next_u64()
    }

    /// Uniform in `[0, 1)`, 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.inner.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`. Draws once, whatever `p` is.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Exponential with this mean, by inversion.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Normal with mean 0 and standard deviation 1 (Box and Muller 1958; only one of the two values is used).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(self.exponential(2.0));
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_named_and_repeatable() {
        let streams = Streams::new(7, 3);
        let draw = |name: &str, s: Streams| s.stream(name).next_u64();
        assert_eq!(draw("a", streams), draw("a", streams));
        assert_ne!(draw("a", streams), draw("b", streams));
        assert_ne!(draw("a", streams), draw("a", Streams::new(7, 4)));
        assert_ne!(draw("a", streams), draw("a", Streams::new(8, 3)));
    }

    #[test]
    fn golden_draws() {
        // A change here means that every published result changes.
        let mut rng = Streams::new(1, 0).stream("golden");
        let draws: Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(draws, GOLDEN, "{draws:#x?}");
    }
    const GOLDEN: [u64; 3] = [
        0xb56d_b4ca_f628_106b,
        0xa9d5_5148_25d1_676f,
        0x7689_31c2_66f7_c922,
    ];

    #[test]
    fn exponential_has_its_mean() {
        let mut rng = Streams::new(1, 0).stream("exponential");
        let n = 200_000;
        let mean = (0..n).map(|_| rng.exponential(5.0)).sum::<f64>() / f64::from(n);
        // Standard error 5/sqrt(n) = 0.011; four of them.
        assert!((mean - 5.0).abs() < 0.045, "{mean}");
    }
}
