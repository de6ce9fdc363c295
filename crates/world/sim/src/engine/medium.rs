//! What carries packets and frames between nodes.
//!
//! ```text
//! Packets   IP ─────► pipe                     a link without services
//! Frames    port ───► pipe                     a port that paces itself
//! Driving   port ◄──► pipe or shared air       a port that is asked when its next frame may leave
//! Shrunk    IP ─► headers ─► pipe ─► headers   a link without services that compresses headers
//! Queued    IP ► queue ► shared air            a link without services that waits for its turn
//! Circuit   IP ► queue ► octets ► stations ◄► pipe   a circuit of GSM's data service
//! Station   port ◄──► station of a radio       a port whose frames contend for the air
//! Datagrams node ───► pipe                     a link between two live nodes
//! ```
//!
//! A pipe is a transmitter of its own; its next departure is known when a frame is handed over. [`Air`] is one
//! transmitter for all directions attached to it: it sends one frame at a time, and the directions take turns, frame
//! by frame. There are no collisions; the cost of contention is part of each frame's duration.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use airlane_base::{Instant, Payload as _, QueueLimit, Rate};
use airlane_channel::{Channel, ChannelStats, Count};
use airlane_link::{Frame, Token};

use super::circuit::Circuit;
use crate::packet::{Marks, Packet};
use crate::result::{CircuitResult, HeadersResult};
use crate::rfc1144::{Compression, Shrunk};

/// How a direction of a link carries packets, frames or datagrams.
#[derive(Debug)]
pub(crate) enum Medium {
    /// A link without services.
    Packets(Channel<Packet>),
    /// A link without services that compresses headers.
    Shrunk(Box<ShrunkLink>),
    /// A link between two ports, which pace themselves.
    Frames(Channel<Frame<Packet>>),
    /// A link between two ports that itself decides when it takes the next frame.
    Driving(Box<Driving>),
    /// A link without services whose packets wait for their turn.
    Queued(Box<Queued>),
    /// A circuit whose stations repair blocks that the radio erases.
    Circuit(Box<Circuit>),
    /// A link between two ports whose frames go over a radio channel.
    Station(Box<StationLink>),
    /// A link between two live nodes, in UDP.
    Datagrams(Channel<Datagram>),
}

/// A datagram from one live node to another.
#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    /// Source as the receiver sees it, and destination.
    pub(crate) from: SocketAddr,
    pub(crate) to: IpAddr,
    pub(crate) bytes: Vec<u8>,
}

impl Datagram {
    /// Bytes of the UDP and IPv4 headers.
    pub(crate) const HEADERS: usize = 28;
}

/// A link between two stations: the station at the near end takes the frames of its port.
#[derive(Debug)]
pub(crate) struct StationLink {
    /// The port at the near end.
    pub(crate) near: u32,
    /// The radio, and the stations of both ends.
    pub(crate) radio: u16,
    pub(crate) from: u16,
    pub(crate) to: u16,
    /// The longest frame, bytes.
    pub(crate) longest: usize,
    /// The highest rate at which the radio sends data.
    pub(crate) fastest: Rate,
    pub(crate) stats: ChannelStats,
}

impl StationLink {
    /// The frame that the station currently has from this link.
    fn under_way(&self) -> Count {
        let ChannelStats {
            offered,
            delivered,
            lost_air,
            ..
        } = self.stats;
        Count {
            frames: offered.frames - delivered.frames - lost_air.frames,
            bytes: offered.bytes - delivered.bytes - lost_air.bytes,
        }
    }

    /// Bits that the station has finished by `now`, over those that it could have sent at its highest rate without
    /// overhead.
    fn utilisation(&self, now: Instant) -> f64 {
        let done = self.stats.delivered.bytes + self.stats.lost_air.bytes;
        let could = self.fastest.as_bps() as f64 * now.as_secs_f64();
        if could > 0.0 {
            done as f64 * 8.0 / could
        } else {
            0.0
        }
    }
}

/// A link that decides when frames leave: it asks the port at its near end for a frame when one may begin to leave,
/// and reports when it has left. Nothing queues below the port.
#[derive(Debug)]
pub(crate) struct Driving {
    pub(super) channel: Channel<Frame<Packet>>,
    /// The port at the near end.
    pub(super) near: u32,
    /// When it takes the next frame.
    pub(super) next: Option<Instant>,
    /// The frame being sent, when it began to leave, and when it will have left.
    pub(super) leaving: Option<(Token, Instant, Instant)>,
}

impl Driving {
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let left = self.leaving.as_ref().map(|(_, _, left)| *left);
        let own = left.or(self.next);
        own.into_iter().chain(self.channel.poll_timeout()).min()
    }
}

/// A transmitter between two ends that compress and restore headers.
#[derive(Debug)]
pub(crate) struct ShrunkLink {
    pub(crate) channel: Channel<Shrunk>,
    pub(crate) headers: Compression,
}

/// Packets that wait for their turn on a shared transmitter.
#[derive(Debug)]
pub(crate) struct Queued {
    pub(super) channel: Channel<Packet>,
    limit: QueueLimit,
    waiting: VecDeque<Packet>,
    bytes: usize,
    /// When the packet being sent will have left.
    pub(super) leaving: Option<Instant>,
}

impl Queued {
    /// Queues a packet; a full queue drops and counts it.
    pub(super) fn push(&mut self, packet: Packet) -> bool {
        let len = packet.len();
        if !self.limit.admits(self.waiting.len(), self.bytes, len) {
            self.channel.refuse(len);
            return false;
        }
        self.bytes += len;
        self.waiting.push_back(packet);
        true
    }

    /// Whether the backlog leaves room for `len` more bytes within a limit other than the queue's own.
    pub(super) fn has_room(&self, len: usize, limit: QueueLimit) -> bool {
        limit.admits(self.waiting.len(), self.bytes, len)
    }

    fn waiting(&self) -> Count {
        Count {
            frames: self.waiting.len() as u64,
            bytes: self.bytes as u64,
        }
    }

    pub(super) fn pop(&mut self) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= packet.len();
        Some(packet)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.leaving
            .into_iter()
            .chain(self.channel.poll_timeout())
            .min()
    }
}

impl Medium {
    /// Makes the medium itself decide when it takes frames of the port at its near end.
    pub(crate) fn driving(self, near: u32) -> Self {
        match self {
            Self::Frames(channel) => Self::Driving(Box::new(Driving {
                channel,
                near,
                next: None,
                leaving: None,
            })),
            other => other,
        }
    }

    /// Gives the medium a queue in which packets wait for their turn.
    pub(crate) fn queued(self) -> Self {
        match self {
            Self::Packets(channel) => Self::Queued(Box::new(Queued {
                limit: channel.config().queue,
                channel,
                waiting: VecDeque::new(),
                bytes: 0,
                leaving: None,
            })),
            other => other,
        }
    }
}

/// A transmitter that several directions share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Air {
    /// The directions, in the order of their turns.
    pub(crate) attached: Vec<u32>,
    /// Whether one of them is sending a frame.
    pub(super) busy: bool,
}

impl Air {
    /// The direction `turns` turns after the given one; none once all others have had theirs.
    pub(super) fn after(&self, place: usize, turns: usize) -> Option<usize> {
        let attached = &self.attached;
        let next = attached.get((place + turns) % attached.len())?;
        (turns < attached.len()).then_some(*next as usize)
    }
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Direction {
    pub(crate) medium: Medium,
    /// The node at its far end.
    pub(crate) to: u16,
    /// The port at the far end, which takes the frames.
    pub(crate) port: Option<u32>,
    /// The shared transmitter, if it uses one.
    pub(crate) air: Option<u32>,
    /// Its place in the order of turns.
    pub(crate) turn: u32,
    /// An ECN-capable packet that finds a larger backlog is marked.
    pub(crate) mark_above: Option<QueueLimit>,
}

impl Direction {
    /// Whether the backlog is so large that this packet is to be marked.
    #[inline]
    pub(super) fn marks(&mut self, now: Instant, packet: &Packet) -> bool {
        let markable = packet.marks.has(Marks::MARKABLE);
        let limit = self.mark_above.filter(|_| markable);
        limit.is_some_and(|limit| !self.has_room(now, packet, limit))
    }

    /// Whether the backlog leaves room for a packet within a limit other than that of its queue.
    fn has_room(&mut self, now: Instant, packet: &Packet, limit: QueueLimit) -> bool {
        match &mut self.medium {
            Medium::Packets(channel) => channel.has_room(now, packet.len(), limit),
            Medium::Shrunk(link) => link.channel.has_room(now, packet.len(), limit),
            Medium::Queued(link) => link.has_room(packet.len(), limit),
            Medium::Circuit(circuit) => circuit.has_room(packet, limit),
            Medium::Frames(_) | Medium::Driving(_) | Medium::Station(_) | Medium::Datagrams(_) => {
                true
            }
        }
    }

    /// Counters of the transmitter.
    pub(crate) fn stats(&self) -> &ChannelStats {
        match &self.medium {
            Medium::Packets(channel) => channel.stats(),
            Medium::Frames(channel) => channel.stats(),
            Medium::Datagrams(channel) => channel.stats(),
            Medium::Driving(link) => link.channel.stats(),
            Medium::Shrunk(link) => link.channel.stats(),
            Medium::Queued(link) => link.channel.stats(),
            Medium::Circuit(circuit) => circuit.channel.stats(),
            Medium::Station(link) => &link.stats,
        }
    }

    /// What the link has accepted and neither delivered nor lost: waiting for its turn, or in flight.
    pub(crate) fn under_way(&self) -> Count {
        match &self.medium {
            Medium::Packets(channel) => channel.under_way(),
            Medium::Frames(channel) => channel.under_way(),
            Medium::Datagrams(channel) => channel.under_way(),
            Medium::Driving(link) => link.channel.under_way(),
            Medium::Shrunk(link) => link.channel.under_way(),
            Medium::Queued(link) => link.waiting().plus(link.channel.under_way()),
            Medium::Circuit(circuit) => circuit.channel.under_way(),
            Medium::Station(link) => link.under_way(),
        }
    }

    /// As [`Self::stats`], but packets that wait for their turn count as offered.
    pub(crate) fn counts(&self) -> ChannelStats {
        let mut stats = *self.stats();
        if let Medium::Queued(link) = &self.medium {
            stats.offered = stats.offered.plus(link.waiting());
        }
        stats
    }

    /// Bits that have left by `now` over those that could have left: 0 to 1.
    pub(crate) fn utilisation(&self, now: Instant) -> f64 {
        match &self.medium {
            Medium::Packets(channel) => channel.utilisation(now),
            Medium::Frames(channel) => channel.utilisation(now),
            Medium::Datagrams(channel) => channel.utilisation(now),
            Medium::Driving(link) => link.channel.utilisation(now),
            Medium::Shrunk(link) => link.channel.utilisation(now),
            Medium::Queued(link) => link.channel.utilisation(now),
            Medium::Circuit(circuit) => circuit.channel.utilisation(now),
            Medium::Station(link) => link.utilisation(now),
        }
    }

    /// The counters of its near station, if it is a circuit.
    pub(crate) fn circuit(&self) -> Option<CircuitResult> {
        match &self.medium {
            Medium::Circuit(circuit) => Some(circuit.result()),
            _ => None,
        }
    }

    /// The counters of both its ends, if it compresses headers.
    pub(crate) fn headers(&self) -> Option<HeadersResult> {
        match &self.medium {
            Medium::Shrunk(link) => Some(link.headers.result()),
            Medium::Circuit(circuit) => circuit.headers(),
            _ => None,
        }
    }

    /// Whether its error model is user-supplied.
    pub(crate) fn has_custom_errors(&self) -> bool {
        let errors = match &self.medium {
            Medium::Packets(channel) => channel.errors(),
            Medium::Frames(channel) => channel.errors(),
            Medium::Datagrams(channel) => channel.errors(),
            Medium::Driving(link) => link.channel.errors(),
            Medium::Shrunk(link) => link.channel.errors(),
            Medium::Queued(link) => link.channel.errors(),
            Medium::Circuit(circuit) => circuit.channel.errors(),
            Medium::Station(_) => return false,
        };
        errors.is_custom()
    }
}
