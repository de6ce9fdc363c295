//! Radio channels with contention: stations at nodes, packets from station to station.
//!
//! A radio is one component with one deadline, however many stations and frames it holds. A packet goes straight into
//! the queue of its node's station. Ports of links over the radio take turns instead: a station holds one frame of
//! all its ports at a time, and polls the next port when it is done with that frame. Packets that are delivered
//! continue at the next node.

use airlane_base::{Instant, Payload as _};
use airlane_channel::ErrorModel;
use airlane_link::{Frame, Token};
use airlane_wifi::{Losses, Radio};

use super::medium::StationLink;
use crate::packet::Packet;

/// What a radio channel carries.
#[derive(Clone, Debug)]
pub(crate) enum Carried {
    /// A packet without a link frame.
    Packet(Packet),
    /// The frame of the port at the near end of this direction of a link.
    Frame(u32, Frame<Packet>),
}

/// Losses between two stations, from a link's error model.
#[derive(Debug)]
pub(crate) struct Recorded(pub(crate) ErrorModel);

impl Losses for Recorded {
    fn loses(&mut self, start: Instant, end: Instant, bytes: usize) -> bool {
        self.0.loses(start, end, bytes)
    }
}

/// A radio channel and where its stations are.
#[derive(Debug)]
pub(crate) struct RadioEnd {
    pub(crate) radio: Radio<Carried>,
    /// The node of each station.
    pub(crate) nodes: Vec<u16>,
    /// Extra header bytes of packets that start at one of these nodes.
    pub(crate) source_header: usize,
    /// The ports attached to each station.
    pub(crate) attached: Vec<Attached>,
}

/// The ports attached to a station.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    /// In the order of their turns.
    pub(crate) ports: Vec<u32>,
    /// Whose turn is next: the port after the one whose frame was taken last.
    pub(super) next: usize,
    /// The frame of one of them that the station is sending.
    pub(super) leaving: Option<Leaving>,
}

/// A port's frame that a station is sending.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) token: Token,
    /// Whether the peer has already received it.
    pub(super) came: bool,
}

impl Attached {
    /// The port of a turn; turns may count beyond one round.
    pub(super) fn port(&self, turn: usize) -> usize {
        self.ports[turn % self.ports.len()] as usize
    }
}

impl RadioEnd {
    /// Hands a packet that entered the network at `origin` to a station; a full queue drops and counts it. Returns
    /// whether it was accepted.
    pub(super) fn send(
        &mut self,
        now: Instant,
        from: u16,
        to: u16,
        origin: u16,
        packet: Packet,
    ) -> bool {
        let extra = match self.nodes.contains(&origin) {
            true => self.source_header,
            false => 0,
        };
        let len = packet.len() + extra;
        // The station counts what it drops.
        let packet = Carried::Packet(packet);
        let sent = self.radio.enqueue(now, from.into(), to.into(), len, packet);
        sent.is_ok()
    }

    /// Whether a station accepts a port's frame.
    pub(super) fn takes(&self, link: &StationLink) -> bool {
        let from = usize::from(link.from);
        let room = || self.radio.room(from, link.longest) > 0;
        self.attached[from].leaving.is_none() && (self.radio.backlog(from) == 0 || room())
    }

    /// Hands a port's frame of `len` bytes to a station that [accepts](Self::takes) one.
    pub(super) fn send_frame(
        &mut self,
        now: Instant,
        link: &mut StationLink,
        (len, token): (usize, Token),
        frame: Carried,
    ) {
        let [from, to] = [link.from, link.to].map(usize::from);
        link.stats.offered.add(len);
        let sent = self.radio.enqueue(now, from, to, len, frame);
        sent.expect("a station that has room for the longest frame takes one");
        let attached = &mut self.attached[from];
        let own = attached.ports.iter().position(|port| *port == link.near);
        attached.next = own.map_or(0, |own| own + 1);
        attached.leaving = Some(Leaving { token, came: false });
    }
}
