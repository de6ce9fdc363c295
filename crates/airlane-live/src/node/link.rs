//! The link with one peer: its port, its session, and what is counted of it. What all links share is the
//! node's: [`Below`] the ports, the TUN device above them.

use std::fmt::Display;

use airlane_base::{Duration, Instant, Rate};
use airlane_link::config::ConfigError;
use airlane_link::wire::{Decoded, LIVE_HEADER_ROOM};
use airlane_link::{AdminError, Frame, FrameKind, Header, Layout, PortConfig, SharedLink};
use airlane_secure::{PeerAddress, PeerId};
use airlane_session::{
    LossReport, Part, PathSearch, Probe, ProbeRequest, Reassembly, ServiceOffer, Session,
    SessionConfig, SessionEvent, SessionState,
};

use super::below::{Below, To};
use super::drops::{Drops, Reason};
use super::lookup::Lookup;
use super::path::Path;
use super::share::Spent;
use super::told::Told;
use super::transmit::SendFate;
use super::up_error::UpError;
use crate::config::{FragmentConfig, LiveConfig, PeerConfig};
use crate::journal::JournaledPort;
use crate::packet::ecn::Ecn;
use crate::packet::{Lease, LivePacket};
use crate::security::random_number;
use crate::status::RefusedTables;

/// A hello a second, unless that is more than a hundredth of the link.
const KEEPALIVE: Duration = Duration::from_secs(1);
/// Keepalives in a row whose loss means that the link is disconnected (the specification, 10.5),
/// if nothing else was heard either.
const LOST_KEEPALIVES: u64 = 3;
/// How often the log says of a peer that it is silent.
const SILENCE_AGAIN: Duration = Duration::from_secs(60);
/// How much lost time the shaper makes up for: a thread that wakes up late sends a few frames in a
/// row instead of losing their turn.
pub(super) const BURST: Duration = Duration::from_millis(1);
/// Bytes of a long hello with all that is below it.
const HELLO: usize = 1000;

/// What must be known of the way to a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Longest packet.
    pub(super) max_payload: usize,
    /// What the path leaves of a datagram.
    pub(super) left: usize,
    /// What is below a frame.
    pub(super) frame_overhead: usize,
}

/// The link with one peer.
#[derive(Debug)]
pub(super) struct PeerLink {
    pub(super) config: PeerConfig,
    pub(super) to: To,
    pub(super) port: JournaledPort,
    pub(super) session: Session,
    pub(super) drops: Drops,
    pub(super) told: Told,
    pub(super) path: Path,
    /// Frames that were cut for a path that had become narrower, and parts of such frames of the peer.
    cut: u32,
    parts: Reassembly,
    /// The name of its host, where the file has that.
    pub(super) lookup: Option<Lookup>,
    /// What the peer has cost in the present turn.
    pub(super) spent: Spent,
    /// Longest payload of a frame, where longer packets are cut.
    room: Option<usize>,
    /// What the path leaves for a packet, where the interface has more for the sake of others.
    narrow: Option<usize>,
    /// Where the peer was when the log last said so, and how often it has moved since.
    moved: Option<(Option<PeerAddress>, u64)>,

    pub(super) session_since: Option<Instant>,
    pub(super) sessions: u64,
    pub(super) refused: Option<RefusedTables>,
    pub(super) disconnections: u64,
    pub(super) disconnected_since: Option<Instant>,
    /// Since when nothing is heard from the peer, and when the log last said so.
    silent: Option<(Instant, Instant)>,

    pub(super) datagrams_sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) datagrams_received: u64,
    pub(super) received_bytes: u64,
    pub(super) narrowed: u64,
}

impl PeerLink {
    /// A link with this peer, as `file` says, that has sent nothing yet. Its number and secure session are
    /// the node's to give.
    pub(super) fn new(
        now: Instant,
        peer: &PeerConfig,
        file: &LiveConfig,
        sizes: Sizes,
        path: Path,
    ) -> Result<Self, UpError> {
        let link = &file.link;
        let rate = peer.rate.unwrap_or(link.rate);
        let port = JournaledPort::new(PortConfig {
            max_frame_payload: link.fragment.map(|_| sizes.left),
            adaptive_frames: link.fragment == Some(FragmentConfig::Adaptive),
            alike: link.outer.taken(),
            frame_overhead: sizes.frame_overhead,
            burst: BURST,
            rates: link.rates(),
            rate_limit: link.rate_limit,
            scheduler: link.scheduler.clone(),
            services: link.services.clone(),
            classes: link.classes.rules(&link.services),
            flow_salt: random_number()?,
            ..PortConfig::new(link.header(), rate, link.delay, sizes.max_payload)
        })
        .map_err(|problems: Vec<ConfigError>| UpError::Config { problems })?;
        let (keepalive, silence) = hellos(rate);
        let session = Session::new(
            now,
            SessionConfig {
                epoch: random_number()?,
                table: port.service_table(),
                peer_table: port.peer_service_table(),
                keepalive,
                silence,
            },
        );
        let mut link = Self {
            config: peer.clone(),
            to: To {
                link: u8::MAX,
                session: None,
                address: peer.fixed_address(),
                longest: usize::MAX,
            },
            port,
            session,
            drops: Drops::new(Some(peer.name.clone())),
            told: Told::default(),
            path,
            cut: 0,
            parts: Reassembly::default(),
            lookup: peer.host().map(|host| Lookup::new(now, host.clone())),
            spent: Spent::default(),
            room: link.fragment.map(|_| sizes.left),
            narrow: None,
            moved: None,
            session_since: None,
            sessions: 0,
            refused: None,
            disconnections: 0,
            disconnected_since: None,
            silent: None,
            datagrams_sent: 0,
            sent_bytes: 0,
            datagrams_received: 0,
            received_bytes: 0,
            narrowed: 0,
        };
        link.offer_services(now);
        Ok(link)
    }

    /// The peer for the log.
    pub(super) fn who(&self) -> String {
        who(&self.config.name, self.to.address.as_ref())
    }

    // ---- from below

    /// A datagram of the peer has come.
    pub(super) const fn count_received(&mut self, datagram: &[u8]) {
        self.datagrams_received += 1;
        self.received_bytes += datagram.len() as u64;
    }

    /// An authentic datagram has shown where the peer is. The log and the path follow, but not as fast as
    /// it may move.
    pub(super) fn move_to(&mut self, now: Instant, address: PeerAddress) {
        let was = self.to.address.replace(address);
        self.moved.get_or_insert((was, 0)).1 += 1;
        self.path.ask(now);
    }

    /// What is due of the path: asks the kernel, sends probes, and takes note of what they found. Whether
    /// the path takes something else than before.
    pub(super) fn watch_path(&mut self, now: Instant, below: &mut Below) -> bool {
        if self.path.is_due(now) {
            self.ask_path(now, below);
        }
        if let Some(search) = &mut self.path.search {
            search.handle_timeout(now);
        }
        self.send_probes(now, below);
        let Some(was) = self.path.take_change() else {
            return false;
        };
        let (peer, path_mtu) = (self.who(), self.path.mtu());
        tracing::info!(%peer, path_mtu, was, why = "the path to the peer changed", "path MTU changed");
        self.narrowed += u64::from(path_mtu < was);
        true
    }

    fn send_probes(&mut self, now: Instant, below: &mut Below) {
        while let Some(request) = self.path.search.as_mut().and_then(PathSearch::poll_probe) {
            if let Some(session) = self.session.id() {
                self.send_probe(now, session, request, below);
            }
        }
    }

    /// Sends a probe that is as long as asked for.
    fn send_probe(&mut self, now: Instant, session: u32, request: ProbeRequest, below: &mut Below) {
        let probe = Probe {
            answer: false,
            session,
            number: request.number,
        };
        let mut frame = self.hello_header();
        frame.extend_from_slice(&probe.encode());
        let around = below.underlay.overhead(self.to.address) + below.sealing();
        let length = request.size.map_or(0, |size| size.saturating_sub(around));
        frame.resize(frame.len().max(length), 0);
        if let Some(length) = below.send_whole(now, self.to, &frame) {
            self.datagrams_sent += 1;
            self.sent_bytes += length as u64;
        }
    }

    /// The peer probes the path from there, or has received a probe from here.
    fn handle_probe(
        &mut self,
        now: Instant,
        probe: Probe,
        below: &mut Below,
    ) -> Result<(), Reason> {
        if !self.session.check(now, probe.session) {
            return Err(Reason::StaleSession);
        }
        match (probe.answer, &mut self.path.search) {
            (true, Some(search)) => search.handle_answer(now, probe.number),
            (true, None) => {}
            (false, _) => {
                let answer = Probe {
                    answer: true,
                    ..probe
                };
                self.push_beside(now, &answer.encode(), below);
            }
        }
        Ok(())
    }

    /// Whether something is heard from the peer.
    pub(super) fn is_heard(&self) -> bool {
        self.session.id().is_some() && !self.session.is_silent()
    }

    /// The peer is to be sought at this address.
    pub(super) fn seek(&mut self, now: Instant, address: PeerAddress, below: &mut Below) {
        self.to.address = Some(address);
        if let (Some(guard), Some(session)) = (&mut below.guard, self.to.session) {
            guard.seek(now, session, address);
        }
        self.path.ask(now);
    }

    /// Asks the kernel for the path.
    fn ask_path(&mut self, now: Instant, below: &Below) {
        let (peer, moved) = (self.who(), self.moved.take());
        match moved {
            Some((Some(was), times)) => tracing::info!(%peer, %was, times, "the peer moved"),
            Some((None, _)) => tracing::info!(%peer, "the peer called"),
            None => {}
        }
        // No route for a moment is no reason to change anything.
        if let Ok(facts) = below.underlay.path(self.to.address) {
            self.path.follow(now, facts);
        }
        if let Some(search) = &mut self.path.search {
            let cost = self.port.rate().transmission_time(search.mtu());
            search.set_pace(self.session.srtt(), cost);
            if moved.is_some() && self.session.state() == SessionState::Confirmed {
                search.begin(now);
            }
        }
    }

    /// Cuts packets that are longer than `room` from now on, and has new connections keep within `narrow`,
    /// so that theirs need not be cut.
    pub(super) fn set_room(&mut self, now: Instant, room: Option<usize>, narrow: Option<usize>) {
        self.narrow = narrow;
        if std::mem::replace(&mut self.room, room) != room {
            self.port.set_frame_room(now, room.unwrap_or(usize::MAX));
        }
    }

    /// Longest packet of a connection, where the interface has this MTU.
    pub(super) fn longest_segment(&self, mtu: usize) -> usize {
        self.narrow.map_or(mtu, |narrow| narrow.min(mtu))
    }

    /// A frame of the peer that is no hello, its bytes in the buffer up to a length; `bound` to our session
    /// by the secure one, if that said so.
    pub(super) fn handle_frame(
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
        // What was bound to another session could not be opened.
        let session = if bound { ours } else { decoded.session };
        if !self.session.check(now, session) {
            return Err(Reason::StaleSession);
        }
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

    pub(super) fn handle_hello(
        &mut self,
        now: Instant,
        body: &[u8],
        below: &mut Below,
    ) -> Result<(), Reason> {
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

    /// When there is something to do without any input. The turns of ports that wait for the shared link are
    /// its business.
    pub(super) fn poll_timeout(&self, now: Instant, below: &Below, shared: &SharedLink) -> Instant {
        // Without keys a hello has nowhere to go.
        if !below.is_open(now, self.to) {
            return Instant::FAR_FUTURE;
        }
        let hello = self.session.poll_timeout();
        // Without a session, or with a full socket, the port's frames have nowhere to go.
        if self.session.id().is_none() || below.transmit.is_blocked() {
            return hello;
        }
        let port = match shared.offered(self.to.link) {
            Some(_) => self.port.next_timer(),
            None => self.port.poll_timeout(),
        };
        hello.min(port.unwrap_or(Instant::FAR_FUTURE))
    }

    /// What is due at `now`.
    pub(super) fn on_time(&mut self, now: Instant, below: &mut Below) {
        self.session.handle_timeout(now);
        self.take_events(now, below);
        self.mention_silence(now);
        if self.session.poll_timeout() <= now {
            self.say_hello(now, below);
        }
        if self.session.id().is_some() && self.port.poll_timeout().is_some_and(|due| due <= now) {
            self.port.handle_timeout(now);
        }
        let events: Vec<_> = self.port.take_events().collect();
        for event in events {
            let peer = self.who();
            self.told.mention(now, &peer, &self.port, event);
        }
        if self.port.services_changed() {
            self.offer_services(now);
        }
    }

    /// Says again of a peer that it is silent, once a minute: whether it did.
    fn mention_silence(&mut self, now: Instant) -> bool {
        self.silent = self.silent.filter(|_| self.session.is_silent());
        let due = self.silent.filter(|(_, told)| now >= *told + SILENCE_AGAIN);
        if let Some((since, _)) = due {
            self.silent = Some((since, now));
            let (peer, silent_for) = (self.who(), now.saturating_since(since));
            tracing::warn!(%peer, %silent_for, "nothing is heard from the peer; trying on");
        }
        due.is_some()
    }

    // ---- to below

    /// Has the port wait for its turn, if it has a frame that can leave and does not wait already.
    pub(super) fn offer(&self, now: Instant, below: &Below, shared: &mut SharedLink) {
        if shared.offered(self.to.link).is_none()
            && let Some(len) = self.port.next_frame_len(now)
            && self.is_open(now, below)
        {
            shared.offer(now, self.to.link, len);
        }
    }

    /// Whether frames can leave.
    fn is_open(&self, now: Instant, below: &Below) -> bool {
        self.session.id().is_some() && below.is_open(now, self.to)
    }

    /// It is the port's turn: a frame goes into the batch, unless by now that is another one, whose turn
    /// comes later.
    pub(super) fn take_turn(&mut self, now: Instant, below: &mut Below, shared: &mut SharedLink) {
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
                // A port that its own rate holds back for longer comes again when it may.
                if let Some(next) = self.port.next_frame_len(free) {
                    shared.follow(self.to.link, next);
                }
            }
        }
    }

    /// Puts a frame's header before it and both into the batch.
    fn stage(&mut self, now: Instant, frame: &Frame<LivePacket>, below: &mut Below) {
        let Some(session) = self.session.id() else {
            return;
        };
        let mut header = [0; LIVE_HEADER_ROOM];
        let length = self.port.encode_header(frame, session, &mut header);
        // Only a service that was removed in between has no header; its frames go with it.
        if let Some(length) = length {
            let payload = frame.packet().map_or(&[][..], LivePacket::bytes);
            let packet = frame.packet().filter(|_| frame.header.kind.is_packet());
            let class = packet.and_then(LivePacket::traffic_class);
            let mark = below.outer.traffic_class(class);
            self.push(now, (mark, true), &[&header[..length], payload], below);
        }
    }

    /// Puts a frame with a mark into the batch, bound to the session if it belongs to one.
    fn push(&mut self, now: Instant, how: (u8, bool), parts: &[&[u8]], below: &mut Below) {
        let length = parts.iter().map(|part| part.len()).sum::<usize>();
        if length + below.sealing() > self.to.longest {
            return self.push_in_parts(now, how, &parts.concat(), below);
        }
        let waiting = || self.port.waiting_bytes();
        if let Err(reason) = below.push(now, self.to, how, parts, waiting) {
            self.drops.count(now, reason);
        }
    }

    /// Puts a frame into the batch that was made before the path became narrower.
    fn push_in_parts(&mut self, now: Instant, how: (u8, bool), frame: &[u8], below: &mut Below) {
        let header = self.hello_header();
        let around = below.sealing() + header.len();
        self.cut = self.cut.wrapping_add(1);
        let session = self.session.id().unwrap_or_default();
        let room = self.to.longest.saturating_sub(around);
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

    /// Takes a part of a frame: the frame, if it was the last of it.
    pub(super) fn handle_part(
        &mut self,
        now: Instant,
        part: &Part<'_>,
    ) -> Result<Option<Vec<u8>>, Reason> {
        match self.session.check(now, part.session) {
            true => Ok(self.parts.take(part)),
            false => Err(Reason::StaleSession),
        }
    }

    /// Sends the hello that is due. It bypasses the schedulers: it must get through when the services
    /// are stuck, and there is one a second.
    fn say_hello(&mut self, now: Instant, below: &mut Below) {
        if !below.is_open(now, self.to) {
            return;
        }
        let reports = self.loss_reports();
        let Some(hello) = self.session.poll_transmit(now, &reports) else {
            return;
        };
        let mut body = Vec::new();
        hello.encode(&mut body);
        self.push_beside(now, &body, below);
    }

    /// Puts what travels as a hello does into the batch, beside the services.
    pub(super) fn push_beside(&mut self, now: Instant, body: &[u8], below: &mut Below) {
        let (header, mark) = (self.hello_header(), below.outer.traffic_class(None));
        self.push(now, (mark, false), &[&header, body], below);
    }

    /// The header of a hello, or of what travels as one.
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

    /// The socket has said what became of datagrams.
    pub(super) fn on_fate(&mut self, now: Instant, fate: SendFate) {
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
            SendFate::Dropped(reason) => self.drops.count(now, reason),
        }
    }

    // ---- session

    /// Acts on what happened to the session, and tells.
    fn take_events(&mut self, now: Instant, below: &mut Below) {
        while let Some(event) = self.session.poll_event() {
            let peer = self.who();
            below.bind(self.to, self.session.id());
            if let Some(search) = &mut self.path.search {
                match event {
                    SessionEvent::Confirmed { .. } => search.begin(now),
                    SessionEvent::Established { .. }
                    | SessionEvent::Refused { .. }
                    | SessionEvent::EpochRenewed => search.stop(),
                    _ => {}
                }
            }
            match event {
                SessionEvent::Established {
                    session, replaced, ..
                } => {
                    self.port.reset(now);
                    self.disconnected_since = None;
                    self.session_since = Some(now);
                    self.sessions += 1;
                    self.refused = None;
                    let why = if replaced {
                        "the peer was restarted"
                    } else {
                        "the peer answered"
                    };
                    tracing::info!(%peer, session = format!("{session:08x}"), why, "session begins");
                }
                SessionEvent::Offered { offers, first } => {
                    self.on_offers(now, &offers, first);
                }
                SessionEvent::Confirmed { .. } => {
                    tracing::info!(%peer, why = "the peer is in it, too", "session confirmed");
                }
                SessionEvent::Refused { ours, theirs } => {
                    self.session_since = None;
                    self.disconnected_since = None;
                    tracing::warn!(
                        %peer,
                        here = one_line(&ours),
                        there = one_line(&theirs),
                        why = "services of one number differ: make them equal in both files; only \
                               base-station is \"here\" at one end and \"peer\" at the other",
                        "session refused"
                    );
                    self.refused = Some(RefusedTables { ours, theirs });
                }
                SessionEvent::VersionMismatch { ours, theirs } => {
                    tracing::warn!(%peer, ours, theirs, "the peer speaks another protocol version");
                }
                SessionEvent::PeerLost { silent_for } => {
                    self.silent = Some((now - silent_for, now));
                    // Without a session there is nothing to be disconnected from.
                    if self.session.id().is_some() {
                        self.disconnections += 1;
                        self.disconnected_since = Some(now - silent_for);
                        tracing::warn!(%peer, %silent_for, why = "the peer is silent; trying on", "disconnected");
                    } else {
                        tracing::warn!(%peer, %silent_for, "nothing is heard from the peer; trying on");
                    }
                }
                SessionEvent::PeerBack { silent_for } => {
                    self.disconnected_since = None;
                    tracing::info!(%peer, %silent_for, why = "the peer is heard again", "connected");
                }
                SessionEvent::EpochRenewed => {
                    self.session_since = None;
                    self.disconnected_since = None;
                    tracing::info!(%peer, why = "the peer had left our session", "new epoch");
                }
                other => tracing::debug!(?other, "session event"),
            }
        }
    }

    // ---- services

    /// Gives the port the services and classes of `file`, which is resolved.
    pub(super) fn set_services(
        &mut self,
        now: Instant,
        file: &LiveConfig,
    ) -> Result<Vec<String>, AdminError> {
        let services = &file.link.services;
        let classes = file.link.classes.rules(services);
        let changes = self.port.set_services(now, services, &classes)?;
        self.offer_services(now);
        Ok(changes)
    }

    /// Has the session tell the peer which services there are here.
    fn offer_services(&mut self, now: Instant) {
        let (table, own) = (self.port.service_table(), self.port.own_services());
        let peer_table = self.port.peer_service_table();
        self.session.set_table(now, table, &peer_table, own);
    }

    /// The peer said which services it has.
    fn on_offers(&mut self, now: Instant, offers: &[ServiceOffer], first: bool) {
        let before = self.waiting_services();
        if first {
            self.port.begin_agreement(now, offers);
        } else {
            self.port.handle_offers(now, offers);
        }
        let peer = self.who();
        for (name, waits) in self.waiting_services() {
            let waited = before.iter().any(|(n, w)| *n == name && *w);
            match (waited && !first, waits) {
                (false, true) => tracing::warn!(
                    %peer,
                    service = name,
                    why = "the peer has no such service, or not yet",
                    "service waits; its packets travel as those without a class"
                ),
                (true, false) => {
                    tracing::info!(%peer, service = name, why = "the peer has it, too", "service opens");
                }
                _ => {}
            }
        }
        if self.port.services_changed() {
            self.offer_services(now);
        }
    }

    /// The services with whether they wait for the peer.
    fn waiting_services(&self) -> Vec<(String, bool)> {
        let services = self.port.services();
        services
            .map(|s| (s.name, s.waiting || s.draining))
            .collect()
    }

    /// Takes over the rate of the link, where the peer has none of its own, or the peer's.
    pub(super) fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.port.set_link_rate(now, rate);
        let (keepalive, silence) = hellos(rate);
        self.session.set_keepalive(keepalive, silence);
    }

    /// Takes over what changed of the peer, but for its rate.
    pub(super) fn set_config(
        &mut self,
        now: Instant,
        new: &PeerConfig,
        session: Option<PeerId>,
        below: &mut Below,
    ) {
        let old = std::mem::replace(&mut self.config, new.clone());
        if old.address != new.address {
            // Left out, it stays where it called from last.
            self.to.address = new.fixed_address().or(self.to.address);
            self.lookup = new.host().map(|host| Lookup::new(now, host.clone()));
        }
        self.to.session = session;
        // New keys know nothing of the session yet, which goes on.
        below.bind(self.to, self.session.id());
    }
}

/// How often hellos leave at a rate, and how long the peer may be silent: half an interval more than so
/// many, for the last of them to be late.
fn hellos(rate: Rate) -> (Duration, Duration) {
    let keepalive = (rate.transmission_time(HELLO) * 100).max(KEEPALIVE);
    (keepalive, keepalive * LOST_KEEPALIVES + keepalive / 2)
}

/// A peer for the log.
pub(super) fn who(name: &str, address: Option<&impl Display>) -> String {
    format!("{name} {}", at(address))
}

pub(super) fn at(address: Option<&impl Display>) -> String {
    address.map_or_else(
        || "wherever it calls from".to_owned(),
        |peer| format!("at {peer}"),
    )
}

/// A table of services as the log shows it.
fn one_line(table: &str) -> String {
    table.trim_end().replace('\n', ", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::underlay::PathFacts;

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
        PeerLink::new(now, &file.peers()[0], &file, sizes, path).unwrap()
    }

    /// Senders inside know the services' names, and must not choose whose queue they share.
    #[test]
    fn nobody_can_guess_which_flows_share_a_queue() {
        let salts = [0, 1].map(|_| link().port.config().flow_salt);
        assert_ne!(salts[0], salts[1]);
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
