//! Packets of 1500 B over a path with an MTU of 576 B that loses a frame in twenty; small packets that share frames.
//!
//! ```text
//!  left: air0 1500 ─ up ─ wire 576 ═══ one [ air: 20 Mbit/s, 10 ms, 5 % loss ] two ═══ wire 576 ─ up ─ air0 1500 :right
//! ```

use std::net::UdpSocket;
use std::time::Duration;

use crate::common::air::Air;
use crate::common::traffic::{address, transfer};
use crate::common::{Namespace, Running, can_run, files_and_voice, service};

fn node(end: usize, directory: &std::path::Path) -> String {
    let (last, other) = (end + 1, 2 - end);
    format!(
        r#"
schema = 1
name = "end-{end}"
[tun]
addresses = ["10.7.0.{last}/24"]
[control]
socket = "{}/end-{end}.sock"
[link]
rate = "18 Mbit/s"
delay = "10 ms"
fragment = "auto"
underlay = {{ kind = "udp", listen = "192.0.2.{last}:7007", peer = "192.0.2.{other}:7007" }}
security = "none"
{}"#,
        directory.display(),
        files_and_voice(4, "{ protocol = \"udp\" }")
    )
}

/// Sends `count` datagrams of `len` bytes, `gap` apart, and counts those that arrive.
fn datagrams(
    from: &Namespace,
    to: &Namespace,
    port: u16,
    count: usize,
    len: usize,
    gap: Duration,
) -> usize {
    let (ready, is_ready) = std::sync::mpsc::channel();
    let receiver = to.thread(move || {
        let socket = UdpSocket::bind(address(&format!("10.7.0.2:{port}"))).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(2)))
            .unwrap();
        ready.send(()).unwrap();
        let mut buffer = [0; 2000];
        let mut seen = std::collections::BTreeSet::new();
        while seen.len() < count
            && let Ok(length) = socket.recv(&mut buffer)
        {
            assert_eq!(length, len);
            let id = u32::from_be_bytes(buffer[..4].try_into().unwrap());
            assert!(buffer[4..len].iter().all(|byte| *byte == id as u8), "{id}");
            assert!(seen.insert(id), "{id} twice");
        }
        seen.len()
    });
    is_ready.recv().unwrap();
    from.run(move || {
        let socket = UdpSocket::bind(address(&format!("10.7.0.1:{port}"))).unwrap();
        socket
            .connect(address(&format!("10.7.0.2:{port}")))
            .unwrap();
        for id in 0..count as u32 {
            let mut packet = vec![id as u8; len];
            packet[..4].copy_from_slice(&id.to_be_bytes());
            socket.send(&packet).unwrap();
            std::thread::sleep(gap);
        }
    });
    receiver.join().unwrap()
}

#[test]
fn large_packets_cross_a_narrow_path_in_parts_and_small_ones_together() {
    if !can_run("large_packets_cross_a_narrow_path_in_parts_and_small_ones_together") {
        return;
    }
    let (left, right, emulator) = Air::between_hosts("10 ms");
    for end in [&left, &right] {
        end.ip("link set wire mtu 576");
    }
    let directory = tempfile::tempdir().unwrap();
    let nodes = [
        Running::start(&left, &node(0, directory.path())).unwrap(),
        Running::start(&right, &node(1, directory.path())).unwrap(),
    ];
    for node in &nodes {
        node.wait_until("established", |s| s.peers[0].session.state == "confirmed");
        assert_eq!(node.status().tun.mtu_bytes, 1500);
    }

    transfer(&left, &right, address("10.7.0.2:7001"), 2_000_000);
    let arrived = datagrams(&left, &right, 7002, 100, 1_400, Duration::from_millis(20));
    println!("{arrived} of 100 datagrams of 1400 B in parts");
    assert!(arrived > 50, "{arrived} of 100");

    // A burst of small packets, which cannot all leave at once.
    let before = service(&nodes[0].status().peers[0], "voice").ledger;
    let arrived = datagrams(&left, &right, 7003, 400, 60, Duration::ZERO);
    let after = service(&nodes[0].status().peers[0], "voice").ledger;
    let packets = after.packets_sent - before.packets_sent;
    let frames = after.originals_sent() - before.originals_sent();
    println!("{packets} small packets in {frames} frames, {arrived} arrived");
    assert!(arrived > 200, "{arrived} of 400");
    assert!(packets >= 400 && frames < packets, "{packets} in {frames}");

    let [left, right] = nodes.map(Running::stop);
    let (sent, got) = (
        &service(&left.peers[0], "files").ledger,
        &service(&right.peers[0], "files").ledger,
    );
    assert!(sent.packets_cut > 1_000, "{sent:?}");
    assert_eq!(got.packets_incomplete + got.malformed, 0, "{got:?}");
    assert_eq!(
        got.packets_reassembled, sent.packets_cut,
        "{sent:?} {got:?}"
    );
    assert_eq!(got.packets_delivered, sent.packets_sent, "to the packet");
    for status in [left, right] {
        assert_eq!(status.peers[0].path_narrowed, 0, "a datagram was too long");
        assert_eq!(status.all_drops().get("send-too-big"), None);
    }
    emulator.stop();
}
