//! The two keys of a session, one for each direction, with the send counter and the receive window (WireGuard, NDSS
//! 2017, section 5.4.6).
//!
//! The counter is the nonce. It only grows, and keys are retired long before it could overflow, so no nonce is used
//! twice. The header is authenticated, and so is the binding of a bound message, which is not sent: an end with another
//! binding cannot open the message.

use std::fmt;

use airlane_base::Instant;

use crate::cipher::AeadKey;
use crate::limits::Limits;
use crate::message::{DATA_HEADER_LEN, DataMessage, OVERHEAD, TAG_LEN, data_header};
use crate::noise::Split;
use crate::refused::Refused;
use crate::replay::{Stale, Window};

pub(crate) struct Keypair {
    /// Our index, in messages that we receive.
    pub(crate) local: u32,
    /// The peer's index, in messages that we send.
    remote: u32,
    /// Whether we sent the initiation.
    pub(crate) initiator: bool,
    /// When the handshake completed.
    pub(crate) made: Instant,
    send: AeadKey,
    receive: AeadKey,
    counter: u64,
    window: Window,
}

/// The additional authenticated data.
struct Associated {
    bytes: [u8; DATA_HEADER_LEN + 8],
    len: usize,
}

impl Associated {
    fn new(header: &[u8; DATA_HEADER_LEN], binding: Option<u64>) -> Self {
        let mut bytes = [0; DATA_HEADER_LEN + 8];
        bytes[..DATA_HEADER_LEN].copy_from_slice(header);
        if let Some(binding) = binding {
            bytes[DATA_HEADER_LEN..].copy_from_slice(&binding.to_be_bytes());
        }
        let len = DATA_HEADER_LEN + if binding.is_some() { 8 } else { 0 };
        Self { bytes, len }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Keypair {
    pub(crate) fn new(
        now: Instant,
        split: &Split,
        local: u32,
        remote: u32,
        initiator: bool,
    ) -> Self {
        Self {
            local,
            remote,
            initiator,
            made: now,
            send: split.cipher.key(&split.send),
            receive: split.cipher.key(&split.receive),
            counter: 0,
            window: Window::new(),
        }
    }

    /// When the keys expire.
    pub(crate) fn expiry(&self, limits: &Limits) -> Instant {
        self.made + limits.reject_after
    }

    /// Whether the keys may still be used to send.
    pub(crate) fn can_send(&self, now: Instant, limits: &Limits) -> bool {
        now < self.expiry(limits) && self.counter < limits.reject_after_messages
    }

    /// Whether the keys should be renewed.
    pub(crate) fn is_worn(&self, now: Instant, limits: &Limits) -> bool {
        let most = match self.initiator {
            true => limits.rekey_after,
            false => limits.responder_rekey_after(),
        };
        self.counter >= limits.rekey_after_messages || now >= self.made + most
    }

    /// Encrypts a payload, given in parts, into a data message, bound or not, and returns the length of the message. The
    /// caller has checked the room in `out`, and that the keys [can send](Keypair::can_send).
    pub(crate) fn seal(&mut self, binding: Option<u64>, parts: &[&[u8]], out: &mut [u8]) -> usize {
        let header = data_header(self.remote, binding.is_some(), self.counter);
        let associated = Associated::new(&header, binding);
        let (room, rest) = out.split_at_mut(DATA_HEADER_LEN);
        room.copy_from_slice(&header);
        let mut len = 0;
        for part in parts {
            rest[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        let (payload, rest) = rest.split_at_mut(len);
        let tag = self.send.seal(self.counter, associated.as_bytes(), payload);
        rest[..TAG_LEN].copy_from_slice(&tag);
        self.counter += 1;
        len + OVERHEAD
    }

    /// Decrypts a data message; a bound one only if it is bound to `binding`. Returns the length of its payload, and
    /// whether it is newer than all messages before it.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        limits: &Limits,
        binding: Option<u64>,
        data: &DataMessage<'_>,
        plain: &mut [u8],
    ) -> Result<(usize, bool), Refused> {
        let counter = self.window.widen(data.counter);
        if now >= self.expiry(limits) || counter >= limits.reject_after_messages {
            return Err(Refused::Expired);
        }
        self.window.check(counter).map_err(|stale| match stale {
            Stale::Seen => Refused::Replayed,
            Stale::TooOld => Refused::BehindWindow,
        })?;
        let binding = match (data.bound, binding) {
            (true, None) => return Err(Refused::Unbound),
            (true, binding) => binding,
            (false, _) => None,
        };
        let associated = Associated::new(data.header, binding);
        let len = data.encrypted.len();
        let plain = plain.get_mut(..len).ok_or(Refused::NoRoom)?;
        plain.copy_from_slice(data.encrypted);
        self.receive
            .open(counter, associated.as_bytes(), plain, data.tag)
            .map_err(|_| Refused::Forged)?;
        let newest = self.window.is_newest(counter);
        self.window.accept(counter);
        Ok((len, newest))
    }
}

/// Shows everything except the keys.
impl fmt::Debug for Keypair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keypair")
            .field("local", &self.local)
            .field("remote", &self.remote)
            .field("initiator", &self.initiator)
            .field("made", &self.made)
            .field("counter", &self.counter)
            .field("window", &self.window)
            .finish_non_exhaustive()
    }
}
