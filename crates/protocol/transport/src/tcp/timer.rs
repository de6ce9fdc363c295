//! The retransmission timer, and its round trip samples.
//!
//! * The timer runs exactly while something is in flight and the path is not frozen.
//! * It restarts with the timeout from before the acknowledgment's own sample, so it keeps a backoff that the sample
//!   ends (ns-2 changed the order in 2001).
//! * With timestamps each acknowledgment of new data measures a round trip, of whichever copy (RFC 7323, section
//!   4). Without them one segment is timed at a time, never one that was sent twice (Karn). Any loss
//!   abandons the measurement. The timer's backoff ends only with a valid sample.
//! * The mark, which is the number and send time of the segment timed last, may outlive a connection
//!   ([`TcpConfig::keep_rtt_mark`], the reset of ns-2 in 1999). Until the next connection on the same sender passes
//!   that number, nothing of it is timed, and then the sample includes all the time since the old mark: short transfers
//!   keep the initial timeout, longer ones get one of minutes.
//! * While frozen it is stopped; after the thaw it continues with the remaining time.

use airlane_base::{Duration, Instant};

use super::{Ack, RtoEstimator, TcpConfig};

/// The retransmission timer of one connection.
#[derive(Clone, Debug)]
pub(super) struct Timer {
    pub(super) rto: RtoEstimator,
    due: Option<Instant>,
    /// Whether a round trip is being measured.
    timing: bool,
    /// Smoothed round trip by a clock of 1 ms, in eighths of one; 0 before the first.
    fine: u64,
    /// The round trip that the last acknowledgment gave.
    latest: Option<Duration>,
    /// Samples per round trip, at least 1.
    expected: u64,
    /// The segment that is timed, or was timed last, and when it was sent.
    mark: Option<(u64, Instant)>,
    /// When it was frozen.
    frozen: Option<Instant>,
}

impl Timer {
    pub(super) fn new(config: &TcpConfig, tick_phase: Duration) -> Self {
        Self {
            rto: RtoEstimator::new(config, tick_phase),
            due: None,
            timing: false,
            fine: 0,
            latest: None,
            expected: 1,
            mark: None,
            frozen: None,
        }
    }

    /// The timer of a new connection on the same sender.
    pub(super) fn restarted(&self, config: &TcpConfig, tick_phase: Duration) -> Self {
        Self {
            mark: self.mark.filter(|_| config.keep_rtt_mark),
            ..Self::new(config, tick_phase)
        }
    }

    /// The round trip that the last acknowledgment of new data gave, if one was measured.
    pub(super) const fn latest(&self) -> Option<Duration> {
        self.latest
    }

    /// Smoothed round trip time by a finer clock than the timer's; none before the first sample.
    pub(super) fn fine_srtt(&self) -> Option<Duration> {
        if self.rto.is_fine() {
            return self.rto.srtt();
        }
        (self.fine > 0).then(|| Duration::from_millis(self.fine) / 8)
    }

    #[inline]
    pub(super) const fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// When it expires; none while it is stopped.
    #[inline]
    pub(super) const fn due(&self) -> Option<Instant> {
        match self.frozen {
            Some(_) => None,
            None => self.due,
        }
    }

    /// Segment `seq` is sent, for the first time or again.
    pub(super) fn on_sent(&mut self, now: Instant, seq: u64, retransmission: bool) {
        if !retransmission && !self.timing {
            self.timing = true;
            if self.mark.is_none_or(|(marked, _)| seq > marked) {
                self.mark = Some((seq, now));
            }
        }
        if self.due.is_none() {
            self.due = Some(self.rto.deadline(now));
        }
    }

    /// Everything below `ack` has arrived: the timer restarts if something is still `outstanding` (RFC 6298 5.2 and
    /// 5.3), and a round trip sample may be complete.
    pub(super) fn on_acknowledged(
        &mut self,
        now: Instant,
        ack: &Ack,
        flight: u64,
        outstanding: bool,
    ) {
        self.rto.on_progress();
        if outstanding {
            self.restart(now);
        } else {
            self.due = None;
        }
        self.latest = None;
        if ack.stamp.is_some() {
            self.expected = flight.div_ceil(2).max(1);
        }
        self.sample(now, ack);
    }

    /// Completes the sample if the timed segment is below the number.
    #[inline]
    pub(super) fn sample(&mut self, now: Instant, ack: &Ack) {
        if let Some(stamp) = ack.stamp {
            if let Some(rtt) = stamp.until(now) {
                self.take(now - rtt, now);
            }
        } else if let Some((seq, sent)) = self.mark
            && self.timing
            && ack.ack > seq
        {
            self.take(sent, now);
        }
    }

    /// A segment that was sent at `sent` is acknowledged at `now`.
    pub(super) fn take(&mut self, sent: Instant, now: Instant) {
        self.rto.sample(sent, now, self.expected);
        let rtt = now.saturating_since(sent);
        self.latest = Some(rtt);
        let millis = (rtt.as_nanos() / 1_000_000).max(1);
        self.fine = match self.fine {
            0 => 8 * millis,
            fine => fine - fine / 8 + millis,
        };
        self.timing = false;
    }

    /// Nothing is in flight any more.
    pub(super) const fn stop(&mut self) {
        self.due = None;
    }

    /// Restarts the timer; while frozen, it does not run yet.
    pub(super) fn restart(&mut self, now: Instant) {
        self.due = Some(self.rto.deadline(self.frozen.unwrap_or(now)));
    }

    /// Restarts the timer with twice the timeout.
    pub(super) fn back_off(&mut self, now: Instant) {
        self.rto.on_timeout();
        self.restart(now);
    }

    /// The sample in progress is not valid.
    pub(super) const fn abandon_sample(&mut self) {
        self.timing = false;
    }

    /// Whether it has expired; if so, it backs off and restarts.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.due().is_none_or(|at| at > now) {
            return false;
        }
        self.rto.on_timeout();
        self.timing = false;
        self.restart(now);
        true
    }

    /// Stops the timer.
    pub(super) fn freeze(&mut self, now: Instant) {
        self.frozen.get_or_insert(now);
        // A round trip that includes the outage is not a valid sample.
        self.timing = false;
    }

    /// Continues with the remaining time.
    pub(super) fn thaw(&mut self, now: Instant) {
        if let Some(since) = self.frozen.take() {
            let stood = now.saturating_since(since);
            self.due = self.due.map(|at| at + stood);
        }
    }
}
