//! The metrics of a service (Xylomenos 1999, table 8.1): goodput g, loss l, delay d and effective goodput e,
//! and the queueing delay q before the link, smoothed over measuring intervals.

use airlane_base::Duration;
use serde::{Deserialize, Serialize};

use crate::ledger::ServiceLedger;

/// Length of a measuring interval (T_m, XYL-S-12).
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);
/// Weight of the latest interval (XYL-S-12).
pub(crate) const WEIGHT: f64 = 1.0 / 8.0;

/// What a service offers to higher layers. A value is none until there has been traffic to measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceMetrics {
    /// g: higher layer bytes sent for the first time / link bytes sent, 0 to 1 (XYL-T8.1-g).
    /// Measured where packets enter the link.
    pub goodput: Option<f64>,
    /// l: packets lost for good / packets lost or received, 0 to 1 (XYL-T8.1-l). Measured where packets leave
    /// the link. None where frames are not numbered, because losses cannot be seen there.
    pub loss: Option<f64>,
    /// d: one-way delivery delay, seconds (XYL-T8.1-d): propagation, serialisation of a full frame, and the
    /// time to repair missing frames. Measured where packets leave the link.
    pub delay_s: Option<f64>,
    /// q: from a packet's arrival at the port until its first frame begins to leave, seconds. Not part of d,
    /// which is the link's; the sum is the delay from this node on. Measured where packets enter the link.
    #[serde(default)]
    pub queueing_s: Option<f64>,
    /// r_i as measured: the fraction of the link's bytes that this service sent, 0 to 1.
    pub share: Option<f64>,
}

/// e: higher layer bytes received / link bytes sent, 0 to 1 (XYL-T8.1-e), from the goodput at the
/// sending port and the loss at the receiving one.
pub fn effective_goodput(sender: &ServiceMetrics, receiver: &ServiceMetrics) -> Option<f64> {
    Some(sender.goodput? * (1.0 - receiver.loss.unwrap_or(0.0)))
}

/// Turns a ledger into metrics, interval by interval.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    before: ServiceLedger,
    /// One-way time of a frame that needs no repair.
    path: Duration,
    /// Whether frames are numbered, so that losses can be seen.
    sees_losses: bool,
    /// Total wait of the packets in this interval, and the number of packets that left.
    waited_ns: u64,
    left: u64,
    metrics: ServiceMetrics,
}

impl Meter {
    pub(crate) fn new(path: Duration, sees_losses: bool) -> Self {
        Self {
            before: ServiceLedger::default(),
            path,
            sees_losses,
            waited_ns: 0,
            left: 0,
            metrics: ServiceMetrics::default(),
        }
    }

    /// Sets the one-way time of a frame.
    pub(crate) fn set_path(&mut self, path: Duration) {
        self.path = path;
    }

    pub(crate) fn metrics(&self) -> ServiceMetrics {
        self.metrics
    }

    /// Records that a packet leaves that has waited this long since its arrival at the port.
    pub(crate) fn waited(&mut self, wait: Duration) {
        self.waited_at_ip(wait);
        self.left += 1;
    }

    /// Records that a packet arrives that has waited this long in the IP queue.
    pub(crate) fn waited_at_ip(&mut self, wait: Duration) {
        self.waited_ns = self.waited_ns.saturating_add(wait.as_nanos());
    }

    /// Ends an interval. `all_in_interval` is the number of bytes that all services together sent in it.
    pub(crate) fn roll(&mut self, ledger: &ServiceLedger, all_in_interval: u64) {
        let then = std::mem::replace(&mut self.before, *ledger);
        let since = |f: fn(&ServiceLedger) -> u64| (f(ledger) - f(&then)) as f64;
        let ratio = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);

        let sent = since(|l| l.frame_sent_bytes);
        let delivered = since(ServiceLedger::originals_delivered);
        let lost = since(|l| l.residual_lost);
        let held_s = since(|l| l.hold_ns) / 1e9;
        smooth(
            &mut self.metrics.goodput,
            // A repair may be sent in the interval after its packet.
            ratio(since(|l| l.sent_bytes), sent).map(|g| g.min(1.0)),
        );
        let known = ratio(lost, lost + delivered).filter(|_| self.sees_losses);
        smooth(&mut self.metrics.loss, known);
        smooth(
            &mut self.metrics.delay_s,
            ratio(held_s, delivered).map(|hold| self.path.as_secs_f64() + hold),
        );
        if self.left > 0 {
            let waited_s = self.waited_ns as f64 / 1e9;
            smooth(
                &mut self.metrics.queueing_s,
                Some(waited_s / self.left as f64),
            );
            (self.waited_ns, self.left) = (0, 0);
        }
        smooth(&mut self.metrics.share, ratio(sent, all_in_interval as f64));
    }
}

fn smooth(value: &mut Option<f64>, latest: Option<f64>) {
    if let Some(latest) = latest {
        *value = Some(value.map_or(latest, |old| old + WEIGHT * (latest - old)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_follow_table_8_1() {
        let mut meter = Meter::new(Duration::from_millis(100), true);
        let ledger = ServiceLedger {
            sent_bytes: 900,
            frame_sent_bytes: 1000,
            packets_delivered: 95,
            residual_lost: 5,
            hold_ns: 95 * 10_000_000,
            ..ServiceLedger::default()
        };
        meter.roll(&ledger, 2000);
        let m = meter.metrics();
        assert_eq!(m.goodput, Some(0.9));
        assert_eq!(m.loss, Some(0.05));
        assert!((m.delay_s.unwrap() - 0.110).abs() < 1e-9);
        assert_eq!(m.share, Some(0.5));
        assert!((effective_goodput(&m, &m).unwrap() - 0.855).abs() < 1e-12);
        // An interval without traffic changes nothing.
        meter.roll(&ledger, 0);
        assert_eq!(meter.metrics(), m);
    }

    #[test]
    fn invisible_losses_are_not_measured() {
        let mut meter = Meter::new(Duration::ZERO, false);
        let ledger = ServiceLedger {
            sent_bytes: 900,
            frame_sent_bytes: 1000,
            packets_delivered: 95,
            ..ServiceLedger::default()
        };
        meter.roll(&ledger, 1000);
        assert_eq!(meter.metrics().loss, None);
        assert_eq!(
            effective_goodput(&meter.metrics(), &meter.metrics()),
            Some(0.9)
        );
    }

    #[test]
    fn the_wait_is_a_mean_over_packets_that_left() {
        let mut meter = Meter::new(Duration::ZERO, true);
        let ledger = ServiceLedger::default();
        let mut roll = |waits: &[u64]| {
            for wait in waits {
                meter.waited(Duration::from_millis(*wait));
            }
            meter.roll(&ledger, 0);
            meter.metrics().queueing_s
        };
        assert_eq!(roll(&[]), None);
        let first = roll(&[0, 100, 200]);
        assert!((first.unwrap() - 0.1).abs() < 1e-12);
        assert_eq!(roll(&[]), first);
        assert!((roll(&[900]).unwrap() - 0.2).abs() < 1e-12);
        // The wait at IP is counted when the packet leaves, in whichever interval that is.
        meter.waited_at_ip(Duration::from_millis(500));
        meter.roll(&ledger, 0);
        meter.waited(Duration::from_millis(500));
        meter.roll(&ledger, 0);
        assert!((meter.metrics().queueing_s.unwrap() - 0.3).abs() < 1e-12);
    }
}
