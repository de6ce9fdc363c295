//! The token that marks a packet or connection as part of a test: 128 random bits drawn by the server.
//!
//! It is sent once over the control connection, and in clear over the path under test: it keeps unknown senders from
//! using the server, and protects no secrets.

use std::fmt;

use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};

/// Bytes of a token.
pub(crate) const TOKEN_LEN: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TestToken(pub(crate) [u8; TOKEN_LEN]);

impl TestToken {
    /// Draws a new token.
    pub(crate) fn draw() -> std::io::Result<Self> {
        let mut bytes = [0; TOKEN_LEN];
        // So few bytes are always returned at once.
        getrandom(&mut bytes, GetRandomFlags::empty())?;
        Ok(Self(bytes))
    }
}

/// In hexadecimal digits.
impl fmt::Display for TestToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
