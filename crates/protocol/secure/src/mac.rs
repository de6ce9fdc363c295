//! Protection of the handshake against floods: the two MACs of its messages, and cookies.
//!
//! After WireGuard (NDSS 2017, sections 5.3, 5.4.4 and 5.4.7). mac1 is keyed by the receiver's public key: a sender that
//! does not know it gets no answer. mac2 is keyed by a cookie, which the responder issues only under load, and which
//! only a sender that receives at its claimed address can learn. The cookie is a MAC of that address under a secret that
//! changes every two minutes, so the responder keeps no state for it.

use airlane_base::{Duration, Instant};
use blake2::digest::consts::U16;
use blake2::digest::{Digest, KeyInit, Mac as _};
use blake2::{Blake2s256, Blake2sMac};
use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{Key, Tag, XChaCha20Poly1305, XNonce};
use subtle::ConstantTimeEq;

use crate::entropy::Entropy;
use crate::key::PublicKey;
use crate::message::{COOKIE_NONCE_LEN, CookieReply, Handshake, MAC_LEN};
use crate::peer_address::PeerAddress;

const MAC1_LABEL: &[u8] = b"airlane-secure 1 mac1";
const COOKIE_LABEL: &[u8] = b"airlane-secure 1 cookie";
/// Length of the window in which load is counted, and how long it is remembered.
const LOAD_WINDOW: Duration = Duration::from_secs(1);

pub(crate) type Mac = [u8; MAC_LEN];

fn mac(key: &[u8], data: &[u8]) -> Mac {
    let mut mac = <Blake2sMac<U16> as KeyInit>::new_from_slice(key)
        .expect("BLAKE2s takes keys of up to 32 bytes");
    mac.update(data);
    mac.finalize().into_bytes().into()
}

/// Keys derived from the public key of the receiver of handshake messages.
pub(crate) struct MacKeys {
    mac1: [u8; 32],
    cookie: Key,
}

impl MacKeys {
    pub(crate) fn of(receiver: &PublicKey) -> Self {
        let hash = |label: &[u8]| -> [u8; 32] {
            let hash = Blake2s256::new_with_prefix(label).chain_update(receiver.as_bytes());
            hash.finalize().into()
        };
        Self {
            mac1: hash(MAC1_LABEL),
            cookie: hash(COOKIE_LABEL).into(),
        }
    }

    /// Whether the sender knows the receiver's public key.
    pub(crate) fn verify(&self, handshake: &Handshake<'_>) -> bool {
        let (covered, received) = handshake.mac1();
        mac(&self.mac1, covered).ct_eq(received).into()
    }

    /// Writes both MACs to the end of a handshake message; without a cookie mac2 is zero. Returns mac1.
    pub(crate) fn sign(&self, message: &mut [u8], cookie: Option<&Mac>) -> Mac {
        let at = message.len() - 2 * MAC_LEN;
        let mac1 = mac(&self.mac1, &message[..at]);
        message[at..at + MAC_LEN].copy_from_slice(&mac1);
        let (covered, end) = message.split_at_mut(at + MAC_LEN);
        end.copy_from_slice(&cookie.map_or([0; MAC_LEN], |cookie| mac(cookie, covered)));
        mac1
    }

    /// Encrypts a cookie for the sender of the handshake message with this mac1.
    pub(crate) fn seal_cookie(
        &self,
        cookie: &Mac,
        mac1: &[u8],
        nonce: &[u8; COOKIE_NONCE_LEN],
        sealed: &mut [u8],
    ) {
        let (text, tag) = sealed.split_at_mut(MAC_LEN);
        text.copy_from_slice(cookie);
        let made = XChaCha20Poly1305::new(&self.cookie)
            .encrypt_inout_detached(&XNonce::from(*nonce), mac1, text.into())
            .expect("a cookie is short");
        tag.copy_from_slice(&made);
    }

    /// The cookie in the reply to our message with this mac1; `None` if it is not such a reply.
    pub(crate) fn open_cookie(&self, reply: &CookieReply<'_>, mac1: &Mac) -> Option<Mac> {
        let (mut cookie, tag) = (*reply.cookie, Tag::from(*reply.tag));
        XChaCha20Poly1305::new(&self.cookie)
            .decrypt_inout_detached(
                &XNonce::from(*reply.nonce),
                mac1,
                cookie.as_mut_slice().into(),
                &tag,
            )
            .ok()?;
        Some(cookie)
    }
}

/// The secret from which our cookies are derived.
pub(crate) struct CookieSecret {
    secret: [u8; 32],
    drawn: Option<Instant>,
    lifetime: Duration,
}

impl CookieSecret {
    pub(crate) const fn new(lifetime: Duration) -> Self {
        Self {
            secret: [0; 32],
            drawn: None,
            lifetime,
        }
    }

    /// The current cookie of this address.
    pub(crate) fn cookie(&mut self, now: Instant, from: PeerAddress, entropy: &mut Entropy) -> Mac {
        let current = |at| now.saturating_since(at) < self.lifetime;
        if !self.drawn.is_some_and(current) {
            self.secret = entropy.draw();
            self.drawn = Some(now);
        }
        let (source, len) = from.bytes();
        mac(&self.secret, &source[..len])
    }
}

/// Whether the sender has this cookie.
pub(crate) fn shows(handshake: &Handshake<'_>, cookie: &Mac) -> bool {
    let (covered, received) = handshake.mac2();
    mac(cookie, covered).ct_eq(received).into()
}

/// The rate of incoming handshake messages.
#[derive(Debug)]
pub(crate) struct Load {
    most: u32,
    since: Instant,
    count: u32,
    until: Instant,
}

impl Load {
    pub(crate) const fn new(now: Instant, most: u32) -> Self {
        Self {
            most,
            since: now,
            count: 0,
            until: now,
        }
    }

    /// Counts a message. True if there are too many.
    pub(crate) fn is_high(&mut self, now: Instant) -> bool {
        if now.saturating_since(self.since) >= LOAD_WINDOW {
            (self.since, self.count) = (now, 0);
        }
        self.count = self.count.saturating_add(1);
        if self.count > self.most {
            self.until = now + LOAD_WINDOW;
        }
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::PrivateKey;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    #[test]
    fn load_is_high_above_the_limit_for_one_second() {
        let mut load = Load::new(at(0), 10);
        assert!((0..10).all(|ms| !load.is_high(at(ms))));
        assert!(load.is_high(at(11)));
        assert!(load.is_high(at(1_005)), "for a second after the last");
        assert!(!load.is_high(at(1_100)));
        assert!((0..100).all(|n| !load.is_high(at(2_000 + 110 * n))));
    }

    #[test]
    fn cookies_depend_on_address_and_time() {
        let mut secret = CookieSecret::new(Duration::from_secs(120));
        let mut entropy = Entropy::new([1; 32]);
        let mut cookie =
            |ms, from: &str| secret.cookie(at(ms), from.parse().unwrap(), &mut entropy);
        let first = cookie(5, "192.0.2.1:1000");
        assert_eq!(cookie(119_000, "192.0.2.1:1000"), first);
        assert_ne!(cookie(119_000, "192.0.2.1:1001"), first);
        assert_ne!(cookie(119_000, "192.0.2.2:1000"), first);
        assert_ne!(cookie(119_000, "[2001:db8::1]:1000"), first);
        assert_ne!(cookie(120_005, "192.0.2.1:1000"), first);
    }

    #[test]
    fn a_cookie_opens_only_for_the_message_that_asked() {
        let keys = MacKeys::of(&PrivateKey::generate([1; 32]).public());
        let others = MacKeys::of(&PrivateKey::generate([2; 32]).public());
        let mut sealed = [0; 32];
        keys.seal_cookie(&[7; 16], &[3; 16], &[9; 24], &mut sealed);
        let open = |keys: &MacKeys, sealed: &[u8; 32], mac1| {
            let (cookie, tag) = sealed.split_at(16);
            let reply = CookieReply {
                receiver: 0,
                nonce: &[9; 24],
                cookie: cookie.try_into().unwrap(),
                tag: tag.try_into().unwrap(),
            };
            keys.open_cookie(&reply, &mac1)
        };
        assert_eq!(open(&keys, &sealed, [3; 16]), Some([7; 16]));
        assert_eq!(open(&keys, &sealed, [4; 16]), None);
        assert_eq!(open(&others, &sealed, [3; 16]), None);
        for at in 0..sealed.len() {
            let mut changed = sealed;
            changed[at] ^= 1;
            assert_eq!(open(&keys, &changed, [3; 16]), None);
        }
    }
}
