//! A rate limit that follows the link: what was lost to a queue must not come back as repairs.
//!
//! The port paces itself at the link's rate as it was told. If the link has become slower, or others
//! share it, a queue grows below the port, delays everything, overflows, and its losses look like
//! those of the air: repairs, copies and parity would feed it. Services measure round trips by the
//! peer's echo, in which waiting at either port has no part; what a round trip takes beyond the least
//! seen is a queue that is not ours.
//!
//! ```text
//! q        least round trip of an interval - least of the last 10 to 20 s; an interval is a round trip
//! q_max    max(10 ms, least / 4) + 4 full frames
//! q <= q_max                     rate x 33/32, at most R, the configured rate
//! q >  q_max, growing            rate / (1 + growth of q / interval) x 7/8
//! q >  q_max, standing           rate x 3/4, about
//! ```
//!
//! A queue grows by (rate - c) / c each second on a link of rate c, so the first factor is c / rate:
//! one step comes down to the link's rate, however far it is. A full queue does not grow and says less,
//! and each step takes a quarter. While the queue shrinks, the rate is low enough; after a step the next
//! interval still shows the time before, and is not judged. The least of an interval and not its mean,
//! because a peer that is late with an answer is no queue: an interval has four samples or goes on.
//!
//! When nothing has been shown for a second the rate rises by an eighth, and so each second: services that
//! show no round trips must not be held down by what others have shown before.
//!
//! Invariants: R / 64 <= rate <= R; without samples it never falls. Left out: queues of the way back,
//! which look the same and slow this end down too.

use airlane_base::{Duration, Instant, Rate};

/// How old the least round trip may become, twice.
const MEMORY: Duration = Duration::from_secs(10);
const SAMPLES: u32 = 4;
/// After so long without any, nothing is known.
const QUIET: Duration = Duration::from_secs(1);
const LEAST_PART: u64 = 64;

/// The least of the last one or two `MEMORY`s.
#[derive(Clone, Copy, Debug)]
struct Least {
    before: Duration,
    now: Duration,
    since: Instant,
}

/// What has been seen in the present interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    begun: Instant,
    least: Duration,
    samples: u32,
}

/// Paces a port by what its round trips show.
#[derive(Clone, Debug)]
pub(super) struct Limiter {
    most: u64,
    bps: u64,
    four_frames: Duration,
    least: Option<Least>,
    interval: Option<Interval>,
    queue: Duration,
    /// When the last sample came, or the rate rose without any.
    heard: Instant,
    /// The present interval began before the last step could show.
    settling: bool,
}

impl Limiter {
    /// `frame`: bytes of a full one with everything below.
    pub(super) fn new(most: Rate, frame: usize) -> Self {
        Self {
            most: most.as_bps(),
            bps: most.as_bps(),
            four_frames: most.transmission_time(frame) * 4,
            least: None,
            interval: None,
            queue: Duration::ZERO,
            heard: Instant::ORIGIN,
            settling: false,
        }
    }

    /// The configured rate is another one. Round trips stay; what it follows, it goes on following, unless
    /// that was the configured rate.
    pub(super) fn set_most(&mut self, most: Rate, frame: usize) {
        let free = self.bps == self.most;
        self.most = most.as_bps();
        self.bps = if free {
            self.most
        } else {
            self.bps.min(self.most)
        };
        self.four_frames = most.transmission_time(frame) * 4;
    }

    /// At what rate to send now; none: the configured one.
    pub(super) fn rate(&self) -> Option<Rate> {
        Rate::from_bps(self.bps).filter(|_| self.bps < self.most)
    }

    /// Forgets the link: there may be another below.
    pub(super) fn reset(&mut self) {
        (self.bps, self.queue, self.settling) = (self.most, Duration::ZERO, false);
        (self.least, self.interval) = (None, None);
    }

    /// Time has passed.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while self.bps < self.most && now.saturating_since(self.heard) >= QUIET {
            self.heard += QUIET;
            self.bps = (self.bps + self.bps / 8 + 1).min(self.most);
            (self.interval, self.queue, self.settling) = (None, Duration::ZERO, false);
        }
    }

    /// A frame has shown how long a round trip takes.
    pub(super) fn sample(&mut self, now: Instant, round_trip: Duration) {
        let least = self.remember(now, round_trip);
        self.heard = now;
        let interval = self.interval.get_or_insert(Interval {
            begun: now,
            least: round_trip,
            samples: 0,
        });
        interval.least = interval.least.min(round_trip);
        interval.samples += 1;
        let interval = *interval;
        let lasts = now.saturating_since(interval.begun);
        if interval.samples >= SAMPLES && lasts >= interval.least {
            self.interval = None;
            let queue = interval.least.saturating_sub(least);
            let allowed = Duration::from_millis(10).max(least / 4) + self.four_frames;
            self.judge(queue, allowed, lasts);
        }
    }

    fn judge(&mut self, queue: Duration, allowed: Duration, lasts: Duration) {
        let before = std::mem::replace(&mut self.queue, queue);
        if queue <= allowed {
            self.settling = false;
            self.bps = (self.bps + self.bps / 32 + 1).min(self.most);
        } else if std::mem::take(&mut self.settling) || queue < before * 7 / 8 {
            // Nothing can be said yet, or nothing needs to be done.
        } else {
            let growth = queue.saturating_sub(before).as_nanos();
            let lasts = u128::from(lasts.as_nanos().max(1));
            let follows = u128::from(self.bps) * lasts / (lasts + u128::from(growth));
            let follows = u64::try_from(follows).unwrap_or(self.bps);
            // One that stands is full, or would shrink or grow: the link's rate is anybody's guess.
            let stands = queue < before * 9 / 8;
            let less = if stands { follows / 4 } else { follows / 8 };
            self.bps = (follows - less).max(self.most / LEAST_PART).max(1);
            self.settling = true;
        }
    }

    fn remember(&mut self, now: Instant, round_trip: Duration) -> Duration {
        let least = self.least.get_or_insert(Least {
            before: round_trip,
            now: round_trip,
            since: now,
        });
        if now.saturating_since(least.since) >= MEMORY {
            (least.before, least.now, least.since) = (least.now, round_trip, now);
        }
        least.now = least.now.min(round_trip);
        least.now.min(least.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn limiter() -> Limiter {
        Limiter::new("20 Mbit/s".parse().unwrap(), 1_500)
    }

    fn mbps(limiter: &Limiter) -> f64 {
        limiter
            .rate()
            .map_or(20.0, |rate| rate.as_bps() as f64 / 1e6)
    }

    /// A link with a rate, a round trip of 50 ms and 200 ms of queue at most, sampled each 2 ms.
    fn run(limiter: &mut Limiter, link_mbps: f64, from: Instant, seconds: u64) -> (f64, f64) {
        let (mut queue_ms, mut sent, mut worst) = (0.0f64, 0.0, 0.0f64);
        let mut reports = std::collections::VecDeque::new();
        for step in 0..seconds * 500 {
            let now = from + MS(2 * step);
            queue_ms += (mbps(limiter) / link_mbps - 1.0) * 2.0;
            queue_ms = queue_ms.clamp(0.0, 200.0);
            sent += mbps(limiter).min(link_mbps) * 0.002;
            let round_trip = MS(50) + Duration::from_micros((queue_ms * 1e3) as u64);
            reports.push_back((now + round_trip, round_trip));
            while reports.front().is_some_and(|report| report.0 <= now) {
                let (_, round_trip) = reports.pop_front().unwrap();
                limiter.sample(now, round_trip);
            }
            if step > seconds * 250 {
                worst = worst.max(queue_ms);
            }
        }
        (sent / seconds as f64, worst)
    }

    #[test]
    fn a_link_that_is_as_told_gets_its_whole_rate() {
        let mut limiter = limiter();
        let (sent, _) = run(&mut limiter, 20.0, Instant::ORIGIN, 10);
        assert!((sent - 20.0).abs() < 0.01, "{sent}");
        assert_eq!(limiter.rate(), None);
    }

    #[test]
    fn a_slower_link_is_followed_down_and_up_again() {
        for link in [1.0, 3.0, 10.0, 18.0] {
            let mut limiter = limiter();
            let (sent, queue) = run(&mut limiter, link, Instant::ORIGIN, 20);
            assert!(sent > 0.85 * link, "{sent} of {link} Mbit/s");
            assert!(queue < 60.0, "{queue} ms of queue at {link} Mbit/s");
            let later = Instant::ORIGIN + Duration::from_secs(20);
            let (sent, _) = run(&mut limiter, 20.0, later, 20);
            assert!(
                sent > 16.0 && limiter.rate().is_none(),
                "{sent} after {link}"
            );
        }
    }

    #[test]
    fn nobody_is_held_down_by_what_is_long_past() {
        let mut limiter = limiter();
        run(&mut limiter, 1.0, Instant::ORIGIN, 10);
        let low = mbps(&limiter);
        let heard = limiter.heard;
        limiter.handle_timeout(heard + MS(999));
        assert_eq!(mbps(&limiter), low);
        limiter.handle_timeout(heard + MS(1_000));
        assert!((mbps(&limiter) / low - 1.125).abs() < 0.001);
        // However seldom somebody asks.
        limiter.handle_timeout(heard + MS(60_000));
        assert_eq!(limiter.rate(), None);
    }

    #[test]
    fn a_late_answer_is_no_queue_and_silence_no_news() {
        let mut limiter = limiter();
        for step in 0..10_000u64 {
            let late = if step % 3 == 0 {
                MS(80)
            } else {
                Duration::ZERO
            };
            limiter.sample(Instant::ORIGIN + MS(5 * step), MS(50) + late);
        }
        assert_eq!(limiter.rate(), None);
    }
}
