//! Integers in one to ten bytes, small ones in fewer: LEB128, with zigzag for signed ones.

/// Appends `value`: seven bits per byte, the lowest first.
pub fn write(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Takes a number off the front of `bytes`; `None` if it does not end or exceeds 64 bits.
pub fn read(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Maps values near zero, positive or negative, to small numbers.
#[must_use]
pub const fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// The inverse of [`zigzag`].
#[must_use]
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(value: u64, next: u8) {
            let mut bytes = Vec::new();
            write(&mut bytes, value);
            prop_assert!(bytes.len() <= 10);
            bytes.push(next);
            let mut rest = bytes.as_slice();
            prop_assert_eq!(read(&mut rest), Some(value));
            prop_assert_eq!(rest, [next]);
        }

        #[test]
        fn signs_do_not_lengthen(value: i64) {
            prop_assert_eq!(unzigzag(zigzag(value)), value);
            prop_assert!(zigzag(value) / 2 <= value.unsigned_abs());
        }
    }

    #[test]
    fn unterminated_and_oversized_varints_are_refused() {
        assert_eq!(read(&mut [0x80].as_slice()), None);
        assert_eq!(read(&mut [0xff; 10].as_slice()), None);
    }
}
