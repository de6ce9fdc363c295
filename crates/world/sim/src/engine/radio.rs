//! Radio channels with contention: stations at nodes, packets from station to station.
//!
//! A radio is one component with one deadline, however many stations and frames it holds. A packet goes into the queue of
//! its node's station at once. Ports of links that go through the air wait for each other instead: a station has one frame of
//! all its ports at a time, and asks the next of them when it is done with that. What comes out stands at the next node.

use airlane_base::{Instant, Payload as _};
use airlane_channel::ErrorModel;
use airlane_link::{Frame, Token};
use airlane_wifi::{Losses, Radio};

use super::medium::StationLink;
use crate::packet::Packet;

/// What goes through the air.
#[derive(Clone, Debug)]
pub(crate) enum Carried {
    /// A packet as it is.
    Packet(Packet),
    /// The frame of the port at the near end of this direction of a link.
    Frame(u32, Frame<Packet>),
}

/// Losses between two stations as links have them.
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
    /// What packets carry more that start at one of these nodes, bytes.
    pub(crate) source_header: usize,
    /// What stands in front of each station.
    pub(crate) attached: Vec<Attached>,
}

/// The ports in front of a station.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    /// In the order of their turns.
    pub(crate) ports: Vec<u32>,
    /// Whose turn is the first of the next: it stands behind the port whose frame was taken last.
    pub(super) next: usize,
    /// The frame of one of them that the station has.
    pub(super) leaving: Option<Leaving>,
}

/// A port's frame that a station has.
#[derive(Debug)]
pub(super) struct Leaving {
    pub(super) token: Token,
    /// Whether it has come to the peer already.
    pub(super) came: bool,
}

impl Attached {
    /// The port of a turn, any number of rounds on.
    pub(super) fn port(&self, turn: usize) -> usize {
        self.ports[turn % self.ports.len()] as usize
    }
}

impl RadioEnd {
    /// Hands a packet that entered the network at `origin` to a station; a full queue drops and counts it.
    /// Whether it was taken.
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
        // The station counts what it cannot take.
        let packet = Carried::Packet(packet);
        let sent = self.radio.enqueue(now, from.into(), to.into(), len, packet);
        sent.is_ok()
    }

    /// Whether a station takes a port's frame.
    pub(super) fn takes(&self, link: &StationLink) -> bool {
        let from = usize::from(link.from);
        let room = || self.radio.room(from, link.longest) > 0;
        self.attached[from].leaving.is_none() && (self.radio.backlog(from) == 0 || room())
    }

    /// Hands a station that [takes](Self::takes) one a port's frame of `len` bytes.
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
