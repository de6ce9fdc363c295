//! The handshake: `Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s` (Noise specification, revision 34, sections 5, 7.5 and 9.4),
//! run by `snow` with the primitives chosen here.
//!
//! ```text
//!   <- s                        the initiator knows the responder's public key
//!   ...
//!   -> e, es, s, ss, {timestamp, whether AES is fast here, whether there is a pre-shared key}
//!   <- e, ee, se, psk, {cipher of the data messages}
//! ```
//!
//! X25519 comes from `x25519-dalek`, which wipes its secrets; ChaCha20-Poly1305 from ring, as for data messages; BLAKE2s
//! from RustCrypto. A shared secret of zero is refused (RFC 7748, section 6.1), because the peer's point was of small
//! order. A static key that is not configured (`KnownKeys`) is refused as soon as it is decrypted, before `ss`, so a
//! stranger's initiation costs a single exchange.
//!
//! Peers without a pre-shared key use one of zeros (as in WireGuard, section 5.4.2): a responder learns the identity of
//! the initiator only from a message whose pattern it must already know.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use blake2::{Blake2s256, Digest};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use snow::{Builder, Error, HandshakeState};
use subtle::ConstantTimeEq;
use x25519_dalek::StaticSecret;
use zeroize::{Zeroize, Zeroizing};

use crate::cipher::{AeadKey, DataCipher};
use crate::key::{KEY_LEN, PresharedKey, PrivateKey, PublicKey};
use crate::message::TAG_LEN;
use crate::peer_id::PeerId;
use crate::refused::Refused;

const PATTERN: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
/// Position of the pre-shared key in the pattern.
const PSK_AT: u8 = 2;
/// The key of peers without a pre-shared key.
const NO_PSK: [u8; KEY_LEN] = [0; KEY_LEN];
/// Both ends must run the same protocol; another version of it has another prologue.
const PROLOGUE: &[u8] = b"airlane-secure 4";
const TIMESTAMP_LEN: usize = 8;
/// Length of the initiation's payload and of the response's, bytes.
pub(crate) const OFFER_LEN: usize = TIMESTAMP_LEN + 1;
pub(crate) const CHOICE_LEN: usize = 1;

/// The static keys to which a responder answers.
pub(crate) type KnownKeys = Arc<BTreeMap<PublicKey, PeerId>>;

/// The result of the handshake.
pub(crate) struct Split {
    pub(crate) send: Zeroizing<[u8; KEY_LEN]>,
    pub(crate) receive: Zeroizing<[u8; KEY_LEN]>,
    /// The cipher for these keys.
    pub(crate) cipher: DataCipher,
}

/// The payload of an initiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandshakeOffer {
    /// When it was sent, by the initiator's clock.
    pub(crate) timestamp: u64,
    /// Whether the initiator's processor has instructions for AES.
    pub(crate) fast_aes: bool,
    /// Whether the initiator has a pre-shared key for the responder.
    pub(crate) preshared: bool,
}

/// Bits of an offer; the others are reserved for later versions.
const FAST_AES: u8 = 1;
const PRESHARED: u8 = 2;

impl HandshakeOffer {
    fn bytes(self) -> [u8; OFFER_LEN] {
        let mut bytes = [0; OFFER_LEN];
        bytes[..TIMESTAMP_LEN].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[TIMESTAMP_LEN] =
            u8::from(self.fast_aes) * FAST_AES + u8::from(self.preshared) * PRESHARED;
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (timestamp, [bits]) = bytes.split_first_chunk()? else {
            return None;
        };
        Some(Self {
            timestamp: u64::from_be_bytes(*timestamp),
            fast_aes: bits & FAST_AES != 0,
            preshared: bits & PRESHARED != 0,
        })
    }
}

impl Split {
    fn of(state: &mut HandshakeState, cipher: DataCipher) -> Self {
        let (mut initiators, mut responders) = state.dangerously_get_raw_split();
        let (first, second) = (Zeroizing::new(initiators), Zeroizing::new(responders));
        initiators.zeroize();
        responders.zeroize();
        let (send, receive) = match state.is_initiator() {
            true => (first, second),
            false => (second, first),
        };
        Self {
            send,
            receive,
            cipher,
        }
    }
}

fn builder(private: &PrivateKey, seed: [u8; 32], known: Option<KnownKeys>) -> Builder<'_> {
    let primitives = Box::new(Primitives { seed, known });
    let params = PATTERN.parse().expect("a name of the specification");
    Builder::with_resolver(params, primitives)
        .local_private_key(private.as_bytes())
        .and_then(|builder| builder.prologue(PROLOGUE))
        .expect("each is set once")
}

/// A handshake that waits for its response.
#[derive(Debug)]
pub(crate) struct Initiation {
    state: HandshakeState,
    offer: HandshakeOffer,
}

impl Initiation {
    /// Begins a handshake and fills Noise's part of the initiation.
    pub(crate) fn write(
        private: &PrivateKey,
        (peer, preshared): (&PublicKey, Option<&PresharedKey>),
        seed: [u8; 32],
        offer: HandshakeOffer,
        noise: &mut [u8],
    ) -> Result<Self, Error> {
        let mut state = builder(private, seed, None)
            .remote_public_key(peer.as_bytes())?
            .psk(PSK_AT, preshared.map_or(&NO_PSK, PresharedKey::as_bytes))?
            .build_initiator()?;
        let len = state.write_message(&offer.bytes(), noise)?;
        debug_assert_eq!(len, noise.len());
        Ok(Self { state, offer })
    }

    /// Reads the response. If it is refused, another one can still be read.
    pub(crate) fn finish(&mut self, noise: &[u8]) -> Result<Split, Refused> {
        let mut choice = [0; CHOICE_LEN + TAG_LEN];
        let Ok(CHOICE_LEN) = self.state.read_message(noise, &mut choice) else {
            // The most likely reason is a different pre-shared key.
            return Err(match self.offer.preshared {
                true => Refused::Preshared,
                false => Refused::Forged,
            });
        };
        match DataCipher::from_code(choice[0]) {
            // A cipher that was not offered.
            Some(DataCipher::AesGcm) if !self.offer.fast_aes => Err(Refused::Forged),
            Some(cipher) => Ok(Split::of(&mut self.state, cipher)),
            None => Err(Refused::Forged),
        }
    }
}

/// A decrypted initiation, authentic if its timestamp is new.
pub(crate) struct Response {
    state: HandshakeState,
    /// The sender's key.
    pub(crate) key: PublicKey,
    /// The payload.
    pub(crate) offer: HandshakeOffer,
}

impl Response {
    /// Decrypts Noise's part of an initiation, if its sender is known.
    pub(crate) fn read(
        private: &PrivateKey,
        seed: [u8; 32],
        known: &KnownKeys,
        noise: &[u8],
        stranger: &mut Option<PublicKey>,
    ) -> Result<Self, Refused> {
        let mut state = builder(private, seed, Some(Arc::clone(known)))
            .build_responder()
            .expect("a responder needs its own key only");
        let mut payload = [0; OFFER_LEN + TAG_LEN];
        let read = state.read_message(noise, &mut payload);
        // The key is available once it is decrypted, even if the rest was refused.
        let key = state
            .get_remote_static()
            .and_then(|key| key.try_into().ok())
            .map(PublicKey)
            .ok_or(Refused::Forged)?;
        if !known.contains_key(&key) {
            *stranger = Some(key);
            return Err(Refused::UnknownKey);
        }
        let len = read.map_err(|_| Refused::Forged)?;
        let offer = HandshakeOffer::read(&payload[..len]).ok_or(Refused::Forged)?;
        Ok(Self { state, key, offer })
    }

    /// Fills Noise's part of the response.
    pub(crate) fn write(
        mut self,
        fast_aes: bool,
        preshared: Option<&PresharedKey>,
        noise: &mut [u8],
    ) -> Result<Split, Refused> {
        if self.offer.preshared != preshared.is_some() {
            return Err(Refused::Preshared);
        }
        let cipher = DataCipher::chosen(fast_aes, self.offer.fast_aes);
        let preshared = preshared.map_or(&NO_PSK, PresharedKey::as_bytes);
        self.state
            .set_psk(PSK_AT.into(), preshared)
            .expect("the pattern has one there");
        // The initiator's ephemeral key may be a point of small order.
        match self.state.write_message(&[cipher.code()], noise) {
            Ok(_) => Ok(Split::of(&mut self.state, cipher)),
            Err(_) => Err(Refused::Forged),
        }
    }
}

/// Primitives for one handshake, the seed of its ephemeral key, and the keys to which a responder answers.
struct Primitives {
    seed: [u8; 32],
    known: Option<KnownKeys>,
}

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Seeded(ChaCha20Rng::from_seed(self.seed))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        let known = self.known.clone();
        matches!(choice, DHChoice::Curve25519).then(|| Box::new(X25519::new(known)) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        matches!(choice, HashChoice::Blake2s).then(|| Box::<Blake2s>::default() as Box<dyn Hash>)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        matches!(choice, CipherChoice::ChaChaPoly).then(|| {
            Box::new(ChaChaPoly(DataCipher::ChaChaPoly.key(&[0; KEY_LEN]))) as Box<dyn Cipher>
        })
    }
}

impl Drop for Primitives {
    fn drop(&mut self) {
        self.seed.zeroize();
    }
}

struct Seeded(ChaCha20Rng);

impl Random for Seeded {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.0.fill_bytes(bytes);
        Ok(())
    }
}

struct X25519 {
    secret: StaticSecret,
    public: [u8; KEY_LEN],
    known: Option<KnownKeys>,
    /// The first exchange with a responder's static key is `es`, with a key that is not known yet; the second is `ss`.
    es_is_done: AtomicBool,
}

impl X25519 {
    fn new(known: Option<KnownKeys>) -> Self {
        Self {
            secret: StaticSecret::from([0; KEY_LEN]),
            public: [0; KEY_LEN],
            known,
            es_is_done: AtomicBool::new(false),
        }
    }
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY_LEN
    }

    fn priv_len(&self) -> usize {
        KEY_LEN
    }

    fn set(&mut self, private: &[u8]) {
        let bytes: [u8; KEY_LEN] = private.try_into().expect("keys have 32 bytes");
        self.secret = StaticSecret::from(bytes);
        self.public = x25519_dalek::PublicKey::from(&self.secret).to_bytes();
    }

    fn generate(&mut self, rng: &mut dyn Random) -> Result<(), Error> {
        let mut bytes = Zeroizing::new([0; KEY_LEN]);
        rng.try_fill_bytes(bytes.as_mut_slice())?;
        self.set(bytes.as_slice());
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        self.secret.as_bytes()
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = public.get(..KEY_LEN).ok_or(Error::Input)?;
        let public: [u8; KEY_LEN] = public.try_into().map_err(|_| Error::Input)?;
        if let Some(known) = &self.known
            && self.es_is_done.swap(true, Ordering::Relaxed)
            && !known.contains_key(&PublicKey(public))
        {
            return Err(Error::Input);
        }
        let shared = self.secret.diffie_hellman(&public.into());
        if shared.as_bytes().ct_eq(&[0; KEY_LEN]).into() {
            return Err(Error::Dh);
        }
        out[..KEY_LEN].copy_from_slice(shared.as_bytes());
        Ok(())
    }
}

#[derive(Default)]
struct Blake2s(Blake2s256);

impl Hash for Blake2s {
    fn name(&self) -> &'static str {
        "BLAKE2s"
    }

    fn block_len(&self) -> usize {
        64
    }

    fn hash_len(&self) -> usize {
        32
    }

    fn reset(&mut self) {
        self.0 = Blake2s256::new();
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        out[..32].copy_from_slice(&std::mem::take(&mut self.0).finalize());
    }
}

struct ChaChaPoly(AeadKey);

impl Cipher for ChaChaPoly {
    fn name(&self) -> &'static str {
        "ChaChaPoly"
    }

    fn set(&mut self, key: &[u8; KEY_LEN]) {
        self.0 = DataCipher::ChaChaPoly.key(key);
    }

    fn encrypt(&self, counter: u64, ad: &[u8], plain: &[u8], out: &mut [u8]) -> usize {
        let (text, rest) = out.split_at_mut(plain.len());
        text.copy_from_slice(plain);
        let tag = self.0.seal(counter, ad, text);
        rest[..TAG_LEN].copy_from_slice(&tag);
        plain.len() + TAG_LEN
    }

    fn decrypt(
        &self,
        counter: u64,
        ad: &[u8],
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let (text, tag) = sealed.split_last_chunk::<TAG_LEN>().ok_or(Error::Decrypt)?;
        let out = out.get_mut(..text.len()).ok_or(Error::Input)?;
        out.copy_from_slice(text);
        self.0
            .open(counter, ad, out, tag)
            .map_err(|_| Error::Decrypt)?;
        Ok(text.len())
    }
}

#[cfg(test)]
mod tests;
