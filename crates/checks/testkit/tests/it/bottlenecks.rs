//! Ports that find their rates share a bottleneck by their weights, and otherwise do not affect each other.

use std::cell::RefCell;
use std::rc::Rc;

use airlane_base::{Duration, Rate};
use airlane_link::HeaderProfile::Live;
use airlane_link::config::RateLimit;
use airlane_link::{Below, Bottlenecks};
use airlane_testkit::{Adversary, Bottleneck, FrameDeparture, Pair, Setup, TestPacket};

const QUEUE: &str = "kind = \"drop-tail\", limit = \"100 packets\"";

/// An adversary that sends each pair's frames through the bottleneck below it.
fn below(of: &Rc<RefCell<Bottleneck>>) -> impl Adversary + use<> {
    let of = Rc::clone(of);
    move |departure: FrameDeparture<'_>| of.borrow_mut().fate(departure)
}

fn bottleneck(mbps: u64, overhead: usize) -> Rc<RefCell<Bottleneck>> {
    let rate = Rate::from_bps(mbps * 1_000_000).unwrap();
    Rc::new(RefCell::new(Bottleneck::new(
        rate,
        overhead,
        Duration::from_millis(50),
        0.0,
    )))
}

/// Two saturated stations with weights 3 and 1, for a minute: Mbit/s of each in the last 30 s.
fn shares(links: [&Rc<RefCell<Bottleneck>>; 2], shared: bool) -> ([f64; 2], bool) {
    let mut setup = Setup::new(Live).rate("1 Gbit/s");
    setup.config.delay = Duration::from_millis(25);
    setup.config.rate_limit = RateLimit::Found;
    let setup = setup.service(1, 1.0, "kind = \"sr-m2\"", QUEUE);
    let mut pairs = links.map(|link| Pair::new(&setup, below(link)));
    let mut bottlenecks = Bottlenecks::default();
    let mut before = [0, 0];
    for ms in 0..60_000 {
        for pair in &mut pairs {
            for _ in 0..3 {
                let id = pair.ledger(0, 1).packets_offered;
                pair.offer(0, TestPacket::new(1, id, 1_000));
            }
            pair.run_for(Duration::from_millis(1));
        }
        if shared {
            let now = pairs[0].now();
            let seen = [0, 1].map(|at| Below {
                port: at as u8,
                weight: [3.0, 1.0][at],
                seen: pairs[at].port(0).seen(now),
            });
            bottlenecks.look(now, &seen, |port, bps| {
                pairs[usize::from(port)].port_mut(0).shift_found(bps)
            });
        }
        if ms == 30_000 {
            before = [0, 1].map(|at| pairs[at].delivered(1).len());
        }
    }
    let got = [0, 1].map(|at| (pairs[at].delivered(1).len() - before[at]) as f64 * 8e3 / 30e6);
    (got, bottlenecks.are_together(0, 1))
}

/// A single minute is chaotic: the mean over several with different header sizes is judged.
#[test]
fn weights_hold_behind_an_unknown_bottleneck() {
    let overheads = 17..=22;
    let ratios = overheads.clone().map(|overhead| {
        let one = bottleneck(20, overhead);
        let ([a, b], together) = shares([&one, &one], true);
        println!("{a:.1} and {b:.1} Mbit/s, together {together}");
        assert!(together, "{overhead} B");
        assert!(a + b > 17.0, "{overhead} B: {a} {b}");
        assert!(a / b > 1.3, "{overhead} B: {a} {b}");
        a / b
    });
    let mean = ratios.sum::<f64>() / overheads.count() as f64;
    assert!((2.4..3.6).contains(&mean), "{mean}");
}

#[test]
fn separate_bottlenecks_are_not_coupled() {
    for mbps in [[20, 20], [20, 5], [5, 20]] {
        let [with, without] = [true, false].map(|shared| {
            let links = mbps.map(|mbps| bottleneck(mbps, 17));
            shares([&links[0], &links[1]], shared)
        });
        println!("{mbps:?}: {with:?} {without:?}");
        for at in [0, 1] {
            assert!(
                with.0[at] > 0.95 * without.0[at],
                "{mbps:?}: {with:?} {without:?}"
            );
        }
    }
}
