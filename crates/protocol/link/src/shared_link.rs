//! A link that several ports send over, as the base station of a shared channel does: one frame at a time at
//! the link's rate, with self-clocked fair queueing (section 9.4 of docs/spec/multi-service.md) among the
//! ports, by weight.
//!
//! ```text
//! port 0: classify, repair, schedule ─┐ offer: "my next frame has L bytes"
//! port 1: ...                         ├─► SCFQ by weight, pace at R ─► next: "port 1" ─► its poll_transmit
//! port 2: ...                        ─┘
//! ```
//!
//! The shared link holds no frames. A port is asked for its frame only when the frame can leave, so its own
//! scheduler decides at the last moment, and timers start when a frame really departs. Everything that a port
//! sends, repairs included, is charged to that port: a lossy peer costs the others nothing.
//!
//! Invariants: at most one turn waits for each port; while two ports are backlogged, their sent bytes divided
//! by weight differ by no more than one frame of each divided likewise; unused capacity goes to the others in
//! proportion. Left out: access to the reverse channel, which each remote end's own rate limits.

use airlane_base::{Duration, Instant, Rate};

use crate::schedule::{Scfq, Schedule, Turn};

/// One link under several ports, which are identified by number.
#[derive(Clone, Debug)]
pub struct SharedLink {
    rate: Rate,
    late: Duration,
    /// When the frame on the link will have been sent.
    free_at: Instant,
    /// One turn for each port with a frame, with that frame's length.
    turns: Box<Scfq<(), { SharedLink::PORTS }>>,
}

impl SharedLink {
    /// Maximum number of ports; port numbers are below it.
    pub const PORTS: usize = 64;

    /// A free link of this rate. A driver that wakes up late may catch up by at most `late`; each port limits
    /// its own burst after a pause.
    pub fn new(rate: Rate, late: Duration) -> Self {
        Self {
            rate,
            late,
            free_at: Instant::ORIGIN,
            turns: Box::default(),
        }
    }

    /// Changes the rate for later frames.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Changes the weight of a port for later turns.
    pub fn set_weight(&mut self, port: u8, weight: f64) {
        self.turns.set_rate(port, weight);
    }

    /// Announces that a port's next frame has `len` bytes with all overhead below it. A later call with
    /// another length replaces the turn as if it had been announced with that length.
    pub fn offer(&mut self, now: Instant, port: u8, len: usize) {
        match self.turns.first_of(port) {
            Some(offered) if offered == len => {}
            Some(_) => self.turns.resize_first(port, len),
            None => {
                if self.turns.is_empty() && now >= self.free_at {
                    self.turns.link_idle();
                }
                self.turns.enqueue(port, len, ());
            }
        }
    }

    /// Length of the frame that a port has announced.
    pub fn offered(&self, port: u8) -> Option<usize> {
        self.turns.first_of(port)
    }

    /// The port whose frame may leave now. The frame is sent with [`SharedLink::pass`], or withdrawn with
    /// [`SharedLink::skip`].
    pub fn next(&self, now: Instant) -> Option<u8> {
        let turn = self.turns.peek().filter(|_| now >= self.free_at);
        turn.map(|(port, _)| port)
    }

    /// Sends the frame of [`SharedLink::next`]. Returns when the next one can leave.
    pub fn pass(&mut self, now: Instant) -> Instant {
        if let Some(Turn { len, .. }) = self.turns.dequeue() {
            let start = self.free_at.max(now - self.late);
            self.free_at = start + self.rate.transmission_time(len);
        }
        self.free_at
    }

    /// Announces another frame of the port that has just sent: the port has not been idle and keeps its claim
    /// on service that it left to others.
    pub fn follow(&mut self, port: u8, len: usize) {
        if self.offered(port).is_none() {
            self.turns.follow(port, len, ());
        }
    }

    /// The port of [`SharedLink::next`] no longer has a frame. Its turn counts as used.
    pub fn skip(&mut self) {
        self.turns.dequeue();
    }

    /// When [`SharedLink::next`] can return a port, if any waits.
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

    /// Serves ports that are backlogged for one second, with frames of the lengths that `len` gives; returns
    /// the bytes of each port.
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
            // The frame that the port now prefers, and its next one.
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
        // Whenever its turn comes, the first port has a short frame ahead of the long one.
        let bytes = served(&mut medium, 3, |port, turn| match (port, turn) {
            (0, 0) => 1_500,
            (0, _) => 200,
            (1, _) => 700,
            _ => 90,
        });
        let all: u64 = bytes.iter().sum();
        // The link's rate is 2.5 MB/s, for one second.
        assert!(all.abs_diff(2_500_000) < 5_000, "{bytes:?}");
        for (bytes, share) in bytes.iter().zip([0.25, 0.5, 0.25]) {
            let got = *bytes as f64 / all as f64;
            assert!((got - share).abs() < 0.002, "{got} of {share}");
        }
    }

    #[test]
    fn a_port_without_a_frame_costs_the_others_nothing() {
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
        /// For all sequences of offers and changed lengths, no backlogged port falls behind another by more
        /// than one frame of each.
        #[test]
        fn no_port_is_starved(
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
