//! Splits frames that are too long for the path: frames built before the path became narrower, which their service may
//! never give up, and hellos, because nothing is known of the path before the first one arrives. Parts travel as bodies
//! of frames of the hello type.
//!
//! ```text
//!  0      version, as a hello's
//!  1      flags: 16 this is a part
//!  2      index of the part, from 0
//!  3      number of parts
//!  4..8   session; 0 for a hello
//!  8..12  number of the frame
//! then    the bytes of the part; all parts but the last have the same length
//! ```
//!
//! A frame that misses a part is lost, and repaired like any other. Parts of up to [`FRAMES`] frames are kept,
//! [`LONGEST`] bytes of each; older ones are discarded.

use super::hello::{HelloError, VERSION};

const FLAG_PART: u8 = 16;
/// Bytes in front of those of the frame.
const HEAD: usize = 12;
/// Frames of which parts are kept.
const FRAMES: usize = 2;
/// Longest frame, bytes: no path carries more.
const LONGEST: usize = 65_535;

/// A part of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    /// The sender's session.
    pub session: u32,
    number: u32,
    index: u8,
    count: u8,
    bytes: &'a [u8],
}

impl<'a> Part<'a> {
    /// Bytes in front of those of the frame.
    pub const HEAD: usize = HEAD;

    /// Splits a frame into parts of at most `longest` bytes each, heads included; nothing if that would take too many
    /// parts.
    pub fn of(
        session: u32,
        number: u32,
        frame: &'a [u8],
        longest: usize,
    ) -> impl Iterator<Item = Self> {
        let room = longest.saturating_sub(Self::HEAD);
        let count = frame.len().checked_div(room).map_or(usize::MAX, |whole| {
            whole + usize::from(!frame.len().is_multiple_of(room))
        });
        let count = u8::try_from(count).unwrap_or(0);
        let parts = frame.chunks(room.max(1)).zip(0..count);
        parts.map(move |(bytes, index)| Self {
            session,
            number,
            index,
            count,
            bytes,
        })
    }

    /// The head of the part.
    pub fn head(&self) -> [u8; HEAD] {
        let mut head = [
            VERSION, FLAG_PART, self.index, self.count, 0, 0, 0, 0, 0, 0, 0, 0,
        ];
        head[4..8].copy_from_slice(&self.session.to_be_bytes());
        head[8..].copy_from_slice(&self.number.to_be_bytes());
        head
    }

    /// The bytes of the frame in this part.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Decodes the body of a frame of the hello type; `None` if it is not a part.
    ///
    /// # Errors
    /// If it is marked as a part and is malformed.
    pub fn decode(body: &'a [u8]) -> Result<Option<Self>, HelloError> {
        if !matches!(body, [VERSION, FLAG_PART, ..]) {
            return Ok(None);
        }
        let (need, got) = (Self::HEAD + 1, body.len());
        let Some((&[_, _, index, count, a, b, c, d, e, f, g, h], bytes)) =
            body.split_first_chunk::<{ HEAD }>()
        else {
            return Err(HelloError::Truncated { need, got });
        };
        if bytes.is_empty() {
            return Err(HelloError::Truncated { need, got });
        }
        if index >= count {
            return Err(HelloError::Part { index, count });
        }
        Ok(Some(Self {
            session: u32::from_be_bytes([a, b, c, d]),
            number: u32::from_be_bytes([e, f, g, h]),
            index,
            count,
            bytes,
        }))
    }
}

/// Reassembles frames.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    /// Incomplete frames, the newest first.
    frames: Vec<Pieces>,
}

#[derive(Clone, Debug)]
struct Pieces {
    number: u32,
    parts: Vec<Option<Box<[u8]>>>,
}

impl Reassembly {
    /// Takes a part. Returns the frame when it is complete.
    pub fn take(&mut self, part: &Part<'_>) -> Option<Vec<u8>> {
        let (number, count) = (part.number, usize::from(part.count));
        let known = |pieces: &Pieces| pieces.number == number && pieces.parts.len() == count;
        let at = self.frames.iter().position(known).unwrap_or_else(|| {
            self.frames.truncate(FRAMES - 1);
            let parts = vec![None; count];
            self.frames.insert(0, Pieces { number, parts });
            0
        });
        let pieces = &mut self.frames[at].parts;
        pieces[usize::from(part.index)] = Some(part.bytes.into());
        let kept =
            |pieces: &[Option<Box<[u8]>>]| pieces.iter().flatten().map(|p| p.len()).sum::<usize>();
        if kept(pieces) > LONGEST {
            self.frames.remove(at);
            return None;
        }
        if pieces.iter().any(Option::is_none) {
            return None;
        }
        let pieces = self.frames.remove(at).parts;
        Some(pieces.into_iter().flatten().collect::<Vec<_>>().concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_frame_is_reassembled_from_parts_in_any_order(
            frame in prop::collection::vec(any::<u8>(), 1..3_000),
            longest in 40..2_000usize,
            order in any::<u64>(),
        ) {
            let mut parts: Vec<Vec<u8>> = Part::of(7, 9, &frame, longest)
                .map(|part| [&part.head()[..], part.bytes()].concat())
                .collect();
            prop_assert!(parts.iter().all(|part| part.len() <= longest));
            let by = (order % parts.len() as u64) as usize;
            parts.rotate_left(by);
            let mut reassembly = Reassembly::default();
            let last = parts.len() - 1;
            for (at, body) in parts.iter().enumerate() {
                let part = Part::decode(body).unwrap().unwrap();
                prop_assert_eq!(part.session, 7);
                // A duplicate changes nothing.
                let whole = match at < last {
                    true => reassembly.take(&part).or_else(|| reassembly.take(&part)),
                    false => reassembly.take(&part),
                };
                prop_assert_eq!(whole, (at == last).then(|| frame.clone()));
            }
            prop_assert!(reassembly.frames.is_empty());
        }

        #[test]
        fn any_parts_are_accepted_or_refused_in_bounded_memory(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..60),
        ) {
            let mut reassembly = Reassembly::default();
            for mut body in bodies {
                body.splice(..body.len().min(2), [VERSION, FLAG_PART]);
                if let Ok(Some(part)) = Part::decode(&body) {
                    reassembly.take(&part);
                }
                prop_assert!(reassembly.frames.len() <= FRAMES);
            }
        }
    }

    #[test]
    fn what_is_kept_of_a_frame_is_bounded() {
        let mut reassembly = Reassembly::default();
        let bytes = vec![0; 40_000];
        for index in 0..100 {
            let part = Part {
                session: 0,
                number: 1,
                index,
                count: 101,
                bytes: &bytes,
            };
            assert_eq!(reassembly.take(&part), None);
            let kept = reassembly
                .frames
                .iter()
                .flat_map(|f| f.parts.iter().flatten());
            assert!(kept.map(|part| part.len()).sum::<usize>() <= LONGEST);
        }
    }

    #[test]
    fn a_frame_of_too_many_parts_gets_none() {
        assert_eq!(Part::of(1, 1, &[0; 3_000], Part::HEAD + 1).count(), 0);
        assert_eq!(Part::of(1, 1, &[0; 3_000], 5).count(), 0);
        assert_eq!(Part::of(1, 1, &[0; 255], Part::HEAD + 1).count(), 255);
    }
}
