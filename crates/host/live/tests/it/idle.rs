//! The traffic of an idle link.

use std::time::Duration;

use crate::common::Namespace;
use crate::common::pair::{Pair, established};

/// Bytes, with Ethernet headers, that an end has received from and sent to its cable.
fn on_cable(end: &Namespace) -> u64 {
    let said = end.ip("-s link show wire");
    let below = |title: &str| {
        let mut lines = said.lines().skip_while(|line| !line.contains(title));
        let numbers = lines.nth(1).unwrap().split_whitespace();
        numbers.map(|n| n.parse::<u64>().unwrap()).next().unwrap()
    };
    below("RX:") + below("TX:")
}

#[test]
fn an_idle_link_costs_next_to_nothing() {
    let Some(pair) = Pair::new("an_idle_link_costs_next_to_nothing") else {
        return;
    };
    let nodes = [0, 1].map(|end| pair.start(end));
    for node in &nodes {
        established(node);
    }
    pair.transfer();
    // Wait until the kernel's router solicitations and the last frames are over.
    std::thread::sleep(Duration::from_secs(20));
    let measured = || {
        let before = on_cable(&pair.ends[0]);
        std::thread::sleep(Duration::from_secs(50));
        let bytes = on_cable(&pair.ends[0]) - before;
        println!("{bytes} B in 50 s, both ways");
        bytes
    };
    // Two or three hellos of 140 B with their answers, and ARP. A busy machine answers late and sends again,
    // which only adds bytes, so that a high result is measured again.
    let good = |bytes| (280..1_500).contains(&bytes);
    assert!((0..4).any(|_| good(measured())), "more in 50 s, four times");
    let status = nodes[0].status();
    assert_eq!(status.peers[0].session.state, "confirmed");
    assert_eq!(status.peers[0].session.disconnections, 0);
}
