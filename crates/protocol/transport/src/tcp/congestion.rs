//! Congestion control: how many segments may be in flight.
//!
//! Each algorithm has a file of its own; [`Congestion`] holds the one that the settings select. All of them control
//! one window (`cwnd`), which is all that the rest of the sender reads.

pub(super) mod acked;
mod bbr;
mod bic;
mod bsd;
mod cubic;
mod cwnd;
mod hystart;
pub(super) mod rate;
mod reno;
mod vegas;

use airlane_base::{Duration, Instant};

use super::{CongestionKind, TcpConfig};
use acked::Acked;
use bbr::Bbr;
use bic::Bic;
use bsd::Bsd;
use cubic::Cubic;
pub(super) use cubic::Curve;
use cwnd::Cwnd;
use rate::RateSample;
use vegas::Vegas;

/// The congestion window of one connection.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    cwnd: Cwnd,
    control: Control,
}

/// The algorithm that controls it.
#[derive(Clone, Debug)]
enum Control {
    Reno,
    /// Reno with byte counting.
    CountingReno,
    Bsd(Bsd),
    Bic(Bic),
    Cubic(Box<Cubic>),
    Vegas(Vegas),
    Bbr(Box<Bbr>),
}

impl Congestion {
    /// `share`, in `[0, 1)`, is drawn for each connection.
    pub(super) fn new(config: &TcpConfig, segment: u32, share: f64) -> Self {
        let mut cwnd = Cwnd::new(config, segment);
        let control = match config.congestion() {
            CongestionKind::Reno if config.byte_counting.unwrap_or_default() => {
                Control::CountingReno
            }
            CongestionKind::Reno => Control::Reno,
            CongestionKind::Bsd => Control::Bsd(Bsd::new(config, segment, &mut cwnd)),
            CongestionKind::Bic => Control::Bic(Bic::default()),
            CongestionKind::Cubic => Control::Cubic(Box::new(Cubic::new(config))),
            CongestionKind::Vegas => Control::Vegas(Vegas::new()),
            CongestionKind::Bbr => Control::Bbr(Box::new(Bbr::new(config, segment, share))),
        };
        Self { cwnd, control }
    }

    /// The window, segments.
    #[inline]
    pub(super) const fn cwnd(&self) -> f64 {
        self.cwnd.segments
    }

    /// The window in whole segments; more than any peer can advertise is not distinguished.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        u64::from(self.cwnd.segments as u32)
    }

    /// The slow start threshold, segments.
    #[inline]
    pub(super) const fn ssthresh(&self) -> u64 {
        self.cwnd.ssthresh
    }

    /// New data was acknowledged outside of recovery. Few algorithms need the details.
    #[inline]
    pub(super) fn on_ack(&mut self, acked: impl FnOnce() -> Acked) {
        match &mut self.control {
            Control::Reno => reno::on_ack(&mut self.cwnd, 1.0),
            Control::Bsd(bsd) => bsd.on_ack(&mut self.cwnd),
            Control::Bbr(_) => {}
            _ => self.on_acked(&acked()),
        }
    }

    /// As above, for algorithms that need the details.
    fn on_acked(&mut self, acked: &Acked) {
        let cwnd = &mut self.cwnd;
        match &mut self.control {
            Control::CountingReno => reno::on_ack(cwnd, acked.segments as f64),
            Control::Bic(bic) => bic.on_ack(cwnd, acked),
            Control::Cubic(cubic) => cubic.on_ack(cwnd, acked),
            Control::Vegas(vegas) => vegas.on_ack(cwnd, acked),
            Control::Reno | Control::Bsd(_) | Control::Bbr(_) => {}
        }
    }

    /// Duplicate acknowledgments indicate a loss while `in_use` segments of the window were used.
    pub(super) fn on_loss(&mut self, in_use: u64) {
        let cwnd = &mut self.cwnd;
        match &mut self.control {
            Control::Reno | Control::CountingReno => reno::on_loss(cwnd, in_use),
            Control::Bsd(bsd) => bsd.on_loss(cwnd, in_use),
            Control::Bic(bic) => bic.on_loss(cwnd, in_use),
            Control::Cubic(cubic) => cubic.on_loss(cwnd, in_use),
            // Half of Reno's window may be 0, which the next acknowledgment makes 1. Vegas waits for a round trip.
            Control::Vegas(_) => {
                reno::on_loss(cwnd, in_use);
                cwnd.resume();
            }
            Control::Bbr(bbr) => bbr.save(cwnd),
        }
    }

    /// Sets the window to `ssthresh`, as RFC 5681 does after a loss.
    pub(super) fn resume(&mut self) {
        match &mut self.control {
            Control::Bsd(bsd) => {
                self.cwnd.resume();
                bsd.follow(&mut self.cwnd);
            }
            Control::Bbr(_) => {}
            _ => self.cwnd.resume(),
        }
    }

    /// Sets the window and the threshold, segments.
    pub(super) fn restore(&mut self, cwnd: f64, ssthresh: u64) {
        if let Control::Bbr(bbr) = &mut self.control {
            // BBR's window comes back by itself.
            bbr.on_undo();
            return;
        }
        (self.cwnd.segments, self.cwnd.ssthresh) = (cwnd, ssthresh);
        match &mut self.control {
            Control::Bsd(bsd) => bsd.follow(&mut self.cwnd),
            Control::Cubic(cubic) => cubic.forget_epoch(),
            _ => {}
        }
    }

    /// CUBIC's curve, if this is CUBIC.
    pub(super) fn curve(&self) -> Option<Curve> {
        match &self.control {
            Control::Cubic(cubic) => Some(cubic.curve()),
            _ => None,
        }
    }

    /// Undoes a cut from this window and threshold; growth since the cut stays. Without a `curve` CUBIC continues
    /// with the state that the cut left.
    pub(super) fn give_back(&mut self, cwnd: f64, ssthresh: u64, curve: Option<Curve>) {
        let now = &mut self.cwnd;
        match &mut self.control {
            // BBR's window comes back by itself.
            Control::Bbr(bbr) => return bbr.on_undo(),
            Control::Cubic(cubic) => {
                if let Some(curve) = curve {
                    cubic.put_back(curve);
                }
            }
            _ => {}
        }
        let least = (0.75 * cwnd) as u64;
        now.segments = now.segments.max(cwnd);
        now.ssthresh = now.ssthresh.max(ssthresh).max(least);
        if let Control::Bsd(bsd) = &mut self.control {
            bsd.follow(now);
        }
    }

    /// Recovery ends with the window larger by this many segments.
    pub(super) fn keep(&mut self, segments: u64) {
        match &mut self.control {
            Control::Bsd(bsd) => bsd.keep(&mut self.cwnd, segments),
            _ => self.cwnd.segments += segments as f64,
        }
    }

    /// The loss was so heavy that the capacity of the path is unknown: slow start.
    pub(super) fn on_collapse(&mut self, in_use: u64) {
        let cwnd = &mut self.cwnd;
        match &mut self.control {
            Control::Reno | Control::CountingReno | Control::Vegas(_) => {
                reno::on_collapse(cwnd, in_use);
            }
            Control::Bsd(bsd) => bsd.on_collapse(cwnd, in_use),
            Control::Bic(bic) => bic.on_collapse(cwnd, in_use),
            Control::Cubic(cubic) => cubic.on_collapse(cwnd, in_use),
            Control::Bbr(bbr) => bbr.on_collapse(cwnd),
        }
    }

    /// The handshake was lost more than once: nothing is known of so slow a path.
    pub(super) fn begin_small(&mut self) {
        self.restore(1.0, self.cwnd.ssthresh);
    }

    /// The connection was idle for so long that the path may have less capacity now (RFC 5681, section 4.1).
    pub(super) fn begin_anew(&mut self, initial_window: u64) {
        let cwnd = self.cwnd.segments.min(initial_window as f64);
        self.restore(cwnd, self.cwnd.ssthresh);
    }

    /// Passes a sample of the delivery rate to an algorithm that uses it; true if the next samples will underestimate
    /// the path.
    pub(super) fn on_sample(&mut self, sample: &RateSample) -> bool {
        let Control::Bbr(bbr) = &mut self.control else {
            return false;
        };
        bbr.on_sample(&mut self.cwnd, sample);
        bbr.is_probing_rtt()
    }

    /// A segment is sent after the connection was idle because there was nothing to send.
    pub(super) fn on_restart(&mut self, now: Instant) {
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.on_restart(now);
        }
    }

    /// The time between two paced segments: a window takes half a smoothed round trip in slow start, and five sixths
    /// of one otherwise. None before the first round trip.
    pub(super) fn pacing_interval(&mut self, srtt: Option<Duration>) -> Option<Duration> {
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.on_first_rtt(&self.cwnd, srtt?);
            return bbr.interval();
        }
        let share = match self.cwnd.in_slow_start() {
            true => 0.5,
            false => 5.0 / 6.0,
        };
        Some(srtt?.mul_f64(share / self.cwnd.segments.max(1.0)))
    }
}
