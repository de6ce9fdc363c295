//! The cipher of data messages: ChaCha20-Poly1305 (RFC 8439), which is fast on every processor, or AES-256-GCM (NIST SP
//! 800-38D), which is several times faster if both ends have instructions for it.
//!
//! The initiator's encrypted payload says whether its processor has them, and the responder's encrypted payload names
//! the cipher, so nobody else can change either. Handshakes always use ChaCha20-Poly1305.
//!
//! Under one key GCM is safe for at least 2^48 blocks (SP 800-38D, section 8.3, with nonces that never repeat; RFC 9001,
//! B.1, for the margin). In the 180 s for which keys live, 10 Gbit/s make 2^34 blocks.

use ring::aead::{AES_256_GCM, CHACHA20_POLY1305, LessSafeKey, UnboundKey};

use crate::key::KEY_LEN;

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

    pub(crate) fn key(self, key: &[u8; KEY_LEN]) -> LessSafeKey {
        let algorithm = match self {
            Self::ChaChaPoly => &CHACHA20_POLY1305,
            Self::AesGcm => &AES_256_GCM,
        };
        LessSafeKey::new(UnboundKey::new(algorithm, key).expect("the keys of both have 32 bytes"))
    }
}
