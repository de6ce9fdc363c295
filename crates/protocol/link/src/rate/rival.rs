//! Competes with another sender that keeps a queue filled.
//!
//! Loss-based TCP fills every queue. An end that yields to that queue gets nothing; one that takes it for
//! part of the path, and yields to no loss, leaves nothing. Beside such a queue this end sends what CUBIC
//! (RFC 9438) would send:
//!
//! ```text
//! begins   twice within 10 s a queue was not ours, each time because it stayed although the rate was reduced twice; or
//!          three times in a row it stayed or grew; or in the minute after a rival's queue was gone, queues take 3/10 of
//!          the rate
//! window   CUBIC's, in segments of 1448 B; before the first cut it grows by a quarter each round trip
//! rate     window / round trip
//! cut      data sent since the last cut was lost while the queue was within 15 % of the recent maximum: 0.7 x window
//! look     two round trips after a cut, every 10 s, and without one every 20 s: a quarter of the rate until a queue of
//!          our own would be gone, plus two round trips; or at once where the queue falls although this end was not cut,
//!          because another end looks
//! ends     the queue is gone during a look; or it falls as fast as one that only this end fills; or it stays constant
//!          for a round trip of a look, as no contested queue does: the path is longer
//! ```
//!
//! Two ends of this kind that take each other for a rival look together, as the second joins the first, and
//! see the queue go. Losses at shorter queues are the link's.

use airlane_base::{Duration, Instant};

use super::seen::{Least, Sample};

const SEGMENT: f64 = 1_448.0;
const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// Growth of Reno with this beta, in segments per round trip: 3 (1 - beta) / (1 + beta).
const ALPHA: f64 = 0.53;
/// Growth per round trip before the first cut.
const FIRST: f64 = 0.25;
/// A queue is full from this fraction of the recent maximum.
const FULL: f64 = 0.85;
const LONGEST_OF: Duration = Duration::from_secs(10);
const LEAST_OF: Duration = Duration::from_secs(60);
/// Two queues within this time that are not ours are a rival's.
const TWICE_WITHIN: Duration = Duration::from_secs(10);
/// Interval of looks after cuts; it doubles without a cut.
const LOOK_EVERY: Duration = Duration::from_secs(10);
const LOOK_PART: f64 = 0.25;
const LONGEST_LOOK_S: f64 = 2.0;
const LOOK_ROUNDS: f64 = 2.0;
/// Another end looks where the queue falls by this fraction of a round trip within one; this end joins at
/// most once per `JOIN_EVERY`.
const FALLS: f64 = 0.22;
const JOIN_EVERY: Duration = Duration::from_secs(5);
/// A window grows only if this fraction of its rate is used.
const USED: f64 = 0.5;
/// The queue is this end's own if it falls by this fraction of the reduction, for at least `FALLS_FOR`.
const ALONE: f64 = 0.85;
const FALLS_FOR: Duration = Duration::from_millis(20);
/// A delay that varies by at most this, microseconds, is not a contested queue.
const FLAT_US: i64 = 500;

/// Queues that did not fall although less was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotOurs {
    /// The minimum delay of the last one or two minutes: a queue that stands for longer counts as part of the
    /// path.
    least: Option<Least>,
    /// Another such queue before this time is a rival's.
    until: Instant,
    /// Until when a rival's queue may return, and the rate at which it went.
    went: Option<(Instant, u64)>,
}

impl NotOurs {
    pub(super) const fn new() -> Self {
        Self {
            least: None,
            until: Instant::ORIGIN,
            went: None,
        }
    }

    /// Records the delay of a mark, by the two clocks.
    pub(super) fn seen(&mut self, now: Instant, delay_us: i64) {
        let least = self.least.get_or_insert(Least::of(now, delay_us, LEAST_OF));
        least.add(now, delay_us);
    }

    /// The minimum delay of the last one or two minutes, or this one.
    pub(super) fn least(&self, base_us: i64) -> i64 {
        self.least.map_or(base_us, Least::get)
    }

    /// Records a queue that was not ours; returns the minimum delay without it, if a rival keeps it filled.
    pub(super) fn add(&mut self, now: Instant) -> Option<i64> {
        let twice = now < self.until;
        self.until = self.until.max(now + TWICE_WITHIN);
        self.least.filter(|_| twice).map(Least::get)
    }

    /// A rival's queue is gone, perhaps because all senders were cut at once; `bps` is sent then.
    pub(super) fn went(&mut self, now: Instant, bps: u64) {
        self.went = Some((now + LEAST_OF, bps));
    }

    /// A queue has reduced the rate to this. If a rival seems to be back, returns the minimum delay without
    /// the queue, and the earlier rate.
    pub(super) fn comes_back(&self, now: Instant, bps: u64) -> Option<(i64, u64)> {
        let (until, before) = self.went?;
        let is_back = now < until && (bps as f64) < BETA * before as f64;
        let least = self.least.filter(|_| is_back)?;
        Some((least.get(), before))
    }
}

/// The state of competition with a rival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rival {
    base_us: i64,
    /// The recent maximum delay, stored as the minimum of its negative.
    longest: Least,
    /// The window in segments.
    window: f64,
    /// The window at the last cut; none before the first.
    before_cut: Option<f64>,
    cut: Instant,
    last: Instant,
    /// Begin and end of the current or next look.
    look: (Instant, Instant),
    /// When the last round trip began, and the queue then.
    round: (Instant, i64),
    /// The first mark of a look: when it left, and its delay.
    fell_from: Option<(Instant, i64)>,
    /// During a look: the time since when all delays are within these bounds.
    flat: Option<(Instant, [i64; 2])>,
    is_alone: bool,
    /// The rate last set, bit/s.
    bps: f64,
}

impl Rival {
    /// Begins at this rate over this round trip; `before` was sent beside the queue in the last minute.
    pub(super) fn new(
        now: Instant,
        base_us: i64,
        queue_us: i64,
        (bps, before): (u64, Option<u64>),
        round_s: f64,
    ) -> Self {
        let window = |bps: u64| (bps as f64 / 8.0 * round_s / SEGMENT).max(2.0);
        Self {
            base_us,
            longest: Least::of(now, -queue_us, LONGEST_OF),
            window: window(bps),
            before_cut: before.map(window),
            cut: now,
            last: now,
            look: (now, now),
            round: (now, queue_us),
            fell_from: None,
            flat: None,
            is_alone: false,
            bps: bps as f64,
        }
    }

    /// The delay of a mark without any queue, by the two clocks.
    pub(super) const fn base_us(&self) -> i64 {
        self.base_us
    }

    /// Whether this time is within a look, when less is sent to see if the queue goes.
    pub(super) fn looks(&self, now: Instant) -> bool {
        (self.look.0..self.look.1).contains(&now)
    }

    /// Whether a look has shown that only this end fills the queue, or that there is none.
    pub(super) const fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Handles a mark that arrived after the previous one, where all recent marks found this queue; returns
    /// the rate to send, bit/s.
    pub(super) fn handle_mark(
        &mut self,
        now: Instant,
        [before, last]: [&Sample; 2],
        queue_us: i64,
        round_s: f64,
    ) -> f64 {
        self.longest.add(now, -queue_us);
        let sent = last.sent.saturating_sub(before.sent);
        let is_lost = last.received.saturating_sub(before.received) < sent;
        let is_full = queue_us as f64 > FULL * -self.longest.get() as f64;
        let since_cut = now.saturating_since(self.cut).as_secs_f64();
        // Losses of what was sent before the last cut do not count, until the cut can have shortened the
        // queue.
        let is_cut = is_lost && is_full && before.left >= self.cut;
        if is_cut {
            self.before_cut = Some(self.window);
            self.window = (self.window * BETA).max(2.0);
            self.cut = now;
        } else {
            let took = last.left.saturating_since(before.left).as_secs_f64();
            // An unused window does not grow: the application limits what is sent.
            if sent as f64 * 8.0 >= USED * self.bps * took {
                self.grow(now, since_cut, round_s);
            }
        }
        self.last = now;
        self.plan_look(now, is_cut, queue_us, round_s);
        self.watch_fall(last);
        self.watch_flat(last, round_s);
        let part = if self.looks(now) { LOOK_PART } else { 1.0 };
        self.bps = part * self.window * SEGMENT * 8.0 / round_s;
        self.bps
    }

    /// Grows as CUBIC does between two cuts; before the first by a fraction each round trip.
    fn grow(&mut self, now: Instant, since_cut: f64, round_s: f64) {
        let rounds = (now.saturating_since(self.last).as_secs_f64() / round_s).min(1.0);
        let Some(before) = self.before_cut else {
            self.window *= 1.0 + FIRST * rounds;
            return;
        };
        let flat = libm::cbrt(before * (1.0 - BETA) / C);
        let off = since_cut - flat;
        let cubic = C * off * off * off + before;
        let reno = BETA * before + ALPHA * since_cut / round_s;
        let most = self.window * (1.0 + rounds / 2.0);
        self.window = cubic.max(reno).clamp(self.window, most);
    }

    /// Schedules the next look. Other senders that were cut as well pause for part of a round trip, and
    /// continue after two.
    fn plan_look(&mut self, now: Instant, is_cut: bool, queue_us: i64, round_s: f64) {
        let looked = now.saturating_since(self.look.1);
        let falls = self.falls(now, queue_us, round_s);
        let (waits, rounds) = match () {
            () if falls && looked > JOIN_EVERY => (0.0, 1.0),
            () if is_cut && looked > LOOK_EVERY || looked > LOOK_EVERY * 2 => (2.0, LOOK_ROUNDS),
            () => return,
        };
        let from = now + Duration::from_secs_f64(waits * round_s);
        let takes = queue_us.max(0) as f64 / 1e6 / (1.0 - LOOK_PART) + rounds * round_s;
        self.look = (
            from,
            from + Duration::from_secs_f64(takes.min(LONGEST_LOOK_S)),
        );
        self.fell_from = None;
    }

    /// Whether the queue has fallen over the last round trip although this end was not cut: another end
    /// looks.
    fn falls(&mut self, now: Instant, queue_us: i64, round_s: f64) -> bool {
        let (from, was_us) = self.round;
        let took_s = now.saturating_since(from).as_secs_f64();
        if took_s < round_s {
            return false;
        }
        self.round = (now, queue_us);
        let since_cut = now.saturating_since(self.cut).as_secs_f64();
        since_cut > 2.0 * round_s && (was_us - queue_us) as f64 / 1e6 > FALLS * took_s
    }

    /// Whether the delay stays constant during a look.
    fn watch_flat(&mut self, mark: &Sample, round_s: f64) {
        if !self.looks(mark.left) {
            self.flat = None;
            return;
        }
        let us = mark.delay_us;
        let (since, [least, most]) = self.flat.unwrap_or((mark.left, [us; 2]));
        let (least, most) = (least.min(us), most.max(us));
        if most - least > FLAT_US {
            self.flat = Some((mark.left, [us; 2]));
        } else {
            self.flat = Some((since, [least, most]));
            self.is_alone |= mark.left.saturating_since(since).as_secs_f64() > round_s;
        }
    }

    /// Whether the queue falls during a look by all that is sent less.
    fn watch_fall(&mut self, mark: &Sample) {
        if self.looks(mark.left) {
            let (from, was_us) = *self.fell_from.get_or_insert((mark.left, mark.delay_us));
            let took = mark.left.saturating_since(from);
            let fell_s = (was_us - mark.delay_us) as f64 / 1e6;
            let alone_s = ALONE * (1.0 - LOOK_PART) * took.as_secs_f64();
            self.is_alone |= took >= FALLS_FOR && fell_s > alone_s;
        }
    }
}
