//! Faults that a link and the connections over it survive: a period of total loss, a replaced cable, a
//! restarted peer. The link recovers, and the ledger accounts for the losses. `make soak` judges how soon.

use std::time::{Duration, Instant};

use airlane_testkit::Log;

use crate::common::air::Air;
use crate::common::pair::{Pair, SERVER, established, join};
use crate::common::traffic::{Transfer, address, echoed};
use crate::common::{Namespace, PATIENCE, Running, cable, can_run, service};

fn begin_transfer(pair: &Pair) -> Transfer {
    let transfer = Transfer::begin(&pair.ends[0], &pair.ends[1], address(SERVER));
    std::thread::sleep(Duration::from_millis(300));
    transfer
}

/// Waits until the link delivers packets again.
fn until_delivering(node: &Running) {
    let before = node.status().tun.packets_written;
    node.wait_until("delivering again", |status| {
        status.tun.packets_written > before
    });
}

#[test]
fn recovery_after_an_outage_takes_little_time() {
    let Some(pair) = Pair::new("recovery_after_an_outage_takes_little_time") else {
        return;
    };
    let nodes = [0, 1].map(|end| pair.start(end));
    let before = nodes.each_ref().map(established);
    let transferring = begin_transfer(&pair);
    // Frames to a wrong address are lost without any error.
    let wrong = "lladdr 02:00:00:00:00:99 dev wire nud permanent";
    pair.ends[0].ip(&format!("neigh replace 192.0.2.2 {wrong}"));
    pair.ends[1].ip(&format!("neigh replace 192.0.2.1 {wrong}"));
    std::thread::sleep(Duration::from_secs(5));
    pair.ends[0].ip("neigh del 192.0.2.2 dev wire");
    pair.ends[1].ip("neigh del 192.0.2.1 dev wire");
    until_delivering(&nodes[1]);
    transferring.end();
    for (node, before) in nodes.into_iter().zip(before) {
        let status = node.stop();
        assert_eq!(
            status.peers[0].session.id, before.peers[0].session.id,
            "the session goes on"
        );
        let files = service(&status.peers[0], "files");
        assert_eq!(files.ledger.residual_lost, 0, "every frame was repaired");
    }
}

#[test]
fn a_replaced_interface_carries_on() {
    let Some(pair) = Pair::new("a_replaced_interface_carries_on") else {
        return;
    };
    let nodes = [0, 1].map(|end| pair.start(end));
    let before = nodes.each_ref().map(established);
    let transferring = begin_transfer(&pair);
    pair.ends[0].ip("link del wire");
    std::thread::sleep(Duration::from_millis(500));
    join(&pair.ends);
    until_delivering(&nodes[1]);
    transferring.end();
    assert_eq!(
        nodes[1].status().peers[0].session.id,
        before[1].peers[0].session.id
    );
}

#[test]
fn a_connection_outlives_the_node_that_carried_it() {
    let Some(pair) = Pair::new("a_connection_outlives_the_node_that_carried_it") else {
        return;
    };
    let [left, right] = [0, 1].map(|end| pair.start(end));
    let before = established(&left).peers[0].session.id;
    let transferring = begin_transfer(&pair);
    drop(right);
    let right = pair.start(1);
    established(&right);
    transferring.end();
    assert_ne!(left.status().peers[0].session.id, before);
}

/// Captures the log of this thread from now on.
fn listen(log: Log) {
    let said = tracing_subscriber::fmt().with_ansi(false);
    let said = said.with_writer(move || log.clone()).finish();
    // Lasts until the thread ends.
    std::mem::forget(tracing::subscriber::set_default(said));
}

fn lines_with(log: &Log, part: &str) -> Vec<String> {
    let said = log.text();
    let lines = said.lines().filter(|line| line.contains(part));
    lines.map(str::to_owned).collect()
}

/// A log entry about unsent datagrams helps only if it names the interface.
#[test]
fn the_log_names_an_interface_that_sends_nothing() {
    let Some(pair) = Pair::new("the_log_names_an_interface_that_sends_nothing") else {
        return;
    };
    let log = Log::default();
    let (listening, file) = (log.clone(), pair.file(0, &pair.keys[1]));
    let left = Running::start_with(&pair.ends[0], &file, move |_| listen(listening)).unwrap();
    let _right = pair.start(1);
    established(&left);
    pair.ends[0].ip("link set wire down");
    let deadline = Instant::now() + PATIENCE;
    let said = loop {
        if let [first, ..] = &lines_with(&log, "a datagram did not leave")[..] {
            break first.clone();
        }
        assert!(Instant::now() < deadline, "the log says nothing");
        std::thread::sleep(Duration::from_millis(50));
    };
    for part in ["192.0.2.2:7007", "no route; wire is down", "unreachable"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

/// The emulator waits for an interface that was set down.
#[test]
fn an_emulator_survives_an_interface_that_is_switched_off() {
    if !can_run("an_emulator_survives_an_interface_that_is_switched_off") {
        return;
    }
    let [left, middle, right] = ["left", "middle", "right"].map(Namespace::new);
    for (host, last, end) in [(&left, 1, "one"), (&right, 2, "two")] {
        cable(host, "wire", &middle, end);
        host.ip(&format!("addr add 192.0.2.{last}/24 dev wire"));
    }
    let text = "schema = 1\ninterfaces = [\"one\", \"two\"]\nrate = \"20 Mbit/s\"\n";
    let air = Air::start(&middle, text);
    let ends = [address("192.0.2.1:0"), address("192.0.2.2:5004")];
    let crosses = || echoed([&left, &right], ends[0], ends[1], 3) > 0;
    assert!(crosses());
    middle.ip("link set one down");
    std::thread::sleep(Duration::from_millis(200));
    middle.ip("link set one up");
    let deadline = Instant::now() + PATIENCE;
    while !crosses() {
        assert!(Instant::now() < deadline, "nothing crosses any more");
    }
    assert_eq!(air.stop().lost_interface, None);
}
