//! Congestion control: how many segments may be on their way.
//!
//! Each control has a file of its own; [`Congestion`] is one of them, as the settings say. All steer one window
//! (`cwnd`), which is what the rest of the sender asks for.

pub(super) mod acked;
mod bbr;
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

/// Who steers it.
#[derive(Clone, Debug)]
enum Control {
    Reno,
    /// With byte counting.
    CountingReno,
    Bsd(Bsd),
    Cubic(Box<Cubic>),
    Vegas(Vegas),
    Bbr(Box<Bbr>),
}

impl Congestion {
    /// `share`, in `[0, 1)`, is the connection's own.
    pub(super) fn new(config: &TcpConfig, segment: u32, share: f64) -> Self {
        let mut cwnd = Cwnd::new(config, segment);
        let control = match config.congestion() {
            CongestionKind::Reno if config.byte_counting.unwrap_or_default() => {
                Control::CountingReno
            }
            CongestionKind::Reno => Control::Reno,
            CongestionKind::Bsd => Control::Bsd(Bsd::new(config, segment, &mut cwnd)),
            CongestionKind::Cubic => Control::Cubic(Box::new(Cubic::new(config))),
            CongestionKind::Vegas => Control::Vegas(Vegas::new()),
            CongestionKind::Bbr => Control::Bbr(Box::new(Bbr::new(config, segment, share))),
        };
        Self { cwnd, control }
    }

    /// Segments.
    #[inline]
    pub(super) const fn cwnd(&self) -> f64 {
        self.cwnd.segments
    }

    /// Whole segments that may be on their way; more than any peer can have room for is less here.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        u64::from(self.cwnd.segments as u32)
    }

    /// Segments.
    #[inline]
    pub(super) const fn ssthresh(&self) -> u64 {
        self.cwnd.ssthresh
    }

    /// New data was acknowledged, and no loss is being repaired. Few ask what exactly.
    #[inline]
    pub(super) fn on_ack(&mut self, acked: impl FnOnce() -> Acked) {
        match &mut self.control {
            Control::Reno => reno::on_ack(&mut self.cwnd, 1.0),
            Control::Bsd(bsd) => bsd.on_ack(&mut self.cwnd),
            Control::Bbr(_) => {}
            _ => self.on_acked(&acked()),
        }
    }

    /// Likewise, for those who ask.
    fn on_acked(&mut self, acked: &Acked) {
        let cwnd = &mut self.cwnd;
        match &mut self.control {
            Control::CountingReno => reno::on_ack(cwnd, acked.segments as f64),
            Control::Cubic(cubic) => cubic.on_ack(cwnd, acked),
            Control::Vegas(vegas) => vegas.on_ack(cwnd, acked),
            Control::Reno | Control::Bsd(_) | Control::Bbr(_) => {}
        }
    }

    /// Duplicate acknowledgments show a loss while `in_use` segments of the window were used.
    pub(super) fn on_loss(&mut self, in_use: u64) {
        let cwnd = &mut self.cwnd;
        match &mut self.control {
            Control::Reno | Control::CountingReno => reno::on_loss(cwnd, in_use),
            Control::Bsd(bsd) => bsd.on_loss(cwnd, in_use),
            Control::Cubic(cubic) => cubic.on_loss(cwnd, in_use),
            // Reno's half may be none, which its next acknowledgment makes one. Vegas waits for a round trip.
            Control::Vegas(_) => {
                reno::on_loss(cwnd, in_use);
                cwnd.resume();
            }
            Control::Bbr(bbr) => bbr.save(cwnd),
        }
    }

    /// Goes on with `ssthresh`, as RFC 5681 has it behind a loss.
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

    /// Goes on with this window and threshold, segments.
    pub(super) fn restore(&mut self, cwnd: f64, ssthresh: u64) {
        if let Control::Bbr(bbr) = &mut self.control {
            // Its window comes back by itself.
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

    /// CUBIC's curve, if it has one.
    pub(super) fn curve(&self) -> Option<Curve> {
        match &self.control {
            Control::Cubic(cubic) => Some(cubic.curve()),
            _ => None,
        }
    }

    /// A cut from this window and threshold was not needed; growth since then stays. Without a `curve` CUBIC goes
    /// on by what the cut has left.
    pub(super) fn give_back(&mut self, cwnd: f64, ssthresh: u64, curve: Option<Curve>) {
        let now = &mut self.cwnd;
        match &mut self.control {
            // Its window comes back by itself.
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

    /// Recovery ends with a window larger by so many segments.
    pub(super) fn keep(&mut self, segments: u64) {
        match &mut self.control {
            Control::Bsd(bsd) => bsd.keep(&mut self.cwnd, segments),
            _ => self.cwnd.segments += segments as f64,
        }
    }

    /// The loss was so heavy that nothing tells how much the path takes: slow start.
    pub(super) fn on_collapse(&mut self, in_use: u64) {
        let cwnd = &mut self.cwnd;
        match &mut self.control {
            Control::Reno | Control::CountingReno | Control::Vegas(_) => {
                reno::on_collapse(cwnd, in_use);
            }
            Control::Bsd(bsd) => bsd.on_collapse(cwnd, in_use),
            Control::Cubic(cubic) => cubic.on_collapse(cwnd, in_use),
            Control::Bbr(bbr) => bbr.on_collapse(cwnd),
        }
    }

    /// The handshake was lost more than once: nothing is known of the path that took so long.
    pub(super) fn begin_small(&mut self) {
        self.restore(1.0, self.cwnd.ssthresh);
    }

    /// The connection was idle for so long that the path may take less now (RFC 5681, section 4.1).
    pub(super) fn begin_anew(&mut self, initial_window: u64) {
        let cwnd = self.cwnd.segments.min(initial_window as f64);
        self.restore(cwnd, self.cwnd.ssthresh);
    }

    /// What an acknowledgment says of the path, for a control that asks; whether the next samples will say less
    /// than the path can.
    pub(super) fn on_sample(&mut self, sample: &RateSample) -> bool {
        let Control::Bbr(bbr) = &mut self.control else {
            return false;
        };
        bbr.on_sample(&mut self.cwnd, sample);
        bbr.is_probing_rtt()
    }

    /// Something leaves, and nothing was on its way because nothing was to be sent.
    pub(super) fn on_restart(&mut self, now: Instant) {
        if let Control::Bbr(bbr) = &mut self.control {
            bbr.on_restart(now);
        }
    }

    /// The time from one segment to the next where segments are paced: a window leaves within half a smoothed
    /// round trip in slow start, and within five sixths of one otherwise. None before the first round trip.
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
