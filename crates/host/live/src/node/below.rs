//! What the links of a node share below their ports: the socket, the secure sessions, the batch of
//! datagrams on their way, a recording.

use std::net::IpAddr;

use airlane_base::Instant;
use airlane_link::Codec;
use airlane_secure::{PeerAddress, PeerId};

use super::callers::Callers;
use super::drops::{Drops, Reason};
use super::guard::Guard;
use super::transmit::TransmitBatch;
use crate::config::LinkConfig;
use crate::packet::ecn::Outer;
use crate::record::Recorder;
use crate::underlay::Underlay;

/// Where a link's datagrams go.
#[derive(Clone, Copy, Debug)]
pub(super) struct To {
    /// Number of the link.
    pub(super) link: u8,
    /// Its secure session; none without keys.
    pub(super) session: Option<PeerId>,
    /// None until the peer has called.
    pub(super) address: Option<PeerAddress>,
    /// Which of our addresses the peer called last, as whoever translates addresses between knows no other; none: as the
    /// kernel chooses.
    pub(super) from: Option<IpAddr>,
    /// Longest datagram that the path takes whole, without IP and UDP.
    pub(super) longest: usize,
}

/// What is below the ports of a node.
#[derive(Debug)]
pub(super) struct Below {
    pub(super) underlay: Underlay,
    /// None without security.
    pub(super) guard: Option<Guard>,
    pub(super) transmit: TransmitBatch,
    pub(super) recorder: Recorder,
    pub(super) outer: Outer,
    /// Drops of datagrams and packets that are no peer's.
    pub(super) drops: Drops,
    /// Whose key or address was refused.
    pub(super) callers: Callers,
    pub(super) datagrams_sent: u64,
    pub(super) bytes_sent: u64,
    pub(super) datagrams_received: u64,
    pub(super) received_bytes: u64,
}

impl Below {
    pub(super) fn new(underlay: Underlay, guard: Option<Guard>, outer: Outer) -> Self {
        Self {
            underlay,
            guard,
            transmit: TransmitBatch::new(0),
            recorder: Recorder::default(),
            outer,
            drops: Drops::new(None),
            callers: Callers::new(),
            datagrams_sent: 0,
            bytes_sent: 0,
            datagrams_received: 0,
            received_bytes: 0,
        }
    }

    /// Whether frames can leave: there is no security, or there are keys.
    pub(super) fn is_open(&self, now: Instant, to: To) -> bool {
        match (&self.guard, to.session) {
            (Some(guard), Some(session)) => guard.is_ready(now, session),
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// A datagram from `source` was refused: it is counted, and the log says what an operator can mend.
    /// `peer` is who is expected there and has no session yet.
    pub(super) fn refuse(
        &mut self,
        now: Instant,
        source: PeerAddress,
        reason: Reason,
        peer: Option<&str>,
    ) {
        self.drops.count_of(now, reason, &source);
        let guard = self.guard.as_ref();
        let key = guard.and_then(Guard::last_stranger);
        let caller = self
            .callers
            .note(now, source, (reason, key), peer.is_some());
        if let Some(caller) = caller {
            let ours = guard.map(|guard| guard.public_key().to_string());
            tracing::warn!(peer, this_end = ours, "{}", caller.says(peer.is_some()));
        }
    }

    /// Puts a frame into the batch, sealed if the link is secured, and `bound` to the session if it
    /// belongs to one. `waiting`: bytes of packets behind it.
    pub(super) fn push(
        &mut self,
        now: Instant,
        to: To,
        (mark, bound): (u8, bool),
        parts: &[&[u8]],
        waiting: impl FnOnce() -> usize,
    ) -> Result<(), Reason> {
        let Self {
            guard,
            transmit,
            recorder,
            underlay,
            ..
        } = self;
        let address = to.address.or(underlay.anyone()).ok_or(Reason::NoKeys)?;
        transmit.push(to.link, (address, to.from), mark, |room| match guard {
            Some(guard) => {
                let session = to.session.ok_or(Reason::NoKeys)?;
                let length = guard.seal(now, session, bound, parts, room)?;
                recorder.sent(now, to.link, &room[..length], waiting);
                Ok(length)
            }
            None => write_parts(parts, room).ok_or(Reason::TooBig),
        })
    }

    /// Sends a frame of its own, which is not to be cut on its way: whether it left, and how long it was.
    /// It bypasses the batch.
    pub(super) fn send_whole(&mut self, now: Instant, to: To, frame: &[u8]) -> Option<usize> {
        let address = to.address?;
        let mut sealed = vec![0; frame.len() + self.sealing()];
        match (&mut self.guard, to.session) {
            (Some(guard), Some(session)) => {
                guard
                    .seal(now, session, false, &[frame], &mut sealed)
                    .ok()?;
                self.recorder.sent(now, to.link, &sealed, || 0);
            }
            (Some(_), None) => return None,
            (None, _) => sealed.copy_from_slice(frame),
        }
        self.underlay.allow_fragments(false).ok()?;
        self.underlay.send_to(address, to.from, &sealed).ok()?;
        self.datagrams_sent += 1;
        self.bytes_sent += sealed.len() as u64;
        Some(sealed.len())
    }

    /// Says which session frames of a link belong to from now on.
    pub(super) fn bind(&mut self, to: To, session: Option<u32>) {
        if let (Some(guard), Some(peer)) = (&mut self.guard, to.session) {
            guard.bind(peer, session);
        }
    }

    /// Longest datagram without IP and UDP, where the path takes so much; on raw Ethernet what is longer travels
    /// in parts that nobody has to ask for.
    pub(super) fn longest(&self, to: Option<PeerAddress>, path_mtu: usize) -> usize {
        match self.underlay.is_routed() {
            true => path_mtu.saturating_sub(self.underlay.overhead(to)),
            false => usize::MAX,
        }
    }

    /// What the path to a peer leaves of a datagram for what a frame carries.
    pub(super) fn left(
        &self,
        link: &LinkConfig,
        to: Option<PeerAddress>,
        path_mtu: usize,
    ) -> usize {
        let datagram = link.fragment.map_or(path_mtu, |f| f.datagram(path_mtu));
        let header = Codec::new(link.header()).header_max();
        datagram.saturating_sub(self.underlay.overhead(to) + header + self.sealing())
    }

    /// What sealing adds to a frame.
    pub(super) fn sealing(&self) -> usize {
        self.guard.as_ref().map_or(0, |_| Guard::OVERHEAD)
    }

    /// Does what is due for the secure sessions. Whether they may have something to say.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> bool {
        let Some(guard) = &mut self.guard else {
            return false;
        };
        let due = guard.poll_timeout().is_some_and(|due| due <= now);
        if due {
            guard.handle_timeout(now);
        }
        due
    }
}

/// Writes `parts` one behind the other: their length together, if `room` is long enough.
fn write_parts(parts: &[&[u8]], room: &mut [u8]) -> Option<usize> {
    let mut at = 0;
    for part in parts {
        room.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    Some(at)
}
