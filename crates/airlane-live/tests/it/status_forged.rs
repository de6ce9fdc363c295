//! A station that speaks of paths that it is not on: what it says of them reaches nobody.
//!
//! ```text
//!  farm 10.7.0.2 ──┐
//!  mill 10.7.0.3 ──┼── base      the stations are sockets of the test, over the loopback
//!  pier 10.7.0.4 ──┘
//! ```

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Duration;

use airlane_base::Instant;
use airlane_link::{Port, PortConfig};
use airlane_live::config::LiveConfig;
use airlane_live::node::Node;
use airlane_live::status::Status;
use airlane_live::tun::Tun;
use airlane_live::underlay::{Udp, Underlay};
use airlane_session::{
    Hello, Keepalives, Offer, Session, SessionConfig, SessionState, StatusProbe,
};
use airlane_testkit::TestPacket;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::common::PATIENCE;
use crate::common::station::NAMES;
use crate::common::traffic::address;

/// A station that speaks no more than the session asks for.
struct Station {
    socket: UdpSocket,
    session: Session,
    begun: std::time::Instant,
    /// What is before the body of a hello, as the base has it.
    header: Vec<u8>,
}

impl Station {
    fn new(file: &LiveConfig, base: SocketAddr, socket: UdpSocket, epoch: u64) -> Self {
        let link = &file.link;
        let port: Port<TestPacket> = Port::new(PortConfig {
            services: link.services.clone(),
            ..PortConfig::new(link.header(), link.rate, link.delay, 1_400)
        })
        .unwrap();
        socket.connect(base).unwrap();
        let soon = Duration::from_millis(20);
        socket.set_read_timeout(Some(soon)).unwrap();
        let second = airlane_base::Duration::from_secs(1);
        let config = SessionConfig {
            epoch,
            table: port.service_table(),
            peer_table: port.peer_service_table(),
            keepalives: Keepalives {
                busy: second,
                idle: second,
                silence: second * 30,
            },
        };
        let mut session = Session::new(Instant::ORIGIN, config);
        let (table, own) = (port.service_table(), port.own_services());
        session.set_table(Instant::ORIGIN, table, &port.peer_service_table(), own);
        Self {
            socket,
            session,
            begun: std::time::Instant::now(),
            header: Vec::new(),
        }
    }

    fn now(&self) -> Instant {
        Instant::from_nanos(self.begun.elapsed().as_nanos() as u64 + 1)
    }

    /// Takes what has come: a probe, if it was one.
    fn hear(&mut self) -> Option<StatusProbe> {
        let mut buffer = [0; 2048];
        let datagram = match self.socket.recv(&mut buffer) {
            Ok(length) => buffer[..length].to_vec(),
            Err(_) => vec![],
        };
        if self.header.is_empty() {
            let is_hello = |at: &usize| Hello::decode(&datagram[*at..]).is_ok();
            let at = (0..datagram.len()).find(is_hello).unwrap_or_default();
            self.header = datagram[..at].to_vec();
        }
        let body = datagram.get(self.header.len()..).unwrap_or_default();
        if let Ok(Some(probe)) = StatusProbe::decode(body) {
            return Some(probe);
        }
        let now = self.now();
        let _no_hello = self.session.handle_hello(now, body);
        if !self.header.is_empty()
            && let Some(hello) = self.session.poll_transmit(now, &[])
        {
            let mut body = Vec::new();
            hello.encode(&mut body);
            self.send(&body);
        }
        None
    }

    fn send(&self, body: &[u8]) {
        self.socket
            .send(&[&self.header[..], body].concat())
            .unwrap();
    }

    fn tell(&self, probe: StatusProbe) {
        let session = self.session.id().unwrap();
        self.send(&StatusProbe { session, ..probe }.encode());
    }
}

/// A base that runs, and its three stations, each in a session with it.
struct Cell {
    stations: [Station; 3],
    stop: UnixStream,
    node: std::thread::JoinHandle<Status>,
}

impl Cell {
    fn new() -> Self {
        let sockets = [0; 3].map(|_| UdpSocket::bind("127.0.0.1:0").unwrap());
        let mut text = r#"
schema = 1
name = "base"
[tun]
addresses = ["10.7.0.1/24"]
mtu = "1400 B"
[link]
rate = "20 Mbit/s"
underlay = { kind = "udp", listen = "127.0.0.1:1" }
security = "none"
services = [{ number = 1, name = "files", rate = 1, scheme = { kind = "sr-m2" } }]
classes = []
"#
        .to_owned();
        for ((name, socket), last) in NAMES.iter().zip(&sockets).zip(2..) {
            let at = socket.local_addr().unwrap();
            text += &format!(
                "[[peers]]\nname = \"{name}\"\naddress = \"{at}\"\nprefixes = [\"10.7.0.{last}/32\"]\n"
            );
        }
        let config: LiveConfig = airlane_base::config::load(&text, "base.toml").unwrap();
        let udp = Udp::bind(address("127.0.0.1:0")).unwrap();
        let base = udp.local().unwrap();
        let (_kernel, device) = UnixDatagram::pair().unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let file = config.clone();
        let node = std::thread::spawn(move || {
            let tun = Tun::from_fd(OwnedFd::from(device), "pair");
            let mut node = Node::with_devices(&config, tun, Underlay::Udp(udp)).unwrap();
            node.run(stopped.as_fd()).unwrap();
            node.status()
        });
        let mut epochs = 7..;
        let mut stations =
            sockets.map(|socket| Station::new(&file, base, socket, epochs.next().unwrap()));
        let begun = std::time::Instant::now();
        while stations
            .iter()
            .any(|s| s.session.state() != SessionState::Confirmed)
        {
            assert!(begun.elapsed() < PATIENCE);
            stations.iter_mut().for_each(|station| {
                station.hear();
            });
        }
        Self {
            stations,
            stop,
            node,
        }
    }

    /// Ends the base and gives its last words.
    fn end(self) -> Status {
        drop(self.stop);
        self.node.join().unwrap()
    }
}

/// Probes of a flow of the farm's that everybody knows: two, and who may say each.
#[test]
fn only_who_has_an_end_of_a_flow_speaks_of_its_path() {
    let mut cell = Cell::new();
    let begun = std::time::Instant::now();
    let [farm, mill, pier] = &mut cell.stations;
    let own = Offer {
        out_packets: 1,
        out_bytes: 1_000,
        underflows: 0,
        room_bytes: 1_000,
    };
    let ends = [address("10.7.0.2:9"), address("10.7.0.3:80")];
    let probe = |number| StatusProbe::new(1, 17, ends, number, own);
    const FORGED: u32 = 66;
    // On its way there; the base passes it on once it knows for an interval what it offers.
    let mut arrived = None;
    while arrived.is_none() {
        assert!(begun.elapsed() < PATIENCE);
        pier.tell(probe(FORGED));
        farm.tell(probe(1));
        arrived = mill.hear();
    }
    assert_eq!(arrived.unwrap().number, 1);
    // And back: the farm's number and ends are known to whoever sees its packets.
    pier.tell(probe(FORGED).turned(true));
    // Who is on the path, and no end of it, has nothing to say of it either.
    farm.tell(probe(FORGED).turned(true));
    mill.tell(probe(2).turned(true));
    let mut back = None;
    while back.is_none() {
        assert!(begun.elapsed() < PATIENCE);
        back = farm.hear();
    }
    assert_eq!(back.unwrap().number, 2);
    let status = cell.end();
    let dropped = |at: usize| {
        let drops = &status.peers[at].drops;
        drops.get("wrong-source").copied().unwrap_or_default()
    };
    assert!(dropped(2) >= 2, "{status:#?}");
    assert_eq!((dropped(0), dropped(1)), (1, 0));
}

/// A probe that a station tells.
#[derive(Clone, Debug)]
struct Told {
    speaker: usize,
    /// The last bytes of both ends' addresses: those of the base, of its stations, and of nobody.
    ends: [u8; 2],
    probe: StatusProbe,
}

fn told() -> impl Strategy<Value = Told> {
    let end = || prop_oneof![4 => 2_u8..5, 1 => Just(1), 1 => Just(9)];
    let offer =
        any::<[u32; 4]>().prop_map(|[out_packets, out_bytes, underflows, room_bytes]| Offer {
            out_packets,
            out_bytes,
            underflows,
            room_bytes,
        });
    let rest = (
        any::<[bool; 2]>(),
        0_u8..20,
        any::<u16>(),
        any::<[u16; 2]>(),
        any::<u8>(),
    );
    (0_usize..3, [end(), end()], offer, rest).prop_map(|(speaker, ends, own, rest)| {
        let ([back, complete], hops, flow, ports, protocol) = rest;
        let at = |end: usize| SocketAddr::from(([10, 7, 0, ends[end]], ports[end]));
        let probe = StatusProbe::new(flow, protocol, [at(0), at(1)], 0, own);
        let probe = StatusProbe {
            back,
            complete,
            hops,
            ..probe
        };
        Told {
            speaker,
            ends,
            probe,
        }
    })
}

/// Numbers of probes that stations tell their base to hear when it has taken all before.
const FENCES: u32 = 1 << 31;

/// All that the stations hear of what they told before.
fn hear_all(stations: &mut [Station; 3], fence: &mut u32) -> Vec<(usize, StatusProbe)> {
    let mut heard = Vec::new();
    for (at, station) in stations.iter_mut().enumerate() {
        *fence += 1;
        let own = SocketAddr::from(([10, 7, 0, at as u8 + 2], 1));
        let nothing = Offer {
            out_packets: 0,
            out_bytes: 0,
            underflows: 0,
            room_bytes: 0,
        };
        let ends = [own, address("10.7.0.1:1")];
        let probe = StatusProbe::new(0, 17, ends, FENCES + *fence, nothing);
        let begun = std::time::Instant::now();
        station.tell(probe);
        loop {
            assert!(begun.elapsed() < PATIENCE, "the base answers no more");
            match station.hear() {
                Some(probe) if probe.number == FENCES + *fence => break,
                Some(probe) => heard.push((at, probe)),
                None => {}
            }
        }
    }
    heard
}

/// Whatever three stations say of each other's paths: a probe is heard where its path leads alone, from who has its end, and
/// never more often than it was told; and no bytes end the base.
#[test]
fn probes_between_three_peers_go_where_their_paths_lead() {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let cases = asked.and_then(|n| n.parse().ok()).unwrap_or(64);
    let mut cell = Cell::new();
    let (mut number, mut fence) = (0, 0);
    let mut forged = 0;
    let stations = &mut cell.stations;
    let all = (
        prop::collection::vec(told(), 1..12),
        prop::collection::vec((0_usize..60, any::<u8>()), 1..4),
    );
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    // What was told is told: a case cannot be tried again alike.
    for _ in 0..cases {
        let (all, changes) = all.new_tree(&mut runner).unwrap().current();
        let first = number + 1;
        for told in &all {
            number += 1;
            let probe = StatusProbe {
                number,
                ..told.probe
            };
            stations[told.speaker].tell(probe);
            let [source, destination] = told.ends;
            let speaks_of = if probe.back { destination } else { source };
            forged += u64::from(usize::from(speaks_of) != told.speaker + 2);
        }
        let heard = hear_all(stations, &mut fence);
        assert!(heard.len() <= all.len());
        let mut numbers = std::collections::BTreeSet::new();
        for (at, probe) in heard {
            assert!(numbers.insert(probe.number), "{probe:?} twice");
            let told = &all[(probe.number - first) as usize];
            let [source, destination] = told.ends.map(|end| usize::from(end).wrapping_sub(2));
            assert_eq!(probe.ends, told.probe.ends);
            if !probe.back {
                assert_eq!((source, destination), (told.speaker, at), "{:?}", told);
                assert!(probe.hops < told.probe.hops);
            } else if told.probe.back {
                assert_eq!((source, destination), (at, told.speaker), "{:?}", told);
            } else {
                assert_eq!((source, told.speaker), (at, at), "turned: {:?}", told);
            }
        }
        // Arbitrary bytes, on the way that valid messages take.
        for (told, (place, byte)) in all.iter().zip(&changes) {
            let station = &stations[told.speaker];
            let session = station.session.id().unwrap();
            let mut body = StatusProbe {
                session,
                ..told.probe
            }
            .encode();
            let place = place % body.len();
            body[place] ^= byte;
            station.send(&body);
        }
        hear_all(stations, &mut fence);
    }
    let status = cell.end();
    // Each was refused: for whom it speaks of, or as what no node would send.
    let drops = status.all_drops();
    let refused = ["wrong-source", "hello-malformed"].map(|reason| drops.get(reason).copied());
    let refused: u64 = refused.into_iter().flatten().sum();
    assert!(refused >= forged, "{refused} of {forged}: {status:#?}");
}
