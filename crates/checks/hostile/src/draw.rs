//! Draws from a world's random stream.

use airlane_base::random::{Rng, Streams};

/// A random stream.
#[derive(Debug)]
pub(crate) struct Draw(Rng);

impl Draw {
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        Self(Streams::new(seed, 0).stream(name))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number in `from..to`, which must not be empty.
    pub(crate) fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.bits() % (to - from).max(1)
    }

    /// Nanoseconds, from a range in milliseconds.
    pub(crate) fn ms(&mut self, from: u64, to: u64) -> u64 {
        self.within(from * 1_000_000, to * 1_000_000)
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.0.chance(probability)
    }

    pub(crate) fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.within(0, all.len() as u64) as usize]
    }

    pub(crate) fn key(&mut self) -> [u8; 32] {
        let mut key = [0; 32];
        for part in key.chunks_mut(8) {
            part.copy_from_slice(&self.bits().to_le_bytes());
        }
        key
    }
}
