//! Bitmaps of the frames that a receiver holds.

/// The received frames among the 128 numbers from a first one on.
///
/// On the wire it ends with the newest frame: `ceil(span / 8)` bytes, the first number in the lowest bit of
/// the first byte. Numbers beyond its end were not received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Bitmap([u64; 2]);

impl Bitmap {
    /// Numbers that it covers.
    pub const SPAN: u32 = 128;
    /// Maximum length on the wire, bytes.
    pub const MAX_LEN: usize = Self::SPAN as usize / 8;

    /// Nothing received.
    pub const EMPTY: Self = Self([0; 2]);

    /// Marks the number `at` after the first as received; ignores numbers beyond the span.
    pub fn set(&mut self, at: u32) {
        if let Some(word) = self.0.get_mut(at as usize / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// The received numbers, as distances from the first, ascending.
    pub fn ones(self) -> impl Iterator<Item = u32> {
        let mut words = self.0;
        std::iter::from_fn(move || {
            let which = words.iter().position(|word| *word != 0)?;
            let bit = words[which].trailing_zeros();
            words[which] &= words[which] - 1;
            Some(which as u32 * 64 + bit)
        })
    }

    fn bits(self) -> u128 {
        u128::from(self.0[1]) << 64 | u128::from(self.0[0])
    }

    /// Length on the wire, bytes.
    pub fn wire_len(self) -> usize {
        (Self::SPAN - self.bits().leading_zeros()).div_ceil(8) as usize
    }

    /// Writes it to `buf`, which is `wire_len` long.
    pub(super) fn write(self, buf: &mut [u8]) {
        for (to, from) in buf.iter_mut().zip(self.bits().to_le_bytes()) {
            *to = from;
        }
    }

    /// Reads all of `buf`; none if that is longer than a bitmap can be, or not minimal.
    pub(super) fn read(buf: &[u8]) -> Option<Self> {
        let mut bytes = [0; Self::MAX_LEN];
        bytes.get_mut(..buf.len())?.copy_from_slice(buf);
        let bits = u128::from_le_bytes(bytes);
        let bitmap = Self([bits as u64, (bits >> 64) as u64]);
        (bitmap.wire_len() == buf.len()).then_some(bitmap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_wire_ends_with_the_newest_frame() {
        let mut bitmap = Bitmap::EMPTY;
        assert_eq!(bitmap.wire_len(), 0);
        for (at, len) in [(1, 1), (7, 1), (8, 2), (70, 9), (127, 16), (128, 16)] {
            bitmap.set(at);
            assert_eq!(bitmap.wire_len(), len, "{at}");
        }
        let mut bytes = [0; 16];
        bitmap.write(&mut bytes);
        assert_eq!(bytes[..2], [0b1000_0010, 0b0000_0001]);
        assert_eq!(Bitmap::read(&[0; 17]), None);
    }

    proptest! {
        #[test]
        fn what_is_set_is_read(set: BTreeSet<u8>) {
            let set: BTreeSet<u32> = set.into_iter().map(|at| u32::from(at % 128)).collect();
            let mut bitmap = Bitmap::EMPTY;
            set.iter().for_each(|at| bitmap.set(*at));
            prop_assert_eq!(bitmap.ones().collect::<BTreeSet<_>>(), set);
            let mut bytes = [0; Bitmap::MAX_LEN];
            bitmap.write(&mut bytes[..bitmap.wire_len()]);
            prop_assert_eq!(Bitmap::read(&bytes[..bitmap.wire_len()]), Some(bitmap));
        }
    }
}
