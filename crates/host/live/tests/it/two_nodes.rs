//! Two nodes and traffic of the kernel's own sockets between them.
//!
//! ```text
//!  namespace left                                     namespace right
//!  air0 10.7.0.1 fd07::1                              air0 10.7.0.2 fd07::2
//!    │ up                                               │ up
//!  wire 192.0.2.1 2001:db8::1 ════════ veth ════════ wire 192.0.2.2 2001:db8::2
//! ```

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::Duration;

use crate::common::traffic::{address, echo, round_trip, transfer};
use crate::common::{Namespace, PATIENCE, Running, cable, can_run, files_and_voice, service};
use airlane_live::daemon::{NodeError, UpError};
use airlane_live::status::Status;

struct Pair {
    left: Namespace,
    right: Namespace,
    directory: tempfile::TempDir,
}

const LEFT: [&str; 2] = ["192.0.2.1:7007", "[2001:db8::1]:7007"];
const RIGHT: [&str; 2] = ["192.0.2.2:7007", "[2001:db8::2]:7007"];

/// Only what the tests send to this port is voice, because they count it.
fn services() -> String {
    files_and_voice(2, "{ protocol = \"udp\", port = 5004 }")
}

impl Pair {
    fn new(test: &str) -> Option<Self> {
        if !can_run(test) {
            return None;
        }
        let (left, right) = (Namespace::new("left"), Namespace::new("right"));
        cable(&left, "wire", &right, "wire");
        for (end, last) in [(&left, 1), (&right, 2)] {
            end.ip(&format!("addr add 192.0.2.{last}/24 dev wire"));
            end.ip(&format!("addr add 2001:db8::{last}/64 dev wire nodad"));
        }
        let directory = tempfile::tempdir().unwrap();
        Some(Self {
            left,
            right,
            directory,
        })
    }

    fn file(&self, end: usize, v6: bool, services: &str) -> String {
        let mine = [LEFT, RIGHT][end][usize::from(v6)];
        let peer = [RIGHT, LEFT][end][usize::from(v6)];
        let last = end + 1;
        let directory = self.directory.path().display();
        format!(
            r#"
schema = 1
name = "end-{end}"
[tun]
addresses = ["10.7.0.{last}/24", "fd07::{last}/64"]
[control]
socket = "{directory}/end-{end}.sock"
[link]
rate = "200 Mbit/s"
underlay = {{ kind = "udp", listen = "{mine}", peer = "{peer}" }}
security = "none"
{services}"#
        )
    }

    fn start(&self, v6: bool) -> [Running; 2] {
        [(&self.left, 0), (&self.right, 1)].map(|(namespace, end)| {
            Running::start(namespace, &self.file(end, v6, &services())).unwrap()
        })
    }
}

fn established(node: &Running) {
    node.wait_until("established", |status| {
        status.peers[0].session.state == "confirmed"
    });
}

#[test]
fn traffic_of_both_ip_versions_crosses_underlays_of_both() {
    let Some(pair) = Pair::new("traffic_of_both_ip_versions_crosses_underlays_of_both") else {
        return;
    };
    for v6 in [false, true] {
        let nodes = pair.start(v6);
        nodes.iter().for_each(established);
        let mtu = nodes[0].status().tun.mtu_bytes;
        // 1500 less IP and UDP, and our longest header.
        assert_eq!(mtu, if v6 { 1500 - 48 - 19 } else { 1500 - 28 - 19 });
        for (mine, theirs) in [
            ("10.7.0.1:0", "10.7.0.2:5004"),
            ("[fd07::1]:0", "[fd07::2]:5004"),
        ] {
            let echoing = echo(&pair.right, address(theirs), 50);
            round_trip(&pair.left, address(mine), address(theirs), 50);
            echoing.join().unwrap();
        }
        for server in ["10.7.0.2:8080", "[fd07::2]:8080"] {
            transfer(&pair.left, &pair.right, address(server), 10_000_000);
        }
        let [left, right] = nodes;
        let status = left.status();
        let files = service(&status.peers[0], "files");
        assert!(files.ledger.sent_bytes > 20_000_000);
        // No file states the delay: the reported one is half the round trip of hellos, and not the initial 50
        // ms of the timers. It is available after the first second.
        let delay_of = |status: &Status| service(&status.peers[0], "files").metrics.delay_s;
        let measured = left.wait_until("measured", |status| delay_of(status).is_some());
        let delay = delay_of(&measured).unwrap();
        assert!(delay < 0.045, "{delay}");
        let voice = service(&status.peers[0], "voice");
        assert_eq!(voice.ledger.packets_sent, 100);
        assert_eq!(voice.ledger.packets_delivered, 100);
        let socket = left.socket.clone();
        let last = left.stop();
        assert!(last.all_drops().is_empty(), "{:?}", last.all_drops());
        assert!(!socket.exists(), "the control socket goes");
        assert!(!pair.left.ip("link").contains("air0"), "the interface goes");
        right.stop();
    }
}

/// Multicast, as mDNS and routing protocols need it, reaches the peer, from a link-local address if the file has one.
#[test]
fn multicast_reaches_the_peer_from_link_local_addresses() {
    let Some(pair) = Pair::new("multicast_reaches_the_peer_from_link_local_addresses") else {
        return;
    };
    let nodes = [(&pair.left, 0), (&pair.right, 1)].map(|(namespace, end)| {
        let file = pair.file(end, false, &services());
        Running::start(namespace, &file.replace("fd07::", "fe80::")).unwrap()
    });
    nodes.iter().for_each(established);
    let index = |end: &Namespace| -> u32 {
        let said = end.ip("-o link show dev air0");
        said.split(':').next().unwrap().parse().unwrap()
    };
    let (here, there) = (index(&pair.left), index(&pair.right));
    const GROUPS: (Ipv4Addr, Ipv6Addr) = (
        Ipv4Addr::new(224, 0, 0, 251),
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb),
    );
    let sockets = pair.right.run(|| {
        let [v4, v6] = ["0.0.0.0:5353", "[::]:5354"].map(|at| UdpSocket::bind(at).unwrap());
        v4.join_multicast_v4(&GROUPS.0, &"10.7.0.2".parse().unwrap())
            .unwrap();
        v6.join_multicast_v6(&GROUPS.1, there).unwrap();
        [v4, v6]
    });
    let to: [SocketAddr; 2] = [
        (GROUPS.0, 5353).into(),
        SocketAddrV6::new(GROUPS.1, 5354, 0, here).into(),
    ];
    let from = ["10.7.0.1", "fe80::1"].map(|ip| ip.parse::<std::net::IpAddr>().unwrap());
    for ((socket, to), (at, from)) in sockets
        .iter()
        .zip(to)
        .zip(["10.7.0.1:0", "[::]:0"].iter().zip(from))
    {
        pair.left
            .run(|| UdpSocket::bind(at).unwrap().send_to(b"who?", to).unwrap());
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut buffer = [0; 9];
        let (length, sender) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], sender.ip()), (&b"who?"[..], from));
    }
}

/// Traffic classes of the datagrams that arrive at this end's cable, until `count` of them had one.
fn classes_on_the_wire(namespace: &Namespace, count: usize) -> std::thread::JoinHandle<Vec<u8>> {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let thread = namespace.thread(move || {
        // ETH_P_IP: IPv4 begins right after the frame's addresses and type.
        let protocol = socket2::Protocol::from(i32::from(0x0800_u16.to_be()));
        let socket =
            socket2::Socket::new(socket2::Domain::PACKET, socket2::Type::RAW, Some(protocol));
        let socket = socket.unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        ready.send(()).unwrap();
        let mut classes = Vec::new();
        let mut frame = [0; 2048];
        while classes.len() < count {
            let length = std::io::Read::read(&mut &socket, &mut frame).unwrap();
            // UDP from the peer's address.
            let from_peer = frame[23] == 17 && frame[26..30] == [192, 0, 2, 1];
            if length > 34 && from_peer && frame[15] != 0 {
                classes.push(frame[15]);
            }
        }
        classes
    });
    is_ready.recv().unwrap();
    thread
}

#[test]
fn packet_marks_are_copied_to_the_datagram() {
    let Some(pair) = Pair::new("packet_marks_are_copied_to_the_datagram") else {
        return;
    };
    let outer = "security = \"none\"\nouter = { dscp = \"copy\", ecn = true }";
    let nodes = [(&pair.left, 0), (&pair.right, 1)].map(|(namespace, end)| {
        let file = pair.file(end, false, &services());
        let file = file.replace("security = \"none\"", outer);
        Running::start(namespace, &file).unwrap()
    });
    nodes.iter().for_each(established);
    let sent = [46 << 2, 46 << 2 | 2, 2, 3];
    let seen = classes_on_the_wire(&pair.right, sent.len());
    let received = pair.right.thread(move || {
        let socket = UdpSocket::bind("10.7.0.2:5004").unwrap();
        let mut packet = [0; 100];
        sent.map(|_| socket.recv(&mut packet).unwrap())
    });
    std::thread::sleep(Duration::from_millis(100));
    pair.left.run(|| {
        let socket = UdpSocket::bind("10.7.0.1:0").unwrap();
        for class in sent {
            socket2::SockRef::from(&socket).set_tos_v4(class).unwrap();
            socket.send_to(b"marked", "10.7.0.2:5004").unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    assert_eq!(seen.join().unwrap(), sent.map(|class| class as u8));
    assert_eq!(received.join().unwrap(), [6; 4]);
    for node in nodes {
        assert!(node.stop().all_drops().is_empty());
    }
}

#[test]
fn a_restarted_end_begins_a_new_session() {
    let Some(pair) = Pair::new("a_restarted_end_begins_a_new_session") else {
        return;
    };
    let [left, right] = pair.start(false);
    established(&left);
    let server = address("10.7.0.2:8080");
    transfer(&pair.left, &pair.right, server, 1_000_000);
    let before = left.status().peers[0].session.id;
    right.stop();
    let right = Running::start(&pair.right, &pair.file(1, false, &services())).unwrap();
    left.wait_until("in a new session", |status| {
        status.peers[0].session.id != before && status.peers[0].session.state == "confirmed"
    });
    established(&right);
    transfer(&pair.left, &pair.right, server, 1_000_000);
    assert_eq!(left.status().peers[0].session.sessions, 2);
}

#[test]
fn a_link_that_is_gone_for_a_while_is_disconnected_and_comes_back() {
    let Some(pair) = Pair::new("a_link_that_is_gone_for_a_while_is_disconnected_and_comes_back")
    else {
        return;
    };
    let nodes = pair.start(false);
    nodes.iter().for_each(established);
    let id = nodes[0].status().peers[0].session.id;
    pair.right.ip("link set wire down");
    // An idle end would send a hello only within 25 s.
    for (end, from, to) in [(&pair.left, 1, 2), (&pair.right, 2, 1)] {
        end.run(|| {
            let socket = UdpSocket::bind(format!("10.7.0.{from}:0")).unwrap();
            socket.send_to(b"there?", format!("10.7.0.{to}:9")).unwrap();
        });
    }
    for node in &nodes {
        // Three and a half keepalives of a second each.
        let status = node.wait_until("disconnected", |s| {
            s.peers[0].session.state == "disconnected"
        });
        assert_eq!(status.peers[0].session.disconnections, 1);
        let silent = status.peers[0].session.disconnected_ns.unwrap();
        assert!(silent >= 3_500_000_000, "{silent}");
    }
    pair.right.ip("link set wire up");
    for node in &nodes {
        established(node);
        let session = node.status().peers.remove(0).session;
        assert_eq!((session.disconnections, session.disconnected_ns), (1, None));
        assert_eq!(session.id, id, "the session goes on");
    }
    transfer(&pair.left, &pair.right, address("10.7.0.2:8080"), 100_000);
}

#[test]
fn different_services_exchange_nothing_and_are_reported() {
    let Some(pair) = Pair::new("different_services_exchange_nothing_and_are_reported") else {
        return;
    };
    let other = services().replace("sr-m2", "rlp");
    let left = Running::start(&pair.left, &pair.file(0, false, &services())).unwrap();
    let right = Running::start(&pair.right, &pair.file(1, false, &other)).unwrap();
    for (node, ours, theirs) in [(&left, "sr-m2", "rlp"), (&right, "rlp", "sr-m2")] {
        let status = node.wait_until("refused", |status| {
            status.peers[0].session.state == "refused"
        });
        let tables = status.peers[0].session.refused.clone().unwrap();
        assert!(tables.ours.contains(ours) && tables.theirs.contains(theirs));
    }
    pair.left.run(|| {
        let socket = UdpSocket::bind("10.7.0.1:0").unwrap();
        socket.send_to(b"hello?", "10.7.0.2:5004").unwrap();
    });
    let status = left.wait_until("dropping", |s| !s.all_drops().is_empty());
    assert_eq!(status.all_drops().get("packet-without-session"), Some(&1));
    assert_eq!(right.status().tun.packets_written, 0);
    // The operator corrects one end; the other one continues by itself.
    right.stop();
    let _right = Running::start(&pair.right, &pair.file(1, false, &services())).unwrap();
    established(&left);
}

#[test]
fn unworkable_files_are_refused_without_leftovers() {
    let Some(pair) = Pair::new("unworkable_files_are_refused_without_leftovers") else {
        return;
    };
    let good = pair.file(0, false, &services());
    // A route that covers the peer's address.
    let looping = good.replace("[control]", "routes = [\"192.0.2.2/32\"]\n[control]");
    let error = Running::start(&pair.left, &looping).err().unwrap();
    assert!(matches!(error, UpError::Loop { .. }), "{error}");
    // A path too narrow for IPv6.
    pair.left.ip("link set wire mtu 1300");
    let error = Running::start(&pair.left, &good).err().unwrap();
    assert!(
        matches!(error, UpError::Node(NodeError::PathTooNarrow { .. })),
        "{error}"
    );
    assert!(error.to_string().contains("1253 B"), "{error}");
    pair.left.ip("link set wire mtu 1500");
    let first = Running::start(&pair.left, &good).unwrap();
    let error = Running::start(&pair.left, &good).err().unwrap();
    assert!(error.to_string().contains("another node"), "{error}");
    first.stop();
    // Every failed start has cleaned up.
    Running::start(&pair.left, &good).unwrap().stop();
    assert!(!pair.left.ip("link").contains("air0"));
}

/// Like a child between fork and exec, whose copy of a socket outlives the node that had it.
#[test]
fn a_port_that_is_taken_for_a_moment_is_waited_for() {
    let Some(pair) = Pair::new("a_port_that_is_taken_for_a_moment_is_waited_for") else {
        return;
    };
    let (file, address) = (pair.file(0, false, &services()), address("192.0.2.1:7007"));
    let taken = pair.left.run(|| UdpSocket::bind(address).unwrap());
    let error = Running::start(&pair.left, &file).err().unwrap();
    assert!(error.to_string().contains("bind"), "{error}");
    let holder = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        drop(taken);
    });
    Running::start(&pair.left, &file).unwrap().stop();
    holder.join().unwrap();
}

#[test]
fn a_link_survives_an_interface_down_but_not_its_removal() {
    let Some(pair) = Pair::new("a_link_survives_an_interface_down_but_not_its_removal") else {
        return;
    };
    let [left, mut right] = pair.start(false);
    established(&left);
    let (mine, theirs) = (address("10.7.0.1:0"), address("10.7.0.2:5004"));
    pair.right.ip("link set air0 down");
    pair.left.run(|| {
        let socket = UdpSocket::bind(mine).unwrap();
        socket.send_to(b"anybody?", theirs).unwrap();
    });
    right.wait_until("dropping", |s| {
        s.all_drops().get("not-delivered") == Some(&1)
    });
    pair.right.ip("link set air0 up");
    let echoing = echo(&pair.right, theirs, 5);
    round_trip(&pair.left, mine, theirs, 5);
    echoing.join().unwrap();

    pair.right.ip("link del air0");
    let error = right.ended().unwrap_err().to_string();
    assert!(error.starts_with("air0: read a packet"), "{error}");
    assert!(!right.socket.exists());
}
