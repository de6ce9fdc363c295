//! Order within flows: each flow's packets arrive once and in order, and none waits for another flow.

use std::collections::BTreeMap;

use airlane_base::{Duration, Instant};
use airlane_link::HeaderProfile::{Live, Sealed};
use proptest::prelude::*;

use crate::strategies::{Offer, cases, fates, traffic};
use airlane_testkit::{Fate, Pair, Scripted, Setup, TestPacket};

const SERVICE: u8 = 1;
const ROOMY: &str = "kind = \"drop-tail\", limit = \"100000 packets\"";
const SCHEMES: [&str; 5] = [
    "kind = \"sr\", window = 16",
    "kind = \"sr-m1\", window = 16",
    "kind = \"sr-m2\", window = 16",
    "kind = \"sr-m2\", window = 40, keepalives = 4, repeat-naks = true, dejitter = true",
    "kind = \"sr-m2\", window = 16, keepalives = 4, repeat-naks = true, \
     copies = { number = 2, after = \"16 ms\", share = 0.2 }",
];

fn setup(scheme: &str, sealed: bool) -> Setup {
    let scheme = format!("{scheme}, timers = \"tight\", order = \"flow\"");
    let header = if sealed { Sealed } else { Live };
    Setup::new(header).service(SERVICE, 1.0, &scheme, ROOMY)
}

/// Packets by end and flow, in order of delivery.
fn by_flow(pair: &Pair<Scripted>, end: usize) -> BTreeMap<u16, Vec<u64>> {
    let mut flows: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    for delivery in pair.delivered(end) {
        let packet = &delivery.packet;
        flows.entry(packet.flow).or_default().push(packet.id);
    }
    flows
}

fn check(setup: &Setup, offers: &[(Offer, u16)], script: Vec<Fate>) {
    let mut pair = Pair::new(setup, Scripted::new(script));
    pair.early_calls = true;
    let mut offered = [BTreeMap::new(), BTreeMap::new()];
    for (offer, flow) in offers {
        let ids: &mut Vec<u64> = offered[offer.end].entry(*flow).or_default();
        let packet = TestPacket::new(SERVICE, ids.len() as u64, offer.len).of_flow(*flow);
        ids.push(packet.id);
        pair.offer(offer.end, packet);
        pair.run_for(offer.gap);
    }
    pair.run_until_quiet(Instant::from_nanos(600_000_000_000));
    for (end, offered) in offered.iter().enumerate() {
        assert_eq!(by_flow(&pair, 1 - end), *offered, "{setup:?}");
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn each_flow_is_delivered_once_and_in_order(
        scheme in 0..SCHEMES.len(),
        filling in 0..3,
        sealed: bool,
        offers in traffic(80, 1, 12),
        flows in prop::collection::vec(0u16..5, 80),
        script in fates(200, 60),
    ) {
        let mut setup = setup(SCHEMES[scheme], sealed);
        if filling > 0 {
            setup = setup.together("largest = \"300 B\"");
        }
        if filling > 1 {
            setup = setup.cut(150);
        }
        let offers: Vec<(Offer, u16)> = offers.into_iter().zip(flows).collect();
        check(&setup, &offers, script);
    }
}

/// A frame of one flow and its repair are lost: the packets of the other flow are delivered as if nothing had
/// happened.
#[test]
fn no_flow_waits_for_the_hole_of_another() {
    let arrivals = |order: &str| {
        let scheme = format!("kind = \"sr-m2\", timers = \"tight\", repeat-naks = true{order}");
        let setup = Setup::new(Live).service(SERVICE, 1.0, &scheme, ROOMY);
        let mut pair = Pair::new(&setup, Scripted::new(vec![Fate::Lose]));
        for id in 0..40 {
            pair.offer(0, TestPacket::new(SERVICE, id, 500).of_flow(id as u16 % 2));
        }
        pair.run_for(Duration::from_secs(5));
        let at = |flow: u16| {
            let mut own = pair.delivered(1).iter().filter(|d| d.packet.flow == flow);
            own.next().map(|d| d.at)
        };
        (at(0).unwrap(), at(1).unwrap())
    };
    let (first, second) = arrivals(", order = \"flow\"");
    assert!(second < first, "{second:?} {first:?}");
    let (first, second) = arrivals("");
    assert_eq!(second, first, "one for all");
}
