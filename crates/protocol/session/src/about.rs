//! What an end reports about itself within a session, for the operator of the peer. It travels in frames of the hello
//! type.
//!
//! ```text
//!  0      version, as a hello's
//!  1      flags: 12 this is a report about its sender
//!  2      1: the sender asks for the peer's report
//!  3      zero
//!  4..8   session
//! then    text: the version of the program, then each address of the tunnel's interface, one per line
//! ```

use super::hello::{HelloError, VERSION};
use super::probe::{FLAG_ANSWER, FLAG_PROBE};

/// Both flags together: a probe is never the answer to a probe.
const FLAG_ABOUT: u8 = FLAG_PROBE | FLAG_ANSWER;
const HEAD: usize = 8;
/// Maximum length of the text, bytes; it must fit the narrowest path.
const MOST_TEXT: usize = 400;
/// Maximum number of addresses that are read.
const MOST_ADDRESSES: usize = 16;

/// What one end reports about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The sender's session.
    pub session: u32,
    /// Whether the sender asks for the peer's report.
    pub asks: bool,
    /// Version of the program.
    pub version: String,
    /// Addresses of the tunnel's interface, with their prefixes.
    pub addresses: Vec<String>,
}

impl About {
    /// The body of a frame. Addresses that do not fit are left out.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = vec![VERSION, FLAG_ABOUT, u8::from(self.asks), 0];
        body.extend_from_slice(&self.session.to_be_bytes());
        body.extend_from_slice(self.version.as_bytes());
        for address in self.addresses.iter().take(MOST_ADDRESSES) {
            if body.len() + 1 + address.len() <= HEAD + MOST_TEXT {
                body.push(b'\n');
                body.extend_from_slice(address.as_bytes());
            }
        }
        body
    }

    /// Decodes the body of a frame of the hello type; `None` if it is something else.
    ///
    /// # Errors
    /// If it is marked as a report and is malformed.
    pub fn decode(body: &[u8]) -> Result<Option<Self>, HelloError> {
        if !matches!(body, [VERSION, flags, ..] if *flags == FLAG_ABOUT) {
            return Ok(None);
        }
        let Some((head, text)) = body.split_first_chunk::<HEAD>() else {
            return Err(HelloError::Truncated {
                need: HEAD,
                got: body.len(),
            });
        };
        let extra = text.len().saturating_sub(MOST_TEXT);
        if extra > 0 {
            return Err(HelloError::TooLong { extra });
        }
        let text = std::str::from_utf8(text).map_err(|_| HelloError::About)?;
        let mut lines = text.split('\n');
        let session = [head[4], head[5], head[6], head[7]];
        Ok(Some(Self {
            session: u32::from_be_bytes(session),
            asks: head[2] == 1,
            version: lines.next().unwrap_or_default().to_owned(),
            addresses: lines.take(MOST_ADDRESSES).map(str::to_owned).collect(),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hello, Probe};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_about_message_round_trips(
            session: u32,
            asks: bool,
            version in "[ -~]{0,40}",
            addresses in prop::collection::vec("[0-9a-f:./]{1,45}", 0..6),
        ) {
            let about = About { session, asks, version, addresses };
            prop_assert_eq!(About::decode(&about.encode()), Ok(Some(about)));
        }

        #[test]
        fn any_bytes_are_read_or_refused(mut body in prop::collection::vec(any::<u8>(), 0..600)) {
            if let [version, flags, ..] = &mut body[..] {
                (*version, *flags) = (VERSION, FLAG_ABOUT);
            }
            if let Ok(Some(about)) = About::decode(&body) {
                prop_assert!(about.encode().len() <= HEAD + MOST_TEXT);
            }
        }
    }

    #[test]
    fn it_is_neither_a_probe_nor_a_hello() {
        let body = About::default().encode();
        assert!(Probe::decode(&body).is_err());
        assert!(Hello::decode(&body).is_err());
        let probe = Probe {
            answer: false,
            session: 1,
            number: 2,
        }
        .encode();
        assert_eq!(About::decode(&probe), Ok(None));
    }

    #[test]
    fn many_addresses_do_not_outgrow_a_path() {
        let addresses = vec!["fd07:1234:5678:9abc:def0:1234:5678:9abc/64".to_owned(); 40];
        let about = About {
            addresses,
            ..About::default()
        };
        let body = about.encode();
        assert!(body.len() <= HEAD + MOST_TEXT);
        assert!(!About::decode(&body).unwrap().unwrap().addresses.is_empty());
    }
}
