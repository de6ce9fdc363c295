//! The frame schedulers (docs/spec/multi-service.md, section 9.4).

use airlane_link::schedule::{Fifo, Scfq, Schedule};

scheduler_conformance!(scfq, Scfq<u64>);
scheduler_conformance!(fifo, Fifo<u64>);

#[test]
fn scfq_stays_within_the_fairness_bound() {
    crate::conformance::scheduler::stays_within_the_fairness_bound::<Scfq<u64>>();
}

/// The comparison in Xylomenos 1999, chapter 8: without scheduling, the order of arrival decides.
#[test]
fn fifo_serves_in_order_of_arrival() {
    let mut fifo = Fifo::default();
    for (item, service) in [9, 3, 3, 5, 0].into_iter().enumerate() {
        fifo.enqueue(service, 100 * item, item as u64);
    }
    let served: Vec<_> = std::iter::from_fn(|| fifo.dequeue())
        .map(|turn| turn.service)
        .collect();
    assert_eq!(served, [9, 3, 3, 5, 0]);
}

/// XYL-R-3: the others share the capacity that a service leaves, in proportion to their rates.
#[test]
fn scfq_shares_what_is_left_in_proportion() {
    let mut scfq: Scfq<u64> = Scfq::default();
    for (service, rate) in [(1, 0.5), (2, 0.3), (3, 0.2)] {
        scfq.set_rate(service, rate);
    }
    for item in 0..1_000 {
        scfq.enqueue(2, 100, item);
        scfq.enqueue(3, 100, item);
    }
    let served: Vec<usize> = (0..500)
        .filter_map(|_| scfq.dequeue())
        .map(|turn| turn.service)
        .collect();
    let twos = served.iter().filter(|s| **s == 2).count();
    assert!((299..=301).contains(&twos), "{twos} of 500");
}
