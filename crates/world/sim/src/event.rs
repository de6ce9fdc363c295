//! Events of a run, typed: packets and frames on links, segments and timers of TCP, completed pages and files.
//!
//! [`Prepared::run_watched`](crate::Prepared::run_watched) shows each event to a [`Watcher`] as it occurs, in order
//! of time. A watcher changes nothing: the result is that of an unwatched run. `docs/events.md` lists events and
//! fields for users of files and of Python, who get each event as an [`EventRecord`].
//!
//! Left out: frames waiting before a scheduler, and packets that a service has given up: such a packet enters a link
//! and never leaves it.

mod filter;
mod record;
mod watch;

use airlane_base::{Duration, Instant};
use airlane_link::{DropReason, FrameKind, ServiceEvent};

use crate::packet::{self, Asks, Packet};

pub use filter::EventFilter;
pub use record::{EventRecord, Names};
pub(crate) use watch::Typed;

/// An observer of a run.
pub trait Watcher {
    /// An event at `now`, the time since the run's origin, which never goes back.
    fn on_event(&mut self, now: Instant, event: &Event);

    /// Whether to end the run now. Its result is then meaningless.
    fn is_over(&self) -> bool {
        false
    }
}

/// No watcher.
impl Watcher for () {
    fn on_event(&mut self, _: Instant, _: &Event) {}
}

/// One direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkDirection {
    /// Index of the link in the order of their names.
    pub link: u16,
    /// From the link's first end to its second.
    pub down: bool,
}

/// The role of a packet in its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A datagram, which no transport retransmits.
    Datagram,
    /// A segment in the flow's main direction.
    Data,
    /// An acknowledgment of [`Role::Data`], or a SYN-ACK.
    Ack,
    /// A segment against the main direction.
    Request,
    /// An acknowledgment of [`Role::Request`], or a SYN-ACK.
    RequestAck,
    /// A SYN in the main direction.
    Syn,
    /// A SYN against the main direction.
    RequestSyn,
    /// A window probe in the main direction, with one byte that the receiver discards.
    Probe,
    /// A window probe against the main direction.
    RequestProbe,
}

impl Role {
    /// Whether such packets carry user bytes, and are neither acknowledgments nor SYNs nor probes.
    pub const fn carries_data(self) -> bool {
        matches!(self, Self::Datagram | Self::Data | Self::Request)
    }

    /// Its name in files and frames.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Datagram => "datagram",
            Self::Data => "data",
            Self::Ack => "ack",
            Self::Request => "request",
            Self::RequestAck => "request-ack",
            Self::Syn => "syn",
            Self::RequestSyn => "request-syn",
            Self::Probe => "probe",
            Self::RequestProbe => "request-probe",
        }
    }
}

impl From<&Packet> for Role {
    fn from(packet: &Packet) -> Self {
        match (Self::from(packet.role()), packet.asks()) {
            (Self::Data, Some(Asks::Connection)) => Self::Syn,
            (Self::Data, Some(Asks::Window)) => Self::Probe,
            (Self::Request, Some(Asks::Connection)) => Self::RequestSyn,
            (Self::Request, Some(Asks::Window)) => Self::RequestProbe,
            (role, _) => role,
        }
    }
}

impl From<packet::Role> for Role {
    fn from(role: packet::Role) -> Self {
        use packet::Role as Sent;
        match role {
            Sent::Datagram | Sent::Coded5 | Sent::Coded6 | Sent::Coded7 => Self::Datagram,
            Sent::Data => Self::Data,
            Sent::Ack => Self::Ack,
            Sent::Request => Self::Request,
            Sent::RequestAck => Self::RequestAck,
        }
    }
}

/// The properties of a packet that identify it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInfo {
    /// Index of the flow.
    pub flow: u32,
    /// Which connection of the flow.
    pub connection: u32,
    /// Its role in the flow.
    pub role: Role,
    /// Number of the segment or datagram; of an acknowledgment, the next segment expected.
    pub seq: u64,
    /// Length without link headers, bytes.
    pub len_bytes: u32,
    /// Whether TCP has sent these bytes before.
    pub retransmission: bool,
    /// When its host sent it.
    pub created: Instant,
}

/// A frame on a link: of a service, or a packet on a link without services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameInfo {
    /// Its header; none on a link without services.
    pub header: Option<HeaderInfo>,
    /// Length with its header, bytes.
    pub len_bytes: u32,
    /// The packet in it; none in control frames and redundancy.
    pub packet: Option<PacketInfo>,
}

/// The fields of a frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderInfo {
    /// Number of the service.
    pub service: u8,
    /// The kind of the frame.
    pub kind: FrameKind,
    /// Its sequence number; in a NAK, the number requested.
    pub seq: u32,
    /// The next number that its sender expects, if the service's frames carry it.
    pub ack: Option<u32>,
}

/// Why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// A queue dropped it.
    Queue(DropReason),
    /// There is no route to its destination.
    NoRoute,
    /// The far end of a link cannot restore its compressed headers.
    OutOfStep,
}

/// Why a frame does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The link's error model dropped it.
    Errors,
    /// The link was down.
    Outage,
    /// A node had left the link.
    Handoff,
    /// A policer dropped it.
    Policed,
}

/// Congestion control state of a TCP sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpState {
    /// Congestion window, segments.
    pub cwnd_segments: f64,
    /// Slow start threshold, segments.
    pub ssthresh_segments: u64,
    /// The receiver's advertised window, segments. The congestion window may grow beyond it but is not used there.
    pub window_segments: u64,
    /// Smoothed round-trip time; none before the first sample.
    pub srtt: Option<Duration>,
    /// Retransmission timeout, backoff included.
    pub rto: Duration,
}

/// A TCP sender: which connection, and which of its two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderInfo {
    /// Index of the flow.
    pub flow: u32,
    /// Which connection of the flow.
    pub connection: u32,
    /// The role of its segments: [`Role::Data`] or [`Role::Request`].
    pub role: Role,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// IP hands a packet to a link.
    PacketEntered {
        /// Where it happened.
        way: LinkDirection,
        /// The service that the classifier assigns it to; none on a link without services.
        service: Option<u8>,
        /// The packet.
        packet: PacketInfo,
    },
    /// IP at the other end of a link receives a packet.
    PacketLeft {
        /// Where it happened.
        way: LinkDirection,
        /// The packet.
        packet: PacketInfo,
    },
    /// A packet is dropped before a link, for lack of a route, or after a link that cannot restore its headers.
    PacketDropped {
        /// Where it happened; none without a route.
        way: Option<LinkDirection>,
        /// The service whose queue it was; none on a link without services.
        service: Option<u8>,
        /// Why it is dropped.
        reason: Dropped,
        /// The packet.
        packet: PacketInfo,
    },
    /// A frame is handed to the transmitter; on a radio channel, its station has finished it, possibly after its
    /// arrival.
    FrameSent {
        /// Where it happened.
        way: LinkDirection,
        /// The frame.
        frame: FrameInfo,
        /// When its last bit will have left; on a radio channel, the time of the event.
        departs: Instant,
    },
    /// The same frame will not arrive. Follows directly after [`Event::FrameSent`].
    FrameLost {
        /// Where it happened.
        way: LinkDirection,
        /// The frame.
        frame: FrameInfo,
        /// As in [`Event::FrameSent`].
        departs: Instant,
        /// Why it was lost.
        reason: Lost,
    },
    /// A frame arrives.
    FrameReceived {
        /// Where it happened.
        way: LinkDirection,
        /// The frame.
        frame: FrameInfo,
    },
    /// A service reports an event named by its scheme, or resets because of it.
    ServiceReported {
        /// Away from the end where it happened.
        way: LinkDirection,
        /// The event of the service.
        event: ServiceEvent,
    },
    /// A host sends a packet: a segment, an acknowledgment or a datagram, according to its role.
    PacketSent(PacketInfo),
    /// The host at the other end receives it.
    PacketReceived(PacketInfo),
    /// A TCP sender's congestion control state has changed since its last event, or the sender is new.
    TcpState(SenderInfo, TcpState),
    /// A retransmission timer has expired.
    Timeout(SenderInfo),
    /// Duplicate acknowledgments have triggered a retransmission.
    FastRetransmit(SenderInfo),
    /// An application has completed another page, transaction, echo or mail check.
    ResponseDone {
        /// Index of the flow.
        flow: u32,
        /// How many it has completed so far.
        number: u64,
        /// Its duration; the mean of those completed at this instant.
        duration: Duration,
    },
    /// An application has finished its work.
    FlowFinished {
        /// Index of the flow.
        flow: u32,
    },
}

/// The kinds of events, with the names used in files and filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// [`Event::PacketEntered`].
    PacketEntered,
    /// [`Event::PacketLeft`].
    PacketLeft,
    /// [`Event::PacketDropped`].
    PacketDropped,
    /// [`Event::FrameSent`].
    FrameSent,
    /// [`Event::FrameLost`].
    FrameLost,
    /// [`Event::FrameReceived`].
    FrameReceived,
    /// [`Event::ServiceReported`] without a reset.
    ServiceEvent,
    /// [`Event::ServiceReported`] with a reset.
    ServiceReset,
    /// [`Event::PacketSent`].
    PacketSent,
    /// [`Event::PacketReceived`].
    PacketReceived,
    /// [`Event::TcpState`].
    TcpState,
    /// [`Event::Timeout`].
    Timeout,
    /// [`Event::FastRetransmit`].
    FastRetransmit,
    /// [`Event::ResponseDone`].
    ResponseDone,
    /// [`Event::FlowFinished`].
    FlowFinished,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 15] = [
        Self::PacketEntered,
        Self::PacketLeft,
        Self::PacketDropped,
        Self::FrameSent,
        Self::FrameLost,
        Self::FrameReceived,
        Self::ServiceEvent,
        Self::ServiceReset,
        Self::PacketSent,
        Self::PacketReceived,
        Self::TcpState,
        Self::Timeout,
        Self::FastRetransmit,
        Self::ResponseDone,
        Self::FlowFinished,
    ];

    /// Its name: `frame-sent`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PacketEntered => "packet-entered",
            Self::PacketLeft => "packet-left",
            Self::PacketDropped => "packet-dropped",
            Self::FrameSent => "frame-sent",
            Self::FrameLost => "frame-lost",
            Self::FrameReceived => "frame-received",
            Self::ServiceEvent => "service-event",
            Self::ServiceReset => "service-reset",
            Self::PacketSent => "packet-sent",
            Self::PacketReceived => "packet-received",
            Self::TcpState => "tcp-state",
            Self::Timeout => "timeout",
            Self::FastRetransmit => "fast-retransmit",
            Self::ResponseDone => "response-done",
            Self::FlowFinished => "flow-finished",
        }
    }
}

impl Event {
    /// Its kind.
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::PacketEntered { .. } => EventKind::PacketEntered,
            Self::PacketLeft { .. } => EventKind::PacketLeft,
            Self::PacketDropped { .. } => EventKind::PacketDropped,
            Self::FrameSent { .. } => EventKind::FrameSent,
            Self::FrameLost { .. } => EventKind::FrameLost,
            Self::FrameReceived { .. } => EventKind::FrameReceived,
            Self::ServiceReported { event, .. } if event.reset => EventKind::ServiceReset,
            Self::ServiceReported { .. } => EventKind::ServiceEvent,
            Self::PacketSent(_) => EventKind::PacketSent,
            Self::PacketReceived(_) => EventKind::PacketReceived,
            Self::TcpState(..) => EventKind::TcpState,
            Self::Timeout(_) => EventKind::Timeout,
            Self::FastRetransmit(_) => EventKind::FastRetransmit,
            Self::ResponseDone { .. } => EventKind::ResponseDone,
            Self::FlowFinished { .. } => EventKind::FlowFinished,
        }
    }

    /// The direction of a link on which it happens, if any.
    pub const fn way(&self) -> Option<LinkDirection> {
        match *self {
            Self::PacketEntered { way, .. }
            | Self::PacketLeft { way, .. }
            | Self::FrameSent { way, .. }
            | Self::FrameLost { way, .. }
            | Self::FrameReceived { way, .. }
            | Self::ServiceReported { way, .. } => Some(way),
            Self::PacketDropped { way, .. } => way,
            _ => None,
        }
    }

    /// The frame concerned, if any.
    pub const fn frame(&self) -> Option<FrameInfo> {
        match *self {
            Self::FrameSent { frame, .. }
            | Self::FrameLost { frame, .. }
            | Self::FrameReceived { frame, .. } => Some(frame),
            _ => None,
        }
    }

    /// The packet concerned, if any; for a frame, the packet in it.
    pub const fn packet(&self) -> Option<PacketInfo> {
        match *self {
            Self::PacketEntered { packet, .. }
            | Self::PacketLeft { packet, .. }
            | Self::PacketDropped { packet, .. }
            | Self::PacketSent(packet)
            | Self::PacketReceived(packet) => Some(packet),
            _ => match self.frame() {
                Some(frame) => frame.packet,
                None => None,
            },
        }
    }

    /// Index of the flow that it belongs to; a link's control frames belong to none.
    pub const fn flow(&self) -> Option<u32> {
        match *self {
            Self::TcpState(sender, _) | Self::Timeout(sender) | Self::FastRetransmit(sender) => {
                Some(sender.flow)
            }
            Self::ResponseDone { flow, .. } | Self::FlowFinished { flow } => Some(flow),
            _ => match self.packet() {
                Some(packet) => Some(packet.flow),
                None => None,
            },
        }
    }
}
