//! The retransmission timer, and the round trips that it learns from.
//!
//! * The timer runs exactly while something is outstanding and the path is not frozen.
//! * It restarts with the timeout as it stood before the acknowledgment's own round trip sample, so it
//!   keeps a backoff that the sample ends (ns-2 changed the order in 2001).
//! * With timestamps each acknowledgment of new data measures a round trip, of whichever copy (RFC 7323, section
//!   4). Without them one segment is timed at a time, never one that was sent twice (Karn). Any loss
//!   abandons the measurement. The timer's backoff ends only with a valid sample.
//! * The mark, number and time of the segment timed last, may outlive a connection
//!   ([`TcpConfig::keep_rtt_mark`], the reset of ns-2 in 1999). Until the next connection on the same
//!   sender passes that number nothing of it is timed, and then the sample holds the time since the old
//!   mark: short transfers keep the initial timeout, longer ones take one of minutes.
//! * Frozen, it stands still; thawed, it goes on with the time that was left.

use airlane_base::{Duration, Instant};

use super::{Ack, RtoEstimator, TcpConfig};

/// The clock of one connection's sender.
#[derive(Clone, Debug)]
pub(super) struct Timer {
    pub(super) rto: RtoEstimator,
    due: Option<Instant>,
    /// Whether a round trip is being measured.
    timing: bool,
    /// Smoothed round trip by a clock of 1 ms, in eighths of one; 0 before the first.
    fine: u64,
    /// The round trip that the last acknowledgment ended.
    latest: Option<Duration>,
    /// Samples that a round trip gives, at least 1.
    expected: u64,
    /// The segment that is timed, or was last, and when it left.
    mark: Option<(u64, Instant)>,
    /// Since when time stands still.
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

    /// The round trip that the last acknowledgment of new data ended, if one was measured.
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

    /// When it expires; none while it stands still.
    #[inline]
    pub(super) const fn due(&self) -> Option<Instant> {
        match self.frozen {
            Some(_) => None,
            None => self.due,
        }
    }

    /// Segment `seq` leaves, for the first time or again.
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

    /// Everything below `ack` has arrived: the timer begins anew if something is `outstanding`
    /// (RFC 6298 5.2 and 5.3), and a round trip may be over.
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

    /// Ends the measurement if everything below the number holds the segment that is timed.
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

    /// A segment that left at `sent` is acknowledged at `now`.
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

    /// Nothing is waited for any more.
    pub(super) const fn stop(&mut self) {
        self.due = None;
    }

    /// The timer begins anew; frozen, it has not begun to run.
    pub(super) fn restart(&mut self, now: Instant) {
        self.due = Some(self.rto.deadline(self.frozen.unwrap_or(now)));
    }

    /// It begins anew and waits twice as long as before.
    pub(super) fn back_off(&mut self, now: Instant) {
        self.rto.on_timeout();
        self.restart(now);
    }

    /// The round trip in progress says nothing of the path.
    pub(super) const fn abandon_sample(&mut self) {
        self.timing = false;
    }

    /// Whether it has expired; then it backs off and begins anew.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.due().is_none_or(|at| at > now) {
            return false;
        }
        self.rto.on_timeout();
        self.timing = false;
        self.restart(now);
        true
    }

    /// Time stands still from now on.
    pub(super) fn freeze(&mut self, now: Instant) {
        self.frozen.get_or_insert(now);
        // A round trip that holds the outage says nothing of the path.
        self.timing = false;
    }

    /// Time goes on.
    pub(super) fn thaw(&mut self, now: Instant) {
        if let Some(since) = self.frozen.take() {
            let stood = now.saturating_since(since);
            self.due = self.due.map(|at| at + stood);
        }
    }
}
