//! A de-jitter buffer: packets of a reliable service go up as late as one that had to be repaired.
//!
//! Where frames are lost, every packet behind a hole waits for the repair, and then all go up at once.
//! Senders that model the path (BBR, RFC draft-ietf-ccwg-bbr: at most two of the least round trips in
//! flight) take the round trip of the moments without a hole as the path's, and starve while the holes
//! double it. The works' TCP does not, and they have nothing of the kind: this is ours.
//!
//! ```text
//! since    when a packet's frame arrived, or was first missed
//! wait     now - since of a repaired packet: how long a repair takes
//! hold     what most waits reach, while many packets wait; otherwise none
//! goes up  max(now, since + hold, when the packet before it goes)
//! ```
//!
//! So what a hole held up goes up as evenly as it came. Where fewer than a quarter of the packets wait,
//! as between fades, it would pay for nobody: the least round trip is the usual one.
//!
//! Invariants: order is kept and nothing is lost; no packet is held for longer than [`AT_MOST`], and
//! no more packets than the service's window, where the oldest go early.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use crate::context::Given;

/// Longest hold.
const AT_MOST: Duration = Duration::from_millis(250);
/// Part of the packets that has to wait, in units of 1 / `ONE`, before all do.
const MANY: u32 = ONE / 4;
const ONE: u32 = 1 << 20;
/// Packets that the average looks back at.
const MEMORY: u32 = 4096;
/// An unknown link counts as one where half of so many packets had to wait: a flow's first round trips tell its
/// sender most.
const UNKNOWN: u32 = 20;

/// A packet on its way up, and when it goes.
#[derive(Clone, Debug)]
struct Delayed<P> {
    given: Given<P>,
    at: Instant,
}

/// Packets that are held, and how long a repair takes.
#[derive(Clone, Debug)]
pub(crate) struct Dejitter<P> {
    held: VecDeque<Delayed<P>>,
    room: usize,
    /// Packets that had to wait of all, in units of 1 / `ONE`.
    waiting: u32,
    /// Packets seen, up to `MEMORY`.
    seen: u32,
    /// What a repair should take.
    expected: Duration,
    /// What most repairs take at least.
    repair: Duration,
}

impl<P> Dejitter<P> {
    /// A repair should take so long from now on; what was measured stays.
    pub(crate) fn expect(&mut self, expected: Duration) {
        self.expected = expected;
    }

    /// For at most `room` packets, on a link where a repair should take so long.
    pub(crate) fn new(room: u32, expected: Duration) -> Self {
        let mut new = Self {
            held: VecDeque::new(),
            room: room.max(1) as usize,
            waiting: 0,
            seen: 0,
            expected,
            repair: expected,
        };
        new.forget();
        new
    }

    /// Forgets what the link was like.
    pub(crate) fn forget(&mut self) {
        (self.waiting, self.seen) = (ONE / 2, UNKNOWN);
        self.repair = self.expected;
    }

    /// Holds a packet that could go up now.
    pub(crate) fn push(&mut self, now: Instant, given: Given<P>) {
        self.learn(now.saturating_since(given.since), given.repaired);
        let last = self.held.back().map_or(now, |before| before.at);
        let due = (given.since + self.hold()).min(now + AT_MOST);
        let at = due.max(last).max(now);
        self.held.push_back(Delayed { given, at });
    }

    /// The next packet that is due, or has no room.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<Given<P>> {
        let crowded = self.held.len() > self.room;
        let next = self.held.pop_front_if(|first| crowded || first.at <= now);
        next.map(|held| held.given)
    }

    /// When the next packet goes up.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.held.front().map(|first| first.at)
    }

    fn learn(&mut self, wait: Duration, repaired: bool) {
        self.waiting -= self.waiting / self.seen;
        if wait > self.repair / 8 {
            self.waiting += ONE / self.seen;
        }
        if repaired {
            // A repair that was lost, too, takes a multiple, and is to pull little.
            self.repair = match wait < self.repair {
                true => (self.repair * 7 + wait) / 8,
                false => (self.repair * 63 + wait) / 64,
            };
        }
        self.seen = (self.seen + 1).min(MEMORY);
    }

    fn hold(&self) -> Duration {
        match self.waiting >= MANY {
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

    fn given(payload: u32, since: Instant, repaired: bool) -> Given<u32> {
        Given {
            service: 0,
            payload,
            since,
            repaired,
        }
    }

    /// Packets that go up, and when.
    fn drain(buffer: &mut Dejitter<u32>, now: Instant) -> Vec<(u32, Instant)> {
        let mut out = Vec::new();
        let mut due = now;
        loop {
            while let Some(given) = buffer.pop(due) {
                out.push((given.payload, due));
            }
            match buffer.deadline() {
                Some(next) => due = due.max(next),
                None => return out,
            }
        }
    }

    #[test]
    fn what_a_hole_held_up_goes_up_as_evenly_as_it_came() {
        let mut buffer = Dejitter::new(100, MS(50));
        // Packet 0 was missed at 10 ms and comes at 60; the others came each 10 ms meanwhile.
        let came = |packet: u32| at(10 * u64::from(packet.max(1)));
        for packet in 0..5 {
            buffer.push(at(60), given(packet, came(packet), packet == 0));
        }
        for (packet, went) in drain(&mut buffer, at(60)) {
            assert_eq!(went, came(packet) + MS(50), "{packet}");
        }
    }

    #[test]
    fn a_full_buffer_gives_its_oldest_early_and_keeps_the_order() {
        let mut buffer = Dejitter::new(3, MS(50));
        let mut out = Vec::new();
        for packet in 0..10 {
            buffer.push(at(0), given(packet, at(0), false));
            out.extend(buffer.pop(at(0)).map(|given| given.payload));
            assert!(buffer.held.len() <= 3);
            assert!(buffer.deadline().unwrap() <= at(0) + AT_MOST);
        }
        assert_eq!(out.len(), 7);
        out.extend(
            drain(&mut buffer, at(0))
                .into_iter()
                .map(|(packet, _)| packet),
        );
        assert!(out.into_iter().eq(0..10));
    }

    #[test]
    fn packets_are_held_while_many_of_them_wait() {
        let mut buffer = Dejitter::new(100, MS(50));
        let mut went = Vec::new();
        let mut held = 0;
        for packet in 0u32..20_000 {
            let now = at(u64::from(packet) + 100);
            // One in ten, and then one in two, finds a hole before it.
            let waits = match packet {
                2_000..4_000 => packet % 10 == 0,
                4_000..8_000 => packet % 2 == 0,
                _ => false,
            };
            let since = now - MS(if waits { 50 } else { 0 });
            buffer.push(now, given(packet, since, waits));
            if buffer.held.back().is_some_and(|last| last.at > now) {
                held += 1;
                assert!(
                    packet < 100 || (4_000..16_000).contains(&packet),
                    "{packet}"
                );
            }
            while let Some(first) = buffer.pop(now) {
                went.push(first.payload);
            }
        }
        assert!(held > 2_000, "{held}");
        assert!(went.into_iter().eq(0..20_000));
    }
}
