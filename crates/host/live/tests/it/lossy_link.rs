//! Two nodes over an emulated lossy link.
//!
//! ```text
//!  left: air0 ─ up ─ wire ═══ one [ air: 20 Mbit/s, 25 ms, 125 kB, 5 % loss ] two ═══ wire ─ up ─ air0 :right
//! ```

use crate::common::air::Air;
use crate::common::traffic::{address, echoed, transfer};
use crate::common::{Running, can_run, check_voice, files_and_voice, service};

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
rate = "19.5 Mbit/s"
delay = "25 ms"
underlay = {{ kind = "udp", listen = "192.0.2.{last}:7007", peer = "192.0.2.{other}:7007" }}
security = "none"
{}"#,
        directory.display(),
        files_and_voice(2, "{ protocol = \"udp\" }")
    )
}

#[test]
fn a_file_and_datagrams_cross_a_link_that_loses_a_frame_in_twenty() {
    if !can_run("a_file_and_datagrams_cross_a_link_that_loses_a_frame_in_twenty") {
        return;
    }
    let (left, right, air) = Air::between_hosts("25 ms");
    let directory = tempfile::tempdir().unwrap();
    let nodes = [
        Running::start(&left, &node(0, directory.path())).unwrap(),
        Running::start(&right, &node(1, directory.path())).unwrap(),
    ];
    for node in &nodes {
        node.wait_until("established", |s| s.peers[0].session.state == "confirmed");
    }

    let answered = echoed(
        [&left, &right],
        address("10.7.0.1:0"),
        address("10.7.0.2:5004"),
        // With this many, no loss at all, and thus nothing to repair, happens once in 300,000 runs.
        250,
    );
    transfer(&left, &right, address("10.7.0.2:8080"), 10_000_000);
    let statuses = nodes.map(Running::stop);
    check_voice(&statuses, answered);
    for status in statuses {
        let voice = service(&status.peers[0], "voice");
        assert!(voice.ledger.packets_recovered > 0);
        let files = service(&status.peers[0], "files");
        assert_eq!(files.ledger.residual_lost, 0);
        assert!(status.all_drops().is_empty(), "{:?}", status.all_drops());
    }
    let report = air.stop();
    assert!(report.down.lost_air.frames > 300 && report.up.lost_air.frames > 50);
    assert!(
        report.down.super_packets > 0,
        "frames leave together, and are lost alone"
    );
}
