//! Estimates the sending rate for a shared path. As in BBR (Cardwell et al. 2016), it is the largest rate of the last
//! ten rounds, probed alternately with a quarter more and a quarter less, with little more in flight than the path
//! holds. Two senders therefore share the path, and each shares with TCP. (A link's own port uses another rule, which
//! keeps the queue of its own link short and yields to competing traffic.)
//!
//! The sender inserts marks, and the receiver reports how much arrived by each mark, and when. There are two differences
//! from BBR:
//!
//! - Baseline loss does not indicate a lack of bandwidth: the rate is that of the bytes sent, over the time in which
//!   they arrived.
//! - If the loss exceeds its baseline, the sender goes below the rate of arrival. If as much is still lost, twice in a
//!   row, the path loses it whatever the rate, and the rate is restored. Otherwise a policer drops it.

use std::collections::VecDeque;

use airlane_base::{DecayedLoss, Duration, Instant, Rate};
use airlane_link::wire::Report;

/// A mark is sent after this many bytes but not more often than this interval, and after this time in any case.
const MARK_BYTES: u64 = 8_000;
const MARK_EVERY: Duration = Duration::from_millis(10);
const MARK_AFTER: Duration = Duration::from_millis(500);
/// Marks in flight and recent reports that are kept.
const MARKS: usize = 512;
/// Shortest round: several marks.
const LEAST_ROUND: Duration = Duration::from_millis(30);
const FIRST_BPS: f64 = 10e6;
const LEAST_BPS: f64 = 32e3;
/// 2 / ln 2, and its inverse.
const STARTUP_GAIN: f64 = 2.885;
const DRAIN_GAIN: f64 = 1.0 / STARTUP_GAIN;
/// Gains, one per round.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Bytes in flight as a multiple of the bandwidth-delay product.
const FLIGHT: f64 = 1.5;
const PACING_MARGIN: f64 = 0.99;
const BANDWIDTH_ROUNDS: u64 = 10;
/// The path counts as full when three rounds have not increased the rate by a quarter.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
const DRAIN_ROUNDS: u32 = 4;
const MIN_RTT_AGE: Duration = Duration::from_secs(10);
const PROBE_RTT: Duration = Duration::from_millis(200);
/// Memory of the recent loss rate, bytes.
const LOSS_NOW: f64 = 400e3;
/// The baseline loss is estimated from stretches of this many bytes within this time.
const LOSS_BYTES: f64 = 300e3;
const LOSS_MEMORY: Duration = Duration::from_secs(20);
const LOSSES: usize = 64;
/// Loss this far above the baseline is excessive; one round in eight with a quarter too much loses 2.5 %.
const MUCH: f64 = 0.05;
/// Fewer bytes give no meaningful loss rate.
const FEW: f64 = 50e3;
/// A longer delay than this indicates a queue.
const QUEUE: Duration = Duration::from_millis(5);
/// Factor by which the rate is reduced then, largest reduction, and factor of the rate of arrival, which is measured
/// over this time.
const BACK: f64 = 0.8;
const MOST_BACK: f64 = 64.0;
const BELOW: f64 = 0.95;
const OF_LATE: Duration = Duration::from_millis(100);
/// The reduced rate is held for this many rounds, and for this many bytes or this long: by then a policer's bucket is no
/// longer full.
const DOUBT_ROUNDS: u64 = 4;
const DOUBT_BYTES: f64 = 150e3;
const DOUBT_FOR: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Startup,
    /// For at most `DRAIN_ROUNDS`; counts them.
    Drain(u32),
    ProbeBandwidth(usize),
    /// Until this time.
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
    /// Arrival by the peer's clock, microseconds.
    came_us: i64,
    received: u64,
}

/// The rate is reduced to test whether the loss depends on it.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// The loss and the rate before the reduction, and the round and time at which it began.
    lost: f64,
    bps: f64,
    round: u64,
    since: Instant,
    /// Whether this is the second test in a row.
    again: bool,
}

/// Estimates the sending rate.
#[derive(Clone, Debug)]
pub(crate) struct PathRate {
    most: f64,
    mode: Mode,
    /// The largest rates of recent rounds, bit/s.
    bandwidth: VecDeque<(u64, f64)>,
    round: u64,
    round_began: Instant,
    full: f64,
    full_rounds: u32,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// The shortest round trip of this round.
    round_rtt: Option<Duration>,
    /// The shortest round trip of this probe.
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
    /// The current stretch; the loss rates of the previous ones, with their ends.
    stretch: DecayedLoss,
    stretches: VecDeque<(Instant, f64)>,
    doubt: Option<Doubt>,
}

impl PathRate {
    /// An estimator that never exceeds `most`.
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

    /// Estimated capacity of the path, bit/s.
    pub(crate) fn carries(&self) -> f64 {
        let largest = self
            .bandwidth
            .iter()
            .map(|(_, bps)| *bps)
            .fold(0.0, f64::max);
        let carries = if largest > 0.0 { largest } else { FIRST_BPS };
        carries.clamp(LEAST_BPS.min(self.most), self.most)
    }

    /// Measured capacity of the path, bit/s; `None` before any measurement.
    pub(crate) fn measured(&self) -> Option<f64> {
        (!self.bandwidth.is_empty()).then(|| self.carries())
    }

    /// The current sending rate, bit/s.
    pub(crate) fn rate(&self) -> f64 {
        let gain = match self.mode {
            // Until the first sample, send at the initial rate.
            Mode::Startup if self.bandwidth.is_empty() => 1.0,
            Mode::Startup => STARTUP_GAIN,
            Mode::Drain(_) => DRAIN_GAIN,
            Mode::ProbeBandwidth(at) => CYCLE[at] * PACING_MARGIN,
            Mode::ProbeRtt(_) => 0.5,
        };
        let bps = self.carries() * gain;
        // The flight is at its limit: nearly stop until the next report.
        let bps = if self.is_crammed() { bps / 8.0 } else { bps };
        bps.clamp(LEAST_BPS.min(self.most), self.most)
    }

    fn is_crammed(&self) -> bool {
        let Some(rtt) = self.min_rtt else {
            return false;
        };
        // Reports lag by up to one mark.
        let time = rtt.mul_f64(self.flight()).max(rtt + LEAST_ROUND / 2) + MARK_EVERY;
        let held = self.carries() / 8.0 * time.as_secs_f64() + MARK_BYTES as f64;
        (self.sent - self.reported) as f64 > held
    }

    /// Whether little more is in flight than the path holds.
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

    /// Discards what is in flight, because the receiver restarts its count.
    pub(crate) fn forget_flight(&mut self) {
        self.reported = self.sent;
        self.under_way.clear();
        self.samples.clear();
    }

    /// Notes a transmission; `sent` bytes have been sent so far.
    pub(crate) fn departed(&mut self, now: Instant, sent: u64) {
        self.sent = sent;
        let (at, before) = self.marked;
        let since = now.saturating_since(at);
        self.due |= sent - before >= MARK_BYTES && since >= MARK_EVERY || since >= MARK_AFTER;
    }

    /// Whether a mark is to be sent next.
    pub(crate) const fn is_due(&self) -> bool {
        self.due
    }

    /// Sends a mark; returns its number.
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

    /// Processes the receiver's report of a mark.
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
            // The excess of the probe has drained: a lower rate would leave the path idle.
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
        // Data sent before the reduction says nothing about it.
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
            // Loss while there is a queue may be caused by the queue.
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
        // Baseline loss was carried, too, but not more than was sent.
        let carried = (received / (1.0 - self.rule())).min(sent);
        let bps = carried / left.max(came);
        // A sender below its rate does not measure the path, not even at first.
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

    /// The baseline loss rate.
    fn rule(&self) -> f64 {
        // The lower quartile: the minimum of many would be chance, and the mean includes overflows.
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
            // Rounds without enough data say nothing, and do not age the samples.
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

    /// Whether there was a queue for the whole round.
    fn stands(&self) -> bool {
        let (Some(least), Some(round)) = (self.min_rtt, self.round_rtt) else {
            return false;
        };
        round > least + QUEUE.max(least / 8)
    }

    /// The recent rate of arrival, bit/s.
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

    /// Reacts to excessive loss: the path may be full although no queue shows it.
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
                // The first rate of arrival may have included a burst that a full bucket let pass.
                return self.doubt(now, lost, doubt.bps, true);
            }
            // As much is lost at the lower rate, and there is no queue: the path itself loses it.
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

    /// Reduces the rate below the rate of arrival. If a policer causes the loss, there is none then, however far the
    /// rate was above the policer's.
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
