//! Frames and their encoding.
//!
//! ```text
//! octet 0        octet 1                          last three
//! C/R:1 S:2 N(S) low:5 | N(S) high:1 P/F:1 N(R):6 | information | FCS:24
//! ```
//!
//! A frame of several blocks has the same header and one check sequence, and each block begins with an octet that
//! says whether it is the first and how many follow (Ludwig et al. 1999; details in docs/spec/gsm-rlp.md, section
//! 1.10).

use crate::fcs;

/// Bytes of a block.
pub const BLOCK: usize = 30;
/// Bytes of header and check sequence.
const ENDS: usize = 5;
/// N(S) of an unnumbered frame.
const UNNUMBERED: u8 = 63;
/// N(S) of a supervisory frame.
const SUPERVISORY: u8 = 62;

/// The state of the reverse direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Supervisory {
    /// Everything below N(R) has arrived (RR).
    Ready = 0,
    /// As above, and the peer should send no more information for now (RNR).
    NotReady = 1,
    /// Everything from N(R) on has to be retransmitted (REJ).
    Reject = 2,
    /// The frame N(R) has to be retransmitted (SREJ).
    SelectiveReject = 3,
}

impl Supervisory {
    const ALL: [Self; 4] = [
        Self::Ready,
        Self::NotReady,
        Self::Reject,
        Self::SelectiveReject,
    ];
}

/// The command or response of an unnumbered frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Unnumbered {
    /// Both directions are reset.
    Sabm = 7,
    /// Acknowledges the reset.
    Ua = 12,
    /// The link is disconnected.
    Disc = 8,
    /// There is no link.
    Dm = 3,
    /// Unnumbered information.
    Ui = 0,
    /// Negotiates parameters.
    Xid = 23,
    /// Requests an echo.
    Test = 28,
    /// Carries nothing.
    Null = 15,
    /// The numbers of a link that continues in a channel of another kind.
    Remap = 17,
}

impl Unnumbered {
    const ALL: [Self; 9] = [
        Self::Sabm,
        Self::Ua,
        Self::Disc,
        Self::Dm,
        Self::Ui,
        Self::Xid,
        Self::Test,
        Self::Null,
        Self::Remap,
    ];
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    /// It has no sequence number.
    Unnumbered(Unnumbered),
    /// SABM, or UA if it `answers` one. The number of the reset, 1 to 3, is in bits that are unused in unnumbered
    /// frames, so that a late answer is not taken for the answer to another SABM.
    Beginning {
        /// Whether it is UA.
        answers: bool,
        /// The number.
        mark: u8,
    },
    /// It reports the state of the reverse direction, and may carry information.
    Numbered {
        /// The report.
        says: Supervisory,
        /// N(R).
        about: u8,
        /// N(S) of the information that it carries.
        carries: Option<u8>,
    },
}

/// The header, which is the first two octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Whether it is a command; other frames are responses.
    pub command: bool,
    /// P in a command: the peer must answer. F in a response: this is the answer.
    pub poll: bool,
    /// Which kind of frame it is.
    pub body: Body,
}

impl Header {
    /// Encodes the header.
    pub fn encode(self) -> [u8; 2] {
        let (says, sent, about) = match self.body {
            Body::Unnumbered(what) => (0, UNNUMBERED, what as u8),
            Body::Beginning { answers, mark } => {
                let what = match answers {
                    true => Unnumbered::Ua,
                    false => Unnumbered::Sabm,
                };
                (mark & 3, UNNUMBERED, what as u8)
            }
            Body::Numbered {
                says,
                about,
                carries,
            } => (says as u8, carries.unwrap_or(SUPERVISORY), about),
        };
        [
            u8::from(self.command) | says << 1 | (sent & 31) << 3,
            sent >> 5 | u8::from(self.poll) << 1 | about << 2,
        ]
    }

    /// Decodes a header. None if no station sends it.
    pub fn decode([first, second]: [u8; 2]) -> Option<Self> {
        let sent = first >> 3 | (second & 1) << 5;
        let about = second >> 2;
        let body = if sent == UNNUMBERED {
            let mut all = Unnumbered::ALL.into_iter();
            let what = all.find(|what| *what as u8 == about)?;
            match (what, first >> 1 & 3) {
                (Unnumbered::Sabm | Unnumbered::Ua, mark @ 1..) => Body::Beginning {
                    answers: what == Unnumbered::Ua,
                    mark,
                },
                _ => Body::Unnumbered(what),
            }
        } else if about >= SUPERVISORY {
            return None;
        } else {
            Body::Numbered {
                says: Supervisory::ALL[usize::from(first >> 1 & 3)],
                about,
                carries: (sent < SUPERVISORY).then_some(sent),
            }
        };
        Some(Self {
            command: first & 1 == 1,
            poll: second & 2 != 0,
            body,
        })
    }
}

/// A frame: its header and its information.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame<I> {
    /// Its length in blocks.
    pub blocks: u8,
    /// Its header.
    pub header: Header,
    /// Its information, if the header says that it has some.
    pub information: Option<I>,
}

impl<I> Frame<I> {
    /// Its length on the air in bytes.
    pub fn len(&self) -> usize {
        usize::from(self.blocks) * BLOCK
    }

    /// Whether it has no block, which is never true.
    pub fn is_empty(&self) -> bool {
        self.blocks == 0
    }
}

/// The bytes of information in a frame of this many blocks, octets of L2R included.
pub const fn information_len(blocks: u8) -> usize {
    let marks = if blocks > 1 { blocks as usize } else { 0 };
    (blocks as usize * BLOCK).saturating_sub(ENDS + marks)
}

impl Frame<Vec<u8>> {
    /// Encodes the frame, padded with zeros. Information that is too long is truncated.
    pub fn encode(&self) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.len());
        octets.extend(self.header.encode());
        octets.extend(self.information.iter().flatten());
        octets.resize(information_len(self.blocks) + 2, 0);
        octets.extend(fcs::rlp(&octets));
        if self.blocks < 2 {
            return octets;
        }
        let mut air = Vec::with_capacity(self.len());
        for (index, part) in octets.chunks(BLOCK - 1).enumerate() {
            let first = if index == 0 { 0x80 } else { 0 };
            air.push(first | (self.blocks - 1).saturating_sub(index as u8));
            air.extend(part);
        }
        air
    }

    /// Decodes the frame in these blocks. None if a bit is wrong, or if the blocks belong to several frames.
    pub fn decode(air: &[u8]) -> Option<Self> {
        let blocks = u8::try_from(air.len() / BLOCK).ok()?;
        if blocks == 0 || blocks > 128 || !air.len().is_multiple_of(BLOCK) {
            return None;
        }
        let mut octets = Vec::with_capacity(air.len());
        for (index, block) in air.chunks(BLOCK).enumerate() {
            let first = if index == 0 { 0x80 } else { 0 };
            let cut = usize::from(blocks > 1);
            if blocks > 1 && block[0] != first | (blocks - 1 - index as u8) {
                return None;
            }
            octets.extend(&block[cut..]);
        }
        let check = octets.split_off(octets.len() - 3);
        if fcs::rlp(&octets) != *check {
            return None;
        }
        let header = Header::decode([octets[0], octets[1]])?;
        let carries = match header.body {
            Body::Numbered { carries, .. } => carries.is_some(),
            Body::Beginning { .. } => false,
            Body::Unnumbered(what) => {
                matches!(what, Unnumbered::Ui | Unnumbered::Xid | Unnumbered::Test)
            }
        };
        Some(Self {
            blocks,
            header,
            information: carries.then(|| octets.split_off(2)),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body() -> impl Strategy<Value = Body> {
        let unnumbered = prop::sample::select(Unnumbered::ALL.to_vec()).prop_map(Body::Unnumbered);
        let says = prop::sample::select(Supervisory::ALL.to_vec());
        let numbered = (says, 0_u8..62, prop::option::of(0_u8..62));
        let numbered = numbered.prop_map(|(says, about, carries)| Body::Numbered {
            says,
            about,
            carries,
        });
        let beginning = (any::<bool>(), 1_u8..=3);
        let beginning = beginning.prop_map(|(answers, mark)| Body::Beginning { answers, mark });
        prop_oneof![unnumbered, numbered, beginning]
    }

    proptest! {
        #[test]
        fn a_frame_round_trips(
            body in body(), command: bool, poll: bool, blocks in 1_u8..=128, octets: [u8; 16],
        ) {
            let header = Header { command, poll, body };
            prop_assert_eq!(Header::decode(header.encode()), Some(header));
            let mut information = octets.to_vec();
            information.resize(information_len(blocks), 7);
            let frame = Frame { blocks, header, information: Some(information) };
            let air = frame.encode();
            prop_assert_eq!(air.len(), frame.len());
            let back = Frame::decode(&air).unwrap();
            prop_assert_eq!(back.header, header);
            if let Some(information) = back.information {
                prop_assert_eq!(Some(information), frame.information);
            }
        }

        #[test]
        fn a_wrong_bit_never_goes_unnoticed(blocks in 1_u8..=8, at in 0_usize..1920) {
            let body = Body::Numbered { says: Supervisory::Ready, about: 3, carries: Some(60) };
            let header = Header { command: true, poll: false, body };
            let mut air = Frame { blocks, header, information: Some(vec![1, 2, 3]) }.encode();
            let at = at % (air.len() * 8);
            air[at / 8] ^= 1 << (at % 8);
            prop_assert_eq!(Frame::decode(&air), None);
        }

        #[test]
        fn any_bytes_decode_without_panic(air in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Frame::decode(&air);
        }
    }

    #[test]
    fn fields_are_laid_out_as_in_the_standard() {
        let body = Body::Numbered {
            says: Supervisory::SelectiveReject,
            about: 5,
            carries: Some(33),
        };
        let header = Header {
            command: false,
            poll: true,
            body,
        };
        assert_eq!(header.encode(), [0b0000_1110, 0b0001_0111]);
        let sabm = Header {
            command: true,
            poll: true,
            body: Body::Unnumbered(Unnumbered::Sabm),
        };
        assert_eq!(sabm.encode(), [0b1111_1001, 0b0001_1111]);
    }

    #[test]
    fn frame_overhead_is_as_published() {
        // Ludwig et al. 1999, section 2: 24 of 30 bytes, plus an octet of L2R.
        assert_eq!(information_len(1) - 1, 24);
        assert_eq!(information_len(7) - 1, 210 - 6 - 7);
    }
}
