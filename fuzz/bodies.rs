//! What is done with arbitrary bytes, by the fuzzer and by the test that replays the corpus.

use std::collections::{BTreeSet, VecDeque};

use airlane_base::{Duration, Instant, Size, Streams};
use airlane_channel::blocks::retrace::Overhead;
use airlane_channel::blocks::{Blocks, BlocksHeader, Generator};
use airlane_channel::trace::{
    FrameOutcome, Replay, Trace, TraceEnd, TraceHeader, Way, write_block,
};
use airlane_channel::{
    Channel, ChannelConfig, ErrorModel, ErrorModelConfig, LinkRate, OpportunitiesConfig,
};
use airlane_gsm::{
    BLOCK, Body, Frame as GsmFrame, Parameters, Unnumbered, information_len, l2r, ppp,
};
use airlane_link::pack::headers::{self, LONGEST_SHORT};
use airlane_link::pack::{Contents, contents};
use airlane_link::wire::LIVE_HEADER_ROOM;
use airlane_link::{Codec, Frame, FrameKind, Header, HeaderProfile, Layout};
use airlane_live::air::AirConfig;
use airlane_live::config::LiveConfig;
use airlane_live::control::Request;
use airlane_live::journal::{self, Replayed};
use airlane_live::packet::{Headers, clamp_mss, needs_clamping};
use airlane_live::status::Status;
use airlane_secure::{
    AcceptedDatagram, Limits, OVERHEAD, PeerAddress, PrivateKey, PublicKey, Secure, SecurePeer,
    Wall,
};
use airlane_session::{About, Hello, Part, Probe, Reassembly, StatusProbe};
use airlane_ship::{
    Digest, Entry, Kind, LONGEST_DATAGRAM, Manifest, Ranges, ShipReceiver, ShipReceiverPhase,
    Shipper, ShipperPhase,
};
use airlane_sim::Scenario;
use airlane_sim::import::{ImportedApp, NetemChoice, from_mahimahi, from_netem};
use airlane_testkit::setup::service;
use airlane_testkit::{Fate, FrameDeparture, Pair, Setup, TestPacket};
use airlane_transport::TcpConfig;
use airlane_transport::clap::{Stamp, wire};
use airlane_transport::tcp::{Ack, Data, Range, RecoveryKind, ReportKind};
use airlane_transport::tcp::{Receiver, Sender, Timestamp};

/// A frame from the link: read by every codec, and written again.
pub(crate) fn frame(data: &[u8]) {
    let layout_of = |service: u8| Layout::ALL.get(usize::from(service)).copied();
    for codec in [
        Codec::new(HeaderProfile::Study).with_modulus(62),
        Codec::new(HeaderProfile::Study),
        Codec::new(HeaderProfile::Live),
        Codec::new(HeaderProfile::Sealed),
    ] {
        let Ok(decoded) = codec.decode(data, layout_of) else {
            continue;
        };
        let header = decoded.header;
        let layout = match header.kind.is_of_services() {
            true => layout_of(header.service).expect("a frame of an unknown service is refused"),
            false => &Layout::PORTS,
        };
        let mut again = [0; LIVE_HEADER_ROOM];
        let written = codec.encode(
            &decoded.frame::<()>(None),
            layout,
            decoded.session,
            &mut again,
        );
        assert_eq!(written, Some(decoded.payload_at));
        let mut bytes = again[..decoded.payload_at].to_vec();
        bytes.extend_from_slice(&data[decoded.payload_at..]);
        assert_eq!(codec.decode(&bytes, layout_of), Ok(decoded));
    }
    contents_of(data);
    // What else travels as a hello.
    if let Ok(Some(probe)) = Probe::decode(data) {
        assert_eq!(Probe::decode(&probe.encode()), Ok(Some(probe)));
    }
    if let Ok(Some(probe)) = StatusProbe::decode(data) {
        assert_eq!(StatusProbe::decode(&probe.encode()), Ok(Some(probe)));
    }
    if let Ok(Some(about)) = About::decode(data) {
        assert_eq!(About::decode(&about.encode()), Ok(Some(about)));
    }
    if let Ok(Some(part)) = Part::decode(data) {
        let again = [&part.head()[..], part.bytes()].concat();
        assert_eq!(Part::decode(&again), Ok(Some(part)));
        let _whole_or_not = Reassembly::default().take(&part);
    }
    if let Ok(hello) = Hello::decode(data) {
        let mut again = Vec::new();
        hello.encode(&mut again);
        assert_eq!(Hello::decode(&again), Ok(hello));
    }
}

/// What a frame carries: packets are read, and written again alike.
fn contents_of(data: &[u8]) {
    match contents::contents(data) {
        Contents::Aggregate => {
            let packets: Vec<_> = contents::packets(data).map(|range| &data[range]).collect();
            let mut again = vec![0; data.len()];
            let len = contents::write_aggregate(packets.iter().copied(), &mut again);
            // A length may have been longer than it must be, never shorter.
            let again = &again[..len.expect("there was room")];
            assert_eq!(contents::contents(again), Contents::Aggregate);
            let read: Vec<_> = contents::packets(again)
                .map(|range| &again[range])
                .collect();
            assert_eq!(read, packets);
        }
        Contents::Fragment(which) => {
            assert_eq!(
                contents::fragment_head(which),
                data[..contents::FRAGMENT_HEAD]
            );
        }
        Contents::Short => short_headers(data),
        Contents::Packet | Contents::Malformed => {}
    }
}

/// Headers that open a context, or differ from those of a packet before: what comes out could have been
/// sent, and would be sent alike.
fn short_headers(data: &[u8]) {
    /// 40 B of TCP/IPv4 with timestamps and no data, in context 0.
    const OPENING: [u8; 52] = [
        0x55, 0, 0, 0, 0, 7, 0x40, 0, 64, 6, 0x26, 0xad, 10, 7, 0, 1, 10, 7, 0, 2, 0x9c, 0x40, 1,
        0xbb, 0, 0, 3, 0xe8, 0, 0, 0, 5, 0x80, 0x10, 1, 0xf4, 0xab, 0xcd, 0, 0, 1, 1, 8, 10, 0, 0,
        0, 100, 0, 0, 0, 200,
    ];
    let (_, before) = headers::Headers::opened(&OPENING).expect("it opens a context");
    let expanded = before.expanded(data);
    let (now, cut) = match (headers::Headers::opened(data), expanded) {
        (Some((_, now)), _) => (now, now.bytes().len()),
        (None, Some(expanded)) => expanded,
        (None, None) => return,
    };
    let packet = [now.bytes(), &data[cut..]].concat();
    assert_eq!(headers::Headers::of(&packet), Some(now));
    let mut again = [0; LONGEST_SHORT];
    let form = headers::form(data).expect("it has been read");
    if let (Some(_), Some(len)) = (expanded, before.shortened(&now, 0, form, &mut again)) {
        let again = [&again[..len], &data[cut..]].concat();
        assert_eq!(before.expanded(&again), Some((now, len)));
    }
}

/// A list of operations on two live ports.
pub(crate) fn operations(data: &[u8]) {
    const ROOM: &str = "kind = \"fq-codel\", limit = \"20 packets\", flows = 8";
    const MOST: usize = 2_000;
    let setup = Setup::new(HeaderProfile::Live)
        .service(
            1,
            0.4,
            "kind = \"sr-m2\", window = 8, timers = \"tight\"",
            ROOM,
        )
        .service(
            2,
            0.3,
            "kind = \"rlp\", window = 8, timers = \"tight\"",
            ROOM,
        )
        .service(3, 0.3, "kind = \"rlp-oos\", window = 8", ROOM)
        .service(4, 0.3, "kind = \"xor\", block = 3", ROOM)
        .service(
            5,
            0.3,
            "kind = \"xor-ad\", block = 3, silence = \"20 ms\"",
            ROOM,
        )
        .service(6, 0.3, "kind = \"rse\", block = 3, parity = 2", ROOM)
        .service(7, 0.3, "kind = \"rse-ad\", block = 3", ROOM);
    let mut fates = data.iter().rev().copied();
    let mut pair = Pair::new(&setup, |_: FrameDeparture<'_>| {
        let byte = fates.next().unwrap_or(0xff);
        let late = |n: u8| Duration::from_millis(u64::from(n & 7) * 4);
        match byte {
            0..=79 => Fate::Lose,
            80..=119 => Fate::Deliver(late(byte)),
            120..=139 => Fate::Twice(late(byte), late(byte >> 3)),
            _ => Fate::ARRIVE,
        }
    });
    // Services for which nothing is promised any more.
    let (mut id, mut unsure) = (0, [false; 8]);
    let mut tables = [(); 2].map(|()| setup.config.services.clone());
    let mut bytes = data.iter().copied().take(MOST);
    while let Some(operation) = bytes.next() {
        let mut argument = || bytes.next().unwrap_or(0);
        let (end, number) = (usize::from(operation >> 7), operation >> 4 & 7);
        match operation & 0x0f {
            0..=5 => {
                let len = 4 * usize::from(argument());
                pair.offer(end, TestPacket::new(number, id, len));
                id += 1;
            }
            6..=9 => pair.run_for(Duration::from_millis(u64::from(argument()))),
            10 => {
                let kinds = [
                    FrameKind::Data,
                    FrameKind::Ack,
                    FrameKind::Nak,
                    FrameKind::Keepalive,
                    FrameKind::Link,
                    FrameKind::Retransmission,
                    FrameKind::Parity,
                ];
                let what = argument();
                let kind = kinds[usize::from(what) % kinds.len()];
                // Near zero from above and below, where the live numbers are.
                let near = |byte: u8| u32::from(byte).wrapping_sub(64);
                let mut header = Header::new(kind, near(argument()));
                header.ack = near(argument());
                header.index = header.ack as u8;
                header.coded_len = header.ack as u16;
                header.octets = header.coded_len.to_be_bytes();
                header.service = number;
                let payload = (what < 200).then(|| TestPacket::new(number, 1 << 40 | id, 9));
                id += 1;
                unsure[usize::from(number)] = true;
                pair.inject(end, Frame::new(header, payload));
            }
            11 => {
                let share = f64::from(argument()) / 16.0;
                // A share of zero, or a service that has gone, is refused.
                let _ = pair.admin(end, |port, _| port.set_rate(number, share));
            }
            // Service 0 stays what it is.
            12 if number > 0 => {
                // Its packets are raw from here on.
                unsure[usize::from(number)] = true;
                tables[end].retain(|service| service.number != number);
                pair.set_services(end, &tables[end]);
            }
            13 if number > 0 => {
                let schemes = [
                    "kind = \"sr-m2\", window = 4",
                    "kind = \"rlp\", window = 4",
                    "kind = \"rlp-oos\", window = 4",
                    "kind = \"gbn\", window = 4",
                    "kind = \"sr\", window = 4",
                    "kind = \"sr-m1\", window = 4",
                    "kind = \"sr-bitmap\", window = 4",
                    "kind = \"gsm-rlp\", window = 4",
                    "kind = \"rse\", block = 3, parity = 2",
                    "kind = \"rse-ad\", block = 3, window = 6",
                    "kind = \"xor\", block = 3",
                    "kind = \"xor-ad\", block = 3, silence = \"20 ms\"",
                ];
                let scheme = schemes[usize::from(argument()) % schemes.len()];
                let before = tables[end].len();
                tables[end].retain(|service| service.number != number);
                unsure[usize::from(number)] |= tables[end].len() < before;
                tables[end].push(service(number, 0.5, scheme, ROOM));
                pair.set_services(end, &tables[end]);
            }
            14 => pair.reset(),
            _ => {
                // An early call, and the time that it takes.
                pair.admin(end, |port, now| port.handle_timeout(now));
            }
        }
    }
    pair.run_for(Duration::from_secs(30));
    for end in 0..2 {
        for status in pair.port(end).services() {
            let books = status.ledger;
            assert_eq!(
                books.packets_offered,
                books.packets_sent + books.packets_dropped() + status.queue_packets as u64,
                "{status:?}"
            );
        }
        for number in 1..=7 {
            if unsure[usize::from(number)] {
                continue;
            }
            let ids = pair.ids(end, number);
            let distinct: BTreeSet<_> = ids.iter().collect();
            assert_eq!(distinct.len(), ids.len(), "service {number} twice: {ids:?}");
            assert!(number >= 3 || ids.is_sorted(), "service {number}: {ids:?}");
        }
    }
}

/// What another tool was told or saw: netem, Mahimahi, a trace of delivery opportunities, blocks of a radio.
pub(crate) fn import(data: &[u8]) {
    const TRACE: &[u8] = b"1\n5\n";
    if let Ok(text) = std::str::from_utf8(data) {
        blocks(text);
    }
    let times = OpportunitiesConfig::new("times".to_owned(), Some(Size::from_bytes(9)));
    let mut times = LinkRate::Opportunities(times);
    if times.load(|_| Ok(data.to_vec())).is_ok() {
        let rate = times.mean().expect("it was read");
        let errors = ErrorModel::new(&ErrorModelConfig::None, rate, Streams::new(1, 0), "x");
        let config = ChannelConfig {
            rate,
            delay: Duration::ZERO,
            queue: "9 packets".parse().expect("a queue limit"),
        };
        let mut channel = Channel::new(config, errors).with_rate(&times);
        let mut last = Instant::ORIGIN;
        for (i, byte) in data.iter().enumerate() {
            let now = Instant::from_nanos(i as u64 * u64::from(*byte) * 100_000).max(last);
            if let Ok(departs) = channel.send(now, usize::from(*byte), ()) {
                assert!(departs > now && departs >= channel.last_start());
            }
            last = now;
        }
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let apps = [ImportedApp::File, ImportedApp::Web, ImportedApp::Voice];
    let netem = from_netem(text, Some(text), &NetemChoice::default(), &apps);
    let mahimahi = from_mahimahi(text, |_| Ok(TRACE.to_vec()), str::to_owned, &apps);
    for import in [netem, mahimahi] {
        match import {
            Ok(import) => {
                let scenario = Scenario::from_toml(&import.text, "import.toml");
                let mut scenario = scenario.expect("what is written is a scenario");
                let loaded = scenario.load_traces(|_| Ok(TRACE.to_vec()));
                loaded.expect("a trace of opportunities");
            }
            Err(error) => assert!(!error.help.is_empty()),
        }
    }
}

/// Erased blocks of a radio: a trace of them, or a model.
fn blocks(text: &str) {
    if let Ok(blocks) = Blocks::read(text)
        && blocks.len() <= 100_000
    {
        for written in [blocks.to_text(), blocks.to_rows()] {
            let again = Blocks::read(&written).expect("what is written is read");
            assert_eq!(again.bursts(), blocks.bursts());
        }
        let lost = blocks
            .frames(1, Overhead::Published, 0)
            .map(|frames| frames.lost);
        assert_eq!(lost, Some(blocks.erased()));
    }
    if let Ok(model) = text.parse::<Generator>() {
        let written = model.to_string();
        assert!(written.parse::<Generator>().is_ok(), "{written}");
        let rate = model.frame_erasure_rate(7);
        assert!((-1e-9..=1.0 + 1e-9).contains(&rate), "{rate}");
        let mut random = Streams::new(1, 0).stream("x");
        let blocks = model.generate(500, BlocksHeader::default(), &mut random);
        assert_eq!(blocks.len(), 500);
    }
}

/// A file: a scenario, the daemon's, the emulator's, or a key.
pub(crate) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(scenario) = Scenario::from_toml(text, "fuzz.toml") {
        let again = Scenario::from_toml(&scenario.to_toml(), "again.toml");
        let again = again.expect("what is written out is accepted");
        assert_eq!(again.hash(), scenario.hash());
    }
    // The refusals are read by people; here they only have to be made.
    let live = airlane_base::config::load::<LiveConfig>(text, "fuzz.toml");
    let air = airlane_base::config::load::<AirConfig>(text, "fuzz.toml");
    for error in [live.err(), air.err()].into_iter().flatten() {
        assert!(!error.to_string().is_empty());
    }
    if let Ok(key) = text.parse::<PublicKey>() {
        assert_eq!(key.to_string().parse(), Ok(key));
    }
    // The text of a private key is nobody's business; its public half is alike.
    if let Ok(key) = text.parse::<PrivateKey>() {
        let again: PrivateKey = key.to_text().parse().expect("what is written out is read");
        assert_eq!(again.public(), key.public());
    }
}

/// Lines on the control socket: what clients ask, and what a node that is none answers.
pub(crate) fn control(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n').take(20) {
        match Request::parse(line) {
            Ok(request) => {
                let again = Request::parse(request.to_line().as_bytes());
                assert_eq!(again.expect("what is written out is read"), request);
                if let Request::Reload { file, .. } = request {
                    // A running node compares the file with its own, every default filled in.
                    let resolved = file.resolve();
                    assert_eq!(resolved.resolve(), resolved);
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        if let Ok(status) = serde_json::from_slice::<Status>(line) {
            let text = serde_json::to_vec(&status).expect("a status can be written");
            assert!(serde_json::from_slice::<Status>(&text).is_ok());
        }
    }
}

/// A journal: what it makes a port do, it makes another one do again.
pub(crate) fn journal(data: &[u8]) {
    let _whole = replayed_alike(data);
    // No fuzzer finds a checksum by chance, so the bytes are records, too, of a port with services.
    const ROOM: &str = "kind = \"fq-codel\", limit = \"20 packets\", flows = 8";
    let config = Setup::new(HeaderProfile::Live)
        .service(1, 0.4, "kind = \"sr-m2\", window = 8", ROOM)
        .service(2, 0.3, "kind = \"rlp-oos\", window = 8", ROOM)
        .service(3, 0.3, "kind = \"rse\", block = 3, parity = 2", ROOM)
        .config;
    let mut file = Vec::new();
    journal::write_head(&config, &mut file).expect("a configuration can be written");
    journal::write_block(data, &mut file);
    let Some(replayed) = replayed_alike(&file) else {
        return;
    };
    // The checksum of its outputs holds after its last record.
    const CHECK: u8 = 6;
    let mut check = data.to_vec();
    check.extend_from_slice(&[CHECK, 0]);
    check.extend_from_slice(&replayed.outputs_crc64.to_be_bytes());
    file.clear();
    journal::write_head(&config, &mut file).expect("a configuration can be written");
    journal::write_block(&check, &mut file);
    let checks = replayed.checks + 1;
    assert_eq!(replayed_alike(&file), Some(Replayed { checks, ..replayed }));
}

/// What a journal holds, if it can be replayed, which a second time gives the same.
fn replayed_alike(file: &[u8]) -> Option<Replayed> {
    let first = journal::replay(file);
    assert_eq!(journal::replay(file), first);
    if let Err(error) = &first {
        assert!(!error.to_string().is_empty());
    }
    first.ok()
}

/// A recorded trace: what is read is written again alike, and the frames of its two ends are told apart.
pub(crate) fn trace(data: &[u8]) {
    trace_file(data);
    // No fuzzer finds a checksum by chance, so the bytes are records, too, of one end and of both.
    let (near, far) = data.split_at(data.len() / 2);
    for ends in [[data, &[]], [near, far]] {
        let mut file = Vec::new();
        TraceHeader::default().encode(&mut file);
        write_block(TraceEnd::Near, ends[0], &mut file);
        write_block(TraceEnd::Far, ends[1], &mut file);
        trace_file(&file);
    }
}

fn trace_file(data: &[u8]) {
    let trace = match Trace::read(data) {
        Ok(trace) => trace,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let again = Trace::read(&trace.to_bytes()).expect("what is written out is read");
    assert_eq!((&again.near, &again.far), (&trace.near, &trace.far));
    for way in [Way::In, Way::Out] {
        let Some(path) = trace.path(way) else {
            continue;
        };
        let lost = |outcome| matches!(outcome, FrameOutcome::Lost);
        let frames = path.samples.iter().filter(|sample| lost(sample.outcome));
        assert_eq!(frames.map(|sample| sample.frames).sum::<u64>(), path.lost);
        assert!(path.samples.is_sorted_by_key(|sample| sample.at));
        assert!((0.0..=1.0).contains(&path.loss()));
        Replay::new(&path, trace.span());
    }
    // Whatever the two ends are, they are one link or they are refused.
    let end = |near: &Vec<_>| Trace {
        near: near.clone(),
        ..Trace::default()
    };
    if let Ok(joined) = Trace::join(end(&trace.near), end(&trace.far)) {
        assert_eq!((joined.near, joined.far), (trace.near, trace.far));
    }
}

/// An IP packet, or not.
pub(crate) fn ip(data: &[u8]) {
    let headers = Headers::parse(data);
    for mtu in [68, 576, 1_280, 1_400] {
        let mut packet = data.to_vec();
        let needed = needs_clamping(data, mtu);
        let clamped = clamp_mss(&mut packet, mtu);
        assert_eq!(clamped, needed);
        assert_eq!(clamped, packet != data);
        assert!(!needs_clamping(&packet, mtu));
        // Only the option and the checksum have changed.
        assert_eq!(Headers::parse(&packet), headers);
        assert!(headers.is_some() || !clamped);
    }
}

/// Two ends of a secure session, and the datagrams on their way.
struct SecurePair {
    now: Instant,
    ends: [Secure; 2],
    air: VecDeque<(usize, Vec<u8>)>,
    /// Payloads that were sealed for each end and not opened yet.
    sent: [BTreeSet<u32>; 2],
    id: u32,
}

impl SecurePair {
    const SECOND: Duration = Duration::from_secs(1);

    fn new() -> Self {
        let now = Instant::ORIGIN;
        Self {
            now,
            ends: [0, 1].map(|end| Self::end(now, end, 1)),
            air: VecDeque::new(),
            sent: Default::default(),
            id: 0,
        }
    }

    fn key(end: usize) -> PrivateKey {
        PrivateKey::generate([end as u8 + 1; 32])
    }

    fn address(end: usize) -> PeerAddress {
        let last = end as u8 + 1;
        PeerAddress::Udp(([192, 0, 2, last], last.into()).into())
    }

    fn end(now: Instant, end: usize, start: u8) -> Secure {
        // Short lives, so that a few operations see many keys.
        let limits = Limits {
            rekey_after: Self::SECOND * 5,
            rekey_after_messages: 20,
            reject_after: Self::SECOND * 15,
            retry: Self::SECOND,
            keepalive: Self::SECOND * 2,
            give_up_after: Self::SECOND * 10,
            handshakes_per_second: 3,
            ..Limits::default()
        };
        let peer = SecurePeer {
            preshared: None,
            key: Self::key(1 - end).public(),
            address: Some(Self::address(1 - end)),
        };
        let seed = [start ^ (end as u8) << 7; 32];
        Secure::new(now, Self::key(end), &[peer], limits, seed).expect("two different keys")
    }

    fn drain(&mut self, end: usize) {
        while let Some(message) = self.ends[end].poll_transmit() {
            self.air.push_back((1 - end, message.bytes().to_vec()));
        }
    }

    fn seal(&mut self, end: usize) {
        let mut out = [0; 4 + OVERHEAD];
        let peer = self.ends[end].peer(&Self::key(1 - end).public());
        let peer = peer.expect("it is configured");
        let payload = self.id.to_be_bytes();
        let sealed = self.ends[end].seal(self.now, peer, &[&payload], &mut out);
        if let Ok(sealed) = sealed {
            self.air.push_back((1 - end, out[..sealed.len].to_vec()));
            self.sent[1 - end].insert(self.id);
            self.id += 1;
        }
    }

    /// What is opened was sent to this end, and not opened before.
    fn arrive(&mut self, end: usize, from: PeerAddress, datagram: &[u8]) {
        let mut plain = [0; 4_096];
        let received = self.ends[end].handle_datagram(self.now, from, datagram, &mut plain);
        if let Ok(AcceptedDatagram::Data { len, .. }) = received {
            let id = plain[..len].try_into().expect("payloads have four bytes");
            let id = u32::from_be_bytes(id);
            assert!(self.sent[end].remove(&id), "{id} twice, or never sent");
        }
        self.drain(end);
    }

    fn deliver(&mut self, at: usize) {
        if let Some((end, datagram)) = self.air.remove(at % self.air.len().max(1)) {
            self.arrive(end, Self::address(1 - end), &datagram);
        }
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        loop {
            let due = self.ends.iter().filter_map(Secure::poll_timeout).min();
            let Some(due) = due.filter(|&due| due <= until) else {
                break;
            };
            self.now = self.now.max(due);
            let wall = Wall::from_unix(self.now.saturating_since(Instant::ORIGIN));
            for end in [0, 1] {
                self.ends[end].handle_timeout(self.now, wall);
                self.drain(end);
                let next = self.ends[end].poll_timeout();
                assert!(next.is_none_or(|next| next > self.now), "time stands still");
            }
        }
        self.now = until;
    }
}

/// A secure session whose datagrams are lost, repeated, late, changed and forged, and whose ends
/// restart: what is opened was sent and is opened once, and afterwards the session recovers.
pub(crate) fn secure(data: &[u8]) {
    const MOST: usize = 300;
    let elsewhere = PeerAddress::Udp(([203, 0, 113, 1], 9).into());
    let mut pair = SecurePair::new();
    pair.arrive(0, elsewhere, data);
    let mut starts = 1;
    let mut bytes = data.iter().copied().take(MOST);
    while let Some(operation) = bytes.next() {
        let mut argument = || usize::from(bytes.next().unwrap_or(0));
        let end = usize::from(operation >> 7);
        match operation & 0x0f {
            0..=2 => (0..argument() % 8).for_each(|_| pair.seal(end)),
            3..=5 => (0..=argument() % 8).for_each(|_| pair.deliver(0)),
            6 => pair.deliver(argument()),
            7 | 8 => {
                let at = argument() % pair.air.len().max(1);
                if let Some((end, datagram)) = pair.air.get(at).cloned() {
                    pair.arrive(end, SecurePair::address(1 - end), &datagram);
                }
            }
            9 => {
                pair.air.remove(argument());
            }
            10 | 11 => {
                let at = argument() % pair.air.len().max(1);
                if let Some((end, mut datagram)) = pair.air.get(at).cloned() {
                    let at = argument() % datagram.len();
                    datagram[at] ^= argument().max(1) as u8;
                    pair.arrive(end, elsewhere, &datagram);
                }
            }
            12 | 13 => pair.run_for(Duration::from_millis(20 * argument() as u64)),
            14 => {
                let key = SecurePair::key(1 - end).public();
                let peer = pair.ends[end].peer(&key).expect("it is configured");
                pair.ends[end].rekey(pair.now, peer);
            }
            _ => {
                starts += 1;
                pair.ends[end] = SecurePair::end(pair.now, end, starts & 0x7f);
            }
        }
    }
    pair.air.clear();
    for _ in 0..100 {
        [0, 1].iter().for_each(|&end| pair.seal(end));
        while !pair.air.is_empty() {
            pair.deliver(0);
        }
        pair.run_for(Duration::from_millis(100));
    }
    pair.sent = Default::default();
    let before = pair.id;
    for end in [0, 1] {
        pair.seal(end);
        while !pair.air.is_empty() {
            pair.deliver(0);
        }
    }
    assert_eq!(pair.id, before + 2, "an end has no session");
    assert!(pair.sent.iter().all(BTreeSet::is_empty), "nothing arrives");
}

/// Blocks from the air, and what a frame of them may carry: items of the parameters, octets of the byte stream, and
/// packets in it.
pub(crate) fn gsm(data: &[u8]) {
    let whole = data.len() / BLOCK * BLOCK;
    if let Some(frame) = GsmFrame::decode(&data[..whole]) {
        assert_eq!(frame.len(), whole);
        assert_eq!(GsmFrame::decode(&frame.encode()), Some(frame.clone()));
        let parameters = frame.header.body == Body::Unnumbered(Unnumbered::Xid);
        if let Some(items) = frame.information.filter(|_| parameters) {
            gsm_parameters(&items);
        }
    }
    gsm_parameters(data);
    let (mut stream, mut packets) = (Vec::new(), Vec::new());
    l2r::unpack(data, &mut stream);
    assert!(stream.len() <= data.len());
    let mut reader = ppp::Reader::new(1500);
    reader.read(data, |packet| packets.push(packet.to_vec()));
    // What was read is written, cut into frames, and read again alike.
    let map = data.first().map_or(0, |first| u32::from(*first) << 24);
    let mut written = Vec::new();
    packets
        .iter()
        .for_each(|packet| ppp::push(packet, map, &mut written));
    let (mut rest, mut information, mut carried) = (&written[..], Vec::new(), Vec::new());
    while !rest.is_empty() {
        let taken = l2r::pack(
            rest,
            information_len(1 + (rest.len() % 7) as u8),
            &mut information,
        );
        assert!(taken > 0 && l2r::unpack(&information, &mut carried));
        rest = &rest[taken..];
    }
    assert_eq!(carried, written);
    let mut again = Vec::new();
    ppp::Reader::new(1500).read(&carried, |packet| again.push(packet.to_vec()));
    assert_eq!(again, packets);
}

/// A packet of CLAP: what is read is written again alike.
pub(crate) fn clap(data: &[u8]) {
    let Ok((ports, packet)) = wire::decode(data) else {
        return;
    };
    let mut again = vec![0; data.len()];
    let written = wire::encode(ports, &packet, Stamp::of(Instant::ORIGIN), &mut again);
    let written = written.expect("it came in as many bytes");
    assert_eq!(wire::decode(&again[..written]), Ok((ports, packet)));
}

/// What one end of a file's way hears from the other, in runs of a length and so many bytes, among what it would hear:
/// nothing is kept beyond the files, and each call ends.
pub(crate) fn ship(data: &[u8]) {
    const TOTAL: u64 = 20_000;
    let entry = Entry {
        path: "file".to_owned(),
        kind: Kind::File,
        bytes: TOTAL,
        mode: 0o600,
        modified_ns: 0,
    };
    let list = Manifest::new(vec![entry]).expect("one file is a list");
    let most = airlane_base::Rate::from_bps(100_000_000).expect("it is not zero");
    let mut now = Instant::ORIGIN;
    let mut shipper = Shipper::new(now, list, &[1_448, 1_232], 1, most).expect("the list is short");
    let mut receiver = ShipReceiver::new(now, 1);
    let mut keep = |at: u64, bytes: &[u8]| {
        assert!(at + bytes.len() as u64 <= TOTAL, "{at}");
        Ok::<_, std::convert::Infallible>(())
    };
    let mut fill = |_: u64, bytes: &mut [u8]| {
        bytes.fill(1);
        Ok::<_, std::convert::Infallible>(())
    };
    let mut out = [0; LONGEST_DATAGRAM];
    let mut rest = data;
    while let Some((&[to, len], more)) = rest.split_first_chunk::<2>() {
        let (forged, after) = more.split_at(more.len().min(len.into()));
        rest = after;
        match to & 1 {
            0 => shipper.handle(now, forged),
            _ => {
                let Ok(()) = receiver.handle(now, forged, &mut keep);
            }
        }
        now += Duration::from_millis(u64::from(to >> 2));
        shipper.handle_timeout(now);
        receiver.handle_timeout(now);
        for _ in 0..64 {
            let Ok(sent) = shipper.poll_transmit(now, &mut out, &mut fill);
            let Some(len) = sent else { break };
            if to & 2 == 0 {
                let Ok(()) = receiver.handle(now, &out[..len], &mut keep);
            }
        }
        match receiver.phase() {
            ShipReceiverPhase::Offered => {
                let total = receiver.manifest().map_or(0, Manifest::total);
                receiver.ask_for(Ranges::all(total.min(TOTAL)));
            }
            ShipReceiverPhase::Comparing => receiver.accept(),
            _ => {}
        }
        if shipper.phase() == ShipperPhase::Digests {
            shipper.give_digests(vec![Digest(String::new())]);
        }
        for _ in 0..64 {
            let Some(len) = receiver.poll_transmit(now, &mut out) else {
                break;
            };
            if to & 2 == 0 {
                shipper.handle(now, &out[..len]);
            }
        }
        let _missing = receiver.missing();
    }
}

fn gsm_parameters(items: &[u8]) {
    let Some(agreed) = Parameters::default().agreed(items) else {
        return;
    };
    assert!((1..=61).contains(&agreed.window));
    assert!(Parameters::default().agreed(&agreed.xid()).is_some());
}

/// The parts that losses are found by, each with what it needs.
const TCP: [&str; 13] = [
    r#"{"recovery": "tahoe"}"#,
    r#"{"recovery": "reno", "congestion": "bsd", "profile": "bsd-1997"}"#,
    r#"{"recovery": "newreno", "partial-deflation": "first-ack"}"#,
    r#"{"recovery": "sack"}"#,
    r#"{"recovery": "sack", "prr": true, "limited-transmit": true, "dsack": true}"#,
    r#"{"recovery": "smart"}"#,
    r#"{"recovery": "eln"}"#,
    r#"{"recovery": "eln-rxmt", "eln-memory": "last"}"#,
    r#"{"recovery": "vegas", "congestion": "vegas"}"#,
    r#"{"profile": "modern", "handshake": false, "window-scaling": false, "pacing": false, "undo": "rfc4015"}"#,
    r#"{"profile": "modern", "handshake": false, "window-scaling": false, "undo": "rfc9438", "min-rto": "5 ms"}"#,
    r#"{"profile": "modern", "handshake": false, "window-scaling": false, "congestion": "bbr"}"#,
    r#"{"profile": "modern", "handshake": false, "window-scaling": false, "pacing": false, "min-rto": "5 ms"}"#,
];

/// Two ends of TCP and what each knows of segments, on their own: the model of the scoreboards.
struct TcpPair {
    now: Instant,
    sender: Sender,
    receiver: Receiver,
    report: ReportKind,
    /// Whether a timeout ends what reports have said.
    forgets: bool,
    data: VecDeque<Data>,
    acks: VecDeque<Ack>,
    /// What the receiver holds: everything below `next`, and these.
    held: BTreeSet<u64>,
    next: u64,
    window: u64,
    read: u64,
    /// What it acknowledged last, and the timestamp of that (RFC 7323, section 4.3); segments that are older.
    acked: u64,
    recent: Option<(Timestamp, Instant)>,
    outdated: u64,
    /// What the sender knows: everything below `una`, and these.
    known: BTreeSet<u64>,
    una: u64,
    max: u64,
    timeouts: u64,
}

impl TcpPair {
    const SEGMENT: u32 = 100;

    fn new(kind: u8, window: u8) -> Self {
        let text = TCP[usize::from(kind) % TCP.len()];
        let mut text: serde_json::Value = serde_json::from_str(text).expect("it is in the table");
        // What says nothing else is one mechanism beside the TCP of 1999.
        if let Some(text) = text.as_object_mut() {
            text.entry("profile").or_insert("ns2-1999".into());
        }
        let mut config: TcpConfig = serde_json::from_value(text).expect("it is in the table");
        config.window = 1 + u32::from(window) % 40;
        config.give_up = None;
        let phase = Duration::from_millis(120);
        let sender = Sender::new(&config, Self::SEGMENT, phase);
        Self {
            now: Instant::ORIGIN,
            receiver: Receiver::new(&config, Self::SEGMENT, phase),
            report: config.report(),
            forgets: config.recovery() != RecoveryKind::Rack,
            window: config.window_of(Self::SEGMENT).into(),
            sender,
            data: VecDeque::new(),
            acks: VecDeque::new(),
            held: BTreeSet::new(),
            next: 0,
            read: 0,
            acked: 0,
            recent: None,
            outdated: 0,
            known: BTreeSet::new(),
            una: 0,
            max: 0,
            timeouts: 0,
        }
    }

    /// What may leave does.
    fn drain(&mut self) {
        let timeouts = self.sender.stats().timeouts;
        if timeouts > self.timeouts && (self.forgets || self.known.contains(&self.una)) {
            self.known.clear();
        }
        self.timeouts = timeouts;
        while let Some(data) = self.sender.poll_transmit(self.now) {
            assert!((self.una..=self.max).contains(&data.seq), "{}", data.seq);
            assert_eq!(data.retransmission, data.seq < self.max);
            let has_come = data.seq > self.una && self.known.contains(&data.seq);
            assert!(!has_come, "{} has come", data.seq);
            self.max = self.max.max(data.seq + 1);
            self.data.push_back(data);
        }
        if self.sender.poll_probe().is_some() {
            self.receiver.handle_probe();
        }
        assert_eq!(self.sender.flight_size(), self.max - self.una);
        assert!(self.sender.flight_size() <= self.window);
        assert!((0.0..1e5).contains(&self.sender.cwnd()));
        let waits = self.max > self.una || self.sender.is_shut() || self.sender.is_paced();
        assert_eq!(self.sender.poll_timeout().is_some(), waits);
        while let Some(ack) = self.receiver.poll_ack() {
            self.acknowledge(ack);
        }
    }

    /// The receiver's acknowledgment leaves.
    fn acknowledge(&mut self, ack: Ack) {
        let echoed = self.recent.map(|(recent, _)| recent);
        assert_eq!((ack.ack, ack.stamp), (self.next, echoed));
        self.acked = ack.ack;
        self.acks.push_back(ack);
    }

    /// Whether a block is as many segments as are held together.
    fn is_held(&self, block: &Range) -> bool {
        let mut all = block.start..block.end;
        let borders = [block.start.wrapping_sub(1), block.end];
        all.all(|seq| self.held.contains(&seq))
            && (self.report == ReportKind::Smart
                || borders.iter().all(|seq| !self.held.contains(seq)))
    }

    fn arrive(&mut self, data: Data) {
        let is_new = data.seq >= self.next && !self.held.contains(&data.seq);
        self.receiver.handle_data(self.now, &data);
        let is_outdated = match (data.stamp, self.recent) {
            (Some(stamp), Some((recent, since))) => {
                stamp.is_before(recent) && self.now.saturating_since(since) < Timestamp::COMPARABLE
            }
            _ => false,
        };
        if is_outdated {
            self.outdated += 1;
        } else {
            if data.seq <= self.acked {
                self.recent = data.stamp.map(|stamp| (stamp, self.now));
            }
            if data.seq < self.next + self.window {
                self.held.insert(data.seq);
            }
        }
        assert_eq!(self.receiver.stats().segments_outdated, self.outdated);
        while self.held.remove(&self.next) {
            self.next += 1;
        }
        self.held = self.held.split_off(&self.next);
        self.read += self.receiver.poll_deliver().unwrap_or(0);
        assert_eq!(self.read, self.next * u64::from(Self::SEGMENT));
        while let Some(ack) = self.receiver.poll_ack() {
            let twice = ack.duplicate();
            assert!(twice.is_none() || !is_new && twice.map(|block| block.start) == Some(data.seq));
            let blocks = &ack.blocks[usize::from(twice.is_some())..];
            assert!(blocks.iter().all(|block| self.is_held(block)), "{blocks:?}");
            let first = blocks
                .first()
                .is_some_and(|block| (block.start..block.end).contains(&data.seq));
            let is_ahead = self.held.contains(&data.seq) && self.report != ReportKind::Plain;
            assert!(is_outdated || first == is_ahead, "{blocks:?}");
            self.acknowledge(ack);
        }
    }

    fn answer(&mut self, ack: Ack) {
        self.sender.handle_ack(self.now, &ack);
        if ack.ack <= self.max {
            self.una = self.una.max(ack.ack);
            self.known = self.known.split_off(&self.una);
            if self.report != ReportKind::Plain && self.max > self.una {
                let blocks = ack.blocks.iter().filter(|block| block.end <= self.max);
                let reported = blocks.flat_map(|block| block.start.max(self.una)..block.end);
                self.known.extend(reported);
            }
            // A receiver that reports what it does not acknowledge has dropped it, and maybe others.
            if self.forgets && self.known.contains(&self.una) {
                self.known.clear();
            }
        }
        self.drain();
    }

    fn run_for(&mut self, time: Duration) {
        let until = self.now + time;
        for _ in 0..1_000 {
            let timers = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
            let due = timers.into_iter().flatten().min();
            let Some(due) = due.filter(|&due| due <= until) else {
                break;
            };
            self.now = self.now.max(due);
            self.sender.handle_timeout(self.now);
            self.receiver.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }
}

/// A sender and a receiver of TCP whose segments are lost, repeated, late and forged, against a model that keeps every
/// segment on its own: nothing leaves again that is known to have come, acknowledgments report what is held, no timer
/// is lost; and where no acknowledgment was forged all arrives in the end.
pub(crate) fn tcp(data: &[u8]) {
    const MOST: usize = 300;
    let mut bytes = data.iter().copied().take(MOST);
    let mut next = || bytes.next().map(u64::from);
    let (Some(kind), Some(window)) = (next(), next()) else {
        return;
    };
    let mut pair = TcpPair::new(kind as u8, window as u8);
    let (mut forged, mut written) = (false, 0);
    while let Some(operation) = next() {
        let argument = next().unwrap_or(0);
        let at = |len: usize| argument as usize % len.max(1);
        match operation % 16 {
            0 | 1 => {
                let all = (1 + argument) * u64::from(TcpPair::SEGMENT);
                pair.sender.write(all);
                written += all;
                pair.drain();
            }
            2..=4 => {
                for _ in 0..=argument % 8 {
                    if let Some(data) = pair.data.pop_front() {
                        pair.arrive(data);
                    }
                }
            }
            5 => {
                if let Some(data) = pair.data.remove(at(pair.data.len())) {
                    pair.arrive(data);
                }
            }
            6 => {
                if let Some(data) = pair.data.get(at(pair.data.len())).copied() {
                    pair.arrive(data);
                }
            }
            7 => {
                if let Some(data) = pair.data.remove(at(pair.data.len())) {
                    pair.receiver.handle_destroyed(data.seq);
                }
            }
            8 | 9 => {
                for _ in 0..=argument % 8 {
                    if let Some(ack) = pair.acks.pop_front() {
                        pair.answer(ack);
                    }
                }
            }
            10 => {
                pair.acks.remove(at(pair.acks.len()));
            }
            11 => {
                if let Some(ack) = pair.acks.get(at(pair.acks.len())).copied() {
                    pair.answer(ack);
                }
            }
            12 | 13 => {
                // An acknowledgment that nobody sent: of what may not have come, with blocks of whatever.
                let mut ack = Ack {
                    ack: pair.una + argument % 4,
                    window: pair.window as u32,
                    eln: argument & 4 > 0,
                    ..Ack::default()
                };
                forged |= ack.ack > pair.next && ack.ack <= pair.max;
                for _ in 0..argument / 8 % 4 {
                    let start = ack.ack + next().unwrap_or(0) % 64;
                    let end = start + 1 + next().unwrap_or(0) % 8;
                    ack.blocks.push(Range { start, end });
                }
                pair.answer(ack);
            }
            _ => pair.run_for(Duration::from_millis(4 * argument)),
        }
    }
    pair.drain();
    for _ in 0..10_000 {
        if forged || pair.sender.is_acknowledged() {
            break;
        }
        while let Some(data) = pair.data.pop_front() {
            pair.arrive(data);
        }
        pair.drain();
        while let Some(ack) = pair.acks.pop_front() {
            pair.answer(ack);
        }
        pair.run_for(Duration::from_secs(1));
    }
    assert!(forged || pair.read == written, "{} of {written}", pair.read);
}
