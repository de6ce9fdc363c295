//! Vegas' own recovery (Brakmo and Peterson 1995, section 3.1; as NetBSD's Vegas and ns-2 have it).
//!
//! Every segment is timed on its own. A duplicate acknowledgment that arrives later than a fine timeout after
//! `snd_una` was sent indicates its loss, even if it is the first; otherwise the third does, as in Reno. The first
//! two new acknowledgments after a retransmission check that timeout too, so that a second hole needs no duplicates.
//! The window shrinks by a quarter, or by half if the segment had already been retransmitted, and only for a segment
//! sent after the last cut. Each retransmission backs off both timers: the coarse one, which is Reno's, and the fine
//! one.
//!
//! The fine timeout is exactly 17/16 of `srtt + 2 rttvar`. Each duplicate inflates the window, and the inflation by
//! the first three stays if no more arrive, as in 4.4BSD.
//!
//! `stale-times` adds a bug of ns-2, whose table of send times has as many slots as the window: when one
//! acknowledgment covers slots on both sides of the table's end, their times are kept, and a segment that has not
//! been sent yet counts as late. So some segments are sent twice.

use airlane_base::{Duration, Instant};

use crate::tcp::control::Control;
use crate::tcp::duplicates::Duplicates;
use crate::tcp::{Ack, TcpConfig};

/// New acknowledgments after a retransmission that check for another late segment.
const WORRIED: u64 = 2;
/// The window after a timeout.
const RESTART: f64 = 2.0;
/// The slow start threshold after a recovery: congestion avoidance follows.
const AVOIDANCE: u64 = 2;

#[derive(Clone, Debug)]
pub(in crate::tcp) struct Vegas {
    duplicates: Duplicates,
    times: Times,
    timeout: FineTimeout,
    /// The window after the last cut for a duplicate, without inflation.
    cut_to: Option<f64>,
    /// When the window was last cut, for any reason.
    cut_at: Option<Instant>,
    /// Whether the coarse timer caused that cut.
    timed_out: bool,
    /// New acknowledgments that will still check for late segments.
    worried: u64,
    /// `snd_una` must be retransmitted at once.
    resend: bool,
}

impl Vegas {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            duplicates: Duplicates::new(config),
            times: Times::new(config),
            timeout: FineTimeout::default(),
            cut_to: None,
            cut_at: None,
            timed_out: false,
            worried: 0,
            resend: false,
        }
    }

    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        let Duplicates {
            count, threshold, ..
        } = self.duplicates;
        if count > threshold
            && let Some(window) = self.cut_to
            && control.congestion.cwnd() > window
        {
            control.congestion.restore(window, AVOIDANCE);
        }
        self.duplicates.count = 0;
        self.resend = false;
        self.timeout.begin(&self.times, now);
        let una = control.window.una;
        let rtt = self.times.acknowledge(una, ack.ack, now);
        control.acknowledge(now, ack);
        control.open_timed(now, rtt);
        if let Some(rtt) = rtt {
            self.timeout.take(rtt);
        }
        if self.worried > 0 {
            if self.is_late(control, now) {
                self.worried -= 1;
                self.duplicates.count = threshold;
                self.resend = true;
            } else {
                self.worried = 0;
            }
        }
    }

    /// Whether `snd_una` has been in flight for longer than the fine timeout.
    fn is_late(&self, control: &Control, now: Instant) -> bool {
        let window = &control.window;
        // Nothing is sent beyond the peer's window, even if it counts as late.
        if window.una >= window.segments() || window.advertised() == 0 {
            return false;
        }
        let copies = self.times.of(window.una);
        match copies.left {
            Some(left) if window.una < window.max || self.times.keeps_stale => {
                now.saturating_since(left) >= self.timeout.current
            }
            _ => self.times.keeps_stale,
        }
    }

    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, _ack: &Ack) {
        self.timeout.begin(&self.times, now);
        self.duplicates.count += 1;
        let Duplicates {
            count, threshold, ..
        } = self.duplicates;
        if self.is_late(control, now) || count == threshold {
            if !self.timed_out || self.duplicates.is_new(&control.window) {
                self.send_again(control, now);
            }
        } else if count > threshold && self.cut_to.is_some() {
            let congestion = &mut control.congestion;
            congestion.restore(congestion.cwnd() + 1.0, congestion.ssthresh());
        }
    }

    fn send_again(&mut self, control: &mut Control, now: Instant) {
        let window = &control.window;
        let Copies { left, times } = self.times.of(window.una);
        control.stats.fast_retransmits += 1;
        self.timed_out = false;
        self.duplicates.mark_cut(window);
        self.worried = WORRIED.min(window.nxt - window.una + 1);
        self.timeout.back_off(times > 1);
        if left > self.cut_at {
            control.stats.window_cuts += 1;
            let window = match control.usable(0) {
                ..=3 => 2,
                window if times > 1 => window / 2,
                window => window - window / 4,
            } as f64;
            let inflated = window + f64::from(self.duplicates.count);
            let ssthresh = control.congestion.ssthresh();
            control.congestion.restore(inflated, ssthresh);
            self.cut_to = Some(window);
            self.cut_at = Some(now);
        }
        control.timer.abandon_sample();
        control.timer.back_off(now);
        if times == 1 {
            self.duplicates.count = self.duplicates.threshold;
        }
        self.resend = true;
    }

    /// The retransmissions were spurious.
    pub(super) fn undo(&mut self) {
        self.duplicates.forget();
        self.cut_to = None;
        self.worried = 0;
        self.resend = false;
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control, now: Instant) {
        self.duplicates.count = 0;
        self.duplicates.mark_cut(&control.window);
        self.resend = false;
        self.timed_out = true;
        self.cut_to = None;
        self.cut_at = Some(now);
        control.collapse();
        let ssthresh = control.congestion.ssthresh();
        control.congestion.restore(RESTART, ssthresh);
    }

    #[inline]
    pub(super) fn next(&mut self, control: &mut Control, now: Instant) -> Option<u64> {
        let Duplicates {
            count, threshold, ..
        } = self.duplicates;
        let seq = if std::mem::take(&mut self.resend) {
            control.window.una
        } else if count == 0 || count >= threshold {
            let usable = control.usable(0);
            control.window.take_next(usable)?
        } else {
            return None;
        };
        self.times.on_sent(seq, now);
        Some(seq)
    }
}

/// What is known of a segment in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Copies {
    /// When it was last sent.
    left: Option<Instant>,
    /// How often it was sent.
    times: u32,
}

/// Send times of the segments of the window, one slot each.
#[derive(Clone, Debug)]
struct Times {
    places: Vec<Copies>,
    /// When the first segment was first sent.
    begun: Option<Instant>,
    /// Whether stale times are kept, as in ns-2.
    keeps_stale: bool,
}

impl Times {
    fn new(config: &TcpConfig) -> Self {
        Self {
            places: vec![Copies::default(); config.window as usize],
            begun: None,
            keeps_stale: config.stale_times.unwrap_or_default(),
        }
    }

    fn place(&self, seq: u64) -> usize {
        (seq % self.places.len() as u64) as usize
    }

    fn of(&self, seq: u64) -> Copies {
        self.places[self.place(seq)]
    }

    fn on_sent(&mut self, seq: u64, now: Instant) {
        self.begun.get_or_insert(now);
        let place = self.place(seq);
        let copies = &mut self.places[place];
        copies.left = Some(now);
        copies.times += 1;
    }

    /// The segments from `una` to below `ack` have arrived; returns the round trip of the last one if it was sent
    /// once.
    fn acknowledge(&mut self, una: u64, ack: u64, now: Instant) -> Option<Duration> {
        let Copies { left, times } = self.of(ack - 1);
        let (first, last) = (self.place(una), self.place(ack - 1));
        if first <= last {
            self.places[first..=last].fill(Copies::default());
        } else if !self.keeps_stale {
            self.places[first..].fill(Copies::default());
            self.places[..=last].fill(Copies::default());
        }
        left.filter(|_| times == 1)
            .map(|left| now.saturating_since(left))
    }
}

/// A retransmission timeout from exact round trips.
#[derive(Clone, Copy, Debug, Default)]
struct FineTimeout {
    /// Smoothed round trip, times 8; zero before the first acknowledgment.
    srtt: Duration,
    /// Mean deviation, times 4.
    rttvar: Duration,
    current: Duration,
}

impl FineTimeout {
    /// The first acknowledgment has arrived: the timeout is one and a half times its round trip.
    fn begin(&mut self, times: &Times, now: Instant) {
        if self.srtt == Duration::ZERO
            && let Some(begun) = times.begun
        {
            let rtt = now.saturating_since(begun);
            (self.srtt, self.rttvar) = (rtt * 8, rtt);
            self.current = (self.srtt / 4 + self.rttvar) / 2;
        }
    }

    fn take(&mut self, rtt: Duration) {
        let smoothed = self.srtt / 8;
        let deviation = rtt.abs_diff(smoothed);
        self.srtt = (self.srtt + rtt).saturating_sub(smoothed);
        self.rttvar = (self.rttvar + deviation).saturating_sub(self.rttvar / 4);
        let timeout = (self.srtt / 4 + self.rttvar) / 2;
        self.current = timeout + timeout / 16;
    }

    fn back_off(&mut self, again: bool) {
        let more = match again {
            true => self.current,
            false => self.current / 8,
        };
        self.current = self.current + more;
    }
}
