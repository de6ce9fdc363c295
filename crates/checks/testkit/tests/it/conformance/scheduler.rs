//! What every frame scheduler must do, whatever its order: the link is never idle while a frame waits, no frame is
//! lost or duplicated, and frames of a service keep their order.

use std::collections::VecDeque;

use airlane_link::schedule::{Schedule, Turn};
use proptest::prelude::*;

use crate::strategies::cases;

/// Runs the suite on a scheduler: `scheduler_conformance!(scfq, Scfq<u64>)`.
macro_rules! scheduler_conformance {
    ($name:ident, $scheduler:ty) => {
        mod $name {
            use super::*;

            #[test]
            fn conserves_items() {
                crate::conformance::scheduler::conserves_items::<$scheduler>();
            }

            #[test]
            fn repeats_itself() {
                crate::conformance::scheduler::repeats_itself::<$scheduler>();
            }

            #[test]
            fn is_transparent_to_one_service() {
                crate::conformance::scheduler::is_transparent_to_one_service::<$scheduler>();
            }
        }
    };
}

/// An operation on a scheduler.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation {
    /// A frame of a service, with its length in bytes.
    Enqueue(u8, usize),
    /// The link is ready for a frame.
    Dequeue,
    /// A new share for a service.
    SetRate(u8, f64),
    /// Discards the waiting frames of a service.
    Remove(u8),
}

/// Up to `n` operations on the services `0..services`.
pub(crate) fn operations(n: usize, services: u8) -> impl Strategy<Value = Vec<Operation>> {
    let operation = prop_oneof![
        10 => (0..services, 1..=1_500usize).prop_map(|(s, len)| Operation::Enqueue(s, len)),
        9 => Just(Operation::Dequeue),
        1 => (0..services, 0.01..10.0).prop_map(|(s, rate)| Operation::SetRate(s, rate)),
        1 => (0..services).prop_map(Operation::Remove),
    ];
    prop::collection::vec(operation, 0..n)
}

/// The reference model: one queue per service.
#[derive(Default)]
struct Reference {
    queues: [VecDeque<(usize, u64)>; 16],
}

impl Reference {
    fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }
}

/// The next item, which must be the announced one.
fn announced<S: Schedule<u64>>(scheduler: &mut S) -> Option<Turn<u64>> {
    let told = scheduler.peek();
    let item = scheduler.dequeue();
    assert_eq!(told, item.map(|turn| (turn.service as u8, turn.len)));
    item
}

/// Each item leaves once, in the order of its service, with its length; the scheduler is empty only if nothing waits
/// (XYL-R-3).
pub(crate) fn conserves_items<S: Schedule<u64> + Default>() {
    proptest!(cases(500), |(operations in operations(400, 16))| {
        let (mut scheduler, mut reference) = (S::default(), Reference::default());
        for (item, operation) in operations.into_iter().enumerate() {
            let item = item as u64;
            match operation {
                Operation::Enqueue(service, len) => {
                    scheduler.enqueue(service, len, item);
                    reference.queues[usize::from(service)].push_back((len, item));
                }
                Operation::Dequeue => match announced(&mut scheduler) {
                    None => prop_assert!(reference.is_empty(), "idle while a frame waits"),
                    Some(Turn { service, len, item }) => {
                        let expected = reference.queues[service].pop_front();
                        prop_assert_eq!(Some((len, item)), expected);
                    }
                },
                Operation::SetRate(service, rate) => scheduler.set_rate(service, rate),
                Operation::Remove(service) => {
                    let mut removed = Vec::new();
                    scheduler.remove(service, &mut |item| removed.push(item));
                    let queue = &mut reference.queues[usize::from(service)];
                    let expected: Vec<u64> = queue.drain(..).map(|(_, item)| item).collect();
                    prop_assert_eq!(removed, expected);
                }
            }
            prop_assert_eq!(scheduler.is_empty(), reference.is_empty());
            if scheduler.is_empty() {
                scheduler.link_idle();
            }
        }
    });
}

/// Equal inputs give equal outputs.
pub(crate) fn repeats_itself<S: Schedule<u64> + Default>() {
    let run = |operations: &[Operation]| {
        let mut scheduler = S::default();
        let mut out = Vec::new();
        for (item, operation) in operations.iter().enumerate() {
            match *operation {
                Operation::Enqueue(service, len) => scheduler.enqueue(service, len, item as u64),
                Operation::Dequeue => out.push(scheduler.dequeue()),
                Operation::SetRate(service, rate) => scheduler.set_rate(service, rate),
                Operation::Remove(service) => scheduler.remove(service, &mut |_| {}),
            }
        }
        out
    };
    proptest!(cases(500), |(operations in operations(200, 16))| {
        prop_assert_eq!(run(&operations), run(&operations));
    });
}

/// With one active service, frames leave in the order in which they arrived (XYL-R-9).
pub(crate) fn is_transparent_to_one_service<S: Schedule<u64> + Default>() {
    proptest!(cases(500), |(service in 0..16u8, operations in operations(200, 1))| {
        let (mut scheduler, mut queue) = (S::default(), VecDeque::new());
        for (item, operation) in operations.into_iter().enumerate() {
            match operation {
                Operation::Enqueue(_, len) => {
                    scheduler.enqueue(service, len, item as u64);
                    let (service, item) = (usize::from(service), item as u64);
                    queue.push_back(Turn { service, len, item });
                }
                Operation::Dequeue => prop_assert_eq!(scheduler.dequeue(), queue.pop_front()),
                Operation::SetRate(_, rate) => scheduler.set_rate(service, rate),
                Operation::Remove(_) => {}
            }
        }
    });
}

/// While two services are backlogged, the bytes served of each, divided by its share, differ in every interval by no
/// more than the sum, over both, of the longest frame over its share (XYL-R-2, the bound of self-clocked fair
/// queueing). Other services come and go.
pub(crate) fn stays_within_the_fairness_bound<S: Schedule<u64> + Default>() {
    let rates = prop::collection::vec(0.05..5.0f64, 16);
    proptest!(cases(500), |(
        rates in rates,
        lengths in prop::collection::vec(1..=1_500usize, 16),
        varies: bool,
        operations in operations(600, 6),
    )| {
        let mut scheduler = S::default();
        for (service, rate) in rates.iter().enumerate() {
            scheduler.set_rate(service as u8, *rate);
        }
        // For each pair: the range of S_i / r_i - S_j / r_j since both have been backlogged.
        let mut ranges = [[Range::default(); 16]; 16];
        let mut backlog = [0u32; 16];
        for operation in operations {
            match operation {
                Operation::Enqueue(service, len) => {
                    // Services with frames of equal length are the sharper test.
                    let len = if varies { len } else { lengths[usize::from(service)] };
                    scheduler.enqueue(service, len, 0);
                    backlog[usize::from(service)] += 1;
                }
                Operation::Dequeue => {
                    let before = backlog;
                    let Some(Turn { service, len, .. }) = scheduler.dequeue() else {
                        continue;
                    };
                    backlog[service] -= 1;
                    let served = len as f64 / rates[service];
                    for other in (0..16).filter(|other| *other != service) {
                        let (i, j) = (service.min(other), service.max(other));
                        let range = &mut ranges[i][j];
                        if before[other] == 0 {
                            *range = Range::default();
                            continue;
                        }
                        range.add(if service == i { served } else { -served });
                        let longest = |s: usize| {
                            (if varies { 1_500 } else { lengths[s] }) as f64 / rates[s]
                        };
                        let bound = longest(i) + longest(j);
                        prop_assert!(
                            range.width() <= bound * (1.0 + 1e-9),
                            "services {i} and {j}: {} against {bound}",
                            range.width()
                        );
                    }
                    for s in 0..16 {
                        if backlog[s] == 0 {
                            for other in 0..16 {
                                ranges[s.min(other)][s.max(other)] = Range::default();
                            }
                        }
                    }
                    if scheduler.is_empty() {
                        scheduler.link_idle();
                    }
                }
                Operation::SetRate(..) | Operation::Remove(_) => {}
            }
        }
    });
}

/// Minimum and maximum of a running sum, from zero.
#[derive(Clone, Copy, Debug, Default)]
struct Range {
    sum: f64,
    least: f64,
    greatest: f64,
}

impl Range {
    fn add(&mut self, change: f64) {
        self.sum += change;
        self.least = self.least.min(self.sum);
        self.greatest = self.greatest.max(self.sum);
    }

    /// The greatest difference over any interval.
    fn width(&self) -> f64 {
        self.greatest - self.least
    }
}
