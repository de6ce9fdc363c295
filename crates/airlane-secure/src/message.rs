//! The four messages as bytes. The arrangement is WireGuard's (NDSS 2017, section 5.4); numbers are
//! big-endian as everywhere in Airlane, and the timestamp is shorter.
//!
//! ```text
//! byte  initiation (145)        response (93)           cookie reply (64)      data (32 + length)
//! 0     1                       2                       3                      4
//! 1     zero (3)                zero (3)                zero (3)               zero (3)
//! 4     sender's index (4)      sender's index (4)      receiver's index (4)   receiver's index (4)
//! 8     ephemeral (32)          receiver's index (4)    nonce (24)             counter (8)
//! 12                            ephemeral (32)
//! 16                                                                           encrypted payload,
//! 32                                                    encrypted cookie (32)    tag (16)
//! 40    encrypted static (48)
//! 44                            encrypted choice (17)
//! 61                            mac1 (16)
//! 77                            mac2 (16)
//! 88    encrypted offer (25)
//! 113   mac1 (16)
//! 129   mac2 (16)
//! ```
//!
//! An *index* is a random number by which its owner finds the handshake or the keys that a message
//! belongs to; it says nothing about the owner. The length follows from the type, and a message of
//! another length is refused. Parsing looks at lengths and constants only, it never panics and
//! believes nothing.

use crate::refused::Refused;

/// Bytes of a handshake initiation.
pub const INITIATION_LEN: usize = 145;
/// Bytes of a handshake response.
pub const RESPONSE_LEN: usize = 93;
/// Bytes of a cookie reply.
pub const COOKIE_REPLY_LEN: usize = 64;
/// Bytes in front of the encrypted payload of a data message.
pub const DATA_HEADER_LEN: usize = 16;
/// Bytes of an authentication tag.
pub const TAG_LEN: usize = 16;
/// What a data message is longer than its payload.
pub const OVERHEAD: usize = DATA_HEADER_LEN + TAG_LEN;

/// Bytes of mac1, of mac2 and of a cookie.
pub(crate) const MAC_LEN: usize = 16;
/// Bytes of the nonce of a cookie reply.
pub(crate) const COOKIE_NONCE_LEN: usize = 24;

const INITIATION: u8 = 1;
const RESPONSE: u8 = 2;
const COOKIE_REPLY: u8 = 3;
const DATA: u8 = 4;

/// Where the Noise message of an initiation is, and where that of a response.
const INITIATION_NOISE: usize = 8;
const RESPONSE_NOISE: usize = 12;
const MACS_LEN: usize = 2 * MAC_LEN;

const CHECKED: &str = "the length was checked";

/// A handshake message, initiation or response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handshake<'a> {
    /// Index by which its sender wants to be answered.
    pub(crate) sender: u32,
    /// Noise's part of it.
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
pub(crate) struct Data<'a> {
    pub(crate) receiver: u32,
    pub(crate) counter: u64,
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
    Data(Data<'a>),
}

impl<'a> Message<'a> {
    /// Reads a datagram.
    pub(crate) fn parse(datagram: &'a [u8]) -> Result<Self, Refused> {
        let (head, _) = datagram.split_first_chunk().ok_or(Refused::Length)?;
        let [kind, reserved @ ..]: [u8; 4] = *head;
        let fixed = match kind {
            INITIATION => Some(INITIATION_LEN),
            RESPONSE => Some(RESPONSE_LEN),
            COOKIE_REPLY => Some(COOKIE_REPLY_LEN),
            DATA => None,
            _ => return Err(Refused::Type),
        };
        if reserved != [0; 3] {
            return Err(Refused::Type);
        }
        if fixed.map_or(datagram.len() < OVERHEAD, |len| datagram.len() != len) {
            return Err(Refused::Length);
        }
        let index = u32_at(datagram, 4);
        Ok(match kind {
            INITIATION => Self::Initiation(Handshake::at(datagram, INITIATION_NOISE)),
            RESPONSE => Self::Response {
                receiver: u32_at(datagram, 8),
                handshake: Handshake::at(datagram, RESPONSE_NOISE),
            },
            COOKIE_REPLY => {
                let (nonce, sealed) = datagram[8..].split_first_chunk().expect(CHECKED);
                let (cookie, tag) = sealed.split_first_chunk().expect(CHECKED);
                Self::CookieReply(CookieReply {
                    receiver: index,
                    nonce,
                    cookie,
                    tag: tag.try_into().expect(CHECKED),
                })
            }
            _ => {
                let (encrypted, tag) = datagram[DATA_HEADER_LEN..]
                    .split_last_chunk()
                    .expect(CHECKED);
                let counter = datagram[8..DATA_HEADER_LEN].try_into();
                Self::Data(Data {
                    receiver: index,
                    counter: u64::from_be_bytes(counter.expect("eight bytes")),
                    encrypted,
                    tag,
                })
            }
        })
    }
}

impl<'a> Handshake<'a> {
    fn at(whole: &'a [u8], noise: usize) -> Self {
        Self {
            sender: u32_at(whole, 4),
            noise: &whole[noise..whole.len() - MACS_LEN],
            whole,
        }
    }

    /// What mac1 covers, and mac1.
    pub(crate) fn mac1(&self) -> (&'a [u8], &'a [u8]) {
        let (covered, macs) = self.whole.split_at(self.whole.len() - MACS_LEN);
        (covered, &macs[..MAC_LEN])
    }

    /// What mac2 covers, and mac2.
    pub(crate) fn mac2(&self) -> (&'a [u8], &'a [u8]) {
        self.whole.split_at(self.whole.len() - MAC_LEN)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Begins an initiation. What is given back is for Noise to fill.
pub(crate) fn initiation(message: &mut [u8; INITIATION_LEN], sender: u32) -> &mut [u8] {
    message[..4].copy_from_slice(&[INITIATION, 0, 0, 0]);
    message[4..8].copy_from_slice(&sender.to_be_bytes());
    &mut message[INITIATION_NOISE..INITIATION_LEN - MACS_LEN]
}

/// Begins a response. What is given back is for Noise to fill.
pub(crate) fn response(message: &mut [u8; RESPONSE_LEN], sender: u32, receiver: u32) -> &mut [u8] {
    message[..4].copy_from_slice(&[RESPONSE, 0, 0, 0]);
    message[4..8].copy_from_slice(&sender.to_be_bytes());
    message[8..12].copy_from_slice(&receiver.to_be_bytes());
    &mut message[RESPONSE_NOISE..RESPONSE_LEN - MACS_LEN]
}

/// Begins a cookie reply. What is given back is for the sealed cookie.
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

/// The receiver's index and the counter of a data message, which name it among all of a session; none
/// for another message. They are as true as the message: believe those of one that was sealed or opened
/// here.
pub fn data_number(datagram: &[u8]) -> Option<(u32, u64)> {
    match Message::parse(datagram) {
        Ok(Message::Data(data)) => Some((data.receiver, data.counter)),
        _ => None,
    }
}

/// Writes the header of a data message.
pub(crate) fn data_header(header: &mut [u8], receiver: u32, counter: u64) {
    header[..4].copy_from_slice(&[DATA, 0, 0, 0]);
    header[4..8].copy_from_slice(&receiver.to_be_bytes());
    header[8..DATA_HEADER_LEN].copy_from_slice(&counter.to_be_bytes());
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
            bytes[0] = 4;
            let expected = (len < OVERHEAD).then_some(Refused::Length);
            assert_eq!(refusal(&bytes), expected, "data, {len} bytes");
        }
    }

    #[test]
    fn unknown_types_and_reserved_bytes_are_refused() {
        for kind in (0..=255).filter(|kind| !(1..=4).contains(kind)) {
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
        let mut bytes = [0; 33];
        data_header(&mut bytes, 7, 0x0102_0304_0506_0708);
        assert_eq!(
            bytes[..17],
            [4, 0, 0, 0, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 0]
        );
        let Ok(Message::Data(data)) = Message::parse(&bytes) else {
            panic!("a data message")
        };
        assert_eq!((data.receiver, data.counter), (7, 0x0102_0304_0506_0708));
        assert_eq!(data_number(&bytes), Some((7, 0x0102_0304_0506_0708)));
        assert_eq!(data_number(&[1; INITIATION_LEN]), None);
        assert_eq!(data.encrypted.len(), 1);
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(
            kind in 0u8..6,
            mut bytes in prop::collection::vec(prop_oneof![3 => Just(0), 1 => any::<u8>()], 0..200),
        ) {
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            let _either = Message::parse(&bytes);
        }
    }
}
