//! The sending end: TCP Reno as ns-2 had it in 1999 (the specification, section 4).
//!
//! Names are those of RFC 5681 and RFC 6298; numbers count segments. Rules, in our words:
//!
//! * Data flows from the first packet, without a handshake. The usable window is
//!   `min(floor(cwnd) + inflation, window)` segments from `snd_una`.
//! * A new acknowledgment ends inflation, restarts the timer and opens `cwnd`: by one below
//!   `ssthresh`, by `1/cwnd` above it. `ssthresh` starts at the advertised window.
//! * The timer restarts with the timeout as it stood before this acknowledgment's own round trip
//!   sample, so it keeps a backoff that the sample ends (ns-2 changed the order in 2001).
//! * One segment is timed at a time, never one that was sent twice (Karn). Any fast retransmit or
//!   timeout abandons the measurement. The timer's backoff ends only with a valid sample.
//! * The mark, number and time of the segment timed last, may outlive a connection
//!   ([`TcpConfig::keep_rtt_mark`], the reset of ns-2 in 1999). Until the next connection on the same
//!   sender passes that number nothing of it is timed, and then the sample holds the time since the old
//!   mark: short transfers keep the initial timeout, longer ones take one of minutes.
//! * The third duplicate acknowledgment sets `ssthresh` and `cwnd` to half the window in use, in
//!   whole segments (ns-2 halved exactly from 2006 on; `ssthresh` is at least 2), resends
//!   `snd_una`, restarts the timer without backoff and inflates the window by three; each further
//!   duplicate inflates it by one. Reno: the first new acknowledgment ends recovery, partial or not.
//! * That happens only if `snd_una` lies beyond `recover`, the highest number sent when the window
//!   was last cut, by either cause: one window of data is cut at most once (ns-2's `bugFix_`).
//! * A timeout halves `ssthresh`, sets `cwnd` to 1, doubles the timer and goes back: `snd_nxt`
//!   falls to `snd_una`, and everything after it is sent again as the window allows, except what
//!   acknowledgments skip.
//!
//! * Frozen (after Goff et al. 2000, Freeze-TCP, but told by the host's own link layer): while a link
//!   of the path is known to be down nothing leaves and the timer stands still; thawed, it goes on
//!   with the time that was left. So an outage costs what was on its way, and no backoff.
//!
//! Left out: handshake and release, limited transmit, SACK, ECN, idle restart, and pacing.
//!
//! Contract: one input (`new`, `extend`, `handle_ack`, `handle_timeout`), then `poll_transmit` until it
//! returns none, then `poll_timeout`. Invariants: `snd_una <= snd_nxt <= snd_max <= segments`;
//! the timer runs exactly while something is outstanding and the
//! path is not frozen.

use airlane_base::{Duration, Instant};
use serde::Serialize;

use crate::config::{TcpConfig, Transfer};
use crate::messages::Messages;
use crate::rto::RtoEstimator;
use crate::{Ack, Segment};

/// What a sender has counted, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SenderStats {
    /// Segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Times that the retransmission timer expired.
    pub timeouts: u64,
    /// Retransmissions started by duplicate acknowledgments.
    pub fast_retransmits: u64,
    /// Times that `cwnd` was cut, by either cause.
    pub window_cuts: u64,
    /// Duplicate acknowledgments received.
    pub duplicate_acks: u64,
    /// Acknowledgments of segments that were never sent, ignored.
    pub invalid_acks: u64,
}

/// The sending end of one connection.
#[derive(Clone, Debug)]
pub struct Sender {
    messages: Messages,
    segments: u64,
    window: u64,
    dupack_threshold: u32,

    /// Oldest segment not acknowledged.
    snd_una: u64,
    /// Next segment to send; falls back to `snd_una` with a timeout.
    snd_nxt: u64,
    /// One more than the highest segment ever sent.
    snd_max: u64,
    /// Congestion window, segments. Grows without bound; the advertised window caps its use.
    cwnd: f64,
    ssthresh: u64,
    /// Segments by which fast recovery has opened the window.
    inflation: u64,
    in_recovery: bool,
    dupacks: u32,
    /// `snd_max` at the last cut: fast retransmit waits until `snd_una` has passed it.
    recover: u64,
    /// `snd_una` has to be sent again at once.
    retransmit_now: bool,

    rto: RtoEstimator,
    timer: Option<Instant>,
    /// Whether a round trip is being measured.
    timing: bool,
    /// The segment that is timed, or was last, and when it left.
    mark: Option<(u64, Instant)>,

    /// Since when time stands still for the timer.
    frozen: Option<Instant>,

    first_sent: Option<Instant>,
    last_acked: Option<Instant>,
    stats: SenderStats,
}

impl Sender {
    /// A fresh connection for one transfer. `tick_phase` says where the ticks of this host's
    /// clock lie; it should be uniform in `[0, tick)` and different from run to run.
    pub fn new(config: &TcpConfig, transfer: Transfer, tick_phase: Duration) -> Self {
        Self {
            messages: Messages::new(transfer),
            segments: transfer.segments(),
            window: u64::from(config.window),
            dupack_threshold: config.dupack_threshold,
            snd_una: 0,
            snd_nxt: 0,
            snd_max: 0,
            cwnd: f64::from(config.initial_window),
            ssthresh: u64::from(config.window),
            inflation: 0,
            in_recovery: false,
            dupacks: 0,
            recover: 0,
            retransmit_now: false,
            rto: RtoEstimator::new(config, tick_phase),
            timer: None,
            timing: false,
            mark: None,
            frozen: None,
            first_sent: None,
            last_acked: None,
            stats: SenderStats::default(),
        }
    }

    /// The sender of a new connection for another transfer, as [`new`](Self::new), except for the
    /// mark that [`TcpConfig::keep_rtt_mark`] keeps.
    pub fn restart(&mut self, config: &TcpConfig, transfer: Transfer, tick_phase: Duration) {
        let mark = self.mark.filter(|_| config.keep_rtt_mark);
        *self = Self::new(config, transfer, tick_phase);
        self.mark = mark;
    }

    /// The application gives `bytes` more to a connection that stays open. They begin a new
    /// segment; congestion state and round trip estimate go on. Nothing follows a source that
    /// never ends.
    pub fn extend(&mut self, bytes: u64) {
        self.messages.append(bytes, self.snd_una);
        self.segments = self.messages.segments();
    }

    /// An acknowledgment has arrived.
    pub fn handle_ack(&mut self, now: Instant, ack: Ack) {
        let ack = ack.ack;
        if ack > self.snd_max {
            self.stats.invalid_acks += 1;
        } else if ack > self.snd_una {
            self.on_new_ack(now, ack);
        } else if ack == self.snd_una && self.snd_una < self.snd_max {
            self.stats.duplicate_acks += 1;
            self.dupacks += 1;
            if self.dupacks == self.dupack_threshold {
                self.on_dupack_threshold(now);
            } else if self.dupacks > self.dupack_threshold && self.in_recovery {
                self.inflation += 1;
            }
        }
    }

    /// The path is known to be down: until [`thaw`](Self::thaw) nothing is sent and no timer runs.
    /// Acknowledgments that still come are taken.
    pub fn freeze(&mut self, now: Instant) {
        self.frozen.get_or_insert(now);
        // A round trip that holds the outage says nothing of the path.
        self.timing = false;
    }

    /// The path is there again. The timer goes on with the time that was left.
    pub fn thaw(&mut self, now: Instant) {
        let Some(since) = self.frozen.take() else {
            return;
        };
        let stood = now.saturating_since(since);
        self.timer = self.timer.map(|at| at + stood);
    }

    /// Time has passed; an early call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.frozen.is_some() || self.timer.is_none_or(|at| at > now) {
            return;
        }
        self.stats.timeouts += 1;
        self.inflation = 0;
        self.in_recovery = false;
        self.dupacks = 0;
        self.recover = self.snd_max;
        self.cut();
        self.cwnd = 1.0;
        self.rto.on_timeout();
        self.timing = false;
        self.retransmit_now = false;
        self.snd_nxt = self.snd_una;
        self.timer = Some(now + self.rto.rto());
    }

    /// The next segment that may leave now.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if self.frozen.is_some() {
            return None;
        }
        if self.retransmit_now {
            self.retransmit_now = false;
            return Some(self.transmit(now, self.snd_una));
        }
        if self.snd_nxt >= self.segments || self.snd_nxt - self.snd_una >= self.usable_window() {
            return None;
        }
        let seq = self.snd_nxt;
        self.snd_nxt += 1;
        Some(self.transmit(now, seq))
    }

    /// When `handle_timeout` is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.frozen {
            Some(_) => None,
            None => self.timer,
        }
    }

    /// Whether everything has been acknowledged.
    pub fn is_finished(&self) -> bool {
        self.snd_una >= self.segments
    }

    /// Segments that all that was given to the connection takes; `u64::MAX` if it never ends.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// User bytes acknowledged.
    pub fn acked_bytes(&self) -> u64 {
        self.messages.bytes_below(self.snd_una)
    }

    /// When the first segment left.
    pub fn first_sent(&self) -> Option<Instant> {
        self.first_sent
    }

    /// When the latest new acknowledgment arrived.
    pub fn last_acked(&self) -> Option<Instant> {
        self.last_acked
    }

    /// Congestion window, segments.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow start threshold, segments.
    pub fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Smoothed round trip time; none before the first sample, and after so many timeouts that the
    /// estimate is distrusted.
    pub fn srtt(&self) -> Option<Duration> {
        self.rto.srtt()
    }

    /// The retransmission timeout that would be set now, with its backoff.
    pub fn rto(&self) -> Duration {
        self.rto.rto()
    }

    /// Segments sent and not acknowledged.
    pub fn flight_size(&self) -> u64 {
        self.snd_max - self.snd_una
    }

    /// Counters.
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }

    fn usable_window(&self) -> u64 {
        (self.cwnd as u64 + self.inflation).min(self.window)
    }

    fn on_new_ack(&mut self, now: Instant, ack: u64) {
        self.inflation = 0;
        self.in_recovery = false;
        self.dupacks = 0;
        self.retransmit_now = false;
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        self.last_acked = Some(now);
        // RFC 6298 5.2 and 5.3, but before the sample: see the module's header.
        self.timer = (self.snd_una < self.snd_max).then(|| self.expiry(now));
        if let Some((seq, sent)) = self.mark
            && self.timing
            && ack > seq
        {
            self.rto.sample(sent, now);
            self.timing = false;
        }
        if self.cwnd < self.ssthresh as f64 {
            self.cwnd += 1.0;
        } else {
            self.cwnd += 1.0 / self.cwnd;
        }
    }

    fn on_dupack_threshold(&mut self, now: Instant) {
        if self.snd_una <= self.recover && self.recover > 0 {
            return;
        }
        self.stats.fast_retransmits += 1;
        self.recover = self.snd_max;
        self.in_recovery = true;
        self.cwnd = self.cut() as f64;
        self.inflation = u64::from(self.dupack_threshold);
        self.timing = false;
        self.timer = Some(self.expiry(now));
        self.retransmit_now = true;
    }

    /// When a timer that starts now runs out; frozen, it has not begun to run.
    fn expiry(&self, now: Instant) -> Instant {
        self.frozen.unwrap_or(now) + self.rto.rto()
    }

    /// Sets `ssthresh` to half the window in use, in whole segments, and returns that half.
    fn cut(&mut self) -> u64 {
        self.stats.window_cuts += 1;
        let half = self.usable_window() / 2;
        self.ssthresh = half.max(2);
        half
    }

    fn transmit(&mut self, now: Instant, seq: u64) -> Segment {
        let retransmission = seq < self.snd_max;
        self.stats.segments_sent += 1;
        if retransmission {
            self.stats.retransmissions += 1;
        } else {
            if self.snd_una == self.snd_max {
                self.timer = None; // nothing was outstanding: the timer starts with this segment
            }
            self.snd_max = seq + 1;
            if !self.timing {
                self.timing = true;
                if self.mark.is_none_or(|(marked, _)| seq > marked) {
                    self.mark = Some((seq, now));
                }
            }
            self.first_sent.get_or_insert(now);
        }
        if self.timer.is_none() {
            self.timer = Some(now + self.rto.rto());
        }
        Segment {
            seq,
            len: self.messages.segment_len(seq),
            retransmission,
        }
    }
}

#[cfg(test)]
mod tests;
