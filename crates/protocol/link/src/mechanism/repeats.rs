//! Holds TCP's retransmissions until earlier segments have been repaired, on a service that delivers out of
//! order.
//!
//! A TCP receiver with timestamps drops segments older than the last one it acknowledged (PAWS, RFC 7323,
//! section 5). A retransmitted segment fills the first hole and is acknowledged with a new timestamp, so
//! earlier segments that the link repairs after it are dropped, and TCP retransmits those, too: at 5 % loss
//! over 50 ms and 20 Mbit/s one such segment costs four more, and soon TCP itself repairs all losses of the
//! link. So a retransmission waits for as long as a repair takes.
//!
//! ```text
//! as received   lost 7, lost 9, again 3 ──► up: 3, then 7 and 9, which are too old
//! held          lost 7, lost 9, again 3 ──► up: 7, 9, 3
//! ```
//! Packets that cannot be looked into show no timestamps, and are delivered as received.
//!
//! Invariants: nothing is lost; nothing is held for longer than [`AT_MOST`]; at most [`ROOM`] packets are
//! held, beyond which the oldest leave early.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use crate::flow::TcpView;

/// Longest hold.
const AT_MOST: Duration = Duration::from_millis(250);
const ROOM: usize = 256;
/// Number of hashed flow entries; of two flows that share one, neither is held.
const FLOWS: usize = 256;
/// Approximate number of repairs in the mean.
const WEIGHT: u64 = 16;

/// The held packets, and the state of flows by which retransmissions are recognised.
#[derive(Clone, Debug)]
pub(crate) struct Repeats<T> {
    held: VecDeque<(Instant, T)>,
    /// By hash: the flow, and the number after the last byte that has arrived.
    flows: Box<[Option<(u64, u32)>; FLOWS]>,
    /// Mean duration of a repair: to wait for one that was itself lost would be too long for most.
    repair: Duration,
}

impl<T> Repeats<T> {
    /// `repair` is the expected duration of a repair.
    pub(crate) fn new(repair: Duration) -> Self {
        Self {
            held: VecDeque::with_capacity(ROOM),
            flows: Box::new([None; FLOWS]),
            repair: repair.min(AT_MOST),
        }
    }

    /// A repair took this long.
    pub(crate) fn on_repair(&mut self, took: Duration) {
        self.repair = (self.repair * (WEIGHT - 1) + took.min(AT_MOST)) / WEIGHT;
    }

    /// Whether to hold this segment of a flow, which did not arrive in a repair.
    pub(crate) fn is_repeat(&mut self, flow: u64, segment: &TcpView) -> bool {
        if segment.end == segment.seq {
            return false;
        }
        let place = &mut self.flows[flow as usize % FLOWS];
        match place {
            Some((known, high)) if *known == flow && !segment.syn => {
                let is_new = segment.end.wrapping_sub(*high) as i32 > 0;
                if is_new {
                    *high = segment.end;
                }
                !is_new
            }
            _ => {
                *place = Some((flow, segment.end));
                false
            }
        }
    }

    /// Holds a packet; returns the oldest if there is no room.
    pub(crate) fn hold(&mut self, now: Instant, item: T) -> Option<T> {
        // Earlier packets may wait longer, if repairs took longer then.
        let due = now + self.repair;
        let due = self.held.back().map_or(due, |(last, _)| due.max(*last));
        let first = (self.held.len() == ROOM).then(|| self.held.pop_front());
        self.held.push_back((due, item));
        first.flatten().map(|(_, item)| item)
    }

    /// The next packet whose hold has ended.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<T> {
        let due = self.deadline().is_some_and(|due| due <= now);
        due.then(|| self.held.pop_front())
            .flatten()
            .map(|(_, item)| item)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.held.front().map(|(due, _)| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + MS(ms)
    }

    fn segment(seq: u32, len: u32) -> TcpView {
        TcpView {
            connection: 0,
            endpoints: 0,
            seq,
            end: seq.wrapping_add(len),
            ack: Some(1),
            window: 0,
            block: None,
            syn: false,
            rst: false,
        }
    }

    #[test]
    fn only_bytes_sent_before_are_a_repeat() {
        let mut repeats = Repeats::<u32>::new(MS(50));
        let start = u32::MAX - 1_500;
        let mut is =
            |flow, seq: u32, len| repeats.is_repeat(flow, &segment(start.wrapping_add(seq), len));
        assert!(!is(1, 0, 1_000));
        assert!(!is(1, 1_000, 1_000), "numbers wrap");
        assert!(!is(1, 3_000, 1_000), "a hole is no repeat");
        assert!(is(1, 2_000, 1_000));
        assert!(is(1, 3_000, 1_000));
        assert!(!is(1, 3_500, 1_000), "some of it is new");
        assert!(!is(1, 0, 0), "nor is an acknowledgment");
        assert!(!is(2, 0, 1_000), "each flow has its own numbers");
        assert!(!is(1 + FLOWS as u64, 0, 1_000));
        assert!(!is(1, 0, 1_000), "who shares a place is not held");
        let open = TcpView {
            syn: true,
            ..segment(start, 1)
        };
        assert!(!repeats.is_repeat(1, &open), "a connection begins anew");
    }

    #[test]
    fn repeats_are_held_as_long_as_a_repair_takes() {
        let mut repeats = Repeats::new(MS(50));
        assert_eq!(repeats.hold(at(0), 1), None);
        assert_eq!(
            (repeats.pop(at(49)), repeats.deadline()),
            (None, Some(at(50)))
        );
        assert_eq!(repeats.pop(at(50)), Some(1));
        let learn = |repeats: &mut Repeats<_>, took| (0..400).for_each(|_| repeats.on_repair(took));
        learn(&mut repeats, MS(120));
        assert_eq!(repeats.hold(at(60), 2), None);
        learn(&mut repeats, MS(20));
        assert_eq!(repeats.hold(at(70), 3), None);
        let due = repeats.deadline().unwrap();
        assert!(due > at(179) && due <= at(180), "{due:?}");
        assert_eq!(repeats.pop(at(180)), Some(2));
        assert_eq!(repeats.pop(at(180)), Some(3), "none overtakes another");
        learn(&mut repeats, Duration::from_secs(9));
        for n in 0..ROOM {
            assert_eq!(repeats.hold(at(200), n), None);
        }
        assert_eq!(repeats.hold(at(200), ROOM), Some(0));
        let held = repeats.deadline().unwrap().saturating_since(at(200));
        assert!(held > MS(249) && held <= AT_MOST, "{held}");
    }
}
