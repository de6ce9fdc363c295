//! Whose turn it is: slotted backoff that stands still while the channel is busy.
//!
//! A number of slots is drawn as soon as an attempt is over, before it is known whether a packet waits, and counts down
//! meanwhile; a packet that comes in time takes what is left (post-backoff). The slot that turns busy does not count.

use airlane_base::{Duration, Instant, Rng};

/// The backoff of one station.
#[derive(Clone, Debug)]
pub struct Contention {
    slot: Duration,
    first: u32,
    max: u32,
    /// The window that the next draw is from, slots.
    cw: u32,
    /// Slots that are left, if a draw has not run out.
    left: Option<u32>,
    /// The slots count from here, if they count.
    from: Option<Instant>,
    /// Draws from the largest window.
    at_max: u64,
}

impl Contention {
    /// A station that has not drawn.
    pub fn new(slot: Duration, first: u32, max: u32) -> Self {
        Self {
            slot,
            first,
            max: max.max(first),
            cw: first,
            left: None,
            from: None,
            at_max: 0,
        }
    }

    /// The window that the next draw is from, slots.
    pub fn cw(&self) -> u32 {
        self.cw
    }

    /// How often it was drawn from the largest window.
    pub fn draws_at_max(&self) -> u64 {
        self.at_max
    }

    /// An attempt failed, and there will be another.
    pub fn widen(&mut self) {
        self.cw = self.cw.saturating_mul(2).min(self.max);
    }

    /// A frame is done with, one way or the other.
    pub fn reset(&mut self) {
        self.cw = self.first;
    }

    /// Draws anew. Nothing counts until [`resume`](Self::resume).
    pub fn draw(&mut self, rng: &mut Rng) {
        self.at_max += u64::from(self.cw == self.max);
        self.left = Some((rng.uniform() * f64::from(self.cw)) as u32);
        self.from = None;
    }

    /// Whether a draw is there that has not run out at `now`.
    pub fn is_drawn(&self, now: Instant) -> bool {
        self.left.is_some() && self.expires().is_none_or(|at| at > now)
    }

    /// Whether the slots count.
    pub fn is_counting(&self) -> bool {
        self.from.is_some()
    }

    /// The slots count from `from` on.
    pub fn resume(&mut self, from: Instant) {
        if self.left.is_some() {
            self.from = Some(from);
        }
    }

    /// The channel is busy from `now` on. What runs out at this instant without being used is gone.
    pub fn freeze(&mut self, now: Instant) {
        let Some(from) = self.from.take() else { return };
        let counted = now.saturating_since(from).as_nanos() / self.slot.as_nanos().max(1);
        self.left = self.left.and_then(|left| {
            let counted = u32::try_from(counted).unwrap_or(u32::MAX);
            (counted < left || from > now).then(|| left.saturating_sub(counted))
        });
    }

    /// When the count reaches zero, if it counts.
    pub fn expires(&self) -> Option<Instant> {
        Some(self.from? + self.slot * u64::from(self.left?))
    }

    /// The turn is taken.
    pub fn take(&mut self) {
        self.left = None;
        self.from = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::Streams;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    fn drawn(left: u32) -> Contention {
        let mut c = Contention::new(Duration::from_micros(20), 32, 1024);
        c.left = Some(left);
        c
    }

    #[test]
    fn a_slot_that_turns_busy_does_not_count() {
        let mut c = drawn(5);
        c.resume(at(50));
        assert_eq!(c.expires(), Some(at(150)));
        c.freeze(at(50 + 59));
        assert_eq!(c.left, Some(3));
        c.resume(at(1_000));
        assert_eq!(c.expires(), Some(at(1_060)));
        // Busy before the gap is over: nothing has counted.
        c.freeze(at(990));
        assert_eq!(c.left, Some(3));
    }

    #[test]
    fn a_draw_that_runs_out_unused_is_gone() {
        let mut c = drawn(5);
        c.resume(at(50));
        assert!(c.is_drawn(at(149)) && !c.is_drawn(at(150)));
        c.freeze(at(300));
        assert_eq!(c.left, None);
    }

    #[test]
    fn windows_double_up_to_the_largest_and_begin_anew() {
        let mut c = Contention::new(Duration::from_micros(20), 32, 1024);
        let windows: Vec<u32> = (0..7)
            .map(|_| {
                c.widen();
                c.cw()
            })
            .collect();
        assert_eq!(windows, [64, 128, 256, 512, 1024, 1024, 1024]);
        c.reset();
        assert_eq!(c.cw(), 32);
    }

    #[test]
    fn draws_are_uniform_over_the_window() {
        let mut c = Contention::new(Duration::from_micros(20), 32, 1024);
        let mut rng = Streams::new(1, 0).stream("backoff");
        let mut seen = [0u32; 32];
        for _ in 0..32_000 {
            c.draw(&mut rng);
            seen[c.left.unwrap() as usize] += 1;
        }
        // Standard deviation 31; five of them.
        assert!(seen.iter().all(|n| n.abs_diff(1_000) < 155), "{seen:?}");
    }
}
