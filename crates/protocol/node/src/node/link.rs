//! The link with one peer: its port, its session, and its counters. The node has what all links share:
//! [`Below`] the ports, and the TUN device above them.

mod events;
mod way;

use std::fmt::Display;
use std::io;

use airlane_base::{Duration, Instant, Rate};
use airlane_link::config::ConfigError;
use airlane_link::wire::{Decoded, LIVE_HEADER_ROOM};
use airlane_link::{Frame, FrameKind, Header, Layout, PortConfig, RateLimitCause, SharedLink};
use airlane_secure::{PeerAddress, PeerId};
use airlane_session::{
    About, Keepalives, LEAST, LossReport, Part, Probe, Reassembly, Session, SessionConfig,
};

use super::about::AboutEnds;
use super::below::{Below, To};
use super::debounced::Debounced;
use super::drops::{Drops, Reason};
use super::error::NodeError;
use super::event_log::EventLog;
use super::lookup::Lookup;
use super::path::Path;
use super::share::Spent;
use super::shared_key::SharedKeyDetector;
use super::tap::Journals;
use super::transmit::SendFate;
use crate::config::{FragmentConfig, LiveConfig, PeerConfig};
use crate::journal::JournaledPort;
use crate::packet::ecn::Ecn;
use crate::packet::{Lease, LivePacket};
use crate::status::RefusedTables;

/// Interval of hellos under traffic, unless they would take more than a hundredth of the link.
pub const KEEPALIVE: Duration = Duration::from_secs(1);
/// Keepalives lost in a row after which the link is disconnected (docs/spec/multi-service.md, 10.5), if no
/// frame arrived either.
const LOST_KEEPALIVES: u64 = 3;
/// Packets read together may leave in one burst of up to this much link time.
const BURST: Duration = Duration::from_millis(1);
/// Lost time that the shaper makes up for. On a busy machine a thread wakes several time slices late, and
/// each time a few frames have to leave in a row to reach the rate. They wait in a queue below for as long;
/// where the rate is measured, that queue may be 30 ms.
pub(crate) const LATE: Duration = Duration::from_millis(20);
/// Length of a hello in an established session, bytes, with reports of its services and all lower headers. A
/// hello with the table of services is longer, but is sent only until the peer has the table.
const HELLO: usize = 200;

/// Lengths on the path to a peer, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// Longest packet.
    pub(crate) max_payload: usize,
    /// What is left for the payload of a frame.
    pub(crate) left: usize,
    /// Overhead below a frame.
    pub(crate) frame_overhead: usize,
}

/// The link with one peer.
#[derive(Debug)]
pub(crate) struct PeerLink {
    pub(crate) config: PeerConfig,
    pub(crate) to: To,
    pub(crate) port: JournaledPort,
    pub(crate) session: Session,
    pub(crate) drops: Drops,
    pub(crate) event_log: EventLog,
    /// The rate limit that the log has mentioned.
    limit: Debounced<Option<RateLimitCause>>,
    pub(crate) path: Path,
    /// Number of fragmented frames and hellos, and reassembly of the peer's.
    cut: u32,
    parts: Reassembly,
    hello_parts: Reassembly,
    /// Longest IP packet for a hello, which must arrive before the path is known.
    hello_mtu: usize,
    /// Interval of hellos while the link is idle.
    keepalive: Duration,
    /// Lookup of its host name, if the file gives one.
    pub(crate) lookup: Option<Lookup>,
    /// The peer's cost in the present turn.
    pub(crate) spent: Spent,
    /// Longest payload of a frame, where longer packets are fragmented.
    room: Option<usize>,
    /// What the path leaves for a packet, where the interface allows more for other peers.
    narrow: Option<usize>,
    /// While the peer is silent: since when it is sought at its present address, and the alternative address.
    sought: Instant,
    elsewhere: Option<PeerAddress>,
    /// The peer's address in the last log entry about it, and its moves since.
    moved: Option<(Option<PeerAddress>, u64)>,

    pub(crate) session_since: Option<Instant>,
    pub(crate) sessions: u64,
    pub(crate) refused: Option<RefusedTables>,
    pub(crate) disconnections: u64,
    pub(crate) disconnected_since: Option<Instant>,
    pub(crate) shared_key: SharedKeyDetector,
    pub(crate) about: AboutEnds,
    /// Start of the peer's silence, and the last log entry about it.
    silent: Option<(Instant, Instant)>,

    /// Time of the peer's last datagram.
    pub(crate) heard: Instant,
    pub(crate) datagrams_sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) datagrams_received: u64,
    pub(crate) received_bytes: u64,
    pub(crate) narrowed: u64,
}

impl PeerLink {
    /// Creates a link with this peer, configured by `file`. The node sets its number and its secure session.
    pub(crate) fn new(
        now: Instant,
        peer: &PeerConfig,
        file: &LiveConfig,
        sizes: Sizes,
        path: Path,
        [flow_salt, epoch]: [u64; 2],
    ) -> Result<Self, NodeError> {
        let link = &file.link;
        let rate = peer.rate.unwrap_or(link.rate);
        let port = JournaledPort::new(PortConfig {
            max_frame_payload: link.fragment.map(|_| sizes.left),
            adaptive_frames: link.fragment == Some(FragmentConfig::Adaptive),
            alike: link.outer.taken(),
            frame_overhead: sizes.frame_overhead,
            burst: BURST,
            late: LATE,
            rates: link.rates(),
            rate_limit: link.rate_limit,
            scheduler: link.scheduler.clone(),
            services: link.services.clone(),
            classes: link.classes.rules(&link.services),
            flow_salt,
            ..PortConfig::new(link.header(), rate, link.delay, sizes.max_payload)
        })
        .map_err(|problems: Vec<ConfigError>| NodeError::Config { problems })?;
        let session = Session::new(
            now,
            SessionConfig {
                epoch,
                table: port.service_table(),
                peer_table: port.peer_service_table(),
                keepalives: keepalives(rate, link.keepalive),
            },
        );
        let mut link = Self {
            config: peer.clone(),
            to: To {
                link: u8::MAX,
                session: None,
                address: peer.fixed_address(),
                from: None,
                longest: usize::MAX,
            },
            port,
            session,
            drops: Drops::new(Some(peer.name.clone())),
            event_log: EventLog::default(),
            limit: Debounced::new(now, None),
            path,
            cut: 0,
            parts: Reassembly::default(),
            hello_parts: Reassembly::default(),
            hello_mtu: link.fragment.map_or(LEAST, |f| f.datagram(LEAST)),
            keepalive: link.keepalive,
            lookup: peer.host().map(|host| Lookup::new(now, host.clone())),
            spent: Spent::default(),
            room: link.fragment.map(|_| sizes.left),
            narrow: None,
            sought: now,
            elsewhere: None,
            moved: None,
            session_since: None,
            sessions: 0,
            refused: None,
            disconnections: 0,
            disconnected_since: None,
            shared_key: SharedKeyDetector::new(),
            about: AboutEnds::new(&file.tun.addresses),
            silent: None,
            heard: now,
            datagrams_sent: 0,
            sent_bytes: 0,
            datagrams_received: 0,
            received_bytes: 0,
            narrowed: 0,
        };
        link.offer_services(now);
        Ok(link)
    }

    /// Starts the journal of the port, which must not have any state yet.
    pub(crate) fn keep_journal(
        &mut self,
        journals: &mut dyn Journals,
        named: bool,
    ) -> io::Result<()> {
        let sink = journals.begin(named.then_some(self.config.name.as_str()))?;
        self.port.keep_journal(sink)
    }

    /// The peer's name for the log.
    pub(crate) fn who(&self) -> String {
        who(&self.config.name, self.to.address.as_ref())
    }

    // ---- from below

    /// Counts a datagram received from the peer.
    pub(crate) const fn count_received(&mut self, now: Instant, datagram: &[u8]) {
        self.heard = now;
        self.datagrams_received += 1;
        self.received_bytes += datagram.len() as u64;
    }

    /// Whether datagrams arrive from the peer.
    pub(crate) fn is_heard(&self) -> bool {
        self.session.id().is_some() && !self.session.is_silent()
    }

    /// Handles a frame of the peer other than a hello, in the first `length` bytes of the buffer. `bound`:
    /// the secure session has authenticated that it belongs to our session.
    pub(crate) fn handle_frame(
        &mut self,
        now: Instant,
        decoded: &Decoded,
        (lease, length, bound): (Lease, usize, bool),
        mark: Ecn,
    ) -> Result<(), Reason> {
        let (header, payload_at) = (decoded.header, decoded.payload_at);
        let Some(ours) = self.session.id() else {
            return Err(Reason::FrameWithoutSession);
        };
        // A frame bound to another session would have failed authentication.
        let session = if bound { ours } else { decoded.session };
        if !self.session.check(now, session) {
            return Err(Reason::StaleSession);
        }
        self.session.note_received(now);
        if !self.port.is_agreed(header.service) {
            return Err(Reason::ServiceNotAgreed);
        }
        if header.kind.carries_packet() != (length > payload_at) {
            return Err(Reason::BadLength);
        }
        let payload = (length > payload_at)
            .then(|| LivePacket::from_link(lease.share(), payload_at, length).under(mark));
        self.port.handle_frame(now, decoded.frame(payload));
        Ok(())
    }

    pub(crate) fn handle_hello(
        &mut self,
        now: Instant,
        body: &[u8],
        below: &mut Below,
    ) -> Result<(), Reason> {
        if let Some(about) = About::decode(body).map_err(|error| Reason::from(&error))? {
            return self.handle_about(now, about, below);
        }
        if let Some(probe) = Probe::decode(body).map_err(|error| Reason::from(&error))? {
            return self.handle_probe(now, probe, below);
        }
        let heard = self.session.handle_hello(now, body);
        self.take_events(now, below);
        if self.session.poll_timeout() <= now {
            self.say_hello(now, below);
        }
        heard.map_err(|error| Reason::from(&error))
    }

    // ---- time

    /// Time at which something is due without any input. Ports that wait for their turn on the shared link
    /// are not included.
    pub(crate) fn poll_timeout(&self, now: Instant, below: &Below, shared: &SharedLink) -> Instant {
        if !below.is_open(now, self.to) {
            return self.session.poll_timeout_unsent();
        }
        let hello = self.session.poll_timeout();
        // Without a session, or with a full socket, the port cannot send frames.
        if self.session.id().is_none() || below.transmit.is_blocked() || self.path.is_too_narrow() {
            return hello;
        }
        let port = match shared.offered(self.to.link) {
            Some(_) => self.port.next_timer(),
            None => self.port.poll_timeout(),
        };
        hello.min(port.unwrap_or(Instant::FAR_FUTURE))
    }

    /// Handles what is due at `now`.
    pub(crate) fn on_time(&mut self, now: Instant, below: &mut Below) {
        self.session.handle_timeout(now);
        self.take_events(now, below);
        self.mention_silence(now);
        self.seek_silent(now, below);
        self.mention_limit(now);
        if self.session.poll_timeout() <= now {
            self.say_hello(now, below);
        }
        if self.session.id().is_some() && self.port.poll_timeout().is_some_and(|due| due <= now) {
            self.port.handle_timeout(now);
        }
        let events: Vec<_> = self.port.take_events().collect();
        for event in events {
            let peer = self.who();
            self.event_log.mention(now, &peer, &self.port, event);
        }
        if self.port.services_changed() {
            self.offer_services(now);
        }
    }

    // ---- to below

    /// Queues the port for a turn, if it has a frame that may leave and is not queued.
    pub(crate) fn offer(&self, now: Instant, below: &Below, shared: &mut SharedLink) {
        if shared.offered(self.to.link).is_none()
            && let Some(len) = self.port.next_frame_len(now)
            && self.is_open(now, below)
        {
            shared.offer(now, self.to.link, len);
        }
    }

    /// Whether frames can leave.
    fn is_open(&self, now: Instant, below: &Below) -> bool {
        self.session.id().is_some() && !self.path.is_too_narrow() && below.is_open(now, self.to)
    }

    /// Uses the port's turn to add a frame to the batch. If the port's next frame has changed since, the port
    /// waits for another turn.
    pub(crate) fn take_turn(&mut self, now: Instant, below: &mut Below, shared: &mut SharedLink) {
        let next = self.port.next_frame_len(now);
        match next.filter(|_| self.is_open(now, below)) {
            None => shared.skip(),
            Some(len) if shared.offered(self.to.link) != Some(len) => {
                shared.offer(now, self.to.link, len);
            }
            Some(_) => {
                if let Some(frame) = self.port.poll_transmit(now) {
                    self.stage(now, &frame, below);
                }
                let free = shared.pass(now).max(now);
                // A port limited by its own lower rate queues again when that rate allows.
                if let Some(next) = self.port.next_frame_len(free) {
                    shared.follow(self.to.link, next);
                }
            }
        }
    }

    /// Adds a frame with its header to the batch.
    fn stage(&mut self, now: Instant, frame: &Frame<LivePacket>, below: &mut Below) {
        let Some(session) = self.session.id() else {
            return;
        };
        let mut header = [0; LIVE_HEADER_ROOM];
        let length = self.port.encode_header(frame, session, &mut header);
        // Only a service that was removed in the meantime has no header; its frames are dropped.
        if let Some(length) = length {
            let payload = frame.packet().map_or(&[][..], LivePacket::bytes);
            let packet = frame.packet().filter(|_| frame.header.kind.is_packet());
            let class = packet.and_then(LivePacket::traffic_class);
            let mark = below.outer.traffic_class(class);
            self.session.note_sent(now);
            if let Some(search) = &mut self.path.search {
                let around = below.underlay.overhead(self.to.address) + below.sealing();
                search.note_sent(around + length + payload.len());
            }
            self.push(now, (mark, true), &[&header[..length], payload], below);
        }
    }

    /// Adds a frame with this traffic class to the batch, bound to the session if it belongs to one.
    fn push(&mut self, now: Instant, how: (u8, bool), parts: &[&[u8]], below: &mut Below) {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        if length + below.sealing() > self.to.longest {
            let session = self.session.id().unwrap_or_default();
            let room = self.to.longest;
            return self.push_in_parts(now, how, (session, &parts.concat(), room), below);
        }
        let waiting = || self.port.waiting_bytes();
        if let Err(reason) = below.push(now, self.to, how, parts, waiting) {
            self.drops.count(now, reason);
        }
    }

    /// Adds a frame to the batch in datagrams of at most `longest` bytes: a frame built before the path
    /// became narrower, or a hello.
    fn push_in_parts(
        &mut self,
        now: Instant,
        how: (u8, bool),
        (session, frame, longest): (u32, &[u8], usize),
        below: &mut Below,
    ) {
        let header = self.hello_header();
        let around = below.sealing() + header.len();
        self.cut = self.cut.wrapping_add(1);
        let room = longest.saturating_sub(around);
        for part in Part::of(session, self.cut, frame, room) {
            if below.transmit.is_full() {
                self.drops.count(now, Reason::TooBig);
                return;
            }
            let bytes: [&[u8]; 3] = [&header, &part.head(), part.bytes()];
            if let Err(reason) = below.push(now, self.to, how, &bytes, || 0) {
                self.drops.count(now, reason);
            }
        }
    }

    /// Takes a part of a frame. Returns the frame when it is complete.
    pub(crate) fn handle_part(
        &mut self,
        now: Instant,
        part: &Part<'_>,
    ) -> Result<Option<Vec<u8>>, Reason> {
        if part.session == 0 {
            return Ok(self.hello_parts.take(part));
        }
        match self.session.check(now, part.session) {
            true => Ok(self.parts.take(part)),
            false => Err(Reason::StaleSession),
        }
    }

    /// Sends the hello that is due. It bypasses the schedulers, because it must leave even when the services
    /// are stuck; there is at most one a second.
    fn say_hello(&mut self, now: Instant, below: &mut Below) {
        if !below.is_open(now, self.to) {
            return self.session.note_unsent(now);
        }
        let reports = self.loss_reports();
        let Some(hello) = self.session.poll_transmit(now, &reports) else {
            return;
        };
        let mut body = Vec::new();
        hello.encode(&mut body);
        self.push_beside(now, &body, below);
        self.ask_about(now, below);
    }

    /// Adds a hello, or a message sent like one, to the batch, outside the services.
    pub(crate) fn push_beside(&mut self, now: Instant, body: &[u8], below: &mut Below) {
        let (header, mark) = (self.hello_header(), below.outer.traffic_class(None));
        let longest = below.longest(self.to.address, self.hello_mtu);
        let longest = longest.min(self.to.longest);
        match header.len() + body.len() + below.sealing() > longest {
            true => {
                let hello = [&header, body].concat();
                self.push_in_parts(now, (mark, false), (0, &hello, longest), below);
            }
            false => self.push(now, (mark, false), &[&header, body], below),
        }
    }

    /// The header of a hello, or of a message sent like one.
    fn hello_header(&self) -> Vec<u8> {
        let mut header = vec![0; LIVE_HEADER_ROOM];
        let fields = Frame::<LivePacket>::new(Header::new(FrameKind::Hello, 0), None);
        let codec = self.port.codec();
        let length = codec.encode(&fields, &Layout::PORTS, 0, &mut header);
        header.truncate(length.unwrap_or_default());
        header
    }

    fn loss_reports(&self) -> Vec<LossReport> {
        let reports = self.port.services().map(|service| LossReport {
            service: service.number,
            received_packets: service.ledger.packets_delivered,
            lost_packets: service.ledger.residual_lost,
            loss_ppm: service.metrics.loss.map(|loss| (loss * 1e6) as u32),
        });
        reports.collect()
    }

    /// Handles the socket's report about sent datagrams.
    pub(crate) fn on_fate(&mut self, now: Instant, fate: SendFate) {
        match fate {
            SendFate::Sent { datagrams, bytes } => {
                self.datagrams_sent += datagrams;
                self.sent_bytes += bytes;
            }
            SendFate::Narrowed => {
                if self.path.ask(now) {
                    let peer = self.who();
                    tracing::info!(%peer, "a frame no longer fits the path to the peer");
                }
            }
            SendFate::SourceGone => self.to.from = None,
            SendFate::Dropped(reason) => self.drops.count(now, reason),
        }
    }

    // ---- configuration

    /// Sets the rate: the peer's own, or else that of the link.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.port.set_link_rate(now, rate);
        let keepalives = keepalives(rate, self.keepalive);
        self.session.set_keepalives(keepalives);
    }

    /// Applies the peer's changed settings, except its rate.
    pub(crate) fn set_config(
        &mut self,
        now: Instant,
        new: &PeerConfig,
        session: Option<PeerId>,
        below: &mut Below,
    ) {
        let old = std::mem::replace(&mut self.config, new.clone());
        if old.address != new.address {
            // Without an address in the file, the peer's last address stays.
            self.to.address = new.fixed_address().or(self.to.address);
            self.lookup = new.host().map(|host| Lookup::new(now, host.clone()));
        }
        self.to.session = session;
        // New keys must be bound to the session, which continues.
        below.bind(self.to, self.session.id());
    }
}

/// Intervals of hellos at a rate, and the silence after which the peer counts as lost: half an interval more
/// than [`LOST_KEEPALIVES`] intervals, as the last hello may be late.
fn keepalives(rate: Rate, idle: Duration) -> Keepalives {
    let busy = (rate.transmission_time(HELLO) * 100).max(KEEPALIVE);
    Keepalives {
        busy,
        idle: idle.max(busy),
        silence: busy * LOST_KEEPALIVES + busy / 2,
    }
}

/// A peer's name for the log.
pub(crate) fn who(name: &str, address: Option<&impl Display>) -> String {
    format!("{name} {}", at(address))
}

pub(crate) fn at(address: Option<&impl Display>) -> String {
    address.map_or_else(
        || "wherever it calls from".to_owned(),
        |peer| format!("at {peer}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathFacts;

    const FILE: &str = r#"
schema = 1
name = "hill"
[tun]
addresses = ["10.7.0.1/24"]
[link]
rate = "20 Mbit/s"
underlay = { kind = "udp", listen = "0.0.0.0:7007", peer = "192.0.2.7:7007" }
security = "none"
services = [{ number = 1, name = "files", rate = 1, scheme = { kind = "sr-m2" } }]
"#;

    fn link() -> PeerLink {
        let file: LiveConfig = airlane_base::config::load(FILE, "up.toml").unwrap();
        let file = file.resolve();
        let sizes = Sizes {
            max_payload: 1_400,
            left: 1_400,
            frame_overhead: 28,
        };
        let now = Instant::ORIGIN;
        let path = Path::of_interface(now, PathFacts::UNKNOWN);
        PeerLink::new(now, &file.peers()[0], &file, sizes, path, [1, 2]).unwrap()
    }

    #[test]
    fn a_silent_peer_is_mentioned_again_every_minute() {
        let at = |seconds| Instant::ORIGIN + Duration::from_secs(seconds);
        let mut link = link();
        link.session.handle_timeout(at(10));
        link.silent = Some((at(0), at(10)));
        let said = (10..200).filter(|seconds| link.mention_silence(at(*seconds)));
        assert_eq!(said.collect::<Vec<_>>(), [70, 130, 190]);
    }
}
