//! A de-jitter buffer: all packets of a reliable service are delayed as long as one that had to be repaired.
//!
//! Where frames are lost, every packet after a hole waits for the repair, and then all are delivered at once.
//! Senders that model the path (BBR, draft-ietf-ccwg-bbr: at most two minimum round trips in flight) measure
//! the path's round trip at moments without a hole, and starve while holes double it. The published works
//! have nothing of the kind, as their TCP does not behave so; this mechanism is our own.
//!
//! ```text
//! since       when a packet's frame arrived, or its loss was detected
//! wait        now - since of a repaired packet: how long a repair takes
//! hold        the wait that most repairs reach, while many packets of the flow wait; otherwise none
//! delivered   max(now, since + hold, delivery of the previous packet of its flow)
//! ```
//!
//! So packets held up by a hole are delivered as evenly as they arrived. Where fewer than a quarter of a
//! flow's packets wait, as between fades, holding them has no benefit: the minimum round trip is then the
//! usual one. A new flow, or one that resumes after a pause, is expected to see the average of all flows.
//!
//! Invariants: the order within a flow is kept and nothing is lost; no packet is held for longer than
//! [`AT_MOST`], unless the previous packet of its flow is; at most a service's window of packets is held,
//! beyond which the oldest leave early.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use airlane_base::{Duration, Instant};

/// Longest hold.
const AT_MOST: Duration = Duration::from_millis(250);
/// After a silence of this length, the history of a flow is obsolete.
const PAUSE: Duration = Duration::from_secs(1);
/// The fraction of packets that must wait, in units of 1 / `ONE`, before all are held.
const MANY: u32 = ONE / 4;
const ONE: u32 = 1 << 20;
/// Number of packets in the running average.
const MEMORY: u32 = 4096;
/// Weight of the assumption that half of the packets wait, in packets: the first round trips of a flow tell
/// its sender most.
const UNKNOWN: u32 = 20;
/// Number of hashed flow entries; flows that share one are held alike.
const FLOWS: usize = 256;

/// What the buffer must know of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    /// A hash of its flow.
    pub(crate) flow: u64,
    /// When its frame arrived, or its loss was detected.
    pub(crate) since: Instant,
    /// Whether a repair brought it.
    pub(crate) repaired: bool,
}

/// A held packet, its delivery time, and its sequence number for ties.
#[derive(Clone, Debug)]
struct Delayed<T> {
    at: Instant,
    number: u64,
    item: T,
}

impl<T> Ord for Delayed<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl<T> PartialOrd for Delayed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Delayed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Delayed<T> {}

/// The history of a flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    /// Fraction of packets that had to wait, in units of 1 / `ONE`.
    waiting: u32,
    /// Packets seen, up to `MEMORY`.
    seen: u32,
    /// When its last packet arrived, and when that is delivered.
    last: [Instant; 2],
}

impl Flow {
    /// The history assumed for an unknown link.
    const UNKNOWN: Self = Self {
        waiting: ONE / 2,
        seen: UNKNOWN,
        last: [Instant::ORIGIN; 2],
    };

    /// Counts a packet, which had to wait or not.
    fn add(&mut self, waits: bool) {
        self.waiting -= self.waiting / self.seen;
        if waits {
            self.waiting += ONE / self.seen;
        }
        self.seen = (self.seen + 1).min(MEMORY);
    }
}

/// Held packets, and the estimate of how long a repair takes.
#[derive(Clone, Debug)]
pub(crate) struct Dejitter<T> {
    held: BinaryHeap<Reverse<Delayed<T>>>,
    /// Number of packets so far.
    number: u64,
    room: usize,
    flows: Box<[Flow; FLOWS]>,
    /// The history of all flows together.
    all: Flow,
    /// Expected duration of a repair.
    expected: Duration,
    /// Lower estimate of the duration of most repairs.
    repair: Duration,
}

impl<T> Dejitter<T> {
    /// Changes the expected duration of a repair; measurements stay.
    pub(crate) fn expect(&mut self, expected: Duration) {
        self.expected = expected;
    }

    /// A buffer for at most `room` packets, on a link with this expected duration of a repair.
    pub(crate) fn new(room: u32, expected: Duration) -> Self {
        Self {
            held: BinaryHeap::new(),
            number: 0,
            room: room.max(1) as usize,
            flows: Box::new([Flow::UNKNOWN; FLOWS]),
            all: Flow::UNKNOWN,
            expected,
            repair: expected,
        }
    }

    /// Forgets all measurements of the link.
    pub(crate) fn forget(&mut self) {
        self.flows.fill(Flow::UNKNOWN);
        self.all = Flow::UNKNOWN;
        self.repair = self.expected;
    }

    /// Holds a packet that could be delivered now.
    pub(crate) fn push(&mut self, now: Instant, about: About, item: T) {
        let hold = self.learn(now, &about);
        let flow = self.flow(about.flow);
        let at = (about.since + hold).max(flow.last[1]).max(now);
        flow.last = [now, at];
        self.number += 1;
        let number = self.number;
        self.held.push(Reverse(Delayed { at, number, item }));
    }

    /// The next packet that is due or exceeds the room.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<T> {
        let crowded = self.held.len() > self.room;
        let due = crowded || self.deadline()? <= now;
        due.then(|| self.held.pop().map(|Reverse(held)| held.item))
            .flatten()
    }

    /// When the next packet is due.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.held.peek().map(|Reverse(first)| first.at)
    }

    fn flow(&mut self, hash: u64) -> &mut Flow {
        &mut self.flows[hash as usize % FLOWS]
    }

    /// Learns from how long a packet waited; returns how long to hold it.
    fn learn(&mut self, now: Instant, about: &About) -> Duration {
        let wait = now.saturating_since(about.since);
        let waits = wait > self.repair / 8;
        let all = self.all;
        let flow = self.flow(about.flow);
        if now.saturating_since(flow.last[0]) > PAUSE || flow.last[0] == Instant::ORIGIN {
            (flow.waiting, flow.seen) = (all.waiting, UNKNOWN.min(all.seen));
        }
        flow.add(waits);
        let holds = flow.waiting >= MANY;
        self.all.add(waits);
        if about.repaired {
            // A repair that was itself lost takes a multiple of the time, and should count little.
            self.repair = match wait < self.repair {
                true => (self.repair * 7 + wait) / 8,
                false => (self.repair * 63 + wait) / 64,
            };
        }
        match holds {
            true => self.repair.min(AT_MOST),
            false => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + MS(ms)
    }

    fn about(flow: u64, since: Instant, repaired: bool) -> About {
        About {
            flow,
            since,
            repaired,
        }
    }

    fn buffer(room: u32) -> Dejitter<u32> {
        Dejitter::new(room, MS(50))
    }

    /// Packets delivered, and when.
    fn drain(buffer: &mut Dejitter<u32>, now: Instant) -> Vec<(u32, Instant)> {
        let mut out = Vec::new();
        let mut due = now;
        loop {
            while let Some(packet) = buffer.pop(due) {
                out.push((packet, due));
            }
            match buffer.deadline() {
                Some(next) => due = due.max(next),
                None => return out,
            }
        }
    }

    #[test]
    fn packets_held_by_a_hole_are_delivered_evenly() {
        let mut buffer = buffer(100);
        // Packet 0 has been missing since 10 ms and arrives at 60; the others arrive every 10 ms meanwhile.
        let came = |packet: u32| at(10 * u64::from(packet.max(1)));
        for packet in 0..5 {
            buffer.push(at(60), about(0, came(packet), packet == 0), packet);
        }
        for (packet, went) in drain(&mut buffer, at(60)) {
            assert_eq!(went, came(packet) + MS(50), "{packet}");
        }
    }

    #[test]
    fn a_full_buffer_releases_its_oldest_early_in_order() {
        let mut buffer = buffer(3);
        let mut out = Vec::new();
        for packet in 0..10 {
            buffer.push(at(0), about(0, at(0), false), packet);
            out.extend(buffer.pop(at(0)));
            assert!(buffer.held.len() <= 3);
            assert!(buffer.deadline().unwrap() <= at(0) + AT_MOST);
        }
        assert_eq!(out.len(), 7);
        let rest = drain(&mut buffer, at(0)).into_iter();
        out.extend(rest.map(|(packet, _)| packet));
        assert!(out.into_iter().eq(0..10));
    }

    #[test]
    fn packets_are_held_while_many_of_them_wait() {
        let mut buffer = buffer(100);
        let mut went = Vec::new();
        let mut held = 0;
        for packet in 0u32..20_000 {
            let now = at(u64::from(packet) + 100);
            // At first one packet in ten, then one in two, arrives after a hole.
            let waits = match packet {
                2_000..4_000 => packet % 10 == 0,
                4_000..8_000 => packet % 2 == 0,
                _ => false,
            };
            let since = now - MS(if waits { 50 } else { 0 });
            buffer.push(now, about(0, since, waits), packet);
            if buffer.flows[0].last[1] > now {
                held += 1;
                assert!(
                    packet < 100 || (4_000..16_000).contains(&packet),
                    "{packet}"
                );
            }
            while let Some(first) = buffer.pop(now) {
                went.push(first);
            }
        }
        assert!(held > 2_000, "{held}");
        assert!(went.into_iter().eq(0..20_000));
    }

    #[test]
    fn each_flow_is_held_for_its_own_delay() {
        let mut buffer = buffer(1_000);
        // Three of four packets of flow 0 wait for a repair, none of flow 1.
        for n in 0..1_000u32 {
            let now = at(1_000 + u64::from(n));
            let waits = n % 4 != 0;
            let wait = MS(if waits { 50 } else { 0 });
            buffer.push(now, about(0, now - wait, waits), n);
            buffer.push(now, about(1, now, false), n);
            while buffer.pop(now).is_some() {}
            if n > 100 {
                assert!(buffer.flows[0].last[1] >= now - wait + MS(45));
                assert_eq!(buffer.flows[1].last[1], now);
            }
        }
        // A new flow is held if many packets of all flows are.
        buffer.push(at(2_000), about(2, at(2_000), false), 0);
        assert!(buffer.flows[2].last[1] > at(2_040));
    }
}
