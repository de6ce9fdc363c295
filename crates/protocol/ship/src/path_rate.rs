//! How fast to send over a path that belongs to nobody: as BBR (Cardwell et al. 2016) has it, the largest rate of ten
//! rounds, tried with a quarter more and a quarter less in turn, and little more on its way than the path holds. So two that
//! send share, and each shares with TCP. (A link's own port finds its rate by another rule, which keeps the queue short of
//! a link that is the port's own, and gives way to whoever fills it.)
//!
//! The sender marks what it sends, and the receiver reports how much came by each mark, and when. Two differences to BBR:
//!
//! - What is lost as a rule is no lack of bandwidth: the rate is that of what was sent, by the time in which it arrived.
//! - Where more is lost than as a rule, less is sent than arrives; if as much is lost then, twice in a row, it is the
//!   path, and the rate comes back. Otherwise a policer drops it.

use std::collections::VecDeque;

use airlane_base::{DecayedLoss, Duration, Instant, Rate};
use airlane_link::wire::Report;

/// A mark for so many bytes, not more often than this, and after so long for any.
const MARK_BYTES: u64 = 8_000;
const MARK_EVERY: Duration = Duration::from_millis(10);
const MARK_AFTER: Duration = Duration::from_millis(500);
/// Marks on their way, and reports of late, that are remembered.
const MARKS: usize = 512;
/// A round lasts at least as long: some marks.
const LEAST_ROUND: Duration = Duration::from_millis(30);
const FIRST_BPS: f64 = 10e6;
const LEAST_BPS: f64 = 32e3;
/// 2 / ln 2, and its inverse.
const STARTUP_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / STARTUP_GAIN;
/// A round each.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// What may be on its way, by what the path holds.
const FLIGHT: f64 = 1.5;
const PACING_MARGIN: f64 = 0.99;
const BANDWIDTH_ROUNDS: u64 = 10;
/// The path is full when three rounds have not brought a quarter more.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
const DRAIN_ROUNDS: u32 = 4;
const MIN_RTT_AGE: Duration = Duration::from_secs(10);
const PROBE_RTT: Duration = Duration::from_millis(200);
/// Bytes after which what was lost counts half.
const LOSS_NOW: f64 = 400e3;
/// What is lost as a rule is what was lost of stretches of so many bytes in this time.
const LOSS_BYTES: f64 = 300e3;
const LOSS_MEMORY: Duration = Duration::from_secs(20);
const LOSSES: usize = 64;
/// More than as a rule is lost where so much more is; one round of eight with a quarter too much loses 2.5 %.
const MUCH: f64 = 0.05;
/// Of fewer bytes what is lost says nothing.
const FEW: f64 = 50e3;
/// A queue is what delays by more than this.
const QUEUE: Duration = Duration::from_millis(5);
/// What is left of the rate then, at most and at least, and of what arrived, over this time.
const BACK: f64 = 0.8;
const MOST_BACK: f64 = 64.0;
const BELOW: f64 = 0.95;
const OF_LATE: Duration = Duration::from_millis(100);
/// Less is sent for so many rounds, and so many bytes or so long: a policer's bucket is not full any more then.
const DOUBT_ROUNDS: u64 = 4;
const DOUBT_BYTES: f64 = 150e3;
const DOUBT_FOR: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Startup,
    /// For so many rounds at most.
    Drain(u32),
    ProbeBandwidth(usize),
    /// Until then; what the least was before.
    ProbeRtt(Instant),
}

#[derive(Clone, Copy, Debug)]
struct Mark {
    number: u32,
    left: Instant,
    sent: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    left: Instant,
    sent: u64,
    /// By the peer's clock, microseconds.
    came_us: i64,
    received: u64,
}

/// Less is sent to see whether as much is lost then.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// So much was lost, at this rate, until this round and time.
    lost: f64,
    bps: f64,
    round: u64,
    since: Instant,
    /// It is the second time in a row.
    again: bool,
}

/// Finds how fast to send.
#[derive(Clone, Debug)]
pub(crate) struct PathRate {
    most: f64,
    mode: Mode,
    /// The largest of each of the last rounds, bit/s.
    bandwidth: VecDeque<(u64, f64)>,
    round: u64,
    round_began: Instant,
    full: f64,
    full_rounds: u32,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// The least of this round.
    round_rtt: Option<Duration>,
    /// The least of this probe.
    probed_rtt: Option<Duration>,
    // Marks.
    number: u32,
    marked: (Instant, u64),
    due: bool,
    under_way: VecDeque<Mark>,
    samples: VecDeque<Sample>,
    sent: u64,
    reported: u64,
    // Losses.
    now: DecayedLoss,
    /// Of this stretch, and the ratios of those before, with their ends.
    stretch: DecayedLoss,
    stretches: VecDeque<(Instant, f64)>,
    doubt: Option<Doubt>,
}

impl PathRate {
    /// Never faster than this.
    pub(crate) fn new(most: Rate) -> Self {
        Self {
            most: most.as_bps() as f64,
            mode: Mode::Startup,
            bandwidth: VecDeque::new(),
            round: 0,
            round_began: Instant::ORIGIN,
            full: 0.0,
            full_rounds: 0,
            min_rtt: None,
            min_rtt_at: Instant::ORIGIN,
            round_rtt: None,
            probed_rtt: None,
            number: 0,
            marked: (Instant::ORIGIN, 0),
            due: false,
            under_way: VecDeque::with_capacity(MARKS),
            samples: VecDeque::with_capacity(MARKS),
            sent: 0,
            reported: 0,
            now: DecayedLoss::default(),
            stretch: DecayedLoss::default(),
            stretches: VecDeque::with_capacity(LOSSES),
            doubt: None,
        }
    }

    /// What the path is taken to carry, bit/s.
    pub(crate) fn carries(&self) -> f64 {
        let largest = self
            .bandwidth
            .iter()
            .map(|(_, bps)| *bps)
            .fold(0.0, f64::max);
        let carries = if largest > 0.0 { largest } else { FIRST_BPS };
        carries.clamp(LEAST_BPS.min(self.most), self.most)
    }

    /// What the path was seen to carry, bit/s; none before anything was seen.
    pub(crate) fn measured(&self) -> Option<f64> {
        (!self.bandwidth.is_empty()).then(|| self.carries())
    }

    /// At what rate to send now, bit/s.
    pub(crate) fn rate(&self) -> f64 {
        let gain = match self.mode {
            // The first marks are sent as they are said to be, so that nothing is known before it is.
            Mode::Startup if self.bandwidth.is_empty() => 1.0,
            Mode::Startup => STARTUP_GAIN,
            Mode::Drain(_) => DRAIN_GAIN,
            Mode::ProbeBandwidth(at) => CYCLE[at] * PACING_MARGIN,
            Mode::ProbeRtt(_) => 0.5,
        };
        let bps = self.carries() * gain;
        // As much is on its way as may be: no more until something is heard of it.
        let bps = if self.is_crammed() { bps / 8.0 } else { bps };
        bps.clamp(LEAST_BPS.min(self.most), self.most)
    }

    fn is_crammed(&self) -> bool {
        let Some(rtt) = self.min_rtt else {
            return false;
        };
        // What is reported lags behind by up to a mark.
        let time = rtt.mul_f64(self.flight()).max(rtt + LEAST_ROUND / 2) + MARK_EVERY;
        let held = self.carries() / 8.0 * time.as_secs_f64() + MARK_BYTES as f64;
        (self.sent - self.reported) as f64 > held
    }

    /// Little more is on its way than the path holds.
    fn is_drained(&self) -> bool {
        let rtt = self.min_rtt.unwrap_or(LEAST_ROUND);
        let holds = self.carries() / 8.0 * rtt.as_secs_f64() + MARK_BYTES as f64;
        (self.sent - self.reported) as f64 <= holds
    }

    const fn flight(&self) -> f64 {
        match self.mode {
            Mode::Startup => STARTUP_GAIN,
            _ => FLIGHT,
        }
    }

    /// What is on its way is lost, and who counted what came counts anew.
    pub(crate) fn forget_flight(&mut self) {
        self.reported = self.sent;
        self.under_way.clear();
        self.samples.clear();
    }

    /// Something has left; `sent` bytes have by now.
    pub(crate) fn departed(&mut self, now: Instant, sent: u64) {
        self.sent = sent;
        let (at, before) = self.marked;
        let since = now.saturating_since(at);
        self.due |= sent - before >= MARK_BYTES && since >= MARK_EVERY || since >= MARK_AFTER;
    }

    /// Whether a mark is to leave next.
    pub(crate) const fn is_due(&self) -> bool {
        self.due
    }

    /// A mark leaves: its number.
    pub(crate) fn mark(&mut self, now: Instant) -> u32 {
        (self.due, self.marked) = (false, (now, self.sent));
        self.number = self.number.wrapping_add(1);
        if self.under_way.len() == MARKS {
            self.under_way.pop_front();
        }
        let (number, sent) = (self.number, self.sent);
        self.under_way.push_back(Mark {
            number,
            left: now,
            sent,
        });
        number
    }

    /// The receiver tells of a mark.
    pub(crate) fn handle_report(&mut self, now: Instant, number: u32, report: Report) {
        let Some(at) = self.under_way.iter().position(|mark| mark.number == number) else {
            return;
        };
        let mark = self.under_way[at];
        // Older ones are lost, or overtaken.
        self.under_way.drain(..=at);
        self.reported = mark.sent;
        self.on_round_trip(now, now.saturating_since(mark.left));
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
        };
        self.on_sample(now, sample);
        if self.samples.len() == MARKS {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        if self.mode == Mode::ProbeBandwidth(1) && self.is_drained() {
            // What was tried too much is gone: less would leave the path idle.
            self.mode = Mode::ProbeBandwidth(2);
        }
        if mark.left >= self.round_began && now >= self.round_began + LEAST_ROUND {
            self.on_round(now, &sample);
        }
    }

    fn on_round_trip(&mut self, now: Instant, rtt: Duration) {
        let near = self
            .min_rtt
            .map(|min| min.mul_f64(1.06) + Duration::from_micros(500));
        if near.is_none_or(|near| rtt <= near) {
            self.min_rtt_at = now;
        }
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        self.round_rtt = Some(self.round_rtt.map_or(rtt, |min| min.min(rtt)));
        if let Mode::ProbeRtt(_) = self.mode {
            self.probed_rtt = Some(self.probed_rtt.map_or(rtt, |min| min.min(rtt)));
        }
    }

    fn on_sample(&mut self, now: Instant, to: Sample) {
        // What left before less was sent says nothing of that.
        let since = self.doubt.map_or(Instant::ORIGIN, |doubt| doubt.since);
        if let Some(last) = self.samples.back().filter(|last| last.left >= since) {
            let all = to.sent.saturating_sub(last.sent) as f64;
            let lost = (all - to.received.saturating_sub(last.received) as f64).clamp(-all, all);
            self.now.add(lost, all, LOSS_NOW);
            self.stretch.lost += lost;
            self.stretch.all += all;
        }
        if self.stretch.all >= LOSS_BYTES {
            let ratio = std::mem::take(&mut self.stretch).ratio().max(0.0);
            // What is lost while a queue stands is the queue's doing, perhaps.
            if matches!(self.mode, Mode::ProbeBandwidth(_)) && !self.stands() {
                self.on_rule(now, ratio);
            }
        }
        let span = self.min_rtt.unwrap_or(LEAST_ROUND).max(LEAST_ROUND);
        let old = self
            .samples
            .iter()
            .rev()
            .find(|from| to.left.saturating_since(from.left) >= span);
        let Some(from) = old else { return };
        let left = to.left.saturating_since(from.left).as_secs_f64();
        let came = (to.came_us - from.came_us) as f64 / 1e6;
        let sent = to.sent.saturating_sub(from.sent) as f64 * 8.0;
        let received = to.received.saturating_sub(from.received) as f64 * 8.0;
        // What is lost as a rule was carried, too; but no more than was sent.
        let carried = (received / (1.0 - self.rule())).min(sent);
        let bps = carried / left.max(came);
        // Less than was asked for says nothing of the path, not even at first.
        let busy = sent / left >= 0.8 * self.rate();
        if !busy && bps <= self.carries() {
            return;
        }
        while self.bandwidth.back().is_some_and(|(_, last)| *last <= bps) {
            self.bandwidth.pop_back();
        }
        if self
            .bandwidth
            .back()
            .is_none_or(|(round, _)| *round < self.round)
        {
            self.bandwidth.push_back((self.round, bps));
        }
    }

    /// What is lost as a rule.
    fn rule(&self) -> f64 {
        // The lower quartile: the least of many would be chance, and the mean has what overflowed.
        let mut ratios = [0.0; LOSSES];
        let ratios = &mut ratios[..self.stretches.len()];
        for (ratio, (_, was)) in ratios.iter_mut().zip(&self.stretches) {
            *ratio = *was;
        }
        match ratios.len() {
            0 => 0.0,
            all => {
                let (_, quartile, _) = ratios.select_nth_unstable_by(all / 4, f64::total_cmp);
                quartile.min(0.9)
            }
        }
    }

    fn on_rule(&mut self, now: Instant, ratio: f64) {
        let old = |at: Instant| now > at + LOSS_MEMORY;
        while self.stretches.len() == LOSSES
            || self.stretches.len() > 1 && self.stretches.front().is_some_and(|(at, _)| old(*at))
        {
            self.stretches.pop_front();
        }
        self.stretches.push_back((now, ratio));
    }

    fn on_round(&mut self, now: Instant, last: &Sample) {
        let began = self.round_began;
        self.round_began = now;
        let carries = self.carries();
        let first = self
            .samples
            .iter()
            .find(|sample| sample.left >= began)
            .unwrap_or(last);
        let lasted = last.left.saturating_since(first.left).as_secs_f64();
        let used = last.sent.saturating_sub(first.sent) as f64 * 8.0 >= 0.8 * self.rate() * lasted;
        if used {
            // Rounds in which nothing was to be sent say nothing, and make nothing old.
            self.round += 1;
            let oldest = self.round.saturating_sub(BANDWIDTH_ROUNDS);
            while self.bandwidth.len() > 1
                && self
                    .bandwidth
                    .front()
                    .is_some_and(|(round, _)| *round < oldest)
            {
                self.bandwidth.pop_front();
            }
        }
        self.mode = match self.mode {
            Mode::Startup if !used => Mode::Startup,
            Mode::Startup if carries >= self.full * FULL_GROWTH => {
                (self.full, self.full_rounds) = (carries, 0);
                Mode::Startup
            }
            Mode::Startup => {
                self.full_rounds += 1;
                if self.full_rounds >= FULL_ROUNDS {
                    Mode::Drain(0)
                } else {
                    Mode::Startup
                }
            }
            Mode::Drain(rounds) => {
                if self.is_drained() || rounds == DRAIN_ROUNDS {
                    Mode::ProbeBandwidth(2)
                } else {
                    Mode::Drain(rounds + 1)
                }
            }
            Mode::ProbeBandwidth(_) if now > self.min_rtt_at + MIN_RTT_AGE => {
                self.probed_rtt = None;
                Mode::ProbeRtt(now + PROBE_RTT + self.min_rtt.unwrap_or(LEAST_ROUND))
            }
            Mode::ProbeBandwidth(at) => Mode::ProbeBandwidth((at + 1) % CYCLE.len()),
            Mode::ProbeRtt(until) if now < until => Mode::ProbeRtt(until),
            Mode::ProbeRtt(_) => {
                (self.min_rtt, self.min_rtt_at) = (self.probed_rtt.or(self.min_rtt), now);
                Mode::ProbeBandwidth(2)
            }
        };
        self.look_at_losses(now);
        self.round_rtt = None;
    }

    /// Whether a queue stood for the whole round.
    fn stands(&self) -> bool {
        let (Some(least), Some(round)) = (self.min_rtt, self.round_rtt) else {
            return false;
        };
        round > least + QUEUE.max(least / 8)
    }

    /// What has arrived of late, bit/s.
    fn arrived_bps(&self) -> f64 {
        let Some(last) = self.samples.back() else {
            return 0.0;
        };
        let span = self.min_rtt.unwrap_or(OF_LATE).max(OF_LATE);
        let before = self.samples.iter().rev();
        let first = before.take_while(|first| last.left.saturating_since(first.left) <= span);
        let first = first.last().unwrap_or(last);
        let left = last.left.saturating_since(first.left).as_secs_f64();
        let came = (last.came_us - first.came_us) as f64 / 1e6;
        let received = last.received.saturating_sub(first.received) as f64;
        received * 8.0 / left.max(came).max(1e-3)
    }

    /// Where more is lost than as a rule, the path may be full although no queue shows it.
    fn look_at_losses(&mut self, now: Instant) {
        let lost = self.now.ratio();
        if let Some(doubt) = self.doubt {
            let lasts = now.saturating_since(doubt.since);
            let is_enough = self.now.all >= DOUBT_BYTES || lasts >= DOUBT_FOR;
            if self.round < doubt.round + DOUBT_ROUNDS || !is_enough {
                return;
            }
            self.doubt = None;
            if lost <= doubt.lost * 0.7 || self.stands() {
                return;
            }
            if !doubt.again {
                // What was taken for arriving may have been what a full bucket let pass.
                return self.doubt(now, lost, doubt.bps, true);
            }
            // As much is lost of less, and nothing waits: it is the path.
            self.stretches.clear();
            self.on_rule(now, lost);
            self.bandwidth.clear();
            self.bandwidth.push_back((self.round, doubt.bps));
            return;
        }
        let much = if self.stands() { MUCH / 2.0 } else { MUCH };
        let is_chance = self.now.all < FEW;
        if !is_chance && lost > self.rule() * 1.5 + much && !matches!(self.mode, Mode::Drain(_)) {
            self.doubt(now, lost, self.carries(), false);
            if self.mode == Mode::Startup {
                self.mode = Mode::Drain(0);
            }
        }
    }

    /// Sends less than comes through, if it is a policer that loses so much: then nothing is lost, however far beyond it
    /// the rate was.
    fn doubt(&mut self, now: Instant, lost: f64, bps: f64, again: bool) {
        let passes = BELOW * self.arrived_bps() / (1.0 - self.rule());
        let less = (self.carries() * BACK).min(passes).max(bps / MOST_BACK);
        self.doubt = Some(Doubt {
            lost,
            bps,
            round: self.round,
            since: now,
            again,
        });
        self.bandwidth.clear();
        self.bandwidth.push_back((self.round, less));
        (self.now, self.stretch) = (DecayedLoss::default(), DecayedLoss::default());
    }
}

#[cfg(test)]
mod tests;
