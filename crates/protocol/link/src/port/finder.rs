//! The rate that a link is found to carry (`rate-limit = "estimated"` or `"found"`).
//!
//! Nobody states what a radio carries today. This end marks what it sends: a mark says nothing but its number
//! and leaves among the frames. The other end answers each with a report: how many bytes have come until then,
//! and when the mark came, by a clock of its own. Two reports show how long the bytes between their marks took to
//! arrive, and what a mark took beyond the quickest of the last 10 to 20 s is a queue, whoever made it.
//!
//! ```text
//! round        marks since the last change of the rate: at least four, more where delays jitter, over 30 ms; four over 300 ms
//! q            least delay of a round - least delay of the last 10 to 20 s;   allowed: 6 ms + jitter, 40 ms more where
//!              queue after queue shows another rate
//! q <= allowed, busy       rate x (1 + gain); the gain grows 2.5 times each round once the rate is 5 % beyond the
//!                          last queue's, up to a half, and to twice the rate beyond twice that
//! marks rise               at first, by more than 2 x allowed: as if all of them had found a queue
//! q >  allowed             c = bytes / time between the first and the last mark that found this queue: what the
//!                          link carries, as it was never idle. Send at c/4, c/2 or 3c/4 until the queue is gone, then
//!                          a bit below c
//! q did not fall by that   it is not ours: what the delay is now counts as none, and the rate stays; twice in a row, it is
//!                          kept filled by another sender, and this end sends what TCP would (`rival.rs`)
//! much is on its way       what leaves the queue now x (least round trip of late + 100 ms + 2 x jitter), and nothing is known of
//!                          it: an eighth of the rate is sent until something is
//! ```
//!
//! Loss is not congestion. But a link that polices, or whose queue is shorter than what is allowed, shows nothing
//! else: what is lost at which rate is judged by what arrives (`losses.rs`). Fades do not count: they take what lies
//! between two marks, and nothing else.
//!
//! Least delays and not means, because what comes late now and then is no queue. Reports are rare: one for 8 kB or
//! 10 ms, whichever is more; below 3 Mbit/s one for 20 ms or each packet. The first mark leaves behind the first frame, before there
//! can be a queue. Where marks go unanswered the rate is halved, or quartered before any queue was seen, four times in
//! a row at most: a link that became much slower answers late. The rate that was last confirmed, by a busy round
//! without a queue, is kept meanwhile: the first answer that comes without a queue brings it back, however many silences
//! there were, and only a queue or losses under load end it. A rate only grows while it is used: an idle link shows no
//! limit. An unstated rate begins as slow start does, and doubles each round until a queue or losses show.
//!
//! Invariants: `LEAST` <= rate <= the configured rate; nothing is allocated after the start. Left out: what the way
//! back does to reports beyond their delay, which the marks' own times do not contain.

mod compete;
mod losses;
mod marks;
mod queue;
mod rival;
mod seen;
mod shared;

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Rate};

use super::found::{FoundRate, RateLimitCause};
use crate::config::RateLimit;
use crate::wire::Report;
use losses::{Advice, Losses, Round};
use marks::Marks;
use rival::{NotOurs, Rival};
use seen::{Least, Sample, Stretch, Variation};

/// Reports of late that are remembered.
const SAMPLES: usize = 64;
/// Delays are allowed to grow by this before they are a queue.
const ALLOWED_US: i64 = 6_000;
/// And by this more where the link's rate varies: a queue is what bridges the time until a rise is seen.
const ALLOWED_MORE_US: i64 = 40_000;
/// A round has as many marks at least, and lasts as long; a long one needs no more than these.
const LEAST_MARKS: usize = 4;
const MOST_MARKS: usize = 16;
/// Marks of a queue that say what the link carries, at least and at most.
const FOUND: usize = 3;
const STRETCH: usize = 24;
const LEAST_ROUND: Duration = Duration::from_millis(30);
const LONG_ROUND: Duration = Duration::from_millis(300);
/// The least delay is that of 10 to 20 s, and the least round trip that of 0.5 to 1 s: a path that became longer holds more.
const LEAST_OF: Duration = Duration::from_secs(10);
const QUICKEST_OF: Duration = Duration::from_millis(500);
/// So much may be on its way of which nothing is known yet: the least round trip, this time and twice the jitter at what
/// leaves the queue, and ten packets in any case. What that is, is seen over this time.
const AHEAD_S: f64 = 0.1;
const LEAST_AHEAD: f64 = 15_000.0;
const OF_LATE_US: i64 = 40_000;
/// A rate that rises is seen because a bit more may be on its way than left of late.
const LEAVES: f64 = 1.25;
/// Nothing heard for so long is a fade, which takes whatever is sent.
const SILENT: Duration = Duration::from_millis(100);
/// Beyond that this part of the rate is sent, at most half of what leaves, and this where much more is on its way.
const HELD: u64 = 8;
const HELD_FAR_AHEAD: u64 = 32;
const FAR_AHEAD: f64 = 1.25;
/// An unstated rate begins here, and none falls below the least.
const FIRST_BPS: u64 = 10_000_000;
const LEAST_BPS: u64 = 32_000;
/// So much leaves at that before something is heard of it.
const FIRST_FLIGHT: u64 = 60_000;
/// So often nothing heard halves the rate.
const MOST_SILENT: u32 = 4;
const LONGEST_AT_FIRST: Duration = Duration::from_secs(1);
/// At this rate growth is as it is said here; slower ones grow faster: those below the second, at which a packet takes as long
/// as a round may add to the queue, by this power only, and the slowest, up to the last, not at all.
const FAIR_BPS: f64 = 20e6;
const LONG_PACKET_BPS: f64 = 6e6;
const FASTER_BELOW: f64 = 0.1;
const SLOWEST_BPS: f64 = 0.1e6;
/// What a round may add to the queue while the rate is near to what the link was found to carry.
const STEP: Duration = Duration::from_millis(2);
/// By so much it grows at most while it is near, and below that.
const FAST_STEP: f64 = 1.0 / 32.0;
/// By so much a second it grows at least, and by so much a round at most, while it is near.
const LEAST_GROWTH: f64 = 0.07;
const MOST_STEP: f64 = 0.25;
/// The rate is near to what was found up to this; by so much the gain grows each round beyond.
const NEAR: f64 = 1.05;
const FASTER: f64 = 2.5;

/// What is being tried.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Sends at the rate, and more each round in which it was used.
    Grows,
    /// Sends less until then, so that a queue can go.
    Drains { until: Instant },
}

/// Why the rate was last taken back: what must be better by that, or was not ours.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doubt {
    None,
    Queue(Taken),
}

/// What was taken back because of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Taken {
    /// How long it was, microseconds, and the rate.
    was: i64,
    bps: u64,
    /// How often it has not fallen since, and how often it has not, or grew.
    tries: u32,
    vain: u32,
}

/// Finds what the link carries, and says it as the rate to send at.
#[derive(Clone, Debug)]
pub(super) struct Finder {
    most: u64,
    /// What the link is taken to carry.
    bps: u64,
    /// The rate of the last busy round without a queue, if there was one.
    confirmed: Option<u64>,
    phase: Phase,
    /// Part of `bps` that is sent at while the queue drains.
    part: f64,
    doubt: Doubt,
    not_ours: NotOurs,
    /// Somebody keeps a queue filled.
    rival: Option<Rival>,
    gain: f64,
    /// What the last queue showed; none before the first.
    carried: Option<f64>,
    variation: Variation,
    /// A queue was last made to go.
    drained: Instant,
    /// The rate has been as it is since then.
    since: Instant,
    busy: bool,
    marks: Marks,
    /// How long the last report was under way with its mark, and how often none has come.
    round_trip: Duration,
    /// The least round trip of late, microseconds.
    quickest: Option<Least>,
    silent: u32,
    /// The rate before nothing was heard, and what a queue had shown then, until load shows otherwise.
    before_silence: Option<(u64, Option<f64>)>,
    /// No more than this is sent for now, bit/s.
    held: u64,
    // These say what came.
    samples: VecDeque<Sample>,
    base: Option<Least>,
    jitter_us: i64,
    losses: Losses,
}

impl Finder {
    /// Finds at most this rate. One that somebody stated is right until a queue shows.
    pub(super) fn new(most: Rate, stated: bool) -> Self {
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
            held: u64::MAX,
            samples: VecDeque::with_capacity(SAMPLES),
            base: None,
            jitter_us: 0,
            losses: Losses::new(),
        }
    }

    /// The configured rate is another one; what was found stays, as far as it may.
    pub(super) fn set_most(&mut self, most: Rate) {
        let was = std::mem::replace(&mut self.most, most.as_bps());
        // A rate that was stated is right; that nobody states one any more says nothing of the link.
        let is_stated = self.most < RateLimit::UNSTATED.as_bps();
        self.bps = match self.bps == was && is_stated {
            true => self.most,
            false => self.bps.min(self.most),
        };
    }

    /// At what rate to send now.
    pub(super) fn rate(&self) -> Rate {
        let bps = match self.phase {
            Phase::Grows => self.bps,
            Phase::Drains { .. } => (self.bps as f64 * self.part) as u64,
        };
        let bps = bps.min(self.held);
        Rate::from_bps(bps.max(LEAST_BPS.min(self.most))).expect("it is not zero")
    }

    /// The most that is sent because so much was sent of which nothing is known yet: a queue that stands below takes
    /// no more than that, however fast the rate falls.
    fn restraint(&self, now: Instant) -> u64 {
        if self.rival.is_some() {
            // Its window is what may be on its way.
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

    /// What leaves the queue below now, and a bit more; the rate where there is no queue.
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

    /// Whether anything is known of the link, or was stated.
    pub(super) fn knows_something(&self) -> bool {
        let is_stated = self.bps == self.most;
        is_stated || self.confirmed.is_some() || !self.samples.is_empty()
    }

    /// What the link is taken to carry.
    pub(super) fn carries(&self) -> Rate {
        Rate::from_bps(self.bps).expect("it is not below the least")
    }

    /// The least round trip of late, as far as one is known.
    pub(super) fn round_trip(&self) -> Duration {
        let us = self.quickest.map_or(0, Least::get);
        Duration::from_micros(u64::try_from(us).unwrap_or(0))
    }

    /// The same, and why it is not taken to carry more.
    pub(super) fn found(&self) -> FoundRate {
        let limit = match () {
            () if self.silent > 0 => RateLimitCause::Silence,
            () if self.rival.is_some() => RateLimitCause::Rival,
            () if self.losses.limit().is_some() => RateLimitCause::Policed,
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

    /// What was last seen to be carried, however little is sent for now.
    fn known(&self) -> u64 {
        let bps = self.losses.before_trial().unwrap_or(self.bps);
        self.confirmed.map_or(bps, |confirmed| confirmed.min(bps))
    }

    /// Forgets what was seen: there may be another link below. What was found is where it begins.
    pub(super) fn reset(&mut self) {
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

    /// The path takes longer or shorter frames from now on. What was lost while it swallowed the long ones says nothing of
    /// its rate, which is that of before.
    pub(super) fn path_changed(&mut self) {
        let sound = self.losses.sound().unwrap_or(0).min(self.most);
        if sound > self.bps {
            (self.bps, self.phase) = (sound, Phase::Grows);
        }
        self.losses = Losses::new();
        (self.carried, self.gain) = (None, 1.0);
    }

    /// Whether losses have had less sent since this was asked.
    pub(super) const fn take_losing(&mut self) -> bool {
        self.losses.take_news()
    }

    // ---- marks

    /// A frame has left; `sent` bytes have by now.
    #[inline]
    pub(super) fn departed(&mut self, now: Instant, sent: u64) {
        let at_first = self.carried.is_none();
        self.marks.departed(now, sent, self.bps, at_first);
        self.go_on(now);
        if self.phase == Phase::Grows && self.marks.are_missed(now, self.round_trip) {
            self.miss(now);
        }
    }

    /// Nothing is heard of what was sent: the link may have become much slower, or be gone.
    fn miss(&mut self, now: Instant) {
        (self.since, self.rival) = (now, None);
        // Where no queue has shown what the link carries, the rate may be anything above that.
        let part = match self.carried {
            Some(carried) if carried > 0.0 => 2,
            _ => 4,
        };
        if self.before_silence.is_none() {
            self.before_silence = Some((self.known(), self.carried));
        }
        self.losses.give_up_trial();
        if self.silent < MOST_SILENT {
            self.silent += 1;
            self.bps = (self.bps / part).max(LEAST_BPS.min(self.most));
        }
    }

    /// Whether a mark is to leave next.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.marks.is_due()
    }

    /// A mark leaves, behind so many bytes: its number.
    pub(super) fn mark(&mut self, now: Instant, sent: u64) -> u32 {
        let number = self.marks.take(now, sent);
        self.held = self.restraint(now);
        number
    }

    // ---- reports

    /// The peer tells of a mark.
    pub(super) fn handle_report(&mut self, now: Instant, number: u32, report: Report) {
        self.go_on(now);
        let Some(mark) = self.marks.answer(now, number) else {
            return;
        };
        if std::mem::take(&mut self.silent) > 0 {
            // Unless it was an outage the search begins anew.
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
            (self.since, self.carried) = (now, carried);
        }
        // Where the rate varies an empty queue is lost capacity.
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

    fn remember(&mut self, now: Instant, sample: Sample) {
        let delay = sample.delay_us;
        let base = self.base.get_or_insert(Least::of(now, delay, LEAST_OF));
        base.add(now, delay);
        self.not_ours.seen(now, delay);
        if let [.., before, last] = self.samples.make_contiguous() {
            // Jitter is what does not follow from growing or shrinking evenly.
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

    /// The queue has had its time to go.
    #[inline]
    fn go_on(&mut self, now: Instant) {
        if let Phase::Drains { until } = self.phase
            && now >= until
        {
            (self.phase, self.since) = (Phase::Grows, now);
        }
    }

    /// What the marks of this round show, once they are enough.
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
        // Where delays jitter by as much as is allowed, the least of a few is too much too often.
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
                    self.confirmed = Some(self.bps);
                }
                self.grow(now, lasts + self.round_trip);
                self.look_below(now);
            }
            Advice::Hold => {
                // What left since then left at this rate, too.
                self.since = until;
                if self.losses.limit() == Some(self.bps) {
                    self.confirmed = Some(self.bps);
                    self.look_below(now);
                }
            }
            Advice::Set(bps) => {
                self.bps = bps.clamp(LEAST_BPS.min(self.most), self.most);
                (self.since, self.gain) = (now, FAST_STEP);
            }
        }
    }

    /// Whether each of the last marks waited longer than the one before: a burst, which fills a queue that is gone before
    /// the next, so that no round shows it. TCP that fills no rate yet sends so.
    fn rises(&self) -> bool {
        let delays = || self.samples.iter().rev().map(|sample| sample.delay_us);
        let pairs = delays().zip(delays().skip(1));
        let marks = 1 + pairs.take_while(|(later, earlier)| earlier < later).count();
        let first = delays().nth(marks - 1).unwrap_or(0);
        let last = delays().next().unwrap_or(0);
        marks >= LEAST_MARKS && last - first > 2 * self.allowed_us()
    }

    /// The queue that the last marks have found, all of them.
    fn queue_us(&self, marks: usize) -> i64 {
        let last = self.samples.iter().rev().take(marks);
        last.map(|sample| sample.delay_us).min().unwrap_or(0) - self.base_us()
    }

    fn grow(&mut self, now: Instant, round: Duration) {
        let round = round.as_secs_f64();
        let step = (STEP.as_secs_f64() / round).clamp(1.0 / 128.0, FAST_STEP);
        // Where rounds are long, no limit stays near for long.
        let step = step.max((LEAST_GROWTH * round).min(MOST_STEP));
        let step = step * fair(self.bps);
        // How far it is beyond what the last queue showed.
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
            // Twice that is another link.
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

/// By what factor the rate grows near a limit: less than in proportion to the rate, but for the slowest. Of two that share a
/// link the smaller gains what the larger loses, as both give back in proportion. A slow link has little room for that.
fn fair(bps: u64) -> f64 {
    let bps = bps as f64;
    let slow = (LONG_PACKET_BPS / bps).max(1.0);
    let fair = (FAIR_BPS / bps.max(LONG_PACKET_BPS)).sqrt().max(0.5);
    let most = (bps / SLOWEST_BPS).max(1.0).sqrt();
    (fair * libm::pow(slow, FASTER_BELOW)).min(most)
}

#[cfg(test)]
mod tests;
