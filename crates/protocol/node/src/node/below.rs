//! What the links of a node share below their ports: the socket, the secure sessions, the batch of datagrams
//! to send, and a recording.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::IpAddr;
use std::rc::Rc;

use airlane_base::Instant;
use airlane_link::Codec;
use airlane_secure::{PeerAddress, PeerId, Wall};

use super::drops::{Drops, Reason};
use super::guard::Guard;
use super::refused_callers::RefusedCallers;
use super::request::Request;
use super::tap::Tap;
use super::transmit::{Aside, TransmitBatch};
use crate::Underlay;
use crate::config::LinkConfig;
use crate::packet::ecn::Outer;

/// Destination of a link's datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct To {
    /// Number of the link.
    pub(crate) link: u8,
    /// Its secure session; `None` without keys.
    pub(crate) session: Option<PeerId>,
    /// `None` until the peer has called.
    pub(crate) address: Option<PeerAddress>,
    /// The local address that the peer called last. Answers must leave from it, because a NAT on the path
    /// accepts no other; `None` lets the kernel choose.
    pub(crate) from: Option<IpAddr>,
    /// Longest datagram that the path takes unfragmented, without IP and UDP headers.
    pub(crate) longest: usize,
}

/// The part of a node below its ports.
#[derive(Debug)]
pub(crate) struct Below {
    pub(crate) underlay: Underlay,
    /// `None` without security.
    pub(crate) guard: Option<Guard>,
    /// Datagrams that do not wait for the frames of the batch.
    pub(crate) aside: VecDeque<Aside>,
    /// The one of those that was last polled.
    pub(crate) leaving: Option<Aside>,
    pub(crate) transmit: TransmitBatch,
    /// Observer of the datagrams of one link.
    pub(crate) tap: Option<(u8, Rc<RefCell<dyn Tap>>)>,
    pub(crate) requests: VecDeque<Request>,
    pub(crate) outer: Outer,
    /// Drops of datagrams and packets that belong to no peer.
    pub(crate) drops: Drops,
    /// Callers that were refused for their key or address.
    pub(crate) callers: RefusedCallers,
    pub(crate) datagrams_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) datagrams_received: u64,
    pub(crate) received_bytes: u64,
}

impl Below {
    pub(crate) fn new(underlay: Underlay, guard: Option<Guard>, outer: Outer) -> Self {
        Self {
            underlay,
            guard,
            aside: VecDeque::new(),
            leaving: None,
            transmit: TransmitBatch::new(0),
            tap: None,
            requests: VecDeque::new(),
            outer,
            drops: Drops::new(None),
            callers: RefusedCallers::default(),
            datagrams_sent: 0,
            bytes_sent: 0,
            datagrams_received: 0,
            received_bytes: 0,
        }
    }

    /// Whether frames can leave: there is no security, or there are keys.
    pub(crate) fn is_open(&self, now: Instant, to: To) -> bool {
        match (&self.guard, to.session) {
            (Some(guard), Some(session)) => guard.is_ready(now, session),
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// Counts a refused datagram from `source`, and logs what an operator can fix. `peer`: the peer expected
    /// at that address that has no session yet; `begins`: the session there began a moment ago.
    pub(crate) fn refuse(
        &mut self,
        now: Instant,
        source: PeerAddress,
        reason: Reason,
        (peer, begins): (Option<&str>, bool),
    ) {
        self.drops.count_refused(now, reason, &source, begins);
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

    /// Adds a frame to the batch, sealed if the link is secured, and `bound` to the session if it belongs to
    /// one. `waiting`: bytes of packets queued after it.
    pub(crate) fn push(
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
            tap,
            underlay,
            ..
        } = self;
        let address = to.address.or(underlay.anyone()).ok_or(Reason::NoKeys)?;
        transmit.push(to.link, (address, to.from), mark, |room| match guard {
            Some(guard) => {
                let session = to.session.ok_or(Reason::NoKeys)?;
                let length = guard.seal(now, session, bound, parts, room)?;
                if let Some(tap) = tapped(tap.as_ref(), to.link) {
                    tap.borrow_mut().sent(now, &room[..length], waiting());
                }
                Ok(length)
            }
            None => write_parts(parts, room).ok_or(Reason::TooBig),
        })
    }

    /// Sends one frame outside the batch; it must not be fragmented on the path.
    pub(crate) fn send_whole(&mut self, now: Instant, to: To, frame: &[u8]) {
        let Some(address) = to.address else { return };
        let mut sealed = vec![0; frame.len() + self.sealing()];
        match (&mut self.guard, to.session) {
            (Some(guard), Some(session)) => {
                let done = guard.seal(now, session, false, &[frame], &mut sealed);
                if done.is_err() {
                    return;
                }
                if let Some(tap) = tapped(self.tap.as_ref(), to.link) {
                    tap.borrow_mut().sent(now, &sealed, 0);
                }
            }
            (Some(_), None) => return,
            (None, _) => sealed.copy_from_slice(frame),
        }
        self.aside.push_back(Aside {
            probes: Some(to.link),
            to: address,
            from: to.from,
            bytes: sealed,
        });
    }

    /// Whether any datagram waits to be sent.
    pub(crate) fn has_datagrams(&self) -> bool {
        !self.aside.is_empty() || !self.transmit.is_empty()
    }

    /// Sets the session that frames of a link belong to from now on.
    pub(crate) fn bind(&mut self, to: To, session: Option<u32>) {
        if let (Some(guard), Some(peer)) = (&mut self.guard, to.session) {
            guard.bind(peer, session);
        }
    }

    /// Longest datagram without IP and UDP headers for this path MTU. On raw Ethernet longer frames are split
    /// in any case.
    pub(crate) fn longest(&self, to: Option<PeerAddress>, path_mtu: usize) -> usize {
        match self.underlay.is_routed() {
            true => path_mtu.saturating_sub(self.underlay.overhead(to)),
            false => usize::MAX,
        }
    }

    /// Bytes of a datagram on the path to a peer that are left for the payload of a frame.
    pub(crate) fn left(
        &self,
        link: &LinkConfig,
        to: Option<PeerAddress>,
        path_mtu: usize,
    ) -> usize {
        let datagram = link.fragment.map_or(path_mtu, |f| f.datagram(path_mtu));
        let header = Codec::new(link.header()).header_max();
        datagram.saturating_sub(self.underlay.overhead(to) + header + self.sealing())
    }

    /// Bytes that sealing adds to a frame.
    pub(crate) fn sealing(&self) -> usize {
        self.guard.as_ref().map_or(0, |_| Guard::OVERHEAD)
    }

    /// Handles the timers of the secure sessions. Returns whether they may have something to send.
    pub(crate) fn handle_timeout(&mut self, now: Instant, wall: Wall) -> bool {
        let Some(guard) = &mut self.guard else {
            return false;
        };
        let due = guard.poll_timeout().is_some_and(|due| due <= now);
        if due {
            guard.handle_timeout(now, wall);
        }
        due
    }
}

/// The observer of this link's datagrams, if it has one.
fn tapped(tap: Option<&(u8, Rc<RefCell<dyn Tap>>)>, link: u8) -> Option<&Rc<RefCell<dyn Tap>>> {
    tap.filter(|(tapped, _)| *tapped == link)
        .map(|(_, tap)| tap)
}

impl Below {
    /// The observer of this link's datagrams, if it has one.
    pub(crate) fn tapped(&self, link: u8) -> Option<&Rc<RefCell<dyn Tap>>> {
        tapped(self.tap.as_ref(), link)
    }
}

/// Writes `parts` one after the other. Returns their total length, or `None` if `room` is too short.
fn write_parts(parts: &[&[u8]], room: &mut [u8]) -> Option<usize> {
    let mut at = 0;
    for part in parts {
        room.get_mut(at..at + part.len())?.copy_from_slice(part);
        at += part.len();
    }
    Some(at)
}
