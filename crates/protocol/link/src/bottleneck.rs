//! Detects which ports of a node share a bottleneck below them, and divides its rate among them by weight.
//!
//! Ports that estimate their rates independently compete at a shared bottleneck as strangers would, and their
//! weights have no effect. But they see the same queue: the queueing delays that their marks measure rise and
//! fall together. The delays of ports with separate bottlenecks are correlated only by chance.
//!
//! ```text
//! every 50 ms  q, the queueing delay of each busy port that has a recent measurement
//! together     from the correlation of two ports' q over some 10 s: set above JOINS, cleared below PARTS
//! in a group   each port is to send its share, by weight, of what the group sends: the estimates move part of
//!              the way there at each look, and their sum stays the same
//! ```
//!
//! Rate is only moved between ports, never added; each estimator continues from its new estimate. A port that
//! does not use its rate takes no part, so the others share all the rest.
//!
//! Invariants: it handles as many ports as a [`SharedLink`](crate::SharedLink) has; it allocates nothing
//! after the start. Left out: ports with several bottlenecks, each shared with a different set of ports.

use airlane_base::{Duration, Instant};

use crate::SharedLink;

const PORTS: usize = SharedLink::PORTS;
const EVERY: Duration = Duration::from_millis(50);
/// Weight of the newest look in the running means: an average over about 200 looks.
const NEWEST: f64 = 1.0 / 200.0;
/// Number of looks at a pair before its correlation is used.
const ENOUGH: u32 = 60;
const JOINS: f64 = 0.7;
const PARTS: f64 = 0.4;
/// Queueing delays that deviate by less than this are noise, milliseconds.
const LEAST_DEVIATION: f64 = 1.0;
/// The fraction of its error that a rate is corrected by at each look.
const MOVES: f64 = 0.35;

/// What a port measured of the path below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Queueing delay of its last mark, microseconds.
    pub queue_us: i64,
    /// Its estimate of the rate that the link carries, bit/s.
    pub bps: u64,
    /// Its recent sending rate, bit/s: below `bps` while it lets a queue drain.
    pub sent_bps: u64,
    /// Whether it sends at about that estimate.
    pub busy: bool,
}

/// A port and its recent measurement.
#[derive(Clone, Copy, Debug)]
pub struct Below {
    /// The port's number.
    pub port: u8,
    /// Its share, relative to the others'.
    pub weight: f64,
    /// Its measurement; none where it has no recent one.
    pub seen: Option<Seen>,
}

impl Below {
    /// The measurement of a port that uses its rate.
    fn busy(&self) -> Option<Seen> {
        self.seen.filter(|seen| seen.busy)
    }
}

/// The queueing delays of two ports at the same moments: running means, squares and products, milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    looks: u32,
    mean: [f64; 2],
    square: [f64; 2],
    product: f64,
    together: bool,
    /// The last state that [`Bottlenecks::poll_change`] reported.
    reported: bool,
}

impl Pair {
    fn add(&mut self, queues: [f64; 2]) {
        self.looks = self.looks.saturating_add(1);
        let weight = NEWEST.max(1.0 / f64::from(self.looks));
        let off = [0, 1].map(|at| queues[at] - self.mean[at]);
        for at in [0, 1] {
            self.mean[at] += weight * off[at];
            let square = off[at] * (queues[at] - self.mean[at]);
            self.square[at] += weight * (square - self.square[at]);
        }
        let product = off[0] * (queues[1] - self.mean[1]);
        self.product += weight * (product - self.product);
        if self.looks >= ENOUGH {
            let least = if self.together { PARTS } else { JOINS };
            self.together = self.correlation() > least;
        }
    }

    fn correlation(&self) -> f64 {
        let [a, b] = self.square.map(|s| s.sqrt().max(LEAST_DEVIATION));
        self.product / (a * b)
    }
}

/// All pairs of ports of a node.
#[derive(Clone, Debug)]
pub struct Bottlenecks {
    /// Indexed by both port numbers, the lower first.
    pairs: Box<[Pair]>,
    next: Instant,
}

impl Default for Bottlenecks {
    fn default() -> Self {
        Self {
            pairs: vec![Pair::default(); PORTS * (PORTS - 1) / 2].into(),
            next: Instant::ORIGIN,
        }
    }
}

impl Bottlenecks {
    const fn at(a: usize, b: usize) -> usize {
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        high * (high - 1) / 2 + low
    }

    /// Whether two ports have been found to share a bottleneck.
    pub fn are_together(&self, a: u8, b: u8) -> bool {
        a != b && self.pairs[Self::at(a.into(), b.into())].together
    }

    /// The next pair whose state has changed since the last report: both ports, and whether they are together
    /// now.
    pub fn poll_change(&mut self) -> Option<(u8, u8, bool)> {
        let all = (1..PORTS).flat_map(|high| (0..high).map(move |low| (low, high)));
        let has_changed = |(low, high): &(usize, usize)| {
            let pair = &self.pairs[Self::at(*low, *high)];
            pair.reported != pair.together
        };
        let (low, high) = { all }.find(has_changed)?;
        let pair = &mut self.pairs[Self::at(low, high)];
        pair.reported = pair.together;
        Some((low as u8, high as u8, pair.together))
    }

    /// Forgets everything about a port, because its number now belongs to another one.
    pub fn forget(&mut self, port: u8) {
        let others = (0..PORTS).filter(|other| *other != usize::from(port));
        for other in others {
            self.pairs[Self::at(port.into(), other)] = Pair::default();
        }
    }

    /// When [`Bottlenecks::look`] is due.
    pub fn poll_timeout(&self) -> Instant {
        self.next
    }

    /// Looks at all ports, and calls `moves` with each port whose estimate is to change and its new value,
    /// bit/s.
    pub fn look(&mut self, now: Instant, ports: &[Below], mut moves: impl FnMut(u8, u64)) {
        if now < self.next {
            return;
        }
        self.next = now + EVERY;
        for (index, one) in ports.iter().enumerate() {
            for other in &ports[..index] {
                if let (Some(a), Some(b)) = (one.busy(), other.busy()) {
                    let queues = [a, b].map(|seen| seen.queue_us as f64 / 1e3);
                    self.pairs[Self::at(one.port.into(), other.port.into())].add(queues);
                }
            }
        }
        // A port that shares with the first of a group shares with all of it.
        let mut done = 0u64;
        for (index, first) in ports.iter().enumerate() {
            if done & (1 << first.port) != 0 || first.busy().is_none() {
                continue;
            }
            let group = || {
                let rest = ports[index..].iter();
                let of_group =
                    |of: &&Below| of.port == first.port || self.are_together(first.port, of.port);
                rest.filter(of_group)
                    .filter_map(|of| Some((of, of.busy()?)))
            };
            if group().count() < 2 {
                continue;
            }
            let found = |seen: Seen| seen.bps as f64;
            let all: f64 = group().map(|(_, seen)| found(seen)).sum();
            let used: f64 = group().map(|(_, seen)| seen.sent_bps as f64).sum();
            let weights: f64 = group().map(|(of, _)| of.weight).sum();
            // A port that sends more than its share of the group's traffic gives up estimated rate in
            // proportion.
            let moved = |(of, seen): (&Below, Seen)| {
                let share = used * of.weight / weights;
                let part = (share / seen.sent_bps.max(1) as f64).clamp(0.5, 2.0);
                found(seen) * (1.0 + MOVES * (part - 1.0))
            };
            let sum: f64 = group().map(moved).sum();
            for member in group() {
                done |= 1 << member.0.port;
                moves(member.0.port, (moved(member) * all / sum) as u64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::Streams;

    /// Runs two ports with these queueing delays, in ms, for some seconds; returns both estimates and whether
    /// they are together.
    fn watch(queues: impl Fn(u64, &mut airlane_base::Rng) -> [f64; 2]) -> ([u64; 2], bool) {
        let mut bottlenecks = Bottlenecks::default();
        let mut rng = Streams::new(1, 0).stream("queues");
        let mut bps = [5_000_000, 15_000_000];
        for look in 0..600 {
            let now = Instant::ORIGIN + EVERY * look;
            let queues = queues(look, &mut rng);
            let ports = [0, 1].map(|at| {
                let seen = Seen {
                    queue_us: (queues[at] * 1e3) as i64,
                    bps: bps[at],
                    sent_bps: bps[at],
                    busy: true,
                };
                Below {
                    port: at as u8,
                    weight: [3.0, 1.0][at],
                    seen: Some(seen),
                }
            });
            bottlenecks.look(now, &ports, |port, to| bps[usize::from(port)] = to);
        }
        (bps, bottlenecks.are_together(0, 1))
    }

    /// A queue that grows for some looks and then drains at once.
    fn saw(look: u64, period: u64) -> f64 {
        20.0 * (look % period) as f64 / period as f64
    }

    #[test]
    fn ports_behind_one_queue_share_its_rate_by_weight() {
        let (bps, together) = watch(|look, rng| {
            let queue = saw(look, 17);
            [queue + rng.uniform() * 4.0, queue + rng.uniform() * 4.0]
        });
        assert!(together);
        assert!(bps[0].abs_diff(15_000_000) < 100_000, "{bps:?}");
        assert!(bps[1].abs_diff(5_000_000) < 100_000, "{bps:?}");
    }

    #[test]
    fn ports_behind_separate_queues_keep_their_rates() {
        for period in [13, 16, 29] {
            let (bps, together) = watch(|look, rng| {
                [
                    saw(look, 17) + rng.uniform() * 4.0,
                    saw(look + 5, period) + rng.uniform() * 4.0,
                ]
            });
            assert_eq!(
                (bps, together),
                ([5_000_000, 15_000_000], false),
                "{period}"
            );
        }
        // Two empty queues are no evidence.
        let (_, together) = watch(|_, _| [0.0, 0.0]);
        assert!(!together);
    }
}
