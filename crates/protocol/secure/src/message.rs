//! The encoding of the four messages. The layout is WireGuard's (NDSS 2017, section 5.4); numbers are big-endian as
//! everywhere in Airlane, and the timestamp is shorter.
//!
//! ```text
//! byte  initiation (145)        response (93)           cookie reply (64)      data (24 + length)
//! 0     1                       2                       3                      1:1 bound:1 index:30
//! 1     zero (3)                zero (3)                zero (3)
//! 4     sender's index (4)      sender's index (4)      receiver's index (4)   counter's low bits (4)
//! 8     ephemeral (32)          receiver's index (4)    nonce (24)             encrypted payload,
//! 12                            ephemeral (32)                                 tag (16)
//! 32                                                    encrypted cookie (32)
//! 40    encrypted static (48)
//! 44                            encrypted choice (17)
//! 61                            mac1 (16)
//! 77                            mac2 (16)
//! 88    encrypted offer (25)
//! 113   mac1 (16)
//! 129   mac2 (16)
//! ```
//!
//! Every data message carries a header, so the header is short. Its first bit distinguishes it from all other types, the
//! index is the receiver's, and of the counter only the bits are sent that the receiver's window cannot infer
//! ([`Window::widen`](crate::replay::Window::widen)). A *bound* message can be opened only while both ends have the same
//! binding ([`Secure::bind`](crate::Secure::bind)).
//!
//! An *index* is a random 30-bit number by which its owner finds the handshake or the keys of a message; it reveals
//! nothing about the owner. The type determines the length, and a message of another length is refused. Parsing checks
//! lengths and constants only; it never panics and trusts nothing.

use crate::refused::Refused;

/// Length of a handshake initiation, bytes.
pub const INITIATION_LEN: usize = 145;
/// Length of a handshake response, bytes.
pub const RESPONSE_LEN: usize = 93;
/// Length of a cookie reply, bytes.
pub const COOKIE_REPLY_LEN: usize = 64;
/// Length of the header of a data message, bytes.
pub const DATA_HEADER_LEN: usize = 8;
/// Length of an authentication tag, bytes.
pub const TAG_LEN: usize = 16;
/// Difference in length between a data message and its payload, bytes.
pub const OVERHEAD: usize = DATA_HEADER_LEN + TAG_LEN;

/// Length of mac1, of mac2 and of a cookie, bytes.
pub(crate) const MAC_LEN: usize = 16;
/// Length of the nonce of a cookie reply, bytes.
pub(crate) const COOKIE_NONCE_LEN: usize = 24;

const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;
const COOKIE_REPLY: u8 = 3;
/// The first bits of a data message, beside its index.
const DATA: u32 = 1 << 31;
const BOUND: u32 = 1 << 30;
/// Upper bound of indices.
pub(crate) const INDICES: u32 = BOUND;

/// Offset of the Noise message in an initiation and in a response.
const INITIATION_NOISE: usize = 8;
const RESPONSE_NOISE: usize = 12;
const MACS_LEN: usize = 2 * MAC_LEN;

const CHECKED: &str = "the length was checked";

/// A handshake message, initiation or response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handshake<'a> {
    /// The index under which the sender expects the answer.
    pub(crate) sender: u32,
    /// Noise's part of the message.
    pub(crate) noise: &'a [u8],
    /// The whole message, for its MACs.
    pub(crate) whole: &'a [u8],
}

/// The answer of a responder under load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CookieReply<'a> {
    pub(crate) receiver: u32,
    pub(crate) nonce: &'a [u8; COOKIE_NONCE_LEN],
    pub(crate) cookie: &'a [u8; MAC_LEN],
    pub(crate) tag: &'a [u8; TAG_LEN],
}

/// A data message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataMessage<'a> {
    pub(crate) receiver: u32,
    pub(crate) bound: bool,
    /// The low bits of the counter.
    pub(crate) counter: u32,
    /// The header as received.
    pub(crate) header: &'a [u8; DATA_HEADER_LEN],
    pub(crate) encrypted: &'a [u8],
    pub(crate) tag: &'a [u8; TAG_LEN],
}

/// A message of any type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message<'a> {
    Initiation(Handshake<'a>),
    Response {
        receiver: u32,
        handshake: Handshake<'a>,
    },
    CookieReply(CookieReply<'a>),
    Data(DataMessage<'a>),
}

impl<'a> Message<'a> {
    /// Parses a datagram.
    pub(crate) fn parse(datagram: &'a [u8]) -> Result<Self, Refused> {
        let (head, _) = datagram.split_first_chunk().ok_or(Refused::Length)?;
        if u32::from_be_bytes(*head) & DATA != 0 {
            return Self::parse_data(datagram);
        }
        let [kind, reserved @ ..]: [u8; 4] = *head;
        let fixed = match kind {
            INITIATION => INITIATION_LEN,
            RESPONSE => RESPONSE_LEN,
            COOKIE_REPLY => COOKIE_REPLY_LEN,
            _ => return Err(Refused::Type),
        };
        if reserved != [0; 3] {
            return Err(Refused::Type);
        }
        if datagram.len() != fixed {
            return Err(Refused::Length);
        }
        let index = u32_at(datagram, 4);
        if index >= INDICES {
            return Err(Refused::Type);
        }
        Ok(match kind {
            INITIATION => Self::Initiation(Handshake::at(datagram, INITIATION_NOISE)),
            RESPONSE => Self::Response {
                receiver: u32_at(datagram, 8),
                handshake: Handshake::at(datagram, RESPONSE_NOISE),
            },
            _ => {
                let (nonce, sealed) = datagram[8..].split_first_chunk().expect(CHECKED);
                let (cookie, tag) = sealed.split_first_chunk().expect(CHECKED);
                Self::CookieReply(CookieReply {
                    receiver: index,
                    nonce,
                    cookie,
                    tag: tag.try_into().expect(CHECKED),
                })
            }
        })
    }

    fn parse_data(datagram: &'a [u8]) -> Result<Self, Refused> {
        let (header, rest) = datagram.split_first_chunk().ok_or(Refused::Length)?;
        let (encrypted, tag) = rest.split_last_chunk().ok_or(Refused::Length)?;
        let first = u32_at(header, 0);
        Ok(Self::Data(DataMessage {
            receiver: first & (INDICES - 1),
            bound: first & BOUND != 0,
            counter: u32_at(header, 4),
            header,
            encrypted,
            tag,
        }))
    }
}

/// Whether a datagram looks like a handshake message.
pub fn is_handshake(datagram: &[u8]) -> bool {
    let message = Message::parse(datagram);
    matches!(
        message,
        Ok(Message::Initiation(_) | Message::Response { .. })
    )
}

impl<'a> Handshake<'a> {
    fn at(whole: &'a [u8], noise: usize) -> Self {
        Self {
            sender: u32_at(whole, 4),
            noise: &whole[noise..whole.len() - MACS_LEN],
            whole,
        }
    }

    /// The bytes that mac1 covers, and mac1.
    pub(crate) fn mac1(&self) -> (&'a [u8], &'a [u8]) {
        let (covered, macs) = self.whole.split_at(self.whole.len() - MACS_LEN);
        (covered, &macs[..MAC_LEN])
    }

    /// The bytes that mac2 covers, and mac2.
    pub(crate) fn mac2(&self) -> (&'a [u8], &'a [u8]) {
        self.whole.split_at(self.whole.len() - MAC_LEN)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Begins an initiation and returns Noise's part, to be filled.
pub(crate) fn initiation(message: &mut [u8; INITIATION_LEN], sender: u32) -> &mut [u8] {
    message[..4].copy_from_slice(&[INITIATION, 0, 0, 0]);
    message[4..8].copy_from_slice(&sender.to_be_bytes());
    &mut message[INITIATION_NOISE..INITIATION_LEN - MACS_LEN]
}

/// Begins a response and returns Noise's part, to be filled.
pub(crate) fn response(message: &mut [u8; RESPONSE_LEN], sender: u32, receiver: u32) -> &mut [u8] {
    message[..4].copy_from_slice(&[RESPONSE, 0, 0, 0]);
    message[4..8].copy_from_slice(&sender.to_be_bytes());
    message[8..12].copy_from_slice(&receiver.to_be_bytes());
    &mut message[RESPONSE_NOISE..RESPONSE_LEN - MACS_LEN]
}

/// Begins a cookie reply and returns the place of the sealed cookie.
pub(crate) fn cookie_reply<'a>(
    message: &'a mut [u8; COOKIE_REPLY_LEN],
    receiver: u32,
    nonce: &[u8; COOKIE_NONCE_LEN],
) -> &'a mut [u8] {
    message[..4].copy_from_slice(&[COOKIE_REPLY, 0, 0, 0]);
    message[4..8].copy_from_slice(&receiver.to_be_bytes());
    message[8..32].copy_from_slice(nonce);
    &mut message[32..]
}

/// The receiver's index and the low bits of the counter of a data message; `None` for other messages. They identify it
/// within a session, because keys are renewed long before the low bits repeat. They are not authenticated: use them only
/// for messages sealed or opened here.
pub fn data_number(datagram: &[u8]) -> Option<(u32, u32)> {
    match Message::parse(datagram) {
        Ok(Message::Data(data)) => Some((data.receiver, data.counter)),
        _ => None,
    }
}

/// The header of a data message.
pub(crate) fn data_header(receiver: u32, bound: bool, counter: u64) -> [u8; DATA_HEADER_LEN] {
    debug_assert!(receiver < INDICES, "an index has 30 bits");
    let first = DATA | if bound { BOUND } else { 0 } | receiver;
    let mut header = [0; DATA_HEADER_LEN];
    header[..4].copy_from_slice(&first.to_be_bytes());
    header[4..].copy_from_slice(&(counter as u32).to_be_bytes());
    header
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::noise::{CHOICE_LEN, OFFER_LEN};

    fn refusal(bytes: &[u8]) -> Option<Refused> {
        Message::parse(bytes).err()
    }

    #[test]
    fn each_type_has_its_length() {
        let fixed = [
            (1, INITIATION_LEN),
            (2, RESPONSE_LEN),
            (3, COOKIE_REPLY_LEN),
        ];
        for (kind, right) in fixed {
            for len in 4..300 {
                let mut bytes = vec![0; len];
                bytes[0] = kind;
                let expected = (len != right).then_some(Refused::Length);
                assert_eq!(refusal(&bytes), expected, "type {kind}, {len} bytes");
            }
        }
        for len in 4..300 {
            let mut bytes = vec![0; len];
            bytes[0] = 0x80;
            let expected = (len < OVERHEAD).then_some(Refused::Length);
            assert_eq!(refusal(&bytes), expected, "data, {len} bytes");
        }
    }

    #[test]
    fn unknown_types_and_reserved_bytes_are_refused() {
        for kind in (0..0x80).filter(|kind| !(1..=3).contains(kind)) {
            let mut bytes = [0; INITIATION_LEN];
            bytes[0] = kind;
            assert_eq!(refusal(&bytes), Some(Refused::Type));
        }
        for at in 1..4 {
            let mut bytes = [0; INITIATION_LEN];
            bytes[0] = INITIATION;
            bytes[at] = 1;
            assert_eq!(refusal(&bytes), Some(Refused::Type));
        }
        for high in [0x40, 0x80] {
            let mut bytes = [0; INITIATION_LEN];
            (bytes[0], bytes[4]) = (INITIATION, high);
            assert_eq!(
                refusal(&bytes),
                Some(Refused::Type),
                "no index of a data message"
            );
        }
        assert_eq!(refusal(&[]), Some(Refused::Length));
        assert_eq!(refusal(&[1, 0, 0]), Some(Refused::Length));
    }

    #[test]
    fn fields_stand_where_the_table_says() {
        let mut bytes = [0; INITIATION_LEN];
        let noise = initiation(&mut bytes, 0x0102_0304);
        assert_eq!(noise.len(), 32 + 48 + OFFER_LEN + TAG_LEN);
        assert_eq!(bytes[..8], [1, 0, 0, 0, 1, 2, 3, 4]);
        let mut bytes = [0; RESPONSE_LEN];
        let noise = response(&mut bytes, 0x0102_0304, 0x0506_0708);
        assert_eq!(noise.len(), 32 + CHOICE_LEN + TAG_LEN);
        assert_eq!(bytes[..12], [2, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
        bytes[61] = 0xaa;
        bytes[77] = 0xbb;
        let Ok(Message::Response {
            receiver,
            handshake,
        }) = Message::parse(&bytes)
        else {
            panic!("a response")
        };
        assert_eq!((handshake.sender, receiver), (0x0102_0304, 0x0506_0708));
        let (covered, mac) = handshake.mac1();
        assert_eq!((covered.len(), mac.len(), mac[0]), (61, 16, 0xaa));
        let (covered, mac) = handshake.mac2();
        assert_eq!((covered.len(), mac.len(), mac[0]), (77, 16, 0xbb));
        let mut bytes = [0; COOKIE_REPLY_LEN];
        assert_eq!(cookie_reply(&mut bytes, 7, &[9; 24]).len(), 32);
        assert_eq!(bytes[..9], [3, 0, 0, 0, 0, 0, 0, 7, 9]);
        let counter = 0x0102_0304_0506_0708;
        for (bound, first) in [(false, 0x80), (true, 0xc0)] {
            let header = data_header(7, bound, counter);
            assert_eq!(header, [first, 0, 0, 7, 5, 6, 7, 8]);
            let mut bytes = [0; 25];
            bytes[..8].copy_from_slice(&header);
            let Ok(Message::Data(data)) = Message::parse(&bytes) else {
                panic!("a data message")
            };
            assert_eq!((data.receiver, data.counter), (7, 0x0506_0708));
            assert_eq!((data.bound, data.encrypted.len()), (bound, 1));
            assert_eq!(data_number(&bytes), Some((7, 0x0506_0708)));
        }
        assert_eq!(data_number(&[1; INITIATION_LEN]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(
            kind in prop_oneof![0u8..4, 0x80u8..],
            mut bytes in prop::collection::vec(prop_oneof![3 => Just(0), 1 => any::<u8>()], 0..200),
        ) {
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            let _either = Message::parse(&bytes);
        }
    }
}
