//! The Internet checksum (RFC 1071), and the completion of partial checksums.

/// The one's complement sum of `bytes` as big-endian 16-bit words, folded but not complemented.
///
/// The sums of pieces may be added if every piece but the last has an even length.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(4);
    let mut total = 0u64;
    // For speed, add 32 bits at a time in native byte order. The final fold adds the carries, and the sum
    // does not depend on the byte order (RFC 1071, 2).
    for word in &mut words {
        total += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
    }
    let mut last = [0; 4];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    total += u64::from(u32::from_ne_bytes(last));
    u64::from(u16::from_be(fold(total)))
}

const fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

/// The checksum for a sum.
pub(crate) const fn finish(sum: u64) -> u16 {
    !fold(sum)
}

/// Like [`finish`], but with zero written as all ones: in UDP, zero means "no checksum" (RFC 768). In TCP
/// both values are equivalent.
pub(crate) const fn finish_transport(sum: u64) -> u16 {
    match finish(sum) {
        0 => 0xffff,
        checksum => checksum,
    }
}

/// Completes a partial checksum over `frame[start..]`, which is at `start + offset` and holds the sum of the
/// pseudo-header. Returns `false` if that position is outside the frame.
pub(crate) fn complete(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let at = start + offset;
    if at + 2 > frame.len() {
        return false;
    }
    let checksum = finish_transport(sum(&frame[start..]));
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(finish(sum(&bytes)), !0xddf2);
    }

    proptest! {
        #[test]
        fn agrees_with_sixteen_bits_at_a_time(bytes: Vec<u8>) {
            let naive: u64 = bytes
                .chunks(2)
                .map(|c| u64::from(c[0]) << 8 | u64::from(*c.get(1).unwrap_or(&0)))
                .sum();
            prop_assert_eq!(finish(sum(&bytes)), finish(naive));
        }

        #[test]
        fn a_completed_checksum_verifies(mut bytes in prop::collection::vec(any::<u8>(), 4..99)) {
            let start = 2;
            let pseudo_header = sum(&bytes[start..start + 2]);
            prop_assert!(complete(&mut bytes, start, 0));
            prop_assert_eq!(finish(sum(&bytes[start..]) + pseudo_header), 0);
        }

        #[test]
        fn a_place_outside_the_frame_is_refused(mut bytes: Vec<u8>, start in 0usize..70_000, offset in 0usize..70_000) {
            let fits = start + offset + 2 <= bytes.len();
            prop_assert_eq!(complete(&mut bytes, start, offset), fits);
        }
    }
}
