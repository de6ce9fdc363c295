//! MTU and MSS adapt: to a path that changes, and for hosts behind the routers.
//!
//! ```text
//!  host ═ 1500 ═ left: air0 ─ up ─ wire ══ 1500, later 1400 ══ wire ─ up ─ air0 :right
//!  198.51.100.2   198.51.100.1                                             10.7.0.2
//! ```

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use crate::common::traffic::{address, transfer};
use crate::common::{FILES, Namespace, PATIENCE, Running, cable, can_run};

fn file(end: usize, directory: &std::path::Path) -> String {
    let (last, other) = (end + 1, 2 - end);
    let routes = ["[]", "[\"198.51.100.0/24\"]"][end];
    format!(
        r#"
schema = 1
name = "end-{end}"
[tun]
addresses = ["10.7.0.{last}/24"]
routes = {routes}
[control]
socket = "{}/end-{end}.sock"
[link]
rate = "50 Mbit/s"
delay = "1 ms"
underlay = {{ kind = "udp", listen = "192.0.2.{last}:7007", peer = "192.0.2.{other}:7007" }}
security = "none"
{FILES}"#,
        directory.display()
    )
}

fn router_pair() -> (Namespace, Namespace) {
    let (left, right) = (Namespace::new("left"), Namespace::new("right"));
    cable(&left, "wire", &right, "wire");
    for (end, last) in [(&left, 1), (&right, 2)] {
        end.ip(&format!("addr add 192.0.2.{last}/24 dev wire"));
    }
    (left, right)
}

fn start(left: &Namespace, right: &Namespace, directory: &std::path::Path) -> [Running; 2] {
    let nodes = [
        Running::start(left, &file(0, directory)).unwrap(),
        Running::start(right, &file(1, directory)).unwrap(),
    ];
    for node in &nodes {
        node.wait_until("established", |s| s.peers[0].session.state == "confirmed");
    }
    nodes
}

#[test]
fn a_smaller_path_mtu_only_shortens_frames() {
    if !can_run("a_smaller_path_mtu_only_shortens_frames") {
        return;
    }
    let (left, right) = router_pair();
    let directory = tempfile::tempdir().unwrap();
    let nodes = start(&left, &right, directory.path());
    let server = address("10.7.0.2:8080");
    assert_eq!(nodes[0].status().tun.mtu_bytes, 1453);
    // A transfer is in progress when the MTU decreases: frames built for the old path are in the window, and
    // the service never gives them up.
    let transferring = {
        let (from, to) = (left.clone(), right.clone());
        std::thread::spawn(move || transfer(&from, &to, server, 8_000_000))
    };
    std::thread::sleep(Duration::from_millis(500));
    for end in [&left, &right] {
        end.ip("link set wire mtu 1400");
    }
    transferring.join().unwrap();
    let status = nodes[0].wait_until("narrower", |s| s.tun.mtu_bytes == 1353);
    assert!(status.peers[0].path_narrowed >= 1);
    assert!(left.ip("link show air0").contains("mtu 1353"));
    assert!(status.all_drops().is_empty(), "{:?}", status.all_drops());
    transfer(&left, &right, server, 1_000_000);
}

/// A path takes less than its first interface and sends no ICMP messages: datagrams that are too long are
/// lost. Probing finds the limit, while frames of the old length that are never given up are in flight, and
/// later finds that the path takes more again.
fn find_a_black_hole(name: &str, here: [&str; 2], to: [&str; 2]) {
    if !can_run(name) {
        return;
    }
    let (left, right) = router_pair();
    for (end, last) in [(&left, 1), (&right, 2)] {
        end.ip(&format!("addr add 2001:db8::{last}/64 dev wire nodad"));
    }
    let directory = tempfile::tempdir().unwrap();
    let text = |end: usize| {
        let [listen, peer] = [&here, &to].map(|all| all[end]);
        file(end, directory.path())
            .replace(
                &format!("listen = \"192.0.2.{}:7007", end + 1),
                &format!("listen = \"{listen}:7007"),
            )
            .replace(
                &format!("peer = \"192.0.2.{}:7007", 2 - end),
                &format!("peer = \"{peer}:7007"),
            )
    };
    let nodes = [(&left, 0), (&right, 1)].map(|(end, at)| Running::start(end, &text(at)).unwrap());
    for node in &nodes {
        node.wait_until("established", |s| s.peers[0].session.state == "confirmed");
    }
    let server = address("10.7.0.2:8080");
    let at_first = nodes[0].status();
    assert_eq!(at_first.peers[0].path_mtu_bytes, 1500);
    let transferring = {
        let (from, to) = (left.clone(), right.clone());
        std::thread::spawn(move || transfer(&from, &to, server, 8_000_000))
    };
    std::thread::sleep(Duration::from_millis(500));
    // Only the receiving end's MTU; a veth pair leaves room for a VLAN tag.
    right.ip("link set wire mtu 1400");
    transferring.join().unwrap();
    let status = nodes[0].wait_until("narrower", |s| {
        (1400..=1404).contains(&s.peers[0].path_mtu_bytes)
    });
    assert!(status.peers[0].path_narrowed >= 1);
    let narrower = 1500 - status.peers[0].path_mtu_bytes;
    nodes[0].wait_until("followed", |s| {
        s.tun.mtu_bytes + narrower == at_first.tun.mtu_bytes
    });
    transfer(&left, &right, server, 1_000_000);
    right.ip("link set wire mtu 1500");
    // An idle path is not probed.
    let deadline = std::time::Instant::now() + PATIENCE;
    let wider = (1500, at_first.tun.mtu_bytes);
    while {
        let status = nodes[0].status();
        (status.peers[0].path_mtu_bytes, status.tun.mtu_bytes) != wider
    } {
        assert!(std::time::Instant::now() < deadline, "it stays narrow");
        transfer(&left, &right, server, 100_000);
        std::thread::sleep(Duration::from_millis(500));
    }
    let drops = nodes[0].status().all_drops();
    assert!(drops.is_empty(), "{drops:?}");
    transfer(&left, &right, server, 1_000_000);
}

#[test]
fn a_black_hole_is_detected_and_recovered_from() {
    let name = "a_black_hole_is_detected_and_recovered_from";
    find_a_black_hole(name, ["192.0.2.1", "192.0.2.2"], ["192.0.2.2", "192.0.2.1"]);
}

#[test]
fn a_black_hole_is_detected_and_recovered_from_over_ipv6() {
    let name = "a_black_hole_is_detected_and_recovered_from_over_ipv6";
    let ends = ["[2001:db8::1]", "[2001:db8::2]"];
    find_a_black_hole(name, ends, [ends[1], ends[0]]);
}

#[test]
fn a_dual_stack_socket_detects_a_black_hole_of_an_ipv4_peer() {
    let name = "a_dual_stack_socket_detects_a_black_hole_of_an_ipv4_peer";
    find_a_black_hole(name, ["[::]", "192.0.2.2"], ["192.0.2.2", "192.0.2.1"]);
}

/// The right end's MTU is `mtu` bytes, and the left end gets no message about it.
fn narrow(mtu: usize, more: &str) -> (Namespace, Namespace, [Running; 2], tempfile::TempDir) {
    let (left, right) = router_pair();
    right.ip(&format!("link set wire mtu {mtu}"));
    let directory = tempfile::tempdir().unwrap();
    let text = |end| {
        let link = format!("[link]\n{more}");
        file(end, directory.path()).replace("[link]\n", &link)
    };
    let nodes = [(&left, 0), (&right, 1)].map(|(end, at)| Running::start(end, &text(at)).unwrap());
    for node in &nodes {
        node.wait_until("established", |s| s.peers[0].session.state == "confirmed");
    }
    (left, right, nodes, directory)
}

#[test]
fn paths_of_256_bytes_and_more_work() {
    if !can_run("paths_of_256_bytes_and_more_work") {
        return;
    }
    for (mtu, more) in [
        (500, ""),
        (500, "fragment = \"450 B\"\n"),
        (256, "fragment = \"auto\"\n"),
    ] {
        let (left, right, nodes, _directory) = narrow(mtu, more);
        let takes = nodes[0].wait_until("narrow", |s| s.peers[0].path_mtu_bytes <= mtu + 4);
        transfer(&left, &right, address("10.7.0.2:8080"), 50_000);
        let found = takes.peers[0].path_mtu_bytes;
        assert!(
            !takes.peers[0].path_too_narrow && found >= mtu.min(450) / 2,
            "{mtu}: {found}"
        );
    }
}

#[test]
fn a_path_that_is_too_narrow_is_named_and_carries_nothing() {
    if !can_run("a_path_that_is_too_narrow_is_named_and_carries_nothing") {
        return;
    }
    let (left, right, nodes, _directory) = narrow(220, "");
    let sent = nodes[0].wait_until("too narrow", |s| s.peers[0].path_too_narrow);
    left.run(|| {
        let socket = UdpSocket::bind("10.7.0.1:0").unwrap();
        (0..100).for_each(|_| _ = socket.send_to(&[7; 150], "10.7.0.2:9").unwrap());
    });
    let dropped =
        |s: &airlane_live::status::Status| s.all_drops().get("send-too-big") >= Some(&100);
    let after = nodes[0].wait_until("dropped", dropped);
    assert!(after.peers[0].sent_bytes - sent.peers[0].sent_bytes < 5_000);
    right.ip("link set wire mtu 1500");
    nodes[0].wait_until("wide enough", |s| !s.peers[0].path_too_narrow);
    transfer(&left, &right, address("10.7.0.2:8080"), 50_000);
}

#[test]
fn hosts_behind_the_routers_learn_the_segment_size_from_the_syn() {
    if !can_run("hosts_behind_the_routers_learn_the_segment_size_from_the_syn") {
        return;
    }
    let (left, right) = router_pair();
    let host = Namespace::new("host");
    cable(&host, "lan", &left, "lan");
    host.ip("addr add 198.51.100.2/24 dev lan");
    left.ip("addr add 198.51.100.1/24 dev lan");
    host.ip("route add default via 198.51.100.1");
    left.sysctl("net/ipv4/ip_forward", "1");
    let directory = tempfile::tempdir().unwrap();
    let nodes = start(&left, &right, directory.path());

    // The far end sees the MSS in the SYN, the host the one in the SYN-ACK.
    let (ready, is_ready) = std::sync::mpsc::channel();
    let accepting = right.thread(move || {
        let listener = TcpListener::bind("10.7.0.2:8080").unwrap();
        ready.send(()).unwrap();
        let (stream, _) = listener.accept().unwrap();
        segment_size(&stream)
    });
    is_ready.recv().unwrap();
    let at_host = host.run(|| segment_size(&TcpStream::connect("10.7.0.2:8080").unwrap()));
    let at_right = accepting.join().unwrap();
    // 1453 less the IP and TCP headers, less the timestamps, which the kernel subtracts from each segment.
    assert_eq!((at_host, at_right), (1453 - 40 - 12, 1453 - 40 - 12));
    // The host's SYN had 1460; the SYN-ACK was made with the interface's own MTU and needed no change.
    let clamped: u64 = nodes.iter().map(|node| node.status().tun.mss_clamped).sum();
    assert_eq!(clamped, 1);
    transfer(&host, &right, address("10.7.0.2:8081"), 2_000_000);
}

/// The MSS of the connection.
fn segment_size(stream: &TcpStream) -> u32 {
    socket2::SockRef::from(stream).tcp_mss().unwrap()
}

#[test]
fn a_datagram_that_no_frame_fills_is_oversized() {
    if !can_run("a_datagram_that_no_frame_fills_is_oversized") {
        return;
    }
    let (left, right) = router_pair();
    let directory = tempfile::tempdir().unwrap();
    let node = Running::start(&left, &file(0, directory.path())).unwrap();
    right.run(|| {
        let peer = UdpSocket::bind("192.0.2.2:7007").unwrap();
        // Sent in IP fragments.
        peer.send_to(&[0x10; 4000], "192.0.2.1:7007").unwrap();
    });
    node.wait_until("oversized", |s| s.all_drops().get("oversized") == Some(&1));
}
