//! A station that sends probes about paths that it is not part of: nobody receives them.

use std::net::SocketAddr;

use airlane_session::{Offer, StatusProbe};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::common::PATIENCE;
use crate::common::cell::{Cell, Told};
use crate::common::traffic::address;

/// Probes of a flow of the farm whose ends everybody knows: forward and returning, and who may send each.
#[test]
fn only_the_ends_of_a_flow_may_send_its_status_probes() {
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
    // The forward probe; the base forwards it once it has counts of an interval.
    let mut arrived = None;
    while arrived.is_none() {
        assert!(begun.elapsed() < PATIENCE);
        pier.tell(probe(FORGED));
        farm.tell(probe(1));
        arrived = mill.hear();
    }
    assert_eq!(arrived.unwrap().number, 1);
    // The returning probe: anyone who sees the farm's packets knows its number and ends.
    pier.tell(probe(FORGED).turned(true));
    // A node on the path that is not its end may not send it either.
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

/// Any probes that three stations send about each other's paths.
#[test]
fn probes_between_three_peers_go_where_their_paths_lead() {
    let asked = std::env::var("PROPTEST_CASES").ok();
    let cases = asked.and_then(|n| n.parse().ok()).unwrap_or(64);
    let mut cell = Cell::new();
    let all = (
        prop::collection::vec(told(), 1..12),
        prop::collection::vec((0_usize..60, any::<u8>()), 1..4),
    );
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    // Probes that were sent change the state, so a case cannot be repeated or shrunk.
    for _ in 0..cases {
        let (all, changes) = all.new_tree(&mut runner).unwrap().current();
        cell.tell_all(&all, &changes);
    }
    let forged = cell.forged;
    let status = cell.end();
    // Each was refused: for its source, or as malformed.
    let drops = status.all_drops();
    let refused = ["wrong-source", "hello-malformed"].map(|reason| drops.get(reason).copied());
    let refused: u64 = refused.into_iter().flatten().sum();
    assert!(refused >= forged, "{refused} of {forged}: {status:#?}");
}
