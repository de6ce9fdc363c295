//! Handles received datagrams: each is parsed, assigned to a peer, authenticated, and only then acted on.

use airlane_base::Instant;

use crate::keypair::Keypair;
use crate::mac::shows;
use crate::message::{
    COOKIE_REPLY_LEN, CookieReply, DataMessage, Handshake, Message, RESPONSE_LEN, cookie_reply,
    response,
};
use crate::noise::Response;
use crate::peer::{PeerSession, WhichKeys};
use crate::peer_address::PeerAddress;
use crate::peer_id::PeerId;
use crate::refused::Refused;
use crate::secure::Secure;

/// The kind of an accepted datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcceptedDatagram {
    /// A payload: the first `len` bytes of the buffer.
    Data {
        /// Its sender.
        peer: PeerId,
        /// Length of the payload, bytes.
        len: usize,
        /// Whether the message was bound, to the same as this end.
        bound: bool,
        /// Whether the peer has a new address from now on.
        address_changed: bool,
    },
    /// An empty data message.
    Keepalive {
        /// Its sender.
        peer: PeerId,
        /// Whether the peer has a new address from now on.
        address_changed: bool,
    },
    /// A handshake message that brought the session forward.
    Handshake {
        /// Its sender.
        peer: PeerId,
    },
    /// A cookie for our next handshake message.
    Cookie {
        /// Its sender.
        peer: PeerId,
    },
}

impl Secure {
    /// Processes a datagram from `from`. A payload is written to `plain`, which must be as long as the datagram less
    /// [`OVERHEAD`](crate::OVERHEAD).
    ///
    /// # Errors
    /// Why it was refused. Then only counters have changed, and the content of `plain` is meaningless.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        from: PeerAddress,
        datagram: &[u8],
        plain: &mut [u8],
    ) -> Result<AcceptedDatagram, Refused> {
        let received = match Message::parse(datagram) {
            Ok(Message::Data(data)) => self.on_data(now, from, &data, plain),
            Ok(Message::Initiation(handshake)) => self.on_initiation(now, from, &handshake),
            Ok(Message::Response {
                receiver,
                handshake,
            }) => self.on_response(now, from, receiver, &handshake),
            Ok(Message::CookieReply(reply)) => self.on_cookie_reply(now, &reply),
            Err(refused) => Err(refused),
        };
        if let Err(refused) = received {
            self.counters.refused.count(refused);
        }
        received
    }

    fn on_data(
        &mut self,
        now: Instant,
        from: PeerAddress,
        data: &DataMessage<'_>,
        plain: &mut [u8],
    ) -> Result<AcceptedDatagram, Refused> {
        let Self {
            peers,
            indices,
            limits,
            counters,
            ..
        } = self;
        let id = indices.owner(data.receiver).ok_or(Refused::UnknownIndex)?;
        let peer = peers.get_mut(&id).ok_or(Refused::UnknownIndex)?;
        let slot = peer.slot(data.receiver).ok_or(Refused::UnknownIndex)?;
        let binding = peer.binding;
        let keypair = peer.keypair(slot).ok_or(Refused::UnknownIndex)?;
        let (len, newest) = keypair.open(now, limits, binding, data, plain)?;
        // From here on the message is authentic.
        if slot == WhichKeys::Next {
            peer.on_confirmed(indices);
            counters.established += 1;
        }
        peer.on_received(now, limits, len);
        // An old message may have been delayed at an address that the peer has left.
        let moves = newest && !matches!(slot, WhichKeys::Retired(_));
        let address_changed = moves && peer.address.replace(from) != Some(from);
        if len == 0 {
            counters.keepalives_received += 1;
            return Ok(AcceptedDatagram::Keepalive {
                peer: id,
                address_changed,
            });
        }
        counters.opened += 1;
        Ok(AcceptedDatagram::Data {
            peer: id,
            len,
            bound: data.bound,
            address_changed,
        })
    }

    fn on_initiation(
        &mut self,
        now: Instant,
        from: PeerAddress,
        handshake: &Handshake<'_>,
    ) -> Result<AcceptedDatagram, Refused> {
        self.admit(now, from, handshake).map_err(|refused| {
            match self.is_own(handshake.sender) {
                true => Refused::Own,
                false => refused,
            }
        })?;
        self.counters.exchanges += 1;
        let (seed, known) = (self.entropy.draw(), &self.by_key);
        let initiation = Response::read(
            &self.private,
            seed,
            known,
            handshake.noise,
            &mut self.stranger,
        )?;
        let Self {
            peers,
            indices,
            limits,
            entropy,
            fast_aes,
            only_asks,
            ..
        } = self;
        let id = self.by_key.get(&initiation.key).copied();
        let id = id.ok_or(Refused::UnknownKey)?;
        let peer = peers.get_mut(&id).ok_or(Refused::UnknownKey)?;
        let timestamp = initiation.offer.timestamp;
        if peer.heard_timestamp.is_some_and(|last| timestamp <= last) {
            return Err(Refused::OldInitiation);
        }
        if *only_asks {
            if initiation.offer.preshared != peer.preshared.is_some() {
                return Err(Refused::Preshared);
            }
            peer.heard_timestamp = Some(timestamp);
            if peer.current.is_none() {
                self.seek(now, id, from);
            }
            return Ok(AcceptedDatagram::Handshake { peer: id });
        }
        let index = indices.take(id, entropy);
        let mut message = [0; RESPONSE_LEN];
        let noise = response(&mut message, index, handshake.sender);
        let split = initiation
            .write(*fast_aes, peer.preshared.as_ref(), noise)
            .inspect_err(|_| indices.release(index))?;
        // From here on the message is authentic and new.
        peer.heard_timestamp = Some(timestamp);
        let keypair = Keypair::new(now, &split, index, handshake.sender, false);
        peer.on_answered(keypair, indices);
        if self.public < peer.key {
            // Our initiation may have crossed it. One of the two must yield, and both ends know which.
            peer.abandon(indices);
        }
        // Do not take over its source address: a recorded initiation can be sent from anywhere. The first data under the
        // new keys shows where the peer is.
        peer.sign(now, limits, index, &mut message);
        self.counters.responses_sent += 1;
        self.transmit(from, &message);
        Ok(AcceptedDatagram::Handshake { peer: id })
    }

    fn on_response(
        &mut self,
        now: Instant,
        from: PeerAddress,
        receiver: u32,
        handshake: &Handshake<'_>,
    ) -> Result<AcceptedDatagram, Refused> {
        let id = self.indices.owner(receiver).ok_or(Refused::UnknownIndex)?;
        let asked = |peer: &&mut PeerSession| {
            let pending = peer.pending.as_ref();
            pending.is_some_and(|pending| pending.index == receiver)
        };
        if self.peers.get_mut(&id).filter(asked).is_none() {
            return Err(Refused::UnknownIndex);
        }
        self.admit(now, from, handshake)?;
        let Self {
            peers,
            indices,
            counters,
            ..
        } = self;
        let peer = peers.get_mut(&id).ok_or(Refused::UnknownIndex)?;
        let pending = peer.pending.as_mut().ok_or(Refused::UnknownIndex)?;
        counters.exchanges += 1;
        let split = pending.noise.finish(handshake.noise)?;
        // From here on the message is authentic and new, because nobody could answer before we asked.
        let keypair = Keypair::new(now, &split, receiver, handshake.sender, true);
        peer.on_established(keypair, indices);
        peer.address = Some(from);
        counters.established += 1;
        // The responder may send only once it knows that we have the keys.
        if !self.only_asks {
            self.send_keepalive(now, id);
        }
        Ok(AcceptedDatagram::Handshake { peer: id })
    }

    /// Whether a handshake of ours that is under way has this index.
    fn is_own(&self, sender: u32) -> bool {
        let peer = (self.indices.owner(sender)).and_then(|id| self.peers.get(&id));
        let pending = peer.and_then(|peer| peer.pending.as_ref());
        pending.is_some_and(|pending| pending.index == sender)
    }

    /// Decides whether a handshake message is worth a Diffie-Hellman exchange (section 5.3).
    fn admit(
        &mut self,
        now: Instant,
        from: PeerAddress,
        handshake: &Handshake<'_>,
    ) -> Result<(), Refused> {
        if !self.macs.verify(handshake) {
            return Err(Refused::Mac1);
        }
        if !self.load.is_high(now) {
            return Ok(());
        }
        let cookie = self.cookies.cookie(now, from, &mut self.entropy);
        if shows(handshake, &cookie) {
            // Only now is the address known to be the sender's.
            return match self.addresses.admit(now, from) {
                true => Ok(()),
                false => Err(Refused::Rate),
            };
        }
        let nonce = self.entropy.draw();
        let (_, mac1) = handshake.mac1();
        let mut message = [0; COOKIE_REPLY_LEN];
        let sealed = cookie_reply(&mut message, handshake.sender, &nonce);
        self.macs.seal_cookie(&cookie, mac1, &nonce, sealed);
        self.counters.cookies_sent += 1;
        self.transmit(from, &message);
        Err(Refused::Load)
    }

    fn on_cookie_reply(
        &mut self,
        now: Instant,
        reply: &CookieReply<'_>,
    ) -> Result<AcceptedDatagram, Refused> {
        let id = self.indices.owner(reply.receiver);
        let id = id.ok_or(Refused::UnknownIndex)?;
        let peer = self.peers.get_mut(&id).ok_or(Refused::UnknownIndex)?;
        let mac1 = peer.sent_mac1(reply.receiver);
        let mac1 = mac1.ok_or(Refused::UnknownIndex)?;
        let cookie = peer.macs.open_cookie(reply, mac1);
        peer.on_cookie(now, cookie.ok_or(Refused::Forged)?);
        self.counters.cookies_received += 1;
        Ok(AcceptedDatagram::Cookie { peer: id })
    }
}
