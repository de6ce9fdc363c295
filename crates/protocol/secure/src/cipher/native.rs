//! Keys by ring.

use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

use super::{DataCipher, Forged, nonce};
use crate::key::KEY_LEN;
use crate::message::TAG_LEN;

/// Whether there is AES.
pub(crate) const HAS_AES: bool = true;

pub(crate) struct AeadKey(LessSafeKey);

impl AeadKey {
    pub(super) fn new(cipher: DataCipher, key: &[u8; KEY_LEN]) -> Self {
        let algorithm = match cipher {
            DataCipher::ChaChaPoly => &CHACHA20_POLY1305,
            DataCipher::AesGcm => &AES_256_GCM,
        };
        let key = UnboundKey::new(algorithm, key).expect("the keys of both have 32 bytes");
        Self(LessSafeKey::new(key))
    }

    /// Encrypts in place and gives the tag. No counter comes twice.
    pub(crate) fn seal(&self, counter: u64, associated: &[u8], text: &mut [u8]) -> [u8; TAG_LEN] {
        let nonce = Nonce::assume_unique_for_key(nonce(counter));
        let sealed = self
            .0
            .seal_in_place_separate_tag(nonce, Aad::from(associated), text);
        let tag = sealed.expect("a datagram is shorter than what either cipher can encrypt");
        let mut bytes = [0; TAG_LEN];
        bytes.copy_from_slice(tag.as_ref());
        bytes
    }

    /// Decrypts in place.
    pub(crate) fn open(
        &self,
        counter: u64,
        associated: &[u8],
        text: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), Forged> {
        let nonce = Nonce::assume_unique_for_key(nonce(counter));
        self.0
            .open_in_place_separate_tag(nonce, Aad::from(associated), (*tag).into(), text, 0..)
            .map_err(|_| Forged)?;
        Ok(())
    }
}
