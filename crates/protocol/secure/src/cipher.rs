//! The cipher of data messages: ChaCha20-Poly1305 (RFC 8439), which is fast on every processor, or AES-256-GCM (NIST SP
//! 800-38D), which is several times faster if both ends have instructions for it.
//!
//! The initiator's encrypted payload says whether its processor has them, and the responder's encrypted payload names
//! the cipher, so nobody else can change either. Handshakes always use ChaCha20-Poly1305.
//!
//! Under one key GCM is safe for at least 2^48 blocks (SP 800-38D, section 8.3, with nonces that never repeat; RFC 9001,
//! B.1, for the margin). In the 180 s for which keys live, 10 Gbit/s make 2^34 blocks.

// ring has no code for WebAssembly that needs no C compiler.
#[cfg_attr(target_arch = "wasm32", path = "cipher/portable.rs")]
#[cfg_attr(not(target_arch = "wasm32"), path = "cipher/native.rs")]
mod provider;

use crate::key::KEY_LEN;

pub(crate) use provider::{AeadKey, HAS_AES};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataCipher {
    ChaChaPoly,
    AesGcm,
}

impl DataCipher {
    /// The cipher that two ends use.
    pub(crate) const fn chosen(ours_fast: bool, theirs_fast: bool) -> Self {
        match ours_fast && theirs_fast {
            true => Self::AesGcm,
            false => Self::ChaChaPoly,
        }
    }

    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::ChaChaPoly => 0,
            Self::AesGcm => 1,
        }
    }

    pub(crate) const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::ChaChaPoly),
            1 => Some(Self::AesGcm),
            _ => None,
        }
    }

    pub(crate) fn key(self, key: &[u8; KEY_LEN]) -> AeadKey {
        AeadKey::new(self, key)
    }
}

/// What was to be opened is not what was sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forged;

/// The counter as Noise puts it into the nonce of ChaCha20-Poly1305 (revision 34, section 12.3).
fn nonce(counter: u64) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&counter.to_le_bytes());
    bytes
}
