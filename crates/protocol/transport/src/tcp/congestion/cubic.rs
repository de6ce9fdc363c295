//! CUBIC (RFC 9438), in segments: the window is a cubic function of the time since the last loss, with its plateau at
//! the window where that happened.
//!
//! A loss reduces the window to 0.7 of what was in use. From then on `W(t) = C (t - K)^3 + W_max`; where Reno would
//! be faster (short round trips, small windows), the window is Reno's average one. Slow start counts at most two
//! segments per acknowledgment (RFC 3465). The first slow start, or each with Linux's HyStart, may end before a loss
//! (`hystart`), and then counts by those rules. Only acknowledgments of a fully used window open it.
//!
//! If a loss turns out to be spurious (`spurious`), the curve from before it can be restored (section 4.9).

use airlane_base::{Duration, Instant};

use super::acked::{Acked, InUse};
use super::cwnd::Cwnd;
use super::hystart::HyStart;
use crate::tcp::TcpConfig;

/// RFC 9438, section 5: segments for each second cubed.
const C: f64 = 0.4;
/// RFC 9438, section 4.6.
const BETA: f64 = 0.7;
/// Reno's additive increase that together with BETA gives Reno's mean window (section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The most acknowledged segments that one acknowledgment counts for in slow start (RFC 3465).
const SLOW_START_LIMIT: u64 = 2;

/// The epoch: since when the window follows the function.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    begin: Instant,
    /// Seconds from the beginning of the epoch to the plateau.
    k: f64,
    /// Reno's window, segments.
    reno: f64,
}

/// The state that a loss changes besides the window.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::tcp) struct Curve {
    /// The plateau, segments; 0 if it is unknown.
    w_max: f64,
    /// The window before the last loss, segments.
    prior: f64,
    epoch: Option<Epoch>,
}

/// CUBIC's state besides the window.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Cubic {
    curve: Curve,
    /// Whether the estimate of Reno's window grows at Reno's own pace once it has reached `prior`.
    catch_up: bool,
    /// The algorithm that ends slow start, if any: HyStart++ until the first one is over, Linux's HyStart always.
    hystart: Option<HyStart>,
    in_use: InUse,
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}

impl Cubic {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            curve: Curve::default(),
            catch_up: config.catch_up.unwrap_or(true),
            hystart: config
                .hystart
                .unwrap_or_default()
                .then(|| HyStart::new(config)),
            in_use: InUse::default(),
        }
    }

    pub(super) const fn curve(&self) -> Curve {
        self.curve
    }

    /// Restores the curve of before a spurious loss (section 4.9).
    pub(super) const fn put_back(&mut self, curve: Curve) {
        self.curve = curve;
    }

    /// The window was set from outside.
    pub(super) const fn forget_epoch(&mut self) {
        self.curve.epoch = None;
    }

    /// New data was acknowledged outside of recovery.
    pub(super) fn on_ack(&mut self, cwnd: &mut Cwnd, acked: &Acked) {
        let used = self.in_use.note(acked) as f64;
        if cwnd.in_slow_start() {
            // The window may grow to twice of what was in use.
            if cwnd.segments < 2.0 * used {
                self.slow_start(cwnd, acked);
            }
        } else if used + 1.0 > cwnd.segments {
            self.follow(cwnd, acked);
        } else {
            // Time during which the window is not needed does not open it (section 4.2).
            self.curve.epoch = None;
        }
    }

    fn slow_start(&mut self, cwnd: &mut Cwnd, acked: &Acked) {
        let Some(hystart) = &mut self.hystart else {
            cwnd.segments += acked.segments.min(SLOW_START_LIMIT) as f64;
            return;
        };
        match hystart.on_ack(acked, cwnd.segments) {
            Some(segments) => cwnd.segments += segments,
            None => {
                cwnd.ssthresh = cwnd.segments as u64;
                self.end_first_slow_start();
            }
        }
    }

    fn end_first_slow_start(&mut self) {
        self.hystart.take_if(|hystart| hystart.is_for_the_first());
    }

    fn follow(&mut self, window: &mut Cwnd, acked: &Acked) {
        let cwnd = window.segments;
        let mut epoch = match self.curve.epoch {
            Some(epoch) => epoch,
            None => {
                self.curve.w_max = self.curve.w_max.max(cwnd);
                Epoch {
                    begin: acked.now,
                    k: libm::cbrt((self.curve.w_max - cwnd) / C),
                    reno: cwnd,
                }
            }
        };
        let t = seconds(acked.now.saturating_since(epoch.begin));
        let w_cubic = |t: f64| {
            let since = t - epoch.k;
            C * since * since * since + self.curve.w_max
        };
        let segments = acked.segments as f64;
        let has_caught_up = self.catch_up && epoch.reno >= self.curve.prior;
        let alpha = if has_caught_up { 1.0 } else { ALPHA };
        epoch.reno += alpha * segments / cwnd;
        if w_cubic(t) < epoch.reno {
            window.segments = cwnd.max(epoch.reno);
        } else {
            let target = w_cubic(t + seconds(acked.srtt)).clamp(cwnd, 1.5 * cwnd);
            window.segments += (target - cwnd) / cwnd * segments;
        }
        self.curve.epoch = Some(epoch);
    }

    /// Duplicate acknowledgments indicate a loss while `in_use` segments of the window were used.
    pub(super) fn on_loss(&mut self, cwnd: &mut Cwnd, in_use: u64) {
        let used = in_use as f64;
        // Fast convergence (section 4.7): a flow whose plateau falls releases capacity to others.
        self.curve.w_max = if used < self.curve.w_max {
            used * (1.0 + BETA) / 2.0
        } else {
            used
        };
        self.cut(cwnd, used);
        cwnd.resume();
    }

    /// Slow start; the plateau is the window at which congestion avoidance then begins (section 4.8).
    pub(super) fn on_collapse(&mut self, cwnd: &mut Cwnd, in_use: u64) {
        self.cut(cwnd, in_use as f64);
        self.curve.w_max = 0.0;
        cwnd.segments = 1.0;
        if let Some(hystart) = &mut self.hystart {
            hystart.begin();
        }
    }

    fn cut(&mut self, cwnd: &mut Cwnd, used: f64) {
        self.curve.prior = used;
        cwnd.ssthresh = ((used * BETA) as u64).max(2);
        self.curve.epoch = None;
        self.end_first_slow_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    fn acked(now: Instant, flight: u64, rtt: u64) -> Acked {
        Acked {
            now,
            segments: 1,
            flight,
            una: 1,
            nxt: 1 + flight,
            max: 1 + flight,
            srtt: Duration::from_millis(rtt),
            rtt: None,
        }
    }

    /// A window that is always in use, acknowledged segment by segment once per round trip.
    fn after((cubic, cwnd): &mut (Cubic, Cwnd), from: u64, to: u64, rtt: u64) {
        for round in (from..to).step_by(rtt as usize) {
            let window = cwnd.segments as u64;
            for _ in 0..window {
                let flight = cwnd.segments as u64;
                cubic.on_ack(cwnd, &acked(at(round), flight, rtt));
            }
        }
    }

    fn lost_at(window: u64) -> (Cubic, Cwnd) {
        let config = TcpConfig {
            window: 10_000,
            ..TcpConfig::profile(Profile::Ns2In1999)
        };
        let (mut cubic, mut cwnd) = (Cubic::new(&config), Cwnd::new(&config, 1000));
        cubic.on_loss(&mut cwnd, window);
        (cubic, cwnd)
    }

    /// Section 4.2: `K = cbrt(W_max (1 - 0.7) / 0.4)` seconds after a loss the window is back at its old value, and
    /// from then on it grows as it did before.
    #[test]
    fn the_plateau_is_where_the_loss_was() {
        let mut cubic = lost_at(1_000);
        assert!((cubic.1.segments - 700.0).abs() < 1e-9);
        let k = (libm::cbrt(300.0 / 0.4) * 1e3) as u64;
        after(&mut cubic, 0, k, 100);
        let cwnd = cubic.1.segments;
        assert!((cwnd - 1_000.0).abs() < 3.0, "{cwnd}");
        let half = 1_000.0 - 0.4 * libm::pow(k as f64 / 2e3, 3.0);
        let mut halfway = lost_at(1_000);
        after(&mut halfway, 0, k / 2, 100);
        let cwnd = halfway.1.segments;
        assert!((cwnd - half).abs() < 12.0, "{cwnd} {half}");
    }

    /// Section 4.3: with a small window and a short round trip Reno grows faster, by ALPHA per round trip until its
    /// window is the one before the loss.
    #[test]
    fn small_windows_grow_as_in_reno() {
        let mut cubic = lost_at(10);
        after(&mut cubic, 0, 40, 10);
        // From 7 on, four rounds of whole segments: slightly less than four times ALPHA.
        let cwnd = cubic.1.segments;
        assert!((cwnd - 7.0 - 4.0 * ALPHA).abs() < 0.25, "{cwnd}");
    }

    /// Section 4.7.
    #[test]
    fn a_lower_loss_lowers_the_plateau() {
        let (mut cubic, mut cwnd) = lost_at(1_000);
        cubic.on_loss(&mut cwnd, 800);
        assert!((cubic.curve.w_max - 800.0 * 0.85).abs() < 1e-9);
    }

    #[test]
    fn a_window_that_is_not_in_use_stays() {
        let (mut cubic, mut cwnd) = lost_at(100);
        for _ in 0..1_000 {
            cubic.on_ack(&mut cwnd, &acked(at(500), 20, 100));
        }
        assert!((cwnd.segments - 70.0).abs() < 1e-9);
    }
}
