//! Datagrams from strangers and from a confused peer at a running node: each is accepted or counted as a drop, and
//! none ends the node. Needs no privileges: a socket pair replaces the interface, and the underlay is the loopback.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::common::PATIENCE;
use airlane_base::Streams;
use airlane_live::config::LiveConfig;
use airlane_live::daemon::Daemon;
use airlane_live::status::Status;
use airlane_live::tun::Tun;
use airlane_live::underlay::{Udp, Underlay};
use socket2::SockRef;

const FILE: &str = r#"
schema = 1
name = "hostile"
[tun]
mtu = "1400 B"
[link]
rate = "100 Mbit/s"
underlay = { kind = "udp", listen = "127.0.0.1:1", peer = "127.0.0.1:2" }
security = "none"
[[link.services]]
number = 1
name = "files"
rate = 1
scheme = { kind = "sr-m2" }
"#;

/// A node, the other end of its interface, and its address.
struct Live {
    kernel: UnixDatagram,
    /// The node's end of the pair, to see what it has not read yet.
    device: UnixDatagram,
    address: SocketAddr,
    stop: UnixStream,
    thread: JoinHandle<Status>,
}

/// A socket that is not a peer's.
fn stranger() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").unwrap()
}

impl Live {
    /// Starts a node that listens at `listen` and has the peer `peer`.
    fn start(peer: SocketAddr, listen: SocketAddr) -> Self {
        Self::start_with(FILE, peer, listen, |_| {})
    }

    /// Starts a node with a file; `prepare` gets it before it runs.
    fn start_with(
        file: &str,
        peer: SocketAddr,
        listen: SocketAddr,
        prepare: impl FnOnce(&mut Daemon) + Send + 'static,
    ) -> Self {
        let file = file.replace("127.0.0.1:2", &peer.to_string());
        let (kernel, device) = UnixDatagram::pair().unwrap();
        kernel.set_read_timeout(Some(PATIENCE)).unwrap();
        device.set_nonblocking(true).unwrap();
        let seen = device.try_clone().unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let config: LiveConfig = airlane_base::config::load(&file, "hostile.toml").unwrap();
            let udp = Udp::bind(listen).unwrap();
            ready.send(udp.local().unwrap()).unwrap();
            let tun = Tun::from_fd(OwnedFd::from(device), "pair");
            let mut node = Daemon::with_devices(&config, tun, Underlay::Udp(udp)).unwrap();
            prepare(&mut node);
            node.run(stopped.as_fd()).unwrap();
            node.status()
        });
        Self {
            kernel,
            device: seen,
            address: is_ready.recv().unwrap(),
            stop,
            thread,
        }
    }

    /// Waits until the node has read everything that was sent to it. The node stops only between two turns,
    /// so everything that it has read is counted.
    fn until_read(&self) {
        let port = format!(":{:04X}", self.address.port());
        let waits = |line: &str| {
            // Fields: number, local address, remote address, state, bytes to be sent and to be read.
            let mut fields = line.split_whitespace().skip(1);
            let own = fields.next().is_some_and(|own| own.ends_with(&port));
            own && !fields.nth(2).unwrap().ends_with(":00000000")
        };
        let deadline = Instant::now() + PATIENCE;
        while std::fs::read_to_string("/proc/net/udp")
            .unwrap()
            .lines()
            .any(waits)
            || SockRef::from(&self.device)
                .peek(&mut [std::mem::MaybeUninit::uninit()])
                .is_ok()
        {
            assert!(Instant::now() < deadline, "the node does not read");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn stop(self) -> Status {
        self.until_read();
        drop(self.stop);
        self.thread.join().unwrap()
    }
}

/// Two free addresses of the loopback.
fn two_addresses() -> [SocketAddr; 2] {
    let (a, b) = (stranger(), stranger());
    [a.local_addr().unwrap(), b.local_addr().unwrap()]
}

fn udp_packet(fill: u8) -> Vec<u8> {
    let mut packet = Vec::new();
    etherparse::PacketBuilder::ipv4([10, 7, 0, 1], [10, 7, 0, 2], 64)
        .udp(5004, 5005)
        .write(&mut packet, &[fill; 500])
        .unwrap();
    packet
}

fn dropped(status: &Status, reason: &str) -> u64 {
    status.all_drops().get(reason).copied().unwrap_or(0)
}

#[test]
fn random_datagrams_of_the_peer_are_counted_one_by_one() {
    let peer = stranger();
    let listen = two_addresses()[0];
    let live = Live::start(peer.local_addr().unwrap(), listen);
    let mut rng = Streams::new(1, 0).stream("hostile");
    let (total, mut empty) = (2000u64, 0);
    for i in 0..total {
        let length = match i % 10 {
            0 => rng.next_u64() % 20,
            1 => 4000,
            _ => rng.next_u64() % 1400,
        };
        empty += u64::from(length == 0);
        let mut bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
        // Half of them resemble our frames: an existing type, and for a quarter an existing service.
        if i % 2 == 0
            && let Some(first) = bytes.first_mut()
        {
            let service = if i % 4 == 0 { 0 } else { *first & 0xf0 };
            *first = service | [0, 1, 2, 3, 7, 9][usize::from(*first % 6)];
        }
        peer.send_to(&bytes, live.address).unwrap();
        if i % 50 == 0 {
            // The receiver's buffer is limited.
            live.until_read();
        }
    }
    let status = live.stop();
    assert_eq!(status.underlay.datagrams_received, total);
    let counted: u64 = status.all_drops().values().sum();
    assert_eq!(counted, total, "{:?}", status.all_drops());
    assert_eq!(dropped(&status, "empty"), empty);
    for reason in [
        "truncated",
        "unknown-type",
        "unknown-service",
        "frame-without-session",
        "hello-wrong-version",
    ] {
        assert!(
            dropped(&status, reason) > 0,
            "{reason}: {:?}",
            status.all_drops()
        );
    }
    assert_eq!(status.peers[0].session.state, "waiting");
    assert_eq!(status.tun.packets_written, 0);
}

#[test]
fn datagrams_from_elsewhere_are_counted_and_a_link_between_two_goes_on() {
    let [a, b] = two_addresses();
    let (left, right) = (Live::start(b, a), Live::start(a, b));
    let stranger = stranger();
    for _ in 0..100 {
        stranger.send_to(&[0x10; 60], left.address).unwrap();
    }
    // Retry until the session is established, as a host would.
    let mut buffer = [0; 2000];
    right
        .kernel
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let arrived = (0..1_000).any(|_| {
        left.kernel.send(&udp_packet(1)).unwrap();
        matches!(right.kernel.recv(&mut buffer), Ok(528))
    });
    assert!(arrived);
    assert_eq!(buffer[..528], udp_packet(1));
    // Not IP, truncated, empty: the kernel would not pass these on, but the node does not rely on that.
    left.kernel.send(&[0xff; 100]).unwrap();
    left.kernel.send(&udp_packet(2)[..100]).unwrap();
    left.kernel.send(&[]).unwrap();
    let (left, right) = (left.stop(), right.stop());
    assert_eq!(dropped(&left, "other-address"), 100);
    assert_eq!(dropped(&left, "not-ip"), 3);
    assert_eq!(left.peers[0].session.state, "confirmed");
    assert_eq!(left.peers[0].session.id, right.peers[0].session.id);
    assert!(right.all_drops().is_empty(), "{:?}", right.all_drops());
}

#[test]
fn frames_of_an_earlier_session_are_stale() {
    // Frames of one link are replayed to its successor.
    let [a, b] = two_addresses();
    let peer = UdpSocket::bind(b).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let live = Live::start(b, a);
    // A frame of another session, in the layout of service 0: header, then a packet.
    let packet = udp_packet(3);
    let mut frame = vec![0x00, 1, 2, 3, 4, 0, 0, 0, 0];
    frame.extend_from_slice(&packet);
    peer.send_to(&frame, live.address).unwrap();
    drop(peer);
    // The port is free now: a real node takes the peer's place.
    let right = Live::start(a, b);
    let mut buffer = [0; 2000];
    let arrived = (0..1_000).any(|_| {
        right.kernel.send(&udp_packet(4)).unwrap();
        live.kernel
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        matches!(live.kernel.recv(&mut buffer), Ok(528))
    });
    assert!(arrived);
    right.stop();
    // Another test may have taken the port meanwhile.
    let deadline = Instant::now() + PATIENCE;
    let peer = loop {
        match UdpSocket::bind(b) {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50));
            }
            bound => break bound.unwrap(),
        }
    };
    for _ in 0..10 {
        peer.send_to(&frame, live.address).unwrap();
    }
    let status = live.stop();
    assert_eq!(dropped(&status, "frame-without-session"), 1);
    assert_eq!(dropped(&status, "stale-session"), 10);
    assert_ne!(buffer[..528], packet);
}

/// Whatever the queues admit, the memory of all packets is limited, and the drops are reported.
#[test]
fn packet_memory_stays_within_its_limit() {
    const MOST: usize = 64 << 20;
    let file = FILE.replace("100 Mbit/s", "100 kbit/s").replace(
        "[[link.services]]",
        "classes = [{ match = { protocol = \"udp\" }, service = \"files\" }]\n[[link.services]]\n\
         queue = { kind = \"drop-tail\", limit = \"100000 packets\" }",
    );
    let [a, b] = two_addresses();
    let live = Live::start_with(&file, b, a, |node| node.set_most_memory(MOST));
    let peer = Live::start_with(&file, a, b, |_| {});
    let (packet, mut buffer) = (udp_packet(5), [0; 2000]);
    // Retry until there is a session.
    peer.kernel
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let arrived = (0..1_000).any(|_| {
        live.kernel.send(&packet).unwrap();
        peer.kernel.recv(&mut buffer).is_ok()
    });
    assert!(arrived);
    for _ in 0..4_000 {
        live.kernel.send(&packet).unwrap();
    }
    let status = live.stop();
    peer.stop();
    let waiting: usize = status.peers[0]
        .services
        .iter()
        .map(|s| s.queue_packets)
        .sum();
    let named = dropped(&status, "memory-full");
    // A buffer has the size of the loopback's MTU, 64 kB.
    assert!(
        named > 1_000 && waiting > 200 && waiting <= MOST / 65_000,
        "{named}, {waiting}"
    );
}
