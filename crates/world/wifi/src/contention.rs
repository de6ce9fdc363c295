//! Slotted backoff, which stops while the channel is busy.
//!
//! A number of slots is drawn as soon as an attempt is over, whether or not a packet waits, and counts down
//! meanwhile. A packet that arrives during the countdown waits only for the rest (post-backoff). A slot in which the
//! channel becomes busy does not count.

use airlane_base::{Duration, Instant, Rng};

/// The backoff of one station.
#[derive(Clone, Debug)]
pub struct Contention {
    slot: Duration,
    first: u32,
    max: u32,
    /// The contention window of the next draw, slots.
    cw: u32,
    /// Remaining slots, unless the draw has expired.
    left: Option<u32>,
    /// When the countdown started or resumed; none while it is stopped.
    from: Option<Instant>,
    /// Number of draws from the largest window.
    at_max: u64,
}

impl Contention {
    /// A station that has not drawn yet.
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

    /// The contention window of the next draw, slots.
    pub fn cw(&self) -> u32 {
        self.cw
    }

    /// How often the backoff was drawn from the largest window.
    pub fn draws_at_max(&self) -> u64 {
        self.at_max
    }

    /// An attempt failed and there will be another: doubles the window.
    pub fn widen(&mut self) {
        self.cw = self.cw.saturating_mul(2).min(self.max);
    }

    /// The station is done with a frame, sent or given up.
    pub fn reset(&mut self) {
        self.cw = self.first;
    }

    /// Draws a new backoff. The countdown stops until [`resume`](Self::resume).
    pub fn draw(&mut self, rng: &mut Rng) {
        self.at_max += u64::from(self.cw == self.max);
        self.left = Some((rng.uniform() * f64::from(self.cw)) as u32);
        self.from = None;
    }

    /// Whether there is a draw that has not expired at `now`.
    pub fn is_drawn(&self, now: Instant) -> bool {
        self.left.is_some() && self.expires().is_none_or(|at| at > now)
    }

    /// Whether the countdown runs.
    pub fn is_counting(&self) -> bool {
        self.from.is_some()
    }

    /// The countdown runs from `from` on.
    pub fn resume(&mut self, from: Instant) {
        if self.left.is_some() {
            self.from = Some(from);
        }
    }

    /// The channel is busy from `now` on. A backoff that expires at this instant unused is lost.
    pub fn freeze(&mut self, now: Instant) {
        let Some(from) = self.from.take() else { return };
        let counted = now.saturating_since(from).as_nanos() / self.slot.as_nanos().max(1);
        self.left = self.left.and_then(|left| {
            let counted = u32::try_from(counted).unwrap_or(u32::MAX);
            (counted < left || from > now).then(|| left.saturating_sub(counted))
        });
    }

    /// When the countdown reaches zero, if it runs.
    pub fn expires(&self) -> Option<Instant> {
        Some(self.from? + self.slot * u64::from(self.left?))
    }

    /// The station transmits: uses up the backoff.
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
        // The channel is busy before the gap is over: nothing has been counted down.
        c.freeze(at(990));
        assert_eq!(c.left, Some(3));
    }

    #[test]
    fn an_expired_unused_backoff_is_discarded() {
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
        // Standard deviation 31; the bound is five of them.
        assert!(seen.iter().all(|n| n.abs_diff(1_000) < 155), "{seen:?}");
    }
}
