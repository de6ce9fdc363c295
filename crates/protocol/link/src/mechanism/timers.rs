//! Timer durations: fixed values times a sharing factor, or measured round trips.
//!
//! Fixed values follow section 7.11 of docs/spec/multi-service.md (the dissertation does not give them,
//! XYL-S-1):
//!
//! ```text
//! R_busy  = 2D + 2 T_d + T_c                                        T_ack = 2 T_d
//! tight     T_nak = T_ka = 1.5 R_busy           T_rto = 1.5 (R_busy + T_ack)
//! relaxed   T_nak = 4.5 R_busy                  T_rto = 4.5 (R_busy + T_ack)   T_ka as tight
//! buffer    T_nak = W T_d / (N+1), N=3, W=127   T_ka = 4 T_nak   T_rto = 5 T_nak
//! ```
//!
//! A keepalive too early costs a frame. A NAK timeout too early costs one of the N attempts, after which the
//! packet is lost; so `relaxed` extends it to about the longest time for which a receiver that asks N = 3
//! times does not outlive the peer's buffer on the slowest link (section 7.6: T_detect + N T_nak < W T_d). A
//! frame received out of order is acknowledged when the hole is filled, 2 R_busy + T_ack after it was sent at
//! the earliest (section 7.11), so where NAKs repair the losses a tight T_rto retransmits it needlessly;
//! `relaxed` extends that as far. Go back N has no other repair than its timer and stays tight.
//!
//! Measured values follow RFC 6298, with two differences that a link allows: no minimum of one second,
//! because the peer is one hop away, and no clock granularity.

use std::hash::{Hash, Hasher};

use airlane_base::{Duration, Instant, Rate};

use crate::config::{FixedTimers, TimerProfile, TimerValue, TimersConfig};
use crate::context::PortFacts;
use crate::wire::{Bitmap, Layout};

/// What the fixed timer formulas need to know of a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinkTiming {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    pub(crate) max_payload: usize,
    /// Overhead of the scheme's data frames: header and lower layers, bytes.
    pub(crate) data_overhead: usize,
    /// A control frame with all overhead, bytes.
    pub(crate) control_len: usize,
    /// Overhead of an RLP data frame; the buffer profile uses it for all schemes.
    pub(crate) rlp_overhead: usize,
}

impl LinkTiming {
    /// The timing of a port, for frames with this layout.
    pub(crate) fn new(facts: &PortFacts, layout: &Layout) -> Self {
        let header = |layout| facts.codec.header_len(layout) + facts.frame_overhead;
        // The longest control frame is the one that follows a loss.
        let bits = if layout.is_fixed() {
            0
        } else {
            Bitmap::MAX_LEN
        };
        Self {
            rate: facts.rate,
            delay: facts.delay,
            max_payload: facts.max_payload,
            data_overhead: header(layout),
            control_len: header(layout) + bits,
            rlp_overhead: header(&Layout::SEQ),
        }
    }
}

/// The values of one link.
#[derive(Clone, Copy, Debug, Hash)]
struct Values {
    ack: Duration,
    nak: Duration,
    keepalive: Duration,
    rto: Duration,
}

impl Values {
    fn times(self, factor: f64) -> Self {
        if factor == 1.0 {
            return self;
        }
        Self {
            ack: self.ack.mul_f64(factor),
            nak: self.nak.mul_f64(factor),
            keepalive: self.keepalive.mul_f64(factor),
            rto: self.rto.mul_f64(factor),
        }
    }
}

impl LinkTiming {
    fn data(&self) -> Duration {
        self.rate
            .transmission_time(self.max_payload + self.data_overhead)
    }

    /// A round trip with a full frame on the air in each direction.
    fn busy(&self) -> Duration {
        let control = self.rate.transmission_time(self.control_len);
        self.delay * 2 + self.data() * 2 + control
    }

    fn fixed(&self, config: &FixedTimers) -> Values {
        let value = |value| match value {
            TimerValue::Time(time) => time,
            TimerValue::RoundTrips(n) => self.busy().mul_f64(n),
        };
        Values {
            ack: value(config.ack),
            nak: value(config.nak),
            keepalive: value(config.keepalive),
            rto: value(config.rto),
        }
    }

    fn tight(&self) -> Values {
        let (busy, ack) = (self.busy(), self.data() * 2);
        Values {
            ack,
            nak: busy * 3 / 2,
            keepalive: busy * 3 / 2,
            rto: (busy + ack) * 3 / 2,
        }
    }

    fn relaxed(&self) -> Values {
        let tight = self.tight();
        Values {
            nak: tight.nak * 3,
            rto: tight.rto * 3,
            ..tight
        }
    }

    fn buffer(&self) -> Values {
        const REFERENCE_WINDOW: u64 = 127;
        const REFERENCE_RETRIES: u64 = 3;
        let data = self
            .rate
            .transmission_time(self.max_payload + self.rlp_overhead);
        let nak = data * REFERENCE_WINDOW / (REFERENCE_RETRIES + 1);
        Values {
            nak,
            keepalive: nak * 4,
            rto: nak * 5,
            ..self.tight()
        }
    }
}

/// The timer durations of one service.
#[derive(Clone, Debug)]
pub(crate) struct TimerPolicy {
    base: Values,
    /// Sharing factor of fixed timers.
    factor: f64,
    /// The product of both.
    fixed: Values,
    /// The estimator, where timers follow the measured round trip.
    rtt: Option<RttEstimator>,
    /// Timeouts since the last progress, by which measured timers back off.
    timeouts_in_a_row: u32,
    /// The time of the last one.
    backed_off: Instant,
    /// The longest recent response time after a spurious timeout, or zero, and when it was learned or halved.
    late: (Duration, Instant),
}

/// Leaves out what never changes within a service.
impl Hash for TimerPolicy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (
            self.fixed,
            self.rtt,
            self.timeouts_in_a_row,
            self.backed_off,
            self.late,
        )
            .hash(state);
    }
}

impl TimerPolicy {
    pub(crate) fn new(config: Option<&TimersConfig>, timing: &LinkTiming) -> Self {
        let usual = TimersConfig::Profile(TimerProfile::Relaxed);
        let (base, rtt) = match config.unwrap_or(&usual) {
            TimersConfig::Profile(TimerProfile::Tight) => (timing.tight(), None),
            TimersConfig::Profile(TimerProfile::Relaxed) => (timing.relaxed(), None),
            TimersConfig::Profile(TimerProfile::Buffer) => (timing.buffer(), None),
            TimersConfig::Profile(TimerProfile::Measured) => {
                (timing.tight(), Some(RttEstimator::default()))
            }
            TimersConfig::Fixed(fixed) => (timing.fixed(fixed), None),
        };
        Self {
            base,
            factor: 1.0,
            fixed: base,
            rtt,
            timeouts_in_a_row: 0,
            backed_off: Instant::ORIGIN,
            late: (Duration::ZERO, Instant::ORIGIN),
        }
    }

    /// Stretches fixed timers for sharing. Measured timers observe the sharing themselves.
    pub(crate) fn set_factor(&mut self, factor: f64) {
        self.factor = factor;
        self.fixed = self.base.times(factor);
    }

    /// Takes over the values of `fresh`, which is configured for another link rate; measurements stay.
    pub(crate) fn retime(&mut self, fresh: &Self) {
        self.base = fresh.base;
        self.fixed = self.base.times(self.factor);
    }

    pub(crate) fn sample(&mut self, rtt: Duration) {
        if let Some(estimator) = &mut self.rtt {
            estimator.sample(rtt);
        }
    }

    /// The smoothed round trip, where it is measured and known.
    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.rtt.as_ref().and_then(RttEstimator::srtt)
    }

    fn measured(&self) -> Option<Duration> {
        self.rtt.as_ref().and_then(RttEstimator::timeout)
    }

    pub(crate) fn ack(&self) -> Duration {
        self.fixed.ack
    }

    pub(crate) fn nak(&self) -> Duration {
        self.measured().unwrap_or(self.fixed.nak)
    }

    /// The NAK timeout when the answer to an earlier request took this long: answers come in the order of
    /// requests, so the last of many take longer than a round trip.
    pub(crate) fn nak_behind(&self, took: Duration) -> Duration {
        let nak = self.nak();
        nak.max(took + nak.saturating_sub(self.round_trip()))
    }

    /// The time of a request and its answer.
    pub(crate) fn round_trip(&self) -> Duration {
        // A fixed NAK timeout is one and a half round trips.
        self.srtt().unwrap_or(self.nak() * 2 / 3)
    }

    /// A measured round trip excludes the time that the peer delays its acknowledgment, which the timeout has
    /// to include.
    pub(crate) fn rto(&self) -> Duration {
        match self.measured() {
            Some(measured) => (measured + self.ack()).max(self.late.0),
            None => self.fixed.rto,
        }
    }

    /// The timeout after timeouts without progress. The first retransmission is early, for a tail loss; an
    /// unreachable peer is tried ever less often, but often enough to find it soon after it returns.
    pub(crate) fn rto_now(&self) -> Duration {
        const AT_MOST: Duration = Duration::from_millis(500);
        let rto = self.rto();
        match self.srtt() {
            Some(_) => {
                let backed_off = rto * (1 << self.timeouts_in_a_row.saturating_sub(1).min(6));
                backed_off.min(AT_MOST.max(rto))
            }
            None => rto,
        }
    }

    /// A retransmission timer started at `since` has expired. Frames that were in flight at the previous
    /// timeout were lost together with it: a burst counts as one timeout.
    pub(crate) fn on_timeout(&mut self, since: Instant, now: Instant) {
        if since >= self.backed_off {
            self.timeouts_in_a_row += 1;
            self.backed_off = now;
        }
    }

    /// Gradually forgets how late answers were. This shortens timers, so it comes before any timer is
    /// checked.
    pub(crate) fn forget_late(&mut self, now: Instant) {
        const LATE_FOR: Duration = Duration::from_secs(4);
        if now.saturating_since(self.late.1) >= LATE_FOR {
            self.late = (self.late.0 / 2, now);
        }
    }

    /// A timeout was spurious: the frame was only late, as reordered frames are, and was answered after this
    /// time. Timers are extended to match, up to two round trips.
    pub(crate) fn on_needless(&mut self, took: Duration, now: Instant) {
        let most = self.srtt().unwrap_or(took) * 2 + self.ack();
        self.late = (self.late.0.max(took + took / 8).min(most), now);
    }

    /// The peer has acknowledged something new, or everything is forgotten.
    pub(crate) fn on_progress(&mut self) {
        (self.timeouts_in_a_row, self.backed_off) = (0, Instant::ORIGIN);
    }

    /// On a live link, a keepalive half a round trip after the last frame finds a tail loss early, and costs
    /// little because their number is limited.
    pub(crate) fn keepalive(&self) -> Duration {
        const AT_LEAST: Duration = Duration::from_millis(10);
        self.srtt()
            .map_or_else(|| self.fixed.keepalive, |srtt| (srtt / 2).max(AT_LEAST))
    }
}

/// Smoothed round trip time and its variation (RFC 6298, section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct RttEstimator {
    /// None until the first sample.
    smoothed: Option<(Duration, Duration)>,
}

impl RttEstimator {
    const AT_LEAST: Duration = Duration::from_millis(1);
    /// Upper bound of measured timers.
    pub(crate) const AT_MOST: Duration = Duration::from_secs(10);

    pub(crate) fn sample(&mut self, rtt: Duration) {
        self.smoothed = Some(match self.smoothed {
            // RFC 6298 2.2
            None => (rtt, rtt / 2),
            // RFC 6298 2.3
            Some((srtt, rttvar)) => ((srtt * 7 + rtt) / 8, (rttvar * 3 + srtt.abs_diff(rtt)) / 4),
        });
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        self.smoothed.map(|(srtt, _)| srtt)
    }

    /// `srtt + max(4 rttvar, srtt / 8)`: a steady link must not drive the margin to zero.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let (srtt, rttvar) = self.smoothed?;
        let margin = (rttvar * 4).max(srtt / 8).max(Self::AT_LEAST);
        Some((srtt + margin).clamp(Self::AT_LEAST, Self::AT_MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(rate: &str, delay_ms: u64, payload: usize, header: usize) -> LinkTiming {
        LinkTiming {
            rate: rate.parse().unwrap(),
            delay: Duration::from_millis(delay_ms),
            max_payload: payload,
            data_overhead: header,
            control_len: header,
            rlp_overhead: 2,
        }
    }

    /// Table of section 7.11, milliseconds: tight T_nak (RLP) and T_rto (SR), and T_nak, T_ka and T_rto of
    /// its relaxed profile.
    #[test]
    fn fixed_timers_match_the_specification() {
        for (rate, delay, payload, nak, rto, buffer) in [
            (
                "14.4 kbit/s",
                100,
                50,
                388.3,
                479.0,
                [917.0, 3669.0, 4586.0],
            ),
            ("64 kbit/s", 50, 250, 244.9, 340.3, [1000.1, 4000.5, 5000.6]),
            ("2 Mbit/s", 3, 1000, 21.04, 33.08, [127.3, 509.0, 636.3]),
        ] {
            let near = |d: Duration, ms: f64| {
                let got = d.as_millis_f64();
                assert!(
                    (got / ms - 1.0).abs() < 0.002,
                    "{rate}: {got} against {ms} ms"
                );
            };
            let rlp = timing(rate, delay, payload, 2);
            near(rlp.tight().nak, nak);
            near(timing(rate, delay, payload, 3).tight().rto, rto);
            near(timing(rate, delay, payload, 3).relaxed().rto, 3.0 * rto);
            near(rlp.relaxed().nak, 3.0 * nak);
            near(rlp.buffer().nak, buffer[0]);
            near(rlp.buffer().keepalive, buffer[1]);
            near(rlp.buffer().rto, buffer[2]);
        }
    }

    /// Section 7.6, where the next frame reveals a hole: T_d + N T_nak < W T_d.
    #[test]
    fn relaxed_timers_give_up_before_the_peers_buffer_is_overwritten() {
        for (rate, delay, payload) in [
            ("14.4 kbit/s", 100, 50),
            ("64 kbit/s", 50, 250),
            ("2 Mbit/s", 3, 1000),
        ] {
            let rlp = timing(rate, delay, payload, 2);
            assert!(
                rlp.data() + rlp.relaxed().nak * 3 < rlp.data() * 127,
                "{rate}"
            );
        }
    }

    #[test]
    fn manual_timers_may_be_in_round_trips() {
        let timing = timing("14.4 kbit/s", 100, 50, 2);
        let written = "ack = \"57 ms\"\nnak = 4\nkeepalive = 2.5\nrto = \"0.5 s\"\n";
        let config: FixedTimers = toml::from_str(written).unwrap();
        let values = timing.fixed(&config);
        assert_eq!(values.ack, Duration::from_millis(57));
        assert_eq!(values.nak, timing.busy() * 4);
        assert_eq!(values.keepalive, timing.busy() * 5 / 2);
        assert_eq!(values.rto, Duration::from_millis(500));
        assert!(toml::from_str::<FixedTimers>(&written.replace("57 ms", "57")).is_err());
    }

    #[test]
    fn measured_timers_start_fixed_and_follow_the_round_trip() {
        let timing = timing("20 Mbit/s", 25, 1400, 20);
        let mut policy = TimerPolicy::new(
            Some(&TimersConfig::Profile(TimerProfile::Measured)),
            &timing,
        );
        assert_eq!(policy.rto(), timing.tight().rto);
        for _ in 0..100 {
            policy.sample(Duration::from_millis(40));
        }
        assert_eq!(policy.srtt(), Some(Duration::from_millis(40)));
        // srtt + srtt/8
        assert_eq!(policy.nak(), Duration::from_millis(45));
        assert_eq!(policy.rto(), Duration::from_millis(45) + policy.ack());
    }
}
