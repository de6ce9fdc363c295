//! What happens in a run, as typed events: packets and frames on links, segments and timers of TCP,
//! pages and files that are done.
//!
//! [`Prepared::run_watched`](crate::Prepared::run_watched) shows each event to a [`Watcher`] when it
//! happens, in the order of time. A watcher sees and changes nothing: the result is that of the run
//! that nobody watches. `docs/events.md` lists events and fields for users of files and of Python,
//! who get each as a [`EventRecord`].
//!
//! Left out: what frames wait for in front of a scheduler, and which packets a service has given up: such a
//! packet enters a link and never leaves it.

mod filter;
mod record;
mod watch;

use airlane_base::{Duration, Instant};
use airlane_link::{DropReason, FrameKind, ServiceEvent};

use crate::packet::{self, Asks, Packet};

pub use filter::EventFilter;
pub use record::{EventRecord, Names};
pub(crate) use watch::Typed;

/// Somebody who watches a run.
pub trait Watcher {
    /// Something happens at `now`, time since the run's origin. It never goes back.
    fn on_event(&mut self, now: Instant, event: &Event);

    /// Whether the run is to end now, before its time. Its result is of no use then.
    fn is_over(&self) -> bool {
        false
    }
}

/// Nobody watches.
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

/// What a packet is to the flow that sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A datagram, without a transport that repairs.
    Datagram,
    /// A segment in the flow's main direction.
    Data,
    /// An acknowledgment of these, and the answer to a SYN.
    Ack,
    /// A segment against the main direction.
    Request,
    /// An acknowledgment of these, and the answer to a SYN.
    RequestAck,
    /// It asks for a connection in the main direction.
    Syn,
    /// It asks for one against the main direction.
    RequestSyn,
    /// It asks for the window, with a byte that nobody keeps, in the main direction.
    Probe,
    /// It asks for the window against the main direction.
    RequestProbe,
}

impl Role {
    /// Whether such packets carry user bytes, and neither acknowledge nor ask.
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

/// A packet, as far as it can be told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketInfo {
    /// Index of the flow.
    pub flow: u32,
    /// Which connection of the flow.
    pub connection: u32,
    /// What it is to its flow.
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
    /// What its header says; none on a link without services.
    pub header: Option<HeaderInfo>,
    /// Length with its header, bytes.
    pub len_bytes: u32,
    /// The packet in it; none in control frames and redundancy.
    pub packet: Option<PacketInfo>,
}

/// What stands in a frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderInfo {
    /// Number of the service.
    pub service: u8,
    /// What the frame is for.
    pub kind: FrameKind,
    /// Its sequence number; of a NAK, the number that is asked for.
    pub seq: u32,
    /// The next number that its sender expects, where the service's frames say so.
    pub ack: Option<u32>,
}

/// Why a packet goes no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// A queue did so.
    Queue(DropReason),
    /// There is no way to its destination.
    NoRoute,
}

/// Why a frame does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The link's error model said so.
    Errors,
    /// The link was down.
    Outage,
    /// A node had left the link.
    Handoff,
    /// A policer dropped it.
    Policed,
}

/// Congestion state of a TCP sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpState {
    /// Congestion window, segments.
    pub cwnd_segments: f64,
    /// Slow start threshold, segments.
    pub ssthresh_segments: u64,
    /// The receiver's advertised window, segments: the congestion window grows beyond it and is not
    /// used there.
    pub window_segments: u64,
    /// Smoothed round trip time; none while there is no estimate.
    pub srtt: Option<Duration>,
    /// Retransmission timeout with its backoff.
    pub rto: Duration,
}

/// A sender of TCP: which connection, and which of its two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderInfo {
    /// Index of the flow.
    pub flow: u32,
    /// Which connection of the flow.
    pub connection: u32,
    /// What its segments are: [`Role::Data`] or [`Role::Request`].
    pub role: Role,
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// IP hands a packet to a link.
    PacketEntered {
        /// Where it happened.
        way: LinkDirection,
        /// The service that the classifier puts it on; none on a link without services.
        service: Option<u8>,
        /// The packet.
        packet: PacketInfo,
    },
    /// IP at the other end of a link gets a packet.
    PacketLeft {
        /// Where it happened.
        way: LinkDirection,
        /// The packet.
        packet: PacketInfo,
    },
    /// A packet is dropped in front of a link, or because there is none.
    PacketDropped {
        /// Where; none without a way.
        way: Option<LinkDirection>,
        /// The service whose queue it was; none on a link without services.
        service: Option<u8>,
        /// Why it is dropped.
        reason: Dropped,
        /// The packet.
        packet: PacketInfo,
    },
    /// A frame is given to the transmitter; through a radio channel, the station is done with it, which may be after it
    /// has been received.
    FrameSent {
        /// Where it happened.
        way: LinkDirection,
        /// The frame.
        frame: FrameInfo,
        /// When its last bit will have left; through a radio channel, when the event happens.
        departs: Instant,
    },
    /// The same frame will not arrive. Comes right behind [`Event::FrameSent`].
    FrameLost {
        /// Where it happened.
        way: LinkDirection,
        /// The frame.
        frame: FrameInfo,
        /// As of [`Event::FrameSent`].
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
    /// A service tells of something by a name of its scheme, or begins anew by it.
    ServiceTold {
        /// From the end where it happened.
        way: LinkDirection,
        /// What it tells.
        event: ServiceEvent,
    },
    /// A host sends a packet: a segment, an acknowledgment or a datagram, as its role says.
    PacketSent(PacketInfo),
    /// The host at the other end gets it.
    PacketReceived(PacketInfo),
    /// A TCP sender's congestion state is another one than at its last event; also when it is new.
    TcpState(SenderInfo, TcpState),
    /// A retransmission timer has run out.
    Timeout(SenderInfo),
    /// Duplicate acknowledgments start a retransmission.
    FastRetransmit(SenderInfo),
    /// An application has one page, transaction, echo or mail check more.
    ResponseDone {
        /// Index of the flow.
        flow: u32,
        /// How many it has now.
        number: u64,
        /// How long it took; the mean of those that were done at this very instant.
        duration: Duration,
    },
    /// An application has done all that it was to do.
    FlowFinished {
        /// Index of the flow.
        flow: u32,
    },
}

/// The kinds of events, by the names that files and filters use.
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
    /// [`Event::ServiceTold`] without a reset.
    ServiceEvent,
    /// [`Event::ServiceTold`] with one.
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
    /// All of them.
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
    /// What kind of event it is.
    pub const fn kind(&self) -> EventKind {
        match self {
            Self::PacketEntered { .. } => EventKind::PacketEntered,
            Self::PacketLeft { .. } => EventKind::PacketLeft,
            Self::PacketDropped { .. } => EventKind::PacketDropped,
            Self::FrameSent { .. } => EventKind::FrameSent,
            Self::FrameLost { .. } => EventKind::FrameLost,
            Self::FrameReceived { .. } => EventKind::FrameReceived,
            Self::ServiceTold { event, .. } if event.reset => EventKind::ServiceReset,
            Self::ServiceTold { .. } => EventKind::ServiceEvent,
            Self::PacketSent(_) => EventKind::PacketSent,
            Self::PacketReceived(_) => EventKind::PacketReceived,
            Self::TcpState(..) => EventKind::TcpState,
            Self::Timeout(_) => EventKind::Timeout,
            Self::FastRetransmit(_) => EventKind::FastRetransmit,
            Self::ResponseDone { .. } => EventKind::ResponseDone,
            Self::FlowFinished { .. } => EventKind::FlowFinished,
        }
    }

    /// The direction of a link on which it happens, if it does on one.
    pub const fn way(&self) -> Option<LinkDirection> {
        match *self {
            Self::PacketEntered { way, .. }
            | Self::PacketLeft { way, .. }
            | Self::FrameSent { way, .. }
            | Self::FrameLost { way, .. }
            | Self::FrameReceived { way, .. }
            | Self::ServiceTold { way, .. } => Some(way),
            Self::PacketDropped { way, .. } => way,
            _ => None,
        }
    }

    /// The frame that it is about.
    pub const fn frame(&self) -> Option<FrameInfo> {
        match *self {
            Self::FrameSent { frame, .. }
            | Self::FrameLost { frame, .. }
            | Self::FrameReceived { frame, .. } => Some(frame),
            _ => None,
        }
    }

    /// The packet that it is about, if there is one: of a frame, the packet in it.
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

    /// Index of the flow that it belongs to; control frames of a link belong to none.
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
