//! Flows that change their service according to their behaviour: their packets still arrive once and in order.

use std::collections::BTreeMap;

use airlane_base::{Duration, Instant};
use airlane_link::HeaderProfile::{Live, Sealed};
use airlane_link::config::by_goal;
use airlane_link::{ClassesConfig, ServiceConfig};
use airlane_testkit::{Fate, Pair, Scripted, Setup, TestPacket};
use proptest::prelude::*;

use crate::strategies::cases;

/// Services by goal, and classes by behaviour, as in a file without such settings.
fn setup(sealed: bool, rate: &str) -> Setup {
    let header = if sealed { Sealed } else { Live };
    let mut setup = Setup::new(header).rate(rate);
    setup.config.services = by_goal()
        .iter()
        .map(|service: &ServiceConfig| service.resolve(header))
        .collect();
    let classes: ClassesConfig = serde_json::from_str("\"behaviour\"").unwrap();
    setup.config.classes = classes.rules(&setup.config.services);
    setup
}

/// A phase of a flow.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Small packets: how many, and how far apart.
    Small(u32, u64),
    /// Large packets at 4 Mbit/s.
    Large(u32),
    /// Large packets, all at once.
    Burst(u32),
    Pause(u64),
}

fn phases() -> impl Strategy<Value = Vec<Phase>> {
    let phase = prop_oneof![
        (1u32..60, prop::sample::select(vec![1u64, 5, 20])).prop_map(|(n, ms)| Phase::Small(n, ms)),
        (1u32..1_400).prop_map(Phase::Large),
        (1u32..30).prop_map(Phase::Burst),
        (1u64..1_500).prop_map(Phase::Pause),
    ];
    prop::collection::vec(phase, 1..6)
}

/// Packets of all flows in order of time: time, end, flow, length.
fn offers(flows: &[(usize, u16, Vec<Phase>)]) -> Vec<(u64, usize, u16, usize)> {
    let mut all = Vec::new();
    for (end, flow, phases) in flows {
        let mut at = u64::from(*flow) * 333 + *end as u64 * 100;
        for phase in phases {
            match *phase {
                Phase::Small(n, ms) => {
                    for _ in 0..n {
                        all.push((at, *end, *flow, 120));
                        at += ms * 1_000;
                    }
                }
                Phase::Large(n) => {
                    for _ in 0..n {
                        all.push((at, *end, *flow, 1_000));
                        at += 2_000;
                    }
                }
                Phase::Burst(n) => {
                    for _ in 0..n {
                        all.push((at, *end, *flow, 1_000));
                    }
                }
                Phase::Pause(ms) => at += ms * 1_000,
            }
        }
    }
    all.sort_unstable();
    all
}

fn check(setup: &Setup, flows: &[(usize, u16, Vec<Phase>)], script: Vec<Fate>) -> [Vec<u64>; 2] {
    let mut pair = Pair::new(setup, Scripted::new(script));
    pair.originals_in_order = true;
    let mut offered: [BTreeMap<u16, u64>; 2] = Default::default();
    for (at, end, flow, len) in offers(flows) {
        let now = pair.now().as_nanos() / 1_000;
        pair.run_for(Duration::from_micros(at.saturating_sub(now)));
        let id = offered[end].entry(flow).or_default();
        pair.offer(end, TestPacket::new(0, *id, len).of_flow(flow));
        *id += 1;
    }
    pair.run_until_quiet(Instant::from_nanos(600_000_000_000));
    for (end, offered) in offered.iter().enumerate() {
        let mut came: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
        for delivery in pair.delivered(1 - end) {
            let packet = &delivery.packet;
            came.entry(packet.flow).or_default().push(packet.id);
        }
        for (flow, ids) in &came {
            let overtaken = ids.iter().zip(&ids[1..]).find(|(id, next)| id >= next);
            assert_eq!(overtaken, None, "flow {flow} from end {end}");
        }
        // Packets that did not arrive were dropped by a queue, and counted.
        let dropped = |service| pair.ledger(end, service).packets_dropped();
        let dropped: u64 = (0..6).map(dropped).sum();
        let came: usize = came.values().map(Vec::len).sum();
        assert_eq!(came as u64 + dropped, offered.values().sum::<u64>());
    }
    [0, 1].map(|end| {
        let services = 0..6;
        services
            .map(|service| pair.ledger(end, service).packets_sent)
            .collect()
    })
}

proptest! {
    #![proptest_config(cases(24))]

    /// Without losses no packet overtakes another, whatever services a flow uses, and nothing is lost on the way.
    #[test]
    fn a_flow_that_moves_keeps_its_order(
        sealed: bool,
        flows in prop::collection::vec((0..2usize, phases()), 1..3),
    ) {
        let flows = flows.into_iter().enumerate();
        let flows: Vec<_> = flows.map(|(flow, (end, phases))| (end, flow as u16, phases)).collect();
        check(&setup(sealed, "9 Mbit/s"), &flows, vec![]);
    }
}

/// A file and a call on unknown ports, each in the service of its goal, at the end that sends it.
#[test]
fn a_file_and_a_call_get_their_services() {
    let call = |end| (end, 1, vec![Phase::Small(300, 20)]);
    let file = (0, 2, vec![Phase::Large(3_000)]);
    let acknowledgments = (1, 2, vec![Phase::Small(1_500, 4)]);
    let flows = [call(0), call(1), file, acknowledgments];
    let sent = check(&setup(true, "20 Mbit/s"), &flows, vec![]);
    let [files, pages, calls] = [1, 2, 3];
    for end in sent {
        assert!(end[calls] > 280, "{end:?}");
        assert!(end[files] * 2 > end[pages] * 3, "{end:?}");
        assert_eq!(end[5], 0, "{end:?}");
    }
}
