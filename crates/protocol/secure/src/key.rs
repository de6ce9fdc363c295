//! Static keys: X25519 (RFC 7748), as text 44 characters of base64 (RFC 4648) in the format of WireGuard's tools, so
//! that `wg genkey` and `wg pubkey` work here, too.
//!
//! A private key is wiped from memory when it is dropped, and never printed. Text is encoded and decoded in constant
//! time, because it may be a private key.

use std::fmt;
use std::str::FromStr;

use base64ct::{Base64, Encoding};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;
use x25519_dalek::StaticSecret;
use zeroize::{Zeroize, Zeroizing};

/// Length of a key, bytes.
pub const KEY_LEN: usize = 32;
/// Length of a key as text, characters.
pub const KEY_TEXT_LEN: usize = 44;

/// Why a text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The text has the wrong length.
    #[error("a key has 44 characters of base64, this text has {0}")]
    Length(usize),
    /// The text is not base64, or not its canonical form.
    #[error("not base64: a key is 43 characters of A-Z, a-z, 0-9, + and /, then one =")]
    Base64,
    /// The key is a point of small order: every exchange with it gives the same, publicly known result.
    #[error("the public key is a point of small order, which is nobody's key")]
    SmallOrder,
}

/// The public key that identifies a peer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub(crate) [u8; KEY_LEN]);

impl PublicKey {
    /// The key with these bytes.
    ///
    /// # Errors
    /// If they are a point of small order.
    pub fn from_bytes(bytes: [u8; KEY_LEN]) -> Result<Self, KeyError> {
        // Any scalar shows it: the result is zero for all of them, or for none.
        let shared = x25519_dalek::x25519([0x55; KEY_LEN], bytes);
        match shared == [0; KEY_LEN] {
            true => Err(KeyError::SmallOrder),
            false => Ok(Self(bytes)),
        }
    }

    /// The bytes of the key.
    pub const fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::from_bytes(*decode(text)?)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; KEY_TEXT_LEN];
        f.write_str(encode(&self.0, &mut text))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

airlane_base::schema_of!(PublicKey, "PublicKey", {
    "type": "string",
    "description": "A public key, 44 characters of base64, as `airlane keygen` prints it.",
    "pattern": "^[A-Za-z0-9+/]{43}=$",
    "examples": ["TjgqYkZ2rXp0wKc5nB1hLmQ8sVdE3uJfGyA7iWoR9CM="],
});

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = PublicKey;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a public key, 44 characters of base64")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<PublicKey, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// The private half of a node's key.
#[derive(Clone)]
pub struct PrivateKey(StaticSecret);

impl PrivateKey {
    /// A new key from 32 random bytes of the operating system.
    pub fn generate(mut random: [u8; KEY_LEN]) -> Self {
        // RFC 7748, section 5: clamped as by `wg genkey`, so that the text is the same.
        random[0] &= 0xf8;
        random[31] = random[31] & 0x7f | 0x40;
        let key = Self(StaticSecret::from(random));
        random.zeroize();
        key
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        PublicKey(x25519_dalek::PublicKey::from(&self.0).to_bytes())
    }

    /// The key as text, to be written to a file that only its owner can read.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = [0; KEY_TEXT_LEN];
        let owned = Zeroizing::new(encode(self.0.as_bytes(), &mut text).to_owned());
        text.zeroize();
        owned
    }

    pub(crate) fn as_bytes(&self) -> &[u8; KEY_LEN] {
        self.0.as_bytes()
    }
}

impl FromStr for PrivateKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        Ok(Self(StaticSecret::from(*decode(text)?)))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

/// A secret that two peers share in addition to their keys. Without it, an attacker who breaks X25519 later, for example
/// with a quantum computer, cannot decrypt recorded traffic (Noise, revision 34, section 9).
#[derive(Clone, PartialEq, Eq)]
pub struct PresharedKey(Zeroizing<[u8; KEY_LEN]>);

impl PresharedKey {
    /// A new key from 32 random bytes of the operating system.
    pub fn generate(mut random: [u8; KEY_LEN]) -> Self {
        let key = Self(Zeroizing::new(random));
        random.zeroize();
        key
    }

    /// The key as text, to be written to a file that only its owner can read.
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut text = [0; KEY_TEXT_LEN];
        let owned = Zeroizing::new(encode(&self.0, &mut text).to_owned());
        text.zeroize();
        owned
    }

    pub(crate) fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl FromStr for PresharedKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        Ok(Self(decode(text)?))
    }
}

impl fmt::Debug for PresharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PresharedKey(..)")
    }
}

fn encode<'a>(bytes: &[u8; KEY_LEN], text: &'a mut [u8; KEY_TEXT_LEN]) -> &'a str {
    Base64::encode(bytes, text).expect("32 bytes are 44 characters")
}

fn decode(text: &str) -> Result<Zeroizing<[u8; KEY_LEN]>, KeyError> {
    let text = text.trim_ascii();
    if text.len() != KEY_TEXT_LEN {
        return Err(KeyError::Length(text.chars().count()));
    }
    let mut bytes = Zeroizing::new([0; KEY_LEN]);
    match Base64::decode(text, bytes.as_mut_slice()) {
        Ok(decoded) if decoded.len() == KEY_LEN => Ok(bytes),
        _ => Err(KeyError::Base64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7748, section 6.1.
    const ALICE_PRIVATE: [u8; 32] = [
        0x77, 0x07, 0x6d, 0x0a, 0x73, 0x18, 0xa5, 0x7d, 0x3c, 0x16, 0xc1, 0x72, 0x51, 0xb2, 0x66,
        0x45, 0xdf, 0x4c, 0x2f, 0x87, 0xeb, 0xc0, 0x99, 0x2a, 0xb1, 0x77, 0xfb, 0xa5, 0x1d, 0xb9,
        0x2c, 0x2a,
    ];
    const ALICE_PUBLIC: [u8; 32] = [
        0x85, 0x20, 0xf0, 0x09, 0x89, 0x30, 0xa7, 0x54, 0x74, 0x8b, 0x7d, 0xdc, 0xb4, 0x3e, 0xf7,
        0x5a, 0x0d, 0xbf, 0x3a, 0x0d, 0x26, 0x38, 0x1a, 0xf4, 0xeb, 0xa4, 0xa9, 0x8e, 0xaa, 0x9b,
        0x4e, 0x6a,
    ];

    #[test]
    fn public_key_is_that_of_the_rfc() {
        assert_eq!(
            PrivateKey::generate(ALICE_PRIVATE).public().as_bytes(),
            &ALICE_PUBLIC
        );
    }

    #[test]
    fn a_key_round_trips_as_text() {
        let private = PrivateKey::generate([7; 32]);
        let text = private.to_text();
        assert_eq!(text.len(), KEY_TEXT_LEN);
        let again: PrivateKey = text.parse().expect("what was written");
        assert_eq!(again.public(), private.public());
        let public: PublicKey = format!(" {}\n", private.public()).parse().unwrap();
        assert_eq!(public, private.public());
    }

    #[test]
    fn debug_shows_nothing_secret() {
        let private = PrivateKey::generate(ALICE_PRIVATE);
        assert_eq!(format!("{private:?}"), "PrivateKey(..)");
        let preshared = PresharedKey::generate([7; 32]);
        assert_eq!(format!("{preshared:?}"), "PresharedKey(..)");
        assert_eq!(preshared.to_text().parse(), Ok(preshared));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let text = PrivateKey::generate([7; 32]).public().to_string();
        let parse = |text: &str| text.parse::<PublicKey>();
        assert_eq!(parse(&text[..43]), Err(KeyError::Length(43)));
        assert_eq!(parse(""), Err(KeyError::Length(0)));
        assert_eq!(
            parse(&format!("{}!{}", &text[..5], &text[6..])),
            Err(KeyError::Base64)
        );
        // 33 bytes fill 44 characters without padding.
        assert_eq!(parse(&"A".repeat(44)), Err(KeyError::Base64));
        // The last character carries four bits of the key; its two spare bits must be zero, so that the text is unique.
        let twice = format!("{}B=", "A".repeat(42));
        assert_eq!(parse(&twice), Err(KeyError::Base64));
    }

    #[test]
    fn keys_of_small_order_are_refused() {
        let mut one = [0; 32];
        one[0] = 1;
        for bytes in [[0; 32], one] {
            assert_eq!(PublicKey::from_bytes(bytes), Err(KeyError::SmallOrder));
        }
        let zero = format!("{}=", "A".repeat(43));
        assert_eq!(zero.parse::<PublicKey>(), Err(KeyError::SmallOrder));
    }
}
