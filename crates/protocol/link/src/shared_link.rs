//! A link that several ports send over, as the base station of a shared channel does: one frame at a
//! time at the link's rate, self-clocked fair queueing (section 9.4 of docs/spec/multi-service.md) among the
//! ports, by their weights.
//!
//! ```text
//! port 0: classify, repair, schedule ─┐ offer: "my next frame has L bytes"
//! port 1: ...                         ├─► SCFQ by weight, pace at R ─► next: "port 1" ─► its poll_transmit
//! port 2: ...                        ─┘
//! ```
//!
//! The shared link holds no frames. A port is asked for its frame when that may leave, so what a port's own
//! scheduler prefers by then goes, and timers begin when a frame really departs. What a port sends,
//! repairs included, is charged to that port alone: a peer that loses much takes nothing from the others.
//!
//! Invariants: at most one turn waits for each port; while two ports have frames all the time, the bytes
//! sent of each, divided by its weight, differ by no more than a frame of each divided likewise; what one
//! leaves goes to the others in proportion. Left out: who may send when on the way back, which each far
//! end's own rate decides.

use airlane_base::{Duration, Instant, Rate};

use crate::schedule::{Scfq, Schedule, Turn};

/// One link under several ports, by number.
#[derive(Clone, Debug)]
pub struct SharedLink {
    rate: Rate,
    late: Duration,
    /// When the frame on the link is over.
    free_at: Instant,
    /// A turn for each port that has a frame, as long as that.
    turns: Box<Scfq<(), { SharedLink::PORTS }>>,
}

impl SharedLink {
    /// Ports at most; their numbers are below.
    pub const PORTS: usize = 64;

    /// A free link of this rate. A driver that wakes up late makes up for this much: each port holds back by itself
    /// what it sends after a pause.
    pub fn new(rate: Rate, late: Duration) -> Self {
        Self {
            rate,
            late,
            free_at: Instant::ORIGIN,
            turns: Box::default(),
        }
    }

    /// Changes the rate, for frames that come.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Changes the share of a port, for turns that come.
    pub fn set_weight(&mut self, port: u8, weight: f64) {
        self.turns.set_rate(port, weight);
    }

    /// A port's next frame has `len` bytes with all that is below it. Said again with another length, its
    /// turn is as if it had come with that.
    pub fn offer(&mut self, now: Instant, port: u8, len: usize) {
        match self.turns.first_of(port) {
            Some(told) if told == len => {}
            Some(_) => self.turns.resize_first(port, len),
            None => {
                if self.turns.is_empty() && now >= self.free_at {
                    self.turns.link_idle();
                }
                self.turns.enqueue(port, len, ());
            }
        }
    }

    /// How long the frame is that a port has offered.
    pub fn offered(&self, port: u8) -> Option<usize> {
        self.turns.first_of(port)
    }

    /// Whose frame may leave now. It leaves with [`SharedLink::pass`], or never was with [`SharedLink::skip`].
    pub fn next(&self, now: Instant) -> Option<u8> {
        let turn = self.turns.peek().filter(|_| now >= self.free_at);
        turn.map(|(port, _)| port)
    }

    /// The frame of [`SharedLink::next`] leaves. When the next one can.
    pub fn pass(&mut self, now: Instant) -> Instant {
        if let Some(Turn { len, .. }) = self.turns.dequeue() {
            let start = self.free_at.max(now - self.late);
            self.free_at = start + self.rate.transmission_time(len);
        }
        self.free_at
    }

    /// The port whose frame has just left has another one for when the link is free again: it has not
    /// been idle, and has a claim on whatever its turn before left to the others.
    pub fn follow(&mut self, port: u8, len: usize) {
        if self.offered(port).is_none() {
            self.turns.follow(port, len, ());
        }
    }

    /// The port of [`SharedLink::next`] has no frame any more. It has had its turn all the same.
    pub fn skip(&mut self) {
        self.turns.dequeue();
    }

    /// When [`SharedLink::next`] may have a port, if any waits.
    pub fn poll_timeout(&self) -> Option<Instant> {
        (!self.turns.is_empty()).then_some(self.free_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn medium() -> SharedLink {
        SharedLink::new("20 Mbit/s".parse().unwrap(), Duration::from_millis(1))
    }

    /// Serves for a second of ports that have frames all the time, of the lengths that `len` tells: the
    /// bytes of each.
    fn served(
        medium: &mut SharedLink,
        ports: u8,
        mut len: impl FnMut(u8, u64) -> usize,
    ) -> Vec<u64> {
        let mut bytes = vec![0; usize::from(ports)];
        let mut now = Instant::ORIGIN;
        let mut turn = 0;
        (0..ports).for_each(|port| medium.offer(now, port, len(port, 0)));
        while now < Instant::ORIGIN + Duration::from_secs(1) {
            now = now.max(medium.poll_timeout().unwrap());
            let port = medium.next(now).unwrap();
            // What the port prefers by now, and what it has behind that.
            turn += 1;
            medium.offer(now, port, len(port, turn));
            bytes[usize::from(port)] += medium.offered(port).unwrap() as u64;
            medium.pass(now);
            medium.follow(port, len(port, 0));
        }
        bytes
    }

    #[test]
    fn ports_share_by_weight_whatever_the_lengths_of_their_frames() {
        let mut medium = medium();
        for (port, weight) in [(0, 1.0), (1, 2.0), (2, 1.0)] {
            medium.set_weight(port, weight);
        }
        // The first has a short frame each time when its turn comes, in front of the long one.
        let bytes = served(&mut medium, 3, |port, turn| match (port, turn) {
            (0, 0) => 1_500,
            (0, _) => 200,
            (1, _) => 700,
            _ => 90,
        });
        let all: u64 = bytes.iter().sum();
        // The link's rate: 2.5 MB in a second.
        assert!(all.abs_diff(2_500_000) < 5_000, "{bytes:?}");
        for (bytes, share) in bytes.iter().zip([0.25, 0.5, 0.25]) {
            let got = *bytes as f64 / all as f64;
            assert!((got - share).abs() < 0.002, "{got} of {share}");
        }
    }

    #[test]
    fn a_port_without_its_frame_costs_the_others_nothing() {
        let mut medium = medium();
        let now = Instant::ORIGIN;
        medium.offer(now, 3, 1_500);
        medium.offer(now, 5, 1_500);
        assert_eq!(medium.next(now), Some(3));
        medium.skip();
        assert_eq!(medium.next(now), Some(5));
        medium.pass(now);
        assert_eq!((medium.next(now), medium.poll_timeout()), (None, None));
        // 1500 B at 20 Mbit/s, less the burst.
        medium.offer(now, 5, 1_500);
        assert_eq!(
            medium.poll_timeout(),
            Some(now + Duration::from_micros(600))
        );
        assert_eq!(medium.next(now + Duration::from_micros(599)), None);
        assert_eq!(medium.next(now + Duration::from_micros(600)), Some(5));
    }

    proptest! {
        /// Whatever is offered, and however often its length changes before it leaves, nobody with frames
        /// all the time is further behind another than by a frame of each.
        #[test]
        fn no_port_falls_behind(
            weights in prop::collection::vec(0.1..8.0f64, 2..6),
            changes in prop::collection::vec((0..6u8, 40..=1_500usize), 1..400),
        ) {
            let ports = weights.len() as u8;
            let mut medium = medium();
            for (port, weight) in weights.iter().enumerate() {
                medium.set_weight(port as u8, *weight);
            }
            let mut change = changes.iter().cycle();
            let mut fair = vec![0.0; weights.len()];
            let mut now = Instant::ORIGIN;
            (0..ports).for_each(|port| medium.offer(now, port, 1_500));
            for _ in 0..600 {
                now = now.max(medium.poll_timeout().unwrap());
                let (port, len) = change.next().unwrap();
                if *port < ports {
                    medium.offer(now, *port, *len);
                }
                let next = change.next().unwrap().1;
                let port = medium.next(now).unwrap();
                let i = usize::from(port);
                fair[i] += medium.offered(port).unwrap() as f64 / weights[i];
                medium.pass(now);
                medium.follow(port, next);
                for (a, first) in fair.iter().enumerate() {
                    for (b, second) in fair.iter().enumerate() {
                        let bound = 1_500.0 / weights[a] + 1_500.0 / weights[b];
                        prop_assert!(first - second <= bound * (1.0 + 1e-9), "{fair:?}");
                    }
                }
            }
        }
    }
}
