//! The body of a path probe and of its answer, which travel in frames of the hello type.
//!
//! ```text
//!  0      version, as a hello's
//!  1      flags: 4 this is a probe, 8 this answers one
//!  2..4   zero
//!  4..8   session
//!  8..16  number of the probe, unpredictable for anyone who has not received it
//! then    in a probe: any bytes, to pad the datagram to the size under test
//! ```
//!
//! An answer is never longer than its probe.

use super::hello::{HelloError, VERSION};

pub(crate) const FLAG_PROBE: u8 = 4;
pub(crate) const FLAG_ANSWER: u8 = 8;

/// A probe or its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Whether this is an answer.
    pub answer: bool,
    /// The sender's session.
    pub session: u32,
    /// Number of the probe.
    pub number: u64,
}

impl Probe {
    /// Length of an answer and of the shortest probe, bytes.
    pub const LEN: usize = 16;

    /// Encodes the beginning of the body; a probe is padded to its size.
    pub fn encode(&self) -> [u8; Self::LEN] {
        let mut body = [0; Self::LEN];
        body[0] = VERSION;
        body[1] = match self.answer {
            true => FLAG_ANSWER,
            false => FLAG_PROBE,
        };
        body[4..8].copy_from_slice(&self.session.to_be_bytes());
        body[8..].copy_from_slice(&self.number.to_be_bytes());
        body
    }

    /// Decodes the body of a frame of the hello type; `None` for a hello of any version.
    ///
    /// # Errors
    /// If it is neither.
    pub fn decode(body: &[u8]) -> Result<Option<Self>, HelloError> {
        let flags = match body {
            [VERSION, flags, ..] => flags & (FLAG_PROBE | FLAG_ANSWER),
            _ => 0,
        };
        if flags == 0 {
            return Ok(None);
        }
        let (Some((head, rest)), answer) = (body.split_first_chunk(), flags == FLAG_ANSWER) else {
            return Err(HelloError::Truncated {
                need: Self::LEN,
                got: body.len(),
            });
        };
        let [_, _, _, _, a, b, c, d, number @ ..]: &[u8; Self::LEN] = head;
        match (flags, rest.len()) {
            (FLAG_PROBE, _) | (FLAG_ANSWER, 0) => {}
            (FLAG_ANSWER, extra) => return Err(HelloError::TooLong { extra }),
            _ => return Err(HelloError::Probe),
        }
        Ok(Some(Self {
            answer,
            session: u32::from_be_bytes([*a, *b, *c, *d]),
            number: u64::from_be_bytes(*number),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(answer: bool, session: u32, number: u64, padding in 0..2000usize) {
            let probe = Probe { answer, session, number };
            let mut body = probe.encode().to_vec();
            body.resize(body.len() + if answer { 0 } else { padding }, 0x5a);
            prop_assert_eq!(Probe::decode(&body), Ok(Some(probe)));
            for cut in 2..Probe::LEN {
                let refused = matches!(Probe::decode(&body[..cut]), Err(HelloError::Truncated { .. }));
                prop_assert!(refused, "{}", cut);
            }
            if answer {
                body.push(0);
                prop_assert_eq!(Probe::decode(&body), Err(HelloError::TooLong { extra: 1 }));
            }
            body[1] = FLAG_PROBE | FLAG_ANSWER;
            prop_assert_eq!(Probe::decode(&body), Err(HelloError::Probe));
            body[1] = 3;
            prop_assert_eq!(Probe::decode(&body), Ok(None), "a hello");
            (body[0], body[1]) = (VERSION + 1, FLAG_PROBE);
            prop_assert_eq!(Probe::decode(&body), Ok(None), "another version's is the hello's to refuse");
        }

        #[test]
        fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(Some(probe)) = Probe::decode(&body) {
                prop_assert_eq!(&probe.encode()[4..], &body[4..Probe::LEN]);
            }
        }
    }
}
