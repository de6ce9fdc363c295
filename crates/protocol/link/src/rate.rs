//! Estimates the rate that a link carries (`rate-limit = "estimated"` or `"found"`).
//!
//! The current rate of a radio link is usually unknown. This end sends marks among its frames, which carry
//! only a number. The other end answers each with a report: how many bytes had arrived before the mark, and
//! when the mark arrived by the peer's clock. Two reports show how long the bytes between their marks took to
//! arrive. The delay of a mark beyond the minimum of the last 10 to 20 s is queueing delay, no matter whose
//! traffic causes it.
//!
//! ```text
//! round                  marks since the last change of the rate: at least four, more where delays jitter, over 30 ms;
//!                        four over 300 ms
//! q                      min delay of a round - min delay of the last 10 to 20 s;   allowed: 6 ms + jitter, up to 40 ms
//!                        more where successive queues show different rates
//! q <= allowed, busy     rate x (1 + gain); the gain grows 2.5 times each round once the rate exceeds that of the last
//!                        queue by 5 %, up to a half, and up to doubling the rate beyond twice that
//! marks rise             in the beginning, by more than 2 x allowed: as if all of them had found a queue
//! q >  allowed           c = bytes / time between the first and the last mark that found this queue: the capacity, since
//!                        the link was never idle. Send at c/4, c/2 or 3c/4 until the queue is gone, then just below c
//! q did not fall         it is not ours: the present delay becomes the base delay, and the rate stays; twice in a row,
//!                        another sender keeps it filled, and this end sends what TCP would (`rival.rs`)
//! much in flight         more without a report than rate of departure x (recent min round trip + 100 ms + 2 x jitter):
//!                        send an eighth of the rate until a report arrives
//! ```
//!
//! Loss is not congestion. But a policer, or a link with a queue shorter than the allowed delay, gives no
//! other sign: there `losses.rs` relates the loss to the rate by what arrives. Fades do not count: they only
//! remove what was sent between two marks.
//!
//! Minimum delays are used rather than means, because occasional late marks are not a queue. Reports are
//! rare: one for every 8 kB or 10 ms, whichever is longer; below 3 Mbit/s one for every 20 ms or packet. The
//! first mark follows the first frame, before there can be a queue. If marks remain unanswered, the rate is
//! halved, or quartered before any queue was seen, at most four times in a row: a link that has become much
//! slower answers late. The last confirmed rate, from a busy round without a queue, is kept meanwhile: the
//! first answer without a queue restores it, after any number of silences, and only a queue or losses under
//! load revoke it, or silence as soon as it is used again: a policer far below it drops the marks as well. A
//! rate only grows while it is used: an idle link shows no limit. An unknown rate starts as
//! in slow start, and doubles each round until a queue or losses appear.
//!
//! Invariants: `LEAST` <= rate <= the configured rate; nothing is allocated after the start. Left out:
//! effects of the reverse path on reports other than their delay, which the marks' own times exclude.

mod compete;
mod found;
mod losses;
mod marks;
mod queue;
mod rival;
mod seen;
mod shared;

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Rate};

use crate::config::RateLimit;
use crate::wire::Report;
pub use found::{FoundRate, RateLimitCause};
use losses::{Advice, Losses, Round};
use marks::Marks;
use rival::{NotOurs, Rival};
use seen::{Least, Sample, Stretch, USED, Variation};

/// Number of recent reports kept.
const SAMPLES: usize = 64;
/// Increase in delay that does not yet count as a queue.
const ALLOWED_US: i64 = 6_000;
/// Further allowance where the link's rate varies: a queue bridges the time until a rise is detected.
const ALLOWED_MORE_US: i64 = 40_000;
/// Minimum number of marks in a round, and the number to which jitter raises it at most. A long round needs
/// only the minimum.
const LEAST_MARKS: usize = 4;
const MOST_MARKS: usize = 16;
/// Minimum and maximum number of marks of a queue that determine the capacity.
const FOUND: usize = 3;
const STRETCH: usize = 24;
const LEAST_ROUND: Duration = Duration::from_millis(30);
const LONG_ROUND: Duration = Duration::from_millis(300);
/// Memories of the minimum delay (10 to 20 s) and the minimum round trip (0.5 to 1 s): a path that became
/// longer holds more.
const LEAST_OF: Duration = Duration::from_secs(10);
const QUICKEST_OF: Duration = Duration::from_millis(500);
/// Limit of data in flight without a report: rate of departure times the minimum round trip, this time and
/// twice the jitter, but at least ten packets. The rate of departure is measured over `OF_LATE_US`.
const AHEAD_S: f64 = 0.1;
const LEAST_AHEAD: f64 = 15_000.0;
const OF_LATE_US: i64 = 40_000;
/// Slightly more than the recent rate of departure may be in flight, so that a rising rate can be detected.
const LEAVES: f64 = 1.25;
/// A silence of this length is a fade, which takes everything sent.
const SILENT: Duration = Duration::from_millis(100);
/// Above that limit the rate is divided by `HELD`, and from `FAR_AHEAD` times the limit on by
/// `HELD_FAR_AHEAD`; it is at most half the rate of departure.
const HELD: u64 = 8;
const HELD_FAR_AHEAD: u64 = 32;
const FAR_AHEAD: f64 = 1.25;
/// The initial value of an unknown rate, and the minimum of any rate.
const FIRST_BPS: u64 = 10_000_000;
const LEAST_BPS: u64 = 32_000;
/// Data sent at the initial rate before the first report.
const FIRST_FLIGHT: u64 = 60_000;
/// Data sent, of which most is lost, before that takes a rate back.
const MOSTLY_LOST: u64 = 15_000;
/// Number of silences that halve the rate.
const MOST_SILENT: u32 = 4;
const LONGEST_AT_FIRST: Duration = Duration::from_secs(1);
/// Growth is as stated at `FAIR_BPS`, and faster on slower links. Below `LONG_PACKET_BPS`, where a packet
/// takes as long as a round may add to the queue, it increases only by the power `FASTER_BELOW`, and up to
/// `SLOWEST_BPS` it does not increase.
const FAIR_BPS: f64 = 20e6;
const LONG_PACKET_BPS: f64 = 6e6;
const FASTER_BELOW: f64 = 0.1;
const SLOWEST_BPS: f64 = 0.1e6;
/// What a round may add to the queue while the rate is near the known capacity.
const STEP: Duration = Duration::from_millis(2);
/// Maximum growth per round while near the known capacity, and the growth below that capacity.
const FAST_STEP: f64 = 1.0 / 32.0;
/// Minimum growth per second, and maximum per round, while near the known capacity.
const LEAST_GROWTH: f64 = 0.07;
const MOST_STEP: f64 = 0.25;
/// The rate is near the known capacity up to this factor; beyond it the gain grows by the second each round.
const NEAR: f64 = 1.05;
const FASTER: f64 = 2.5;

/// The current activity.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Sends at the rate, which grows each round in which it was used.
    Grows,
    /// Sends less until then, so that a queue can drain.
    Drains { until: Instant },
}

/// Why the rate was last reduced: the reduction must help, or the cause was not ours.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doubt {
    None,
    Queue(Taken),
}

/// A reduction because of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Taken {
    /// The queueing delay, microseconds, and the rate.
    was: i64,
    bps: u64,
    /// How often the queue has not fallen since, and how often it has not or has even grown.
    tries: u32,
    vain: u32,
}

/// Estimates what the link carries, and the rate to send at.
#[derive(Clone, Debug)]
pub(crate) struct RateEstimator {
    most: u64,
    /// Estimated capacity of the link.
    bps: u64,
    /// The rate of the last busy round without a queue, if there was one.
    confirmed: Option<u64>,
    phase: Phase,
    /// Fraction of `bps` to send at while the queue drains.
    part: f64,
    doubt: Doubt,
    not_ours: NotOurs,
    /// The state while another sender keeps a queue filled.
    rival: Option<Rival>,
    gain: f64,
    /// The capacity that the last queue showed; none before the first.
    carried: Option<f64>,
    variation: Variation,
    /// When a queue was last drained.
    drained: Instant,
    /// When the rate last changed.
    since: Instant,
    busy: bool,
    marks: Marks,
    /// Round trip of the last mark and its report, and the number of consecutive silences.
    round_trip: Duration,
    /// The recent minimum round trip, microseconds.
    quickest: Option<Least>,
    silent: u32,
    /// The rate before a silence, and the capacity that a queue had shown by then, until the link under load
    /// shows otherwise.
    before_silence: Option<(u64, Option<f64>)>,
    /// Whether a busy round without a queue or much loss has confirmed the rate since it was first assumed, or
    /// restored after a silence.
    is_shown: bool,
    /// Present upper bound of the sending rate, bit/s.
    held: u64,
    // What has been observed.
    samples: VecDeque<Sample>,
    base: Option<Least>,
    jitter_us: i64,
    losses: Losses,
}

impl RateEstimator {
    /// Estimates at most this rate. A stated rate is assumed to be right until a queue appears.
    pub(crate) fn new(most: Rate, stated: bool) -> Self {
        let most = most.as_bps();
        Self {
            most,
            bps: if stated { most } else { FIRST_BPS.min(most) },
            confirmed: None,
            phase: Phase::Grows,
            part: 1.0,
            doubt: Doubt::None,
            not_ours: NotOurs::new(),
            rival: None,
            gain: 1.0,
            carried: None,
            variation: Variation::default(),
            drained: Instant::ORIGIN,
            since: Instant::ORIGIN,
            busy: false,
            marks: Marks::new(),
            round_trip: LONGEST_AT_FIRST,
            quickest: None,
            silent: 0,
            before_silence: None,
            is_shown: false,
            held: u64::MAX,
            samples: VecDeque::with_capacity(SAMPLES),
            base: None,
            jitter_us: 0,
            losses: Losses::new(),
        }
    }

    /// Changes the configured rate; the estimate stays, as far as it may.
    pub(crate) fn set_most(&mut self, most: Rate) {
        let was = std::mem::replace(&mut self.most, most.as_bps());
        // A stated rate is assumed to be right; withdrawing one tells nothing about the link.
        let is_stated = self.most < RateLimit::UNSTATED.as_bps();
        self.bps = match self.bps == was && is_stated {
            true => self.most,
            false => self.bps.min(self.most),
        };
    }

    /// The rate to send at now.
    pub(crate) fn rate(&self) -> Rate {
        let bps = match self.phase {
            Phase::Grows => self.bps,
            Phase::Drains { .. } => (self.bps as f64 * self.part) as u64,
        };
        let bps = bps.min(self.held);
        Rate::from_bps(bps.max(LEAST_BPS.min(self.most))).expect("it is not zero")
    }

    /// Upper bound of the rate because of unreported data in flight: a queue below never gets more than that,
    /// however fast the capacity falls.
    fn restraint(&self, now: Instant) -> u64 {
        if self.rival.is_some() {
            // The window limits the data in flight.
            return u64::MAX;
        }
        let Some(last) = self.samples.back() else {
            let nothing = self.confirmed.is_none() && self.bps < self.most;
            let is_much = nothing && self.marks.sent() > FIRST_FLIGHT;
            return if is_much { self.bps / HELD } else { u64::MAX };
        };
        if self.marks.silence(now) > SILENT {
            return u64::MAX;
        }
        let round_trip_s = self.quickest.map_or(1.0, |least| least.get() as f64 / 1e6);
        let ahead_s = round_trip_s + AHEAD_S + 2.0 * self.jitter_us as f64 / 1e6;
        let leaves = self.leaves_bps();
        let most = (leaves / 8.0 * ahead_s).max(LEAST_AHEAD);
        let leaves = leaves as u64;
        match self.marks.sent().saturating_sub(last.sent) as f64 / most {
            part if part > FAR_AHEAD => (self.bps / HELD_FAR_AHEAD).min(leaves / HELD),
            part if part > 1.0 => (self.bps / HELD).min(leaves / 2),
            _ => u64::MAX,
        }
    }

    /// Slightly above the rate at which the queue below drains now; the estimated rate where there is no
    /// queue.
    fn leaves_bps(&self) -> f64 {
        let (bps, base, least) = (self.bps as f64, self.base_us(), self.allowed_us() / 2);
        if self.queue_us(FOUND) < least {
            return bps;
        }
        let found = self.samples.iter().rev();
        let found = found.take_while(|sample| sample.delay_us - base > least / 2);
        let carried = Stretch::newest(found, LEAST_MARKS, OF_LATE_US);
        carried.map_or(bps, |carried| bps.min(LEAVES * carried))
    }

    /// Whether the rate is stated or anything has been observed.
    pub(crate) fn knows_something(&self) -> bool {
        let is_stated = self.bps == self.most;
        is_stated || self.confirmed.is_some() || !self.samples.is_empty()
    }

    /// The estimated capacity.
    pub(crate) fn carries(&self) -> Rate {
        Rate::from_bps(self.bps).expect("it is not below the least")
    }

    /// The recent minimum round trip, where one is known.
    pub(crate) fn round_trip(&self) -> Duration {
        let us = self.quickest.map_or(0, Least::get);
        Duration::from_micros(u64::try_from(us).unwrap_or(0))
    }

    /// The estimate, and what limits it.
    pub(crate) fn found(&self) -> FoundRate {
        let limit = match () {
            () if self.silent > 0 => RateLimitCause::Silence,
            () if self.rival.is_some() => RateLimitCause::Rival,
            () if self.losses.drops_more() => RateLimitCause::Policed,
            () if self.bps >= self.most => RateLimitCause::Configured,
            () if self.carried.is_some_and(|carried| carried > 0.0) => RateLimitCause::Queue,
            () => RateLimitCause::NotYetSeen,
        };
        FoundRate {
            bps: self.bps,
            limit,
            loss: self.losses.rule(),
        }
    }

    /// The last confirmed capacity, however little is sent for now.
    fn known(&self) -> u64 {
        let bps = self.losses.before_trial().unwrap_or(self.bps);
        self.confirmed.map_or(bps, |confirmed| confirmed.min(bps))
    }

    /// Forgets all observations, because the link below may be another one. The estimate is the starting
    /// point.
    pub(crate) fn reset(&mut self) {
        self.bps = self.known();
        if let Some((before, _)) = self.before_silence.take() {
            self.bps = before.min(self.most);
        }
        self.silent = 0;
        (self.phase, self.doubt, self.gain) = (Phase::Grows, Doubt::None, 1.0);
        (self.carried, self.base, self.quickest, self.jitter_us) = (None, None, None, 0);
        self.variation = Variation::default();
        (self.not_ours, self.rival) = (NotOurs::new(), None);
        self.marks.clear();
        (self.busy, self.held) = (false, u64::MAX);
        self.samples.clear();
        self.losses = Losses::new();
    }

    /// The path accepts longer or shorter frames from now on. Losses while it swallowed long ones do not
    /// count, and the earlier rate is restored.
    pub(crate) fn path_changed(&mut self) {
        let sound = self.losses.sound().unwrap_or(0).min(self.most);
        if sound > self.bps {
            (self.bps, self.phase) = (sound, Phase::Grows);
        }
        self.losses = Losses::new();
        (self.carried, self.gain) = (None, 1.0);
    }

    /// Whether losses have reduced the rate since the last call.
    pub(crate) const fn take_losing(&mut self) -> bool {
        self.losses.take_news()
    }

    // ---- marks

    /// A frame has left; `sent` bytes have left in total.
    #[inline]
    pub(crate) fn departed(&mut self, now: Instant, sent: u64) {
        let at_first = self.carried.is_none();
        self.marks.departed(now, sent, self.bps, at_first);
        self.go_on(now);
        if self.phase == Phase::Grows && self.marks.are_missed(now, self.round_trip) {
            self.miss(now);
        }
    }

    /// Marks remain unanswered: the link may have become much slower, or be gone.
    fn miss(&mut self, now: Instant) {
        (self.since, self.rival) = (now, None);
        // If no queue has shown the capacity, the rate may exceed it by any factor.
        let part = match self.carried {
            Some(carried) if carried > 0.0 => 2,
            _ => 4,
        };
        // A rate that nothing has shown since, and that brings silence as soon as it is used, is too high.
        if self.before_silence.is_none() && (self.is_shown || !self.is_used(now)) {
            self.before_silence = Some((self.known(), self.carried));
        }
        self.losses.give_up_trial();
        if self.silent < MOST_SILENT {
            self.silent += 1;
            self.bps = (self.bps / part).max(LEAST_BPS.min(self.most));
        }
    }

    /// Whether at least `USED` of the rate has been sent since the last report.
    fn is_used(&self, now: Instant) -> bool {
        let (left, sent) = (self.samples.back()).map_or((now, 0), |last| (last.left, last.sent));
        let took = now.saturating_since(left).as_secs_f64();
        self.marks.sent().saturating_sub(sent) as f64 * 8.0 >= USED * self.bps as f64 * took
    }

    /// Whether the next frame is to be a mark.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.marks.is_due()
    }

    /// Sends a mark after this many bytes and returns its number.
    pub(crate) fn mark(&mut self, now: Instant, sent: u64) -> u32 {
        let number = self.marks.take(now, sent);
        self.held = self.restraint(now);
        number
    }

    // ---- reports

    /// Takes the peer's report on a mark.
    pub(crate) fn handle_report(&mut self, now: Instant, number: u32, report: Report) {
        self.go_on(now);
        let Some(mark) = self.marks.answer(now, number) else {
            return;
        };
        if std::mem::take(&mut self.silent) > 0 {
            // Unless it was an outage, the search starts again.
            (self.gain, self.carried) = (0.25, Some(0.0));
        }
        self.round_trip = now.saturating_since(mark.left);
        let took_us = self.round_trip_us();
        let quickest = self
            .quickest
            .get_or_insert(Least::of(now, took_us, QUICKEST_OF));
        quickest.add(now, took_us);
        let left_us = i64::try_from(mark.left.as_nanos() / 1_000).unwrap_or(i64::MAX);
        let (came_us, received) = match self.samples.back() {
            Some(last) => (
                last.came_us + i64::from(report.at_us.wrapping_sub(last.came_us as u32) as i32),
                last.received + u64::from(report.received.wrapping_sub(last.received as u32)),
            ),
            None => (i64::from(report.at_us), u64::from(report.received)),
        };
        let sample = Sample {
            left: mark.left,
            sent: mark.sent,
            came_us,
            received,
            delay_us: came_us - left_us,
        };
        let before = self.samples.back().copied();
        self.remember(now, sample);
        if self.rival.is_none() {
            self.heed_loss_of_most(now);
        }
        self.held = self.restraint(now);
        if let (Some(_), Some(before)) = (self.rival, before) {
            return self.compete(now, &before, &sample);
        }
        let queue = sample.delay_us - self.base_us();
        if queue < self.allowed_us()
            && let Some((before, carried)) = self.before_silence.take()
        {
            // It was an outage.
            self.bps = self.bps.max(before).min(self.most);
            (self.since, self.carried, self.is_shown) = (now, carried, false);
        }
        // If the rate varies, an empty queue is lost capacity.
        let part = 0.25 + 0.25 * self.variation.degree();
        let is_gone = (queue as f64) < part * self.allowed_us() as f64;
        match self.phase {
            Phase::Grows => self.judge(now),
            Phase::Drains { .. } if sample.left >= self.since && is_gone => {
                (self.phase, self.since) = (Phase::Grows, now);
            }
            Phase::Drains { .. } => {}
        }
    }

    /// Takes back a rate at which most is lost from mark to mark: too few marks arrive for a round. A fade takes most
    /// between two marks alone, and makes no queue.
    fn heed_loss_of_most(&mut self, now: Instant) {
        let is_unknown = self.carried.is_none() && self.confirmed.is_none();
        let gaps = if is_unknown { 2 } else { 4 };
        let all = self.samples.make_contiguous();
        let Some(begin) = all.len().checked_sub(gaps + 1) else {
            return;
        };
        let of_late = &all[begin..];
        let (first, last) = (of_late[0], of_late[gaps]);
        let sent = last.sent.saturating_sub(first.sent);
        let left = last.left.saturating_since(first.left);
        let is_used = sent as f64 * 8.0 >= USED * self.bps as f64 * left.as_secs_f64();
        if first.left < self.since || left < LONG_ROUND || !is_used || sent < MOSTLY_LOST {
            return;
        }
        let is_lost = of_late.windows(2).all(|pair| {
            let came = pair[1].received.saturating_sub(pair[0].received);
            came < pair[1].sent.saturating_sub(pair[0].sent) / 4
        });
        let is_full = self.queue_us(gaps) > self.allowed_us();
        if !is_lost || !is_unknown && !is_full {
            return;
        }
        let came = last.received.saturating_sub(first.received);
        let took = (last.came_us - first.came_us) as f64 / 1e6;
        let arrived = (came as f64 * 8.0 / took.max(1e-6)) as u64;
        self.losses.note_fall(self.bps);
        self.bps = arrived.clamp(LEAST_BPS.min(self.most), self.bps);
        self.since = now;
    }

    fn remember(&mut self, now: Instant, sample: Sample) {
        let delay = sample.delay_us;
        let base = self.base.get_or_insert(Least::of(now, delay, LEAST_OF));
        base.add(now, delay);
        self.not_ours.seen(now, delay);
        if let [.., before, last] = self.samples.make_contiguous() {
            // Jitter is the deviation from steady growth or decline.
            let bend = (delay - 2 * last.delay_us + before.delay_us).abs() / 2;
            self.jitter_us += (bend.min(50_000) - self.jitter_us) / 8;
        }
        if self.samples.len() == SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    fn round_trip_us(&self) -> i64 {
        i64::try_from(self.round_trip.as_nanos() / 1_000).unwrap_or(i64::MAX)
    }

    fn base_us(&self) -> i64 {
        self.base.map_or(0, Least::get)
    }

    fn allowed_us(&self) -> i64 {
        let more = ALLOWED_MORE_US as f64 * self.variation.degree();
        ALLOWED_US + self.jitter_us + more as i64
    }

    /// Ends a drain whose time is over.
    #[inline]
    fn go_on(&mut self, now: Instant) {
        if let Phase::Drains { until } = self.phase
            && now >= until
        {
            (self.phase, self.since) = (Phase::Grows, now);
        }
    }

    /// Judges the marks of this round, once there are enough.
    fn judge(&mut self, now: Instant) {
        let begin = self
            .samples
            .iter()
            .rposition(|sample| sample.left < self.since);
        let begin = begin.map_or(0, |before| before + 1);
        let (Some(first), Some(last)) = (self.samples.get(begin), self.samples.back()) else {
            return;
        };
        let marks = self.samples.len() - begin;
        // Where jitter is as large as the allowed delay, the minimum of only a few marks exceeds it too
        // often.
        let needs = (LEAST_MARKS + (self.jitter_us / 1_000) as usize).min(MOST_MARKS);
        let allowed = self.allowed_us();
        let until = last.left;
        let lasts = until.saturating_since(first.left);
        let is_long = marks >= LEAST_MARKS && lasts >= LONG_ROUND;
        let is_over = is_long || marks >= needs && lasts >= LEAST_ROUND;
        let overruns = marks >= LEAST_MARKS && self.queue_us(FOUND) > 3 * allowed;
        let bursts = self.carried.is_none() && self.rises();
        if !is_over && !overruns && !bursts {
            return;
        }
        let Some(seen) = Stretch::of(self.samples.range(begin..)) else {
            return;
        };
        let queue = self.queue_us(match overruns {
            true => FOUND,
            false => needs.div_ceil(2).min(marks),
        });
        let all = last.sent.saturating_sub(first.sent) as f64;
        self.busy = seen.sent_bps >= 0.85 * self.bps as f64;
        if queue > allowed || bursts {
            let of_late = if overruns { needs } else { STRETCH };
            self.on_queue(now, queue, of_late);
            return;
        }
        self.doubt = Doubt::None;
        let of_late = self.samples.iter().rev().take(MOST_MARKS).count();
        let of_late = Stretch::of(self.samples.range(self.samples.len() - of_late..));
        let round = Round {
            bps: self.bps,
            busy: self.busy,
            all,
            seen,
            is_carried: self
                .carried
                .is_some_and(|carried| self.bps as f64 <= NEAR * carried),
            arrived_bps: of_late.map_or(seen.arrived_bps, |late| late.arrived_bps),
        };
        match self.losses.judge(now, &round) {
            Advice::Grow => {
                if self.busy {
                    (self.confirmed, self.is_shown) = (Some(self.bps), true);
                }
                self.grow(now, lasts + self.round_trip);
                self.look_below(now);
            }
            Advice::Hold => {
                // Everything sent since then was sent at this rate, too.
                self.since = until;
                if self.losses.limit() == Some(self.bps) {
                    (self.confirmed, self.is_shown) = (Some(self.bps), true);
                    self.look_below(now);
                }
            }
            Advice::Set(bps) => {
                self.bps = bps.clamp(LEAST_BPS.min(self.most), self.most);
                (self.since, self.gain) = (now, FAST_STEP);
            }
        }
    }

    /// Whether each of the last marks waited longer than the previous one: a burst, whose queue is gone
    /// before the next burst, so that no round shows it. TCP below the link's rate sends like this.
    fn rises(&self) -> bool {
        let delays = || self.samples.iter().rev().map(|sample| sample.delay_us);
        let pairs = delays().zip(delays().skip(1));
        let marks = 1 + pairs.take_while(|(later, earlier)| earlier < later).count();
        let first = delays().nth(marks - 1).unwrap_or(0);
        let last = delays().next().unwrap_or(0);
        marks >= LEAST_MARKS && last - first > 2 * self.allowed_us()
    }

    /// The minimum queueing delay of the last marks.
    fn queue_us(&self, marks: usize) -> i64 {
        let last = self.samples.iter().rev().take(marks);
        last.map(|sample| sample.delay_us).min().unwrap_or(0) - self.base_us()
    }

    fn grow(&mut self, now: Instant, round: Duration) {
        let round = round.as_secs_f64();
        let step = (STEP.as_secs_f64() / round).clamp(1.0 / 128.0, FAST_STEP);
        // Where rounds are long, the capacity may change between them.
        let step = step.max((LEAST_GROWTH * round).min(MOST_STEP));
        let step = step * fair(self.bps);
        // How far the rate exceeds what the last queue showed.
        let beyond = self.carried.map(|carried| self.bps as f64 / carried);
        if self.busy {
            match beyond {
                Some(beyond) if beyond < 1.0 => self.gain = step.max(FAST_STEP),
                Some(beyond) if beyond < NEAR => self.gain = step,
                _ => {}
            }
            self.gain = self.gain.max(MOST_STEP * self.variation.degree());
            let most = self
                .losses
                .limit()
                .map_or(self.most, |bps| bps.min(self.most));
            self.bps = ((self.bps as f64 * (1.0 + self.gain)) as u64 + 1).min(most.max(self.bps));
            // Beyond twice that, it is effectively another link.
            let fastest = match beyond {
                Some(beyond) if beyond < 2.0 => 0.5,
                _ => 1.0,
            };
            self.gain = (self.gain * FASTER).min(fastest);
        } else if self.carried.is_some() {
            self.gain = step;
        }
        self.since = now;
    }
}

/// Factor for the growth near a limit: less than proportional to the rate, except for the slowest. Of two
/// senders that share a link the smaller thus gains on the larger, as both reduce proportionally. A slow link
/// has little room for that.
fn fair(bps: u64) -> f64 {
    let bps = bps as f64;
    let slow = (LONG_PACKET_BPS / bps).max(1.0);
    let fair = (FAIR_BPS / bps.max(LONG_PACKET_BPS)).sqrt().max(0.5);
    let most = (bps / SLOWEST_BPS).max(1.0).sqrt();
    (fair * libm::pow(slow, FASTER_BELOW)).min(most)
}

#[cfg(test)]
mod tests;
