//! The header between the EtherType and a frame of ours.
//!
//! ```text
//!  0                   1                   2                   3
//! | kind |  length (14 bits)    | number (12 bits) | index (4)   |  the second half in parts alone
//! ```
//!
//! *Length* counts the bytes that belong to the frame: Ethernet pads short frames to 60 bytes, and nothing else
//! marks the end of ours. A frame is *whole*, or in *parts* if the interface's MTU has become too small for it:
//! the parts follow one another, with the frame's number and an index. Parts whose beginning was lost are dropped.

use std::io::IoSlice;

use airlane_secure::EthernetAddress;

use crate::af_packet::BATCH;

/// Bytes before a whole frame.
pub(super) const WHOLE: usize = 2;
/// Bytes before a part.
const PART: usize = 4;
/// Longest frame or part.
pub(super) const LONGEST: usize = 0x3fff;
/// Most parts of a frame.
const PARTS: usize = 16;
/// All parts of a frame fit one batch.
const _: () = assert!(PARTS <= BATCH);
/// Longest frame that is reassembled, bytes.
const ASSEMBLED: usize = 65_536;

const KIND: u16 = 0xc000;
const MORE: u16 = 0x4000;
const LAST: u16 = 0x8000;

/// The header of a whole frame of this length, which is at most [`LONGEST`].
pub(super) const fn whole(length: usize) -> [u8; WHOLE] {
    (length as u16).to_be_bytes()
}

/// Splits a frame into parts that fit `mtu`, and calls `send` once with all of them; `None` if there would be
/// too many.
pub(super) fn cut<T>(
    frame: &[u8],
    mtu: usize,
    number: u16,
    send: impl FnOnce(&[[IoSlice<'_>; 2]]) -> T,
) -> Option<T> {
    let most = mtu.saturating_sub(PART).min(LONGEST);
    if most == 0 || frame.len().div_ceil(most) > PARTS {
        return None;
    }
    let count = frame.len().div_ceil(most);
    let mut heads = [[0; PART]; PARTS];
    for (index, (head, part)) in heads.iter_mut().zip(frame.chunks(most)).enumerate() {
        let kind = if index + 1 < count { MORE } else { LAST };
        let [a, b] = (kind | part.len() as u16).to_be_bytes();
        let [c, d] = (number << 4 | index as u16).to_be_bytes();
        *head = [a, b, c, d];
    }
    let mut parts = [[IoSlice::new(&[]); 2]; PARTS];
    for ((both, head), part) in parts.iter_mut().zip(&heads).zip(frame.chunks(most)) {
        *both = [IoSlice::new(head), IoSlice::new(part)];
    }
    Some(send(&parts[..count]))
}

/// The content of one message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read<'a> {
    /// A frame.
    Frame(&'a [u8]),
    /// A part of one; more follow.
    Part,
    /// A malformed message, or a part of a frame whose beginning was lost.
    Nothing,
}

/// Reassembles frames from consecutive parts, one frame at a time.
#[derive(Debug)]
pub(super) struct Assembly {
    frame: Vec<u8>,
    /// Sender of the beginning, its number, and the index of the next part.
    awaited: Option<(EthernetAddress, u16, u16)>,
}

impl Assembly {
    pub(super) const fn new() -> Self {
        Self {
            frame: Vec::new(),
            awaited: None,
        }
    }

    /// Reads a message, which may be padded.
    pub(super) fn read<'a>(&'a mut self, source: EthernetAddress, message: &'a [u8]) -> Read<'a> {
        let Some((head, rest)) = message.split_first_chunk() else {
            return Read::Nothing;
        };
        let head = u16::from_be_bytes(*head);
        let length = usize::from(head & !KIND);
        let last = match head & KIND {
            0 => return rest.get(..length).map_or(Read::Nothing, Read::Frame),
            MORE => false,
            LAST => true,
            _ => return Read::Nothing,
        };
        let Some((place, rest)) = rest.split_first_chunk() else {
            return Read::Nothing;
        };
        let Some(part) = rest.get(..length) else {
            return Read::Nothing;
        };
        let place = u16::from_be_bytes(*place);
        let (number, index) = (place >> 4, place & 0xf);
        if index == 0 {
            self.frame.clear();
        } else if self.awaited != Some((source, number, index)) {
            return Read::Nothing;
        }
        self.awaited = None;
        if self.frame.len() + length > ASSEMBLED {
            return Read::Nothing;
        }
        self.frame.extend_from_slice(part);
        if last {
            return Read::Frame(&self.frame);
        }
        self.awaited = Some((source, number, index + 1));
        Read::Part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SOURCE: EthernetAddress = EthernetAddress([2, 0, 0, 0, 0, 1]);

    /// The messages of a frame.
    fn messages(frame: &[u8], mtu: usize, number: u16) -> Option<Vec<Vec<u8>>> {
        cut(frame, mtu, number, |parts| {
            let whole = |[head, part]: &[IoSlice<'_>; 2]| [&head[..], &part[..]].concat();
            parts.iter().map(whole).collect()
        })
    }

    #[test]
    fn a_short_frame_ends_where_its_length_says() {
        let mut message = whole(3).to_vec();
        message.extend([7, 8, 9]);
        message.resize(46, 0xee);
        let mut assembly = Assembly::new();
        assert_eq!(assembly.read(SOURCE, &message), Read::Frame(&[7, 8, 9]));
        assert_eq!(assembly.read(SOURCE, &[0, 0]), Read::Frame(&[]));
        for message in [&[][..], &[0], &[0, 3, 7, 8], &[0xc0, 1, 0, 0, 0]] {
            assert_eq!(assembly.read(SOURCE, message), Read::Nothing, "{message:?}");
        }
    }

    #[test]
    fn parts_of_two_frames_never_become_one() {
        let (mut assembly, frame) = (Assembly::new(), [1; 300]);
        let first = messages(&frame, 204, 1).unwrap();
        let second = messages(&[2; 300], 204, 2).unwrap();
        assert_eq!((first.len(), first[0].len()), (2, 204));
        assert_eq!(assembly.read(SOURCE, &first[0]), Read::Part);
        // The end of the first frame and the beginning of the second were lost.
        assert_eq!(assembly.read(SOURCE, &second[1]), Read::Nothing);
        let stranger = EthernetAddress([2, 0, 0, 0, 0, 9]);
        assert_eq!(assembly.read(stranger, &first[1]), Read::Nothing);
        assert_eq!(assembly.read(SOURCE, &first[1]), Read::Frame(&frame));
        // No part is used twice.
        assert_eq!(assembly.read(SOURCE, &first[1]), Read::Nothing);
    }

    #[test]
    fn a_frame_of_too_many_parts_is_not_split() {
        assert!(messages(&[0; 1600], 104, 0).is_some());
        assert!(messages(&[0; 1601], 104, 0).is_none());
        for mtu in 0..=PART {
            assert!(messages(&[0; 10], mtu, 0).is_none());
        }
    }

    proptest! {
        #[test]
        fn a_frame_in_parts_is_the_same_frame(
            frame in prop::collection::vec(any::<u8>(), 1..4000),
            mtu in 400_usize..1500,
            number in 0_u16..4096,
            filling in 0_usize..50,
        ) {
            let mut assembly = Assembly::new();
            let messages = messages(&frame, mtu, number).unwrap();
            let last = messages.len() - 1;
            for (i, mut message) in messages.into_iter().enumerate() {
                prop_assert!(message.len() <= mtu);
                message.resize(message.len() + filling, 0xee);
                let read = assembly.read(SOURCE, &message);
                match i == last {
                    true => prop_assert_eq!(read, Read::Frame(&frame)),
                    false => prop_assert_eq!(read, Read::Part),
                }
            }
        }

        #[test]
        fn whatever_arrives_is_read_within_bounds(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..40),
        ) {
            let mut assembly = Assembly::new();
            for message in &messages {
                let _whatever = assembly.read(SOURCE, message);
                prop_assert!(assembly.frame.len() <= ASSEMBLED);
            }
        }
    }
}
