//! Sequence numbers modulo any number, with the modulus as a parameter instead of one type per width.

/// A sequence number; only its residue in some [`SeqSpace`] has meaning.
pub type Seq = u32;

/// The ring of sequence numbers `0..M`.
///
/// `distance(a, b)` is `d(a, b) = (a - b) mod M`. Powers of two, the usual case, need no division.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeqSpace {
    last: u32,
}

impl SeqSpace {
    /// The ring with `modulus` numbers.
    ///
    /// # Panics
    /// If `modulus` is not within 2 to 2^32; it is a constant of a header profile or of a published work, never input.
    pub const fn new(modulus: u64) -> Self {
        assert!(
            modulus >= 2 && modulus <= 1 << 32,
            "a sequence space has 2 to 2^32 numbers"
        );
        Self {
            last: (modulus - 1) as u32,
        }
    }

    /// How many numbers the ring has.
    pub const fn modulus(self) -> u64 {
        self.last as u64 + 1
    }

    /// Half the ring, rounded down. A smaller distance means "ahead", any other "behind".
    pub const fn half(self) -> u32 {
        (self.modulus() / 2) as u32
    }

    const fn is_power_of_two(self) -> bool {
        self.last & self.last.wrapping_add(1) == 0
    }

    /// The residue of `a` in this ring.
    pub const fn reduce(self, a: Seq) -> Seq {
        if self.is_power_of_two() {
            a & self.last
        } else {
            a % (self.last + 1)
        }
    }

    /// `(a - b) mod M`: how far `a` is ahead of `b`.
    pub const fn distance(self, a: Seq, b: Seq) -> u32 {
        let ahead = a.wrapping_sub(b);
        if self.is_power_of_two() {
            ahead & self.last
        } else if a >= b {
            ahead
        } else {
            ahead.wrapping_add(self.last + 1)
        }
    }

    /// `(a + n) mod M`.
    pub const fn add(self, a: Seq, n: u32) -> Seq {
        if self.is_power_of_two() {
            a.wrapping_add(n) & self.last
        } else {
            ((a as u64 + n as u64) % self.modulus()) as Seq
        }
    }

    /// `(a - n) mod M`, for `n` up to the modulus.
    pub const fn sub(self, a: Seq, n: u32) -> Seq {
        self.distance(
            a,
            if self.is_power_of_two() {
                n
            } else {
                n % (self.last + 1)
            },
        )
    }

    /// The number after `a`.
    pub const fn next(self, a: Seq) -> Seq {
        if a == self.last { 0 } else { a + 1 }
    }

    /// Whether `a` is a number of this ring.
    pub const fn contains(self, a: Seq) -> bool {
        a <= self.last
    }

    /// The number nearest to `reference` whose low 16 bits are `low`.
    ///
    /// Restores a number that was shortened to 16 bits, provided it is within 32,768 of `reference`. The modulus must
    /// therefore be a power of two, or at most 2^16.
    pub const fn widen(self, low: u16, reference: Seq) -> Seq {
        if self.last <= u16::MAX as u32 {
            return self.reduce(low as u32);
        }
        let ahead = low.wrapping_sub(reference as u16);
        reference.wrapping_add(ahead as i16 as i32 as u32) & self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn distance_wraps_at_each_modulus() {
        for modulus in [8, 62, 63, 64, 256, (1 << 24) - 3, 1 << 32] {
            let space = SeqSpace::new(modulus);
            let last = (modulus - 1) as u32;
            assert_eq!(space.modulus(), modulus);
            assert_eq!(space.half(), (modulus / 2) as u32);
            assert_eq!(space.next(last), 0);
            assert_eq!(space.sub(0, 1), last);
            assert_eq!(space.distance(0, last), 1);
            assert_eq!(space.distance(last, 0), last);
            assert!(space.contains(last));
            assert!(modulus > u32::MAX.into() || !space.contains(last + 1));
        }
    }

    proptest! {
        #[test]
        fn it_is_arithmetic_modulo_m(modulus in prop_oneof![2u64..300, 2..=1u64 << 32], a: u32, n: u32) {
            let space = SeqSpace::new(modulus);
            let m = i128::from(modulus);
            let (a, n) = (space.reduce(a), space.reduce(n));
            let is = |x: i128| x.rem_euclid(m) as u32;
            let (wide_a, wide_n) = (i128::from(a), i128::from(n));
            prop_assert_eq!(space.add(a, n), is(wide_a + wide_n));
            prop_assert_eq!(space.sub(a, n), is(wide_a - wide_n));
            prop_assert_eq!(space.distance(a, n), is(wide_a - wide_n));
            prop_assert_eq!(space.next(a), is(wide_a + 1));
            prop_assert_eq!(space.distance(space.add(a, n), a), n);
        }

        #[test]
        fn widen_finds_the_neighbour(bits in 16u32..=32, reference: u32, offset in -30_000i32..30_000) {
            let space = SeqSpace::new(1 << bits);
            let seq = space.reduce(reference.wrapping_add_signed(offset));
            prop_assert_eq!(space.widen(seq as u16, space.reduce(reference)), seq);
        }
    }
}
