//! Sequence numbers modulo a power of two, as one parameter instead of one type per width.

/// A sequence number; only its residue in some [`SeqSpace`] has meaning.
pub type Seq = u32;

/// The ring of sequence numbers `0..2^bits`.
///
/// `distance(a, b)` is the specification's `d(a, b) = (a - b) mod M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeqSpace {
    mask: u32,
}

impl SeqSpace {
    /// A ring with `2^bits` numbers.
    ///
    /// # Panics
    /// If `bits` is not in `1..=32`; the width is a constant of a header profile, never input.
    pub const fn new(bits: u32) -> Self {
        assert!(bits >= 1 && bits <= 32, "a sequence space has 1 to 32 bits");
        Self {
            mask: u32::MAX >> (32 - bits),
        }
    }

    /// How many numbers there are: 8 to 2^32.
    pub const fn modulus(self) -> u64 {
        self.mask as u64 + 1
    }

    /// Half the ring. Nearer than this is "ahead", the rest is "behind".
    pub const fn half(self) -> u32 {
        (self.mask >> 1) + 1
    }

    /// `(a - b) mod M`: how far `a` lies ahead of `b`.
    pub const fn distance(self, a: Seq, b: Seq) -> u32 {
        a.wrapping_sub(b) & self.mask
    }

    /// `(a + n) mod M`.
    pub const fn add(self, a: Seq, n: u32) -> Seq {
        a.wrapping_add(n) & self.mask
    }

    /// The number after `a`.
    pub const fn next(self, a: Seq) -> Seq {
        self.add(a, 1)
    }

    /// Whether `a` is a number of this ring.
    pub const fn contains(self, a: Seq) -> bool {
        a & !self.mask == 0
    }

    /// The number nearest to `reference` whose low 16 bits are `low`.
    ///
    /// Undoes the shortening of a number to 16 bits where both ends know that it lies within
    /// 32,768 of `reference`.
    pub const fn widen(self, low: u16, reference: Seq) -> Seq {
        let ahead = low.wrapping_sub(reference as u16);
        reference.wrapping_add(ahead as i16 as i32 as u32) & self.mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn distance_wraps_at_each_modulus() {
        for (bits, last) in [(3, 7), (8, 255), (32, u32::MAX)] {
            let space = SeqSpace::new(bits);
            assert_eq!(space.modulus(), 1 << bits);
            assert_eq!(space.next(last), 0);
            assert_eq!(space.distance(0, last), 1);
            assert_eq!(space.distance(last, 0), last);
        }
    }

    proptest! {
        #[test]
        fn add_then_distance_is_identity(bits in 1u32..=32, a: u32, n: u32) {
            let space = SeqSpace::new(bits);
            let (a, n) = (space.add(a, 0), space.add(n, 0));
            prop_assert_eq!(space.distance(space.add(a, n), a), n);
        }

        #[test]
        fn widen_finds_the_neighbour(reference: u32, offset in -30_000i32..30_000) {
            let space = SeqSpace::new(32);
            let seq = reference.wrapping_add_signed(offset);
            prop_assert_eq!(space.widen(seq as u16, reference), seq);
        }
    }
}
