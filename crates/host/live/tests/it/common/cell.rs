//! A base and three stations, simulated by sockets of the test over the loopback, and their status probes
//! about each other's paths.
//!
//! ```text
//!  farm 10.7.0.2 ──┐
//!  mill 10.7.0.3 ──┼── base
//!  pier 10.7.0.4 ──┘
//! ```
//!
//! The fuzz targets use it, too.

use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::time::Duration;

use airlane_base::Instant;
use airlane_link::{Port, PortConfig};
use airlane_live::config::LiveConfig;
use airlane_live::daemon::Daemon;
use airlane_live::status::Status;
use airlane_live::tun::Tun;
use airlane_live::underlay::{Udp, Underlay};
use airlane_session::{
    Hello, Keepalives, Offer, Session, SessionConfig, SessionState, StatusProbe,
};
use airlane_testkit::TestPacket;

const PATIENCE: Duration = Duration::from_secs(60);
const NAMES: [&str; 3] = ["farm", "mill", "pier"];
/// First number of the probes by which stations learn that the base has handled everything before.
const FENCES: u32 = 1 << 31;

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// A station that sends only what the session requires.
pub struct Station {
    socket: UdpSocket,
    pub session: Session,
    begun: std::time::Instant,
    /// The header before the body of a hello, as the base has it.
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

    /// Receives a datagram. Returns it if it was a probe.
    pub fn hear(&mut self) -> Option<StatusProbe> {
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

    pub fn tell(&self, probe: StatusProbe) {
        let session = self.session.id().unwrap();
        self.send(&StatusProbe { session, ..probe }.encode());
    }
}

/// A running base and its three stations, each in a session with it.
pub struct Cell {
    pub stations: [Station; 3],
    /// Numbers of the last probe sent, and of the last one that marks the end of a step.
    number: u32,
    fence: u32,
    /// Probes about another station's path.
    pub forged: u64,
    stop: UnixStream,
    node: std::thread::JoinHandle<Status>,
}

impl Cell {
    pub fn new() -> Self {
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
        let udp = Udp::bind(at("127.0.0.1:0")).unwrap();
        let base = udp.local().unwrap();
        let (_kernel, device) = UnixDatagram::pair().unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let file = config.clone();
        let node = std::thread::spawn(move || {
            let tun = Tun::from_fd(OwnedFd::from(device), "pair");
            let mut node = Daemon::with_devices(&config, tun, Underlay::Udp(udp)).unwrap();
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
            number: 0,
            fence: 0,
            forged: 0,
            stop,
            node,
        }
    }

    /// Stops the base and returns its last status.
    pub fn end(self) -> Status {
        drop(self.stop);
        self.node.join().unwrap()
    }

    /// Everything that the stations receive in answer to what they sent before.
    fn hear_all(&mut self) -> Vec<(usize, StatusProbe)> {
        let mut heard = Vec::new();
        for (place, station) in self.stations.iter_mut().enumerate() {
            self.fence += 1;
            let own = SocketAddr::from(([10, 7, 0, place as u8 + 2], 1));
            let nothing = Offer {
                out_packets: 0,
                out_bytes: 0,
                underflows: 0,
                room_bytes: 0,
            };
            let ends = [own, at("10.7.0.1:1")];
            let probe = StatusProbe::new(0, 17, ends, FENCES + self.fence, nothing);
            let begun = std::time::Instant::now();
            station.tell(probe);
            loop {
                assert!(begun.elapsed() < PATIENCE, "the base answers no more");
                match station.hear() {
                    Some(probe) if probe.number == FENCES + self.fence => break,
                    Some(probe) => heard.push((place, probe)),
                    None => {}
                }
            }
        }
        heard
    }

    /// Stations send probes, and the same again with one byte changed. A probe must arrive only along its path,
    /// only from the station that has its end, and at most as often as it was sent; and no bytes may end the base.
    pub fn tell_all(&mut self, all: &[Told], changes: &[(usize, u8)]) {
        let first = self.number + 1;
        for told in all {
            self.number += 1;
            let probe = StatusProbe {
                number: self.number,
                ..told.probe
            };
            self.stations[told.speaker].tell(probe);
            let [source, destination] = told.ends;
            let speaks_of = if probe.back { destination } else { source };
            self.forged += u64::from(usize::from(speaks_of) != told.speaker + 2);
        }
        let heard = self.hear_all();
        assert!(heard.len() <= all.len());
        let mut numbers = BTreeSet::new();
        for (place, probe) in heard {
            assert!(numbers.insert(probe.number), "{probe:?} twice");
            let told = &all[(probe.number - first) as usize];
            let [source, destination] = told.ends.map(|end| usize::from(end).wrapping_sub(2));
            assert_eq!(probe.ends, told.probe.ends);
            if !probe.back {
                assert_eq!((source, destination), (told.speaker, place), "{told:?}");
                assert!(probe.hops < told.probe.hops);
            } else if told.probe.back {
                assert_eq!((source, destination), (place, told.speaker), "{told:?}");
            } else {
                assert_eq!((source, told.speaker), (place, place), "turned: {told:?}");
            }
        }
        for (told, (place, byte)) in all.iter().zip(changes) {
            let station = &self.stations[told.speaker];
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
        self.hear_all();
    }
}

impl Default for Cell {
    fn default() -> Self {
        Self::new()
    }
}

/// A probe that a station sends.
#[derive(Clone, Debug)]
pub struct Told {
    pub speaker: usize,
    /// Last bytes of the addresses of both ends: the base, its stations, or an address of no peer.
    pub ends: [u8; 2],
    pub probe: StatusProbe,
}
