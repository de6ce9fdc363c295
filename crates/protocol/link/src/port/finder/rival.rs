//! A queue that somebody else keeps filled, and what to send beside it.
//!
//! TCP that knows losses alone fills every queue. An end that gives way to that queue gets nothing; one that takes it for
//! part of the path, and gives way to no loss, leaves nothing. Beside such a queue this end sends what CUBIC (RFC 9438)
//! would send:
//!
//! ```text
//! begins      twice within 10 s a queue was not ours: less was sent twice each time, and the queue stayed; or three times
//!             in a row it stayed or grew; or in the minute after a rival's queue was gone, queues take 3 of 10 of the rate
//! window      CUBIC's, of segments of 1448 B; before the first cut it grows by a quarter each round trip
//! rate        window / round trip
//! cut         something that was sent since the last cut was lost while the queue was within 15 % of the longest of late:
//!             0.7 x window
//! look        two round trips after a cut, every 10 s, and without one every 20 s: a quarter of the rate until a queue of our own
//!             would be gone, and two round trips; or at once where the queue falls although this end was not cut: another
//!             looks
//! ends        the queue is gone then; or it falls as fast as one that only this end fills, or stays the same for a round trip
//!             while less is sent, as none does that is filled: the path is longer
//! ```
//!
//! Two ends of this kind that take each other for a rival look together, as the second joins the first, and see the queue
//! go. Losses at shorter queues are the link's.

use airlane_base::{Duration, Instant};

use super::seen::{Least, Sample};

const SEGMENT: f64 = 1_448.0;
const C: f64 = 0.4;
const BETA: f64 = 0.7;
/// Growth of Reno with this beta, in segments a round trip: 3 (1 - beta) / (1 + beta).
const ALPHA: f64 = 0.53;
/// Growth by a round trip before the first cut.
const FIRST: f64 = 0.25;
/// A queue is full from this part of the longest of late.
const FULL: f64 = 0.85;
const LONGEST_OF: Duration = Duration::from_secs(10);
const LEAST_OF: Duration = Duration::from_secs(60);
/// Two queues that are not ours within this time are somebody's.
const TWICE_WITHIN: Duration = Duration::from_secs(10);
/// Less is sent after a cut once in this time, and without one after twice as long.
const LOOK_EVERY: Duration = Duration::from_secs(10);
const LOOK_PART: f64 = 0.25;
const LONGEST_LOOK_S: f64 = 2.0;
const LOOK_ROUNDS: f64 = 2.0;
/// Another looks where the queue falls by this part of a round trip within that; who joins does so once in this time.
const FALLS: f64 = 0.22;
const JOIN_EVERY: Duration = Duration::from_secs(5);
/// A window grows where so much of its rate is used.
const USED: f64 = 0.5;
/// The queue is this end's own where it falls by this part of what is sent less, for so long at least.
const ALONE: f64 = 0.85;
const FALLS_FOR: Duration = Duration::from_millis(20);
/// A delay that varies by no more, microseconds, is no queue that somebody fills.
const FLAT_US: i64 = 500;

/// Queues that did not fall although less was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotOurs {
    /// The least delay of the last minute or two: a queue that stands for longer than that counts as the path's.
    least: Option<Least>,
    /// One more until then is somebody's.
    until: Instant,
    /// Until when the queue of a rival counts as gone for a while, and what was sent as it went.
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

    /// A mark took so long, by its clocks.
    pub(super) fn seen(&mut self, now: Instant, delay_us: i64) {
        let least = self.least.get_or_insert(Least::of(now, delay_us, LEAST_OF));
        least.add(now, delay_us);
    }

    /// The least delay of the last minute or two, or this one.
    pub(super) fn least(&self, base_us: i64) -> i64 {
        self.least.map_or(base_us, Least::get)
    }

    /// A queue was not ours: the least delay without it, where somebody keeps it filled.
    pub(super) fn add(&mut self, now: Instant) -> Option<i64> {
        let twice = now < self.until;
        self.until = self.until.max(now + TWICE_WITHIN);
        self.least.filter(|_| twice).map(Least::get)
    }

    /// The queue of a rival is gone, perhaps because all were cut; this is sent then.
    pub(super) fn went(&mut self, now: Instant, bps: u64) {
        self.went = Some((now + LEAST_OF, bps));
    }

    /// This is the rate now because of a queue: where a rival seems to be back, the least delay without the queue, and
    /// the rate of before.
    pub(super) fn comes_back(&self, now: Instant, bps: u64) -> Option<(i64, u64)> {
        let (until, before) = self.went?;
        let is_back = now < until && (bps as f64) < BETA * before as f64;
        let least = self.least.filter(|_| is_back)?;
        Some((least.get(), before))
    }
}

/// What is sent beside a queue that somebody keeps filled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rival {
    base_us: i64,
    /// The longest queue of late: the least of its negative.
    longest: Least,
    /// Segments.
    window: f64,
    /// That of the last cut; none before the first.
    before_cut: Option<f64>,
    cut: Instant,
    last: Instant,
    /// Less is sent from then, or was, until then.
    look: (Instant, Instant),
    /// When the last round trip began, and the queue then.
    round: (Instant, i64),
    /// The first mark of that: when it left, and what it waited for.
    fell_from: Option<(Instant, i64)>,
    /// While less is sent: since when all delays are between these.
    flat: Option<(Instant, [i64; 2])>,
    is_alone: bool,
    /// What was sent last, bit/s.
    bps: f64,
}

impl Rival {
    /// Begins with this rate over this round trip; `before` was sent beside it in the last minute.
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

    /// How long a mark takes without any queue, by its clocks.
    pub(super) const fn base_us(&self) -> i64 {
        self.base_us
    }

    /// Whether less is sent then, to see if the queue goes.
    pub(super) fn looks(&self, now: Instant) -> bool {
        (self.look.0..self.look.1).contains(&now)
    }

    /// Whether the queue was seen to fall as one that only this end fills, or to be none.
    pub(super) const fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// A mark came, after the one before it, and all of late waited for this queue: what to send now, bit/s.
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
        // What was sent before the last cut is lost for as long as that takes to shorten the queue.
        let is_cut = is_lost && is_full && before.left >= self.cut;
        if is_cut {
            self.before_cut = Some(self.window);
            self.window = (self.window * BETA).max(2.0);
            self.cut = now;
        } else {
            let took = last.left.saturating_since(before.left).as_secs_f64();
            // What is not used does not grow: what is sent is the application's choice.
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

    /// As CUBIC does between two cuts; by a part of each round trip before the first.
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

    /// When to send less next. Others that were cut as well have stopped for a part of a round trip, and go on after two.
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

    /// Whether the queue has fallen over the last round trip although this end was not cut: another looks.
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

    /// Whether the delay stays the same while less is sent.
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

    /// Whether the queue falls, while less is sent, by all that is sent less.
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
