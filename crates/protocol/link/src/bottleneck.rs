//! Which ports have one bottleneck below them, and how they share what that carries.
//!
//! Ports that find their rates behind one link compete below it as strangers do, and their weights say nothing. But they
//! meet the same queue: what their marks wait for rises and falls together. Behind links of their own it does so by
//! chance alone.
//!
//! ```text
//! every 50 ms        q of each port that is busy and was told something of late
//! together           the correlation of both ports' q over some 10 s; from above JOINS, while above PARTS
//! among those        each sends its share of what all send, by their weights: what it found goes a part of the way
//!                    there, and the sum of what all found stays
//! ```
//!
//! What was found is moved, and never made: their sum stays, and each finder goes on from there. A port that does not use
//! its rate takes no part, so the others have all that is left.
//!
//! Invariants: as many ports as a [`SharedLink`](crate::SharedLink) has; nothing is allocated after the start. Left out:
//! bottlenecks that two of three ports share with others.

use airlane_base::{Duration, Instant};

use crate::SharedLink;

const PORTS: usize = SharedLink::PORTS;
const EVERY: Duration = Duration::from_millis(50);
/// Weight of what is newest: of 200 looks.
const NEWEST: f64 = 1.0 / 200.0;
/// As many looks at a pair before anything is said of it.
const ENOUGH: u32 = 60;
const JOINS: f64 = 0.7;
const PARTS: f64 = 0.4;
/// Queues below this are noise, milliseconds.
const LEAST_DEVIATION: f64 = 1.0;
/// By this part of what is missing rates move at each look.
const MOVES: f64 = 0.35;

/// What a port saw of what is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its last mark waited for so long, microseconds.
    pub queue_us: i64,
    /// What it takes the link to carry, bit/s.
    pub bps: u64,
    /// What it has sent of late, bit/s: less, as queues have to go.
    pub sent_bps: u64,
    /// Whether it sends about that much.
    pub busy: bool,
}

/// A port by its number, its weight, and what it saw of late; none: nothing.
#[derive(Clone, Copy, Debug)]
pub struct Below {
    /// The port's number.
    pub port: u8,
    /// Its share, relative to the others'.
    pub weight: f64,
    /// What it saw.
    pub seen: Option<Seen>,
}

impl Below {
    /// What a port saw that uses its rate.
    fn busy(&self) -> Option<Seen> {
        self.seen.filter(|seen| seen.busy)
    }
}

/// What two ports saw at the same moments: means, squares and products of their queues, milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Pair {
    looks: u32,
    mean: [f64; 2],
    square: [f64; 2],
    product: f64,
    together: bool,
    /// What was last said of it.
    told: bool,
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
    /// By two numbers, the lower first.
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

    /// Whether two ports have been found behind one bottleneck.
    pub fn are_together(&self, a: u8, b: u8) -> bool {
        a != b && self.pairs[Self::at(a.into(), b.into())].together
    }

    /// Two ports that have come together since it was last asked, or have parted.
    pub fn poll_change(&mut self) -> Option<(u8, u8, bool)> {
        let all = (1..PORTS).flat_map(|high| (0..high).map(move |low| (low, high)));
        let has_changed = |(low, high): &(usize, usize)| {
            let pair = &self.pairs[Self::at(*low, *high)];
            pair.told != pair.together
        };
        let (low, high) = { all }.find(has_changed)?;
        let pair = &mut self.pairs[Self::at(low, high)];
        pair.told = pair.together;
        Some((low as u8, high as u8, pair.together))
    }

    /// The number is another port's from now on.
    pub fn forget(&mut self, port: u8) {
        let others = (0..PORTS).filter(|other| *other != usize::from(port));
        for other in others {
            self.pairs[Self::at(port.into(), other)] = Pair::default();
        }
    }

    /// When [`Bottlenecks::look`] has something to see.
    pub fn poll_timeout(&self) -> Instant {
        self.next
    }

    /// Looks at all ports: `moves` is told which port is to take which rate as found, bit/s.
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
        // Who shares with the first of a group shares with all of it.
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
            // Who sends more than its share of what all send takes so much less of what all found.
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

    /// Queues of two ports for so many seconds, in ms; what each takes the link to carry then.
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

    /// A queue that grows for some looks and goes.
    fn saw(look: u64, period: u64) -> f64 {
        20.0 * (look % period) as f64 / period as f64
    }

    #[test]
    fn ports_that_meet_one_queue_share_what_it_leaves_by_their_weights() {
        let (bps, together) = watch(|look, rng| {
            let queue = saw(look, 17);
            [queue + rng.uniform() * 4.0, queue + rng.uniform() * 4.0]
        });
        assert!(together);
        assert!(bps[0].abs_diff(15_000_000) < 100_000, "{bps:?}");
        assert!(bps[1].abs_diff(5_000_000) < 100_000, "{bps:?}");
    }

    #[test]
    fn ports_that_meet_queues_of_their_own_keep_what_they_found() {
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
        // Two empty queues say nothing.
        let (_, together) = watch(|_, _| [0.0, 0.0]);
        assert!(!together);
    }
}
