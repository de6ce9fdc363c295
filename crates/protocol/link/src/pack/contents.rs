//! The payload of a live frame where it is not one packet: several, or a fragment of one.
//!
//! ```text
//! packet     | 4 or 6 ...                  an IP packet, as it is
//! short      | 3, 5 or 7 ...               one with compressed headers (`headers`)
//! aggregate  | 0x10 | length | packet | length | packet ...      two packets or more
//! fragment   | 0x20 + last:1 | index:8 | packet:16 | bytes       of one, sent one after the other
//! ```
//! The first byte of an IP packet holds its version, so a frame with one packet, as most are, has no
//! overhead. A length is one byte up to 127, else two, the first with its highest bit set. `packet` counts
//! the packets that a service has fragmented.
//!
//! Parsing never panics: other bytes are malformed, and an aggregate with one bad entry is malformed as a
//! whole.

use std::ops::Range;

use super::headers::{self, Form};
use super::{Contents, Fragment};

/// Bytes of an aggregate before its first packet.
pub const AGGREGATE_HEAD: usize = 1;
/// Bytes of a fragment before its part of the packet.
pub const FRAGMENT_HEAD: usize = 4;
/// The longest packet in an aggregate.
pub const LONGEST_TOGETHER: usize = 0x7fff;
/// Maximum number of packets in an aggregate: as many as fit an ordinary frame with full headers. This bounds
/// what a frame can expand to, whatever its sender does.
pub const MOST_TOGETHER: usize = 64;
/// Maximum number of fragments of a packet.
pub const MOST_FRAGMENTS: usize = 255;

const AGGREGATE: u8 = 0x10;
const FRAGMENT: u8 = 0x20;
const LAST: u8 = 1;

/// Bytes that a packet of `len` bytes occupies in an aggregate.
pub const fn len_together(len: usize) -> usize {
    len + if len < 0x80 { 1 } else { 2 }
}

/// Classifies a payload.
pub fn contents(bytes: &[u8]) -> Contents {
    match bytes {
        _ if let Some(form) = headers::form(bytes) => match form {
            Form::Whole => Contents::Packet,
            Form::Opening | Form::Short | Form::Anchored => Contents::Short,
        },
        [AGGREGATE, ..] => {
            let (mut count, mut at) = (0, AGGREGATE_HEAD);
            while let Some(range) = packet_at(bytes, at).filter(|_| count <= MOST_TOGETHER) {
                if headers::form(&bytes[range.clone()]).is_none() {
                    break;
                }
                (count, at) = (count + 1, range.end);
            }
            match (2..=MOST_TOGETHER).contains(&count) && at == bytes.len() {
                true => Contents::Aggregate,
                false => Contents::Malformed,
            }
        }
        [first, index, high, low, _, ..] if first & !LAST == FRAGMENT => {
            Contents::Fragment(Fragment {
                packet: u16::from_be_bytes([*high, *low]),
                index: *index,
                last: first & LAST != 0,
            })
        }
        _ => Contents::Malformed,
    }
}

/// The ranges of an aggregate's packets; ends early if the bytes are malformed.
pub fn packets(bytes: &[u8]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = AGGREGATE_HEAD;
    std::iter::from_fn(move || {
        let range = packet_at(bytes, at)?;
        at = range.end;
        Some(range)
    })
}

/// The range of the packet of an aggregate whose length field is at `at`: the first at [`AGGREGATE_HEAD`],
/// the next at the end of the previous one. None after the last.
pub fn packet_at(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let (len, start) = match *bytes.get(at..)? {
        [high, low, ..] if high >= 0x80 => {
            (usize::from(high & 0x7f) << 8 | usize::from(low), at + 2)
        }
        [len, ..] if len < 0x80 => (usize::from(len), at + 1),
        _ => return None,
    };
    let end = start + len;
    (len > 0 && end <= bytes.len()).then_some(start..end)
}

/// Writes an aggregate to the start of `buf` and returns its length. None if there is too little room, or a
/// packet is too long. A receiver rejects more than [`MOST_TOGETHER`].
pub fn write_aggregate<'a>(
    packets: impl IntoIterator<Item = &'a [u8]>,
    buf: &mut [u8],
) -> Option<usize> {
    *buf.first_mut()? = AGGREGATE;
    let mut at = AGGREGATE_HEAD;
    for packet in packets {
        let len = packet.len();
        let room = buf.get_mut(at..at + len_together(len))?;
        let head = len_together(len) - len;
        match head {
            1 => room[0] = len as u8,
            _ if len <= LONGEST_TOGETHER => {
                room[..2].copy_from_slice(&(0x8000 | len as u16).to_be_bytes());
            }
            _ => return None,
        }
        room[head..].copy_from_slice(packet);
        at += len + head;
    }
    Some(at)
}

/// The header of a fragment.
pub const fn fragment_head(which: Fragment) -> [u8; FRAGMENT_HEAD] {
    let [high, low] = which.packet.to_be_bytes();
    [FRAGMENT | which.last as u8, which.index, high, low]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_take_one_byte_or_two() {
        let short = [0x45; 127];
        let long = [0x60; 128];
        let mut buf = [0; 300];
        let len = write_aggregate([&short[..], &long[..]], &mut buf);
        assert_eq!(len, Some(1 + 1 + 127 + 2 + 128));
        assert_eq!((buf[1], buf[129], buf[130]), (127, 0x80, 128));
        let bytes = &buf[..len.unwrap()];
        assert_eq!(contents(bytes), Contents::Aggregate);
        let read: Vec<_> = packets(bytes).map(|range| &bytes[range]).collect();
        assert_eq!(read, [&short[..], &long[..]]);
        for end in 0..bytes.len() {
            assert_eq!(contents(&bytes[..end]), Contents::Malformed, "{end}");
        }
        assert_eq!(write_aggregate([&long[..]], &mut [0; 100]), None);
    }

    #[test]
    fn invalid_contents_are_malformed() {
        let packet = [0x45; 20];
        let aggregate = |packets: &[&[u8]]| {
            let mut buf = [0; 3_000];
            let len = write_aggregate(packets.iter().copied(), &mut buf).unwrap();
            buf[..len].to_vec()
        };
        assert_eq!(contents(&aggregate(&[&packet[..]; 2])), Contents::Aggregate);
        let nested = aggregate(&[&packet, &[0x10, 0]]);
        let lone = aggregate(&[&packet]);
        // No packet is shorter than its header, and their number is limited.
        let stubs = aggregate(&[&[0x45; 19][..]; 2]);
        let stubs_v6 = aggregate(&[&[0x60; 39][..]; 2]);
        let many = aggregate(&[&[0x30, 0, 0, 0, 0, 0, 0][..]; MOST_TOGETHER + 1]);
        assert_eq!(
            contents(&aggregate(&[&[0x30, 0, 0, 0, 0, 0, 0][..]; MOST_TOGETHER])),
            Contents::Aggregate
        );
        for bytes in [
            &[][..],
            &[0],
            &[0x10],
            &nested,
            &lone,
            &stubs,
            &stubs_v6,
            &many,
            &[0x45; 19],
            &[0x20, 0, 0, 0],
            &[0x55, 1],
        ] {
            assert_eq!(contents(bytes), Contents::Malformed, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            lens in prop::collection::vec(20usize..400, 2..12), which: (u16, u8, bool),
        ) {
            let packets_in: Vec<_> = lens.iter().map(|len| vec![0x45u8; *len]).collect();
            let mut buf = vec![0; 6_000];
            let len = write_aggregate(packets_in.iter().map(Vec::as_slice), &mut buf).unwrap();
            let expected = AGGREGATE_HEAD + lens.iter().map(|len| len_together(*len)).sum::<usize>();
            prop_assert_eq!(len, expected);
            let bytes = &buf[..len];
            prop_assert_eq!(contents(bytes), Contents::Aggregate);
            prop_assert_eq!(packets(bytes).map(|range| range.len()).collect::<Vec<_>>(), lens);
            let (packet, index, last) = which;
            let which = Fragment { packet, index, last };
            let mut bytes = fragment_head(which).to_vec();
            bytes.push(7);
            prop_assert_eq!(contents(&bytes), Contents::Fragment(which));
        }

        #[test]
        fn any_bytes_are_survived(bytes in prop::collection::vec(
            prop_oneof![2 => 0u8..4, 1 => Just(0x10), 1 => Just(0x45), 1 => any::<u8>()], 0..60,
        )) {
            if contents(&bytes) == Contents::Aggregate {
                let held: usize = packets(&bytes).map(|range| len_together(range.len())).sum();
                prop_assert!(held < bytes.len());
                prop_assert!((2..=MOST_TOGETHER).contains(&packets(&bytes).count()));
            }
        }
    }
}
