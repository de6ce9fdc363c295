//! The sending half of an end, assembled from its parts.
//!
//! Names are those of RFC 5681 and RFC 6298; numbers count segments. `recovery` decides what to send and when a
//! segment is lost, `congestion` how much may be in flight, and `timer` when to time out.
//!
//! Freeze (after Freeze-TCP, Goff et al. 2000, but signalled by the host's own link layer): while a link of the path
//! is known to be down nothing is sent and the timer is stopped; after the thaw it continues with the remaining time.
//! So an outage costs what was in flight, and no backoff.
//!
//! Contract: one input (`write`, `handle_ack`, `handle_timeout`), then `poll_transmit` until it
//! returns none, then `poll_timeout`.

use airlane_base::{Duration, Instant};

use super::congestion::Congestion;
use super::control::Control;
use super::ecn::Reaction;
use super::handshake::Opened;
use super::life::Patience;
use super::pacing::Pacing;
use super::persist::Persist;
use super::recovery::Recovery;
use super::segment::Timestamp;
use super::spurious::Undo;
use super::timer::Timer;
use super::window::SendWindow;
use super::{Ack, Data, SenderStats, TcpConfig};

/// The sending half of one end.
#[derive(Clone, Debug)]
pub struct Sender {
    control: Control,
    recovery: Recovery,
    persist: Persist,
    pacing: Pacing,
    patience: Patience,
    gave_up: bool,
    /// Whether segments carry timestamps.
    stamps: bool,
    /// The longest wait of the persist timer.
    longest_wait: Duration,
    initial_window: u64,
    /// Whether the window is reset after an idle time.
    idle_restart: bool,
    first_sent: Option<Instant>,
    last_acked: Option<Instant>,
}

impl Sender {
    /// A sender that has nothing to send. `segment` is the user bytes of a full segment, at least 1.
    /// `tick_phase` says where the ticks of this host's clock lie; it should be uniform in `[0, tick)`
    /// and different from run to run.
    pub fn new(config: &TcpConfig, segment: u32, tick_phase: Duration) -> Self {
        let timer = Timer::new(config, tick_phase);
        Self::with(config, segment, tick_phase, timer, SenderStats::default())
    }

    /// Starts a new connection, as [`new`](Self::new) does, except for the counters and for the mark that
    /// [`TcpConfig::keep_rtt_mark`] keeps.
    pub fn restart(&mut self, config: &TcpConfig, tick_phase: Duration) {
        let control = &self.control;
        let segment = control.window.messages.segment();
        let timer = control.timer.restarted(config, tick_phase);
        *self = Self::with(config, segment, tick_phase, timer, control.stats);
    }

    fn with(
        config: &TcpConfig,
        segment: u32,
        tick_phase: Duration,
        timer: Timer,
        stats: SenderStats,
    ) -> Self {
        let window = config.window_of(segment);
        let first = match config.handshake.unwrap_or_default() {
            true => TcpConfig::unscaled(segment),
            false => window,
        };
        let share = tick_phase.as_secs_f64() / config.tick.as_secs_f64();
        Self {
            control: Control {
                window: SendWindow::new(segment, window, first),
                congestion: Congestion::new(config, segment, share),
                timer,
                undo: Undo::new(config),
                ecn: Reaction::new(config.ecn.unwrap_or_default()),
                stats,
                acked: 0,
                flight_before: 0,
            },
            recovery: Recovery::new(config),
            persist: Persist::default(),
            pacing: Pacing::new(config.pacing.unwrap_or_default()),
            patience: Patience::new(config),
            gave_up: false,
            stamps: config.timestamps.unwrap_or_default(),
            longest_wait: config.max_rto,
            initial_window: u64::from(config.initial_window),
            idle_restart: config.idle_restart.unwrap_or_default(),
            first_sent: None,
            last_acked: None,
        }
    }

    /// A SYN is sent.
    pub(super) fn on_asked(&mut self, now: Instant) {
        self.first_sent.get_or_insert(now);
    }

    /// The handshake is over.
    pub(super) fn on_opened(&mut self, now: Instant, opened: Opened) {
        let Control {
            timer, congestion, ..
        } = &mut self.control;
        if let Some(rtt) = opened.rtt {
            timer.take(now - rtt, now);
        } else if opened.times > 1 {
            timer.rto.be_patient();
        }
        // The initial timeout of a second may have been too short for the path (RFC 6298, appendix A).
        if opened.times > 2 {
            congestion.begin_small();
        }
    }

    /// The application writes `bytes` more, which begin a new segment. Congestion state and round trip estimate are
    /// kept.
    pub fn write(&mut self, bytes: u64) {
        self.control.window.write(bytes);
    }

    /// The application has written everything.
    pub fn close(&mut self) {
        self.control.window.close();
    }

    /// An acknowledgment has arrived.
    #[inline]
    pub fn handle_ack(&mut self, now: Instant, ack: &Ack) {
        let Self {
            control, recovery, ..
        } = self;
        let SendWindow { una, max, .. } = control.window;
        if ack.ack > max {
            control.stats.invalid_acks += 1;
        } else if ack.ack > una {
            if !control.window.is_acknowledged() {
                self.last_acked = Some(now);
            }
            self.patience.on_progress();
            let has_copies = || recovery.has_copies(ack.ack);
            if let Some(taken) = control.undo.on_ack(ack, has_copies) {
                control.take_back(ack.ack, taken, self.initial_window);
                recovery.undo();
            }
            control.window.advertise(ack.ack, ack.window);
            recovery.on_new_ack(control, now, ack);
        } else if ack.ack == una {
            let opens = control.window.advertise(una, ack.window);
            if una == max {
                // A peer that acknowledges with a zero window is alive.
                self.patience.on_progress();
            }
            // A window update is not a duplicate (RFC 5681, section 2), unless it reports something.
            if una < max && !(opens && ack.blocks.is_empty()) {
                control.stats.duplicate_acks += 1;
                recovery.on_duplicate(control, now, ack);
            }
        } else if una < max && !ack.blocks.is_empty() {
            recovery.on_overtaken(control, now, ack);
        }
        if let Some(taken) = control.undo.on_report(ack) {
            control.take_back_late(taken, self.initial_window);
            recovery.undo();
        }
        if ack.echo {
            control.on_echo();
        }
    }

    /// The path is known to be down: until [`thaw`](Self::thaw) nothing is sent and no timer runs. Acknowledgments
    /// that still arrive are processed.
    ///
    /// ```
    /// use airlane_base::{Duration, Instant};
    /// use airlane_transport::tcp::Profile;
    /// use airlane_transport::{Sender, TcpConfig};
    ///
    /// let config = TcpConfig::profile(Profile::Ns2In1999);
    /// let mut sender = Sender::new(&config, 1_000, Duration::ZERO);
    /// sender.write(1_000);
    /// assert!(sender.poll_transmit(Instant::ORIGIN).is_some());
    /// let due = sender.poll_timeout().unwrap();
    ///
    /// sender.freeze(Instant::ORIGIN);
    /// assert_eq!(sender.poll_timeout(), None);
    /// sender.thaw(Instant::ORIGIN + Duration::from_secs(60));
    /// assert_eq!(sender.poll_timeout(), Some(due + Duration::from_secs(60)));
    /// ```
    pub fn freeze(&mut self, now: Instant) {
        self.control.timer.freeze(now);
    }

    /// The path is up again. The timer continues with the remaining time.
    pub fn thaw(&mut self, now: Instant) {
        self.control.timer.thaw(now);
        // The next request for a segment starts it anew.
        self.persist.stop();
        self.pacing.on_time(now);
        self.recovery.on_timer(&mut self.control, now);
    }

    /// Time has passed; an early call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        // First the events that may take the place of a timeout.
        if !self.control.timer.is_frozen() {
            self.recovery.on_timer(&mut self.control, now);
        }
        let wait = self.control.timer.rto.rto();
        if self.control.timer.expire(now) {
            if self.patience.is_over(now, now - wait) {
                self.gave_up = true;
                self.control.timer.stop();
                return;
            }
            self.control.stats.timeouts += 1;
            self.recovery.on_timeout(&mut self.control, now);
        }
        if self.persist.expire(now) && self.patience.is_over(now, now) {
            self.persist.stop();
            self.gave_up = true;
        }
        self.pacing.on_time(now);
    }

    /// Whether nothing has been acknowledged for too long.
    #[inline]
    pub(super) const fn has_given_up(&self) -> bool {
        self.gave_up
    }

    /// Whether the FIN has been sent, and whether it has been acknowledged.
    pub(super) const fn end(&self) -> (bool, bool) {
        self.control.window.end()
    }

    /// The next segment that may be sent now.
    #[inline]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Data> {
        let Self {
            control, recovery, ..
        } = self;
        if control.timer.is_frozen() || self.pacing.holds(now) {
            return None;
        }
        let Some(seq) = recovery.next(control, now) else {
            if control.window.is_shut() {
                let rto = control.timer.rto.rto();
                self.persist.arm(now, rto, self.longest_wait);
            }
            return None;
        };
        if self.persist.due().is_some() {
            self.persist.stop();
        }
        let retransmission = seq < control.window.max;
        control.stats.segments_sent += 1;
        if retransmission {
            control.stats.retransmissions += 1;
            control.undo.on_resent(now, seq);
        } else {
            let idle = self.idle_restart && control.window.una == seq;
            if idle
                && self
                    .last_acked
                    .is_some_and(|at| now.saturating_since(at) >= control.timer.rto.rto())
            {
                control.congestion.begin_anew(self.initial_window);
            }
            control.window.max = seq + 1;
            self.first_sent.get_or_insert(now);
        }
        control.timer.on_sent(now, seq, retransmission);
        if self.pacing.is_enabled() {
            let srtt = control.timer.fine_srtt();
            if let Some(interval) = control.congestion.pacing_interval(srtt) {
                self.pacing.on_sent(now, interval);
            }
        }
        let (ecn, cut) = control.ecn.on_sent(retransmission);
        Some(Data {
            seq,
            len: control.window.messages.segment_len(seq),
            retransmission,
            ecn,
            cut,
            stamp: self.stamps.then(|| Timestamp::of(now)),
        })
    }

    /// Whether it is certain that no segment follows the one sent just now. Usually none does, and a full check costs
    /// more.
    #[inline]
    pub(super) fn is_held(&mut self, now: Instant) -> bool {
        self.pacing.holds(now) || self.recovery.is_full(&self.control)
    }

    /// The segment of which one byte must be sent now to probe the peer's window.
    #[inline]
    pub fn poll_probe(&mut self) -> Option<u64> {
        let leaves = !self.control.timer.is_frozen() && self.persist.take_probe();
        leaves.then_some(self.control.window.una)
    }

    /// When `handle_timeout` is due.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.control.timer.is_frozen() {
            return None;
        }
        let due = self.control.timer.due().or_else(|| self.persist.due());
        // Few senders have timers besides these.
        match self.pacing.is_enabled() || self.recovery.has_timers() {
            true => earlier(earlier(due, self.recovery.due()), self.pacing.due()),
            false => due,
        }
    }

    /// Whether nothing more will be sent unless something is written.
    #[inline]
    pub(super) fn is_finished(&self) -> bool {
        self.control.window.una >= self.control.window.segments()
    }

    /// Whether everything that was written has been acknowledged.
    #[inline]
    pub fn is_acknowledged(&self) -> bool {
        self.control.window.is_acknowledged()
    }

    /// Whether it is frozen.
    pub(super) const fn is_frozen(&self) -> bool {
        self.control.timer.is_frozen()
    }

    /// Segments of everything that was written.
    pub fn segments(&self) -> u64 {
        self.control.window.segments()
    }

    /// User bytes written.
    pub fn written(&self) -> u64 {
        self.control.window.messages.bytes()
    }

    /// User bytes acknowledged.
    pub fn acked_bytes(&self) -> u64 {
        let SendWindow { messages, una, .. } = &self.control.window;
        messages.bytes_below(*una)
    }

    /// When the first segment was sent.
    pub fn first_sent(&self) -> Option<Instant> {
        self.first_sent
    }

    /// When the last acknowledgment of new data arrived.
    pub fn last_acked(&self) -> Option<Instant> {
        self.last_acked
    }

    /// Whether it waits only for the peer's window.
    pub fn is_shut(&self) -> bool {
        self.control.window.is_shut()
    }

    /// Whether a segment may be waiting for its paced departure.
    pub fn is_paced(&self) -> bool {
        self.pacing.due().is_some()
    }

    /// Congestion window, segments.
    pub fn cwnd(&self) -> f64 {
        self.control.congestion.cwnd()
    }

    /// The receiver's advertised window, segments: it limits the use of the congestion window.
    pub fn window(&self) -> u64 {
        self.control.window.advertised()
    }

    /// Slow start threshold, segments.
    pub fn ssthresh(&self) -> u64 {
        self.control.congestion.ssthresh()
    }

    /// Smoothed round trip time; none before the first sample, and none after so many timeouts that the estimate is
    /// not trusted.
    pub fn srtt(&self) -> Option<Duration> {
        self.control.timer.rto.srtt()
    }

    /// The retransmission timeout that would be set now, backoff included.
    pub fn rto(&self) -> Duration {
        self.control.timer.rto.rto()
    }

    /// Segments sent and not acknowledged.
    pub fn flight_size(&self) -> u64 {
        self.control.window.flight_size()
    }

    /// Counters.
    pub fn stats(&self) -> &SenderStats {
        &self.control.stats
    }
}

/// The earlier of two deadlines.
#[inline]
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
