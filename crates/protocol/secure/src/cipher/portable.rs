//! Keys by `chacha20poly1305`, which is Rust alone.

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{ChaCha20Poly1305, Key, KeyInit, Nonce, Tag};

use super::{DataCipher, Forged, nonce};
use crate::key::KEY_LEN;
use crate::message::TAG_LEN;

/// No processor of this kind has instructions for it.
pub(crate) const HAS_AES: bool = false;

pub(crate) struct AeadKey(ChaCha20Poly1305);

impl AeadKey {
    pub(super) fn new(cipher: DataCipher, key: &[u8; KEY_LEN]) -> Self {
        match cipher {
            DataCipher::ChaChaPoly => Self(ChaCha20Poly1305::new(&Key::from(*key))),
            DataCipher::AesGcm => unreachable!("it is chosen only where both ends have it"),
        }
    }

    /// Encrypts in place and gives the tag. No counter comes twice.
    pub(crate) fn seal(&self, counter: u64, associated: &[u8], text: &mut [u8]) -> [u8; TAG_LEN] {
        let nonce = Nonce::from(nonce(counter));
        let sealed = self
            .0
            .encrypt_inout_detached(&nonce, associated, text.into());
        let tag = sealed.expect("a datagram is shorter than what the cipher can encrypt");
        tag.into()
    }

    /// Decrypts in place.
    pub(crate) fn open(
        &self,
        counter: u64,
        associated: &[u8],
        text: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), Forged> {
        let nonce = Nonce::from(nonce(counter));
        self.0
            .decrypt_inout_detached(&nonce, associated, text.into(), &Tag::from(*tag))
            .map_err(|_| Forged)
    }
}
