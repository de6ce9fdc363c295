//! A token bucket that limits how many bytes may be sent.
//!
//! Integer arithmetic: a byte costs 8 x 10^9 tokens, and a rate of 1 bit/s earns one token per nanosecond, so nothing is
//! lost to rounding.

use crate::{Duration, Instant, Rate};

/// Price of one byte, tokens.
const BYTE: u64 = 8_000_000_000;

/// A bucket that fills at a rate and holds what that rate earns within a time.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Tokens earned per nanosecond.
    bps: u64,
    depth: u64,
    tokens: u64,
    at: Instant,
}

impl Bucket {
    /// A full bucket that holds what `rate` earns within `holds`, but at least `at_least` bytes.
    pub fn new(rate: Rate, holds: Duration, at_least: usize) -> Self {
        let bps = rate.as_bps();
        let depth = bps.saturating_mul(holds.as_nanos());
        let depth = depth.max((at_least as u64).saturating_mul(BYTE));
        Self {
            bps,
            depth,
            tokens: depth,
            at: Instant::ORIGIN,
        }
    }

    /// Takes over the rate and depth of `fresh`, and keeps the current deficit.
    pub const fn retime(&mut self, fresh: &Self) {
        let taken = self.depth - self.tokens;
        (self.bps, self.depth) = (fresh.bps, fresh.depth);
        self.tokens = self.depth.saturating_sub(taken);
    }

    /// Takes tokens for `bytes`. False, and nothing taken, if there are too few.
    pub fn take(&mut self, now: Instant, bytes: usize) -> bool {
        let since = now.saturating_since(self.at).as_nanos();
        self.at = self.at.max(now);
        let flown = self.bps.saturating_mul(since);
        self.tokens = self.tokens.saturating_add(flown).min(self.depth);
        let price = (bytes as u64).saturating_mul(BYTE);
        let paid = price <= self.tokens;
        if paid {
            self.tokens -= price;
        }
        paid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_depth_at_once_and_then_its_rate() {
        let rate = "1 Mbit/s".parse().unwrap();
        let mut bucket = Bucket::new(rate, Duration::from_millis(8), 0);
        let mut now = Instant::from_nanos(1);
        assert!(bucket.take(now, 999));
        assert!(!bucket.take(now, 2), "a thousand bytes flow in within 8 ms");
        assert!(bucket.take(now, 1));
        now += Duration::from_micros(8);
        assert!(!bucket.take(now, 2));
        assert!(bucket.take(now, 1), "what was refused cost nothing");
        now += Duration::from_secs(3_600);
        assert!(!bucket.take(now, 1_001), "it does not overflow");
        assert!(bucket.take(now, 1_000));
    }

    #[test]
    fn a_retimed_bucket_keeps_its_fill() {
        let bucket = |rate: &str| Bucket::new(rate.parse().unwrap(), Duration::from_millis(8), 100);
        for taken in [0, 60] {
            let mut slow = bucket("1 kbit/s");
            assert!(slow.take(Instant::ORIGIN, taken));
            slow.retime(&bucket("1 Mbit/s"));
            assert!(!slow.take(Instant::ORIGIN, 1_001 - taken));
            assert!(slow.take(Instant::ORIGIN, 1_000 - taken));
        }
    }

    #[test]
    fn a_slow_bucket_holds_at_least_a_packet() {
        let rate = "8 bit/s".parse().unwrap();
        let mut bucket = Bucket::new(rate, Duration::from_millis(1), 1_500);
        assert!(bucket.take(Instant::ORIGIN, 1_500));
        assert!(!bucket.take(Instant::ORIGIN + Duration::from_secs(1), 2));
    }
}
