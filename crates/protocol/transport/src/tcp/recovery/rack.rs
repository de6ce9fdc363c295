//! Time-based loss detection (RACK-TLP, RFC 8985), on selective acknowledgments.
//!
//! A segment is lost when one that was sent later has arrived, and a round trip plus a reordering window has passed
//! since it was sent. This also detects lost retransmissions, and needs no number of duplicates. The reordering
//! window is 0 while no reordering has been seen and either three segments have arrived out of order or a recovery is
//! going on. Otherwise it is a quarter of the shortest round trip, plus another quarter for each round trip in which
//! a duplicate was reported (RFC 2883). Probes detect losses at the tail.
//!
//! Whenever less than `cwnd` is in flight one more segment is sent, a lost one before a new one. During a recovery,
//! proportional rate reduction decides when, unless the congestion control models the path; such a control gets
//! samples of the delivery rate. A timeout marks the oldest segment as lost, and all whose time has passed; the
//! others keep their send times, and reported segments stay known.

mod probe;
mod rate;
mod sent;

use airlane_base::{Duration, Instant};

use super::prr::Prr;
use crate::tcp::congestion::rate::{Phase, RateSample};
use crate::tcp::control::Control;
use crate::tcp::segment::Timestamp;
use crate::tcp::{Ack, CongestionKind, TcpConfig};
use probe::Probe;
use rate::DeliveryRate;
use sent::{Segment, Sent};

/// Segments received out of order that end the reordering window.
const DUP_THRESHOLD: u64 = 3;
/// Recoveries for which an enlarged reordering window lasts.
const PATIENT_RECOVERIES: u32 = 16;

/// The reordering window, in quarters of the shortest round trip (RFC 8985, section 6.2, step 4).
#[derive(Clone, Copy, Debug)]
struct Patience {
    quarters: u64,
    /// Recoveries until it returns to one quarter.
    lasts: u32,
    /// What had been sent when a duplicate was last reported; until that is acknowledged, further duplicates are
    /// ignored.
    round: Option<u64>,
}

impl Patience {
    /// Takes an acknowledgment, which may report a duplicate; `max` is the end of what has been sent.
    fn on_ack(&mut self, ack: &Ack, max: u64) {
        if self.round.is_some_and(|round| ack.ack >= round) {
            self.round = None;
        }
        if self.round.is_none() && ack.duplicate().is_some() {
            self.round = Some(max);
            self.quarters += 1;
            self.lasts = PATIENT_RECOVERIES;
        }
    }

    fn on_recovered(&mut self) {
        self.lasts = self.lasts.saturating_sub(1);
        if self.lasts == 0 {
            self.quarters = 1;
        }
    }
}

/// What is being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Losses up to this number, shown by acknowledgments.
    Recovery(u64),
    /// Everything up to this number, after a timeout.
    Timeout(u64),
}

/// What is known from the delivered segment that was sent last.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    left: Option<Instant>,
    seq: u64,
    /// The round trip of the latest-sent segment of the last acknowledgment, and when it was sent.
    rtt: Duration,
    rtt_from: Option<Instant>,
    shortest: Option<Duration>,
    /// The round trip of the segment acknowledged last, if it was sent once.
    in_order: Option<Duration>,
    /// One more than the highest number delivered.
    high: u64,
    /// The largest distance below `high` at which a segment was delivered; more than 1 if any was reordered.
    distance: u64,
}

impl Newest {
    const fn has_seen_reordering(&self) -> bool {
        self.distance > 1
    }

    /// Segment `seq` was delivered (RFC 8985, section 6.2, steps 1 to 3); `stamp` is its echoed timestamp, if any.
    fn update(&mut self, now: Instant, seq: u64, segment: &Segment, stamp: Option<Timestamp>) {
        let rtt = now.saturating_since(segment.left);
        let is_earlier = |stamp: Timestamp| stamp.is_before(Timestamp::of(segment.left));
        if segment.again && stamp.is_some_and(is_earlier) {
            // An earlier copy was delivered, so the send time of the last one is no evidence.
            return;
        }
        if segment.again && stamp.is_none() {
            // Shorter than any round trip: an earlier copy was delivered.
            if self.shortest.is_some_and(|shortest| rtt < shortest) {
                return;
            }
        } else {
            self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
            if !segment.again {
                self.distance = self.distance.max(self.high.saturating_sub(seq));
            }
        }
        self.high = self.high.max(seq + 1);
        if self.rtt_from.is_none_or(|left| left <= segment.left) {
            (self.rtt, self.rtt_from) = (rtt, Some(segment.left));
        }
        if self
            .left
            .is_none_or(|left| (left, self.seq) <= (segment.left, seq))
        {
            (self.left, self.seq) = (Some(segment.left), seq);
        }
    }
}

#[derive(Clone, Debug)]
pub(in crate::tcp) struct Rack {
    sent: Sent,
    newest: Newest,
    state: State,
    prr: Prr,
    probe: Probe,
    patience: Patience,
    /// The delivery rate estimator, if the congestion control models the path.
    rate: Option<Box<DeliveryRate>>,
    /// When the reordering window of a segment ends.
    reorder: Option<Instant>,
    /// The timer has expired: the oldest segment is sent now, regardless of the window.
    resend: bool,
    /// New data has been sent since the next probe was scheduled.
    fresh: bool,
}

impl Rack {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            sent: Sent::default(),
            newest: Newest::default(),
            state: State::Open,
            prr: Prr::default(),
            probe: Probe::default(),
            patience: Patience {
                quarters: 1,
                lasts: 0,
                round: None,
            },
            rate: (config.congestion() == CongestionKind::Bbr).then(Box::default),
            reorder: None,
            resend: false,
            fresh: false,
        }
    }

    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        let before = self.sent.pipe();
        control.acknowledge(now, ack);
        let delivered = self.take_in(control, now, ack);
        control.acked = delivered;
        match self.state {
            // Without timestamps the timer times one segment per round trip.
            State::Open => control.open_timed(now, control.timer.latest().or(self.newest.in_order)),
            State::Recovery(recover) => {
                if ack.ack >= recover {
                    self.state = State::Open;
                    self.patience.on_recovered();
                }
            }
            State::Timeout(recover) => {
                control.open(now);
                if ack.ack >= recover {
                    self.state = State::Open;
                }
            }
        }
        let repaired = self.probe.on_ack(ack.ack, !ack.blocks.is_empty());
        if repaired && self.state == State::Open {
            control.cut(now);
            control.congestion.resume();
        }
        self.react(control, now, delivered, before, true);
    }

    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        let before = self.sent.pipe();
        let delivered = self.take_in(control, now, ack);
        if delivered > 0 && self.state == State::Open && self.newest.distance > DUP_THRESHOLD {
            // For the window, a path with so much reordering counts as in order.
            (control.acked, control.flight_before) = (delivered, control.window.flight_size());
            control.open_timed(now, None);
        }
        self.probe.on_ack(ack.ack, !ack.blocks.is_empty());
        self.react(control, now, delivered, before, false);
    }

    /// Marks delivered segments; returns how many are new.
    fn take_in(&mut self, control: &Control, now: Instant, ack: &Ack) -> u64 {
        let Self {
            sent, newest, rate, ..
        } = self;
        let mut delivered = 0;
        newest.rtt_from = None;
        sent.acknowledge(ack.ack, |seq, segment| {
            delivered += 1;
            newest.in_order = (!segment.again).then(|| now.saturating_since(segment.left));
            newest.update(now, seq, segment, ack.stamp);
            if let Some(rate) = rate {
                rate.on_delivered(seq, segment);
            }
        });
        if !ack.blocks.is_empty() {
            sent.report(&ack.blocks, |seq, segment| {
                delivered += 1;
                // The timestamp belongs to a segment below the first hole.
                newest.update(now, seq, segment, None);
                if let Some(rate) = rate {
                    rate.on_delivered(seq, segment);
                }
            });
        }
        if !ack.blocks.is_empty() || self.patience.round.is_some() {
            self.patience.on_ack(ack, control.window.max);
        }
        delivered
    }

    /// Reacts to new information; `advances` if `snd_una` has advanced.
    fn react(
        &mut self,
        control: &mut Control,
        now: Instant,
        delivered: u64,
        before: u64,
        advances: bool,
    ) {
        let lost = self.detect(now, control.timer.fine_srtt());
        if lost > 0 && self.state == State::Open {
            self.begin(control, now);
        }
        if self.rate.is_some() {
            self.tell_model(control, now, delivered, lost, before);
        } else if let State::Recovery(_) = self.state {
            let ssthresh = control.congestion.ssthresh();
            let is_safe = advances && lost == 0;
            self.prr
                .on_ack(delivered, self.sent.pipe(), ssthresh, is_safe);
        }
        match self.state {
            State::Open if self.sent.sacked() == 0 => self.probe.schedule(control, now),
            _ => {
                self.probe.cancel();
                self.fresh = false;
            }
        }
    }

    /// Passes a rate sample to a congestion control that models the path.
    fn tell_model(
        &mut self,
        control: &mut Control,
        now: Instant,
        newly_delivered: u64,
        lost: u64,
        flight_before: u64,
    ) {
        let Some(rate) = &mut self.rate else {
            return;
        };
        let Some(delivered) = rate.finish(now, control.window.una, self.newest.shortest) else {
            return;
        };
        let flight = self.sent.pipe();
        let little = control.congestion.on_sample(&RateSample {
            now,
            prior_delivered: delivered.prior,
            total_delivered: delivered.total,
            interval: delivered.interval,
            newly_delivered,
            lost,
            flight,
            flight_before,
            rtt: self.newest.left.map(|_| self.newest.rtt),
            app_limited: delivered.limited,
            phase: match self.state {
                State::Open => Phase::Open,
                State::Recovery(_) => Phase::Recovery,
                State::Timeout(_) => Phase::Timeout,
            },
        });
        if little {
            rate.limit(flight);
        }
    }

    fn begin(&mut self, control: &mut Control, now: Instant) {
        self.state = State::Recovery(control.window.max);
        let flight = control.window.flight_size();
        control.cut(now);
        control.congestion.resume();
        self.prr = Prr::begin(flight);
    }

    fn patience(&self, srtt: Option<Duration>) -> Duration {
        let repairs = self.state != State::Open || self.sent.sacked() >= DUP_THRESHOLD;
        match self.newest.shortest {
            _ if repairs && !self.newest.has_seen_reordering() => Duration::ZERO,
            None => Duration::ZERO,
            Some(shortest) => {
                let patience = shortest * self.patience.quarters / 4;
                srtt.map_or(patience, |srtt| patience.min(srtt))
            }
        }
    }

    /// Detects losses (section 6.2, step 5) and sets the time of the next check; returns how many segments were
    /// found.
    fn detect(&mut self, now: Instant, srtt: Option<Duration>) -> u64 {
        self.reorder = None;
        let Some(newest) = self.newest.left else {
            return 0;
        };
        let wait = self.newest.rtt + self.patience(srtt);
        let mut found = 0;
        while let Some((seq, left)) = self.sent.oldest() {
            if (left, seq) >= (newest, self.newest.seq) {
                break;
            }
            let over = left + wait;
            if over > now {
                self.reorder = Some(over);
                break;
            }
            self.sent.lose(seq);
            found += 1;
        }
        found
    }

    pub(super) fn due(&self) -> Option<Instant> {
        match (self.reorder, self.probe.due()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Advances its own timers. An early call does nothing.
    pub(super) fn on_timer(&mut self, control: &mut Control, now: Instant) {
        if self.reorder.is_some_and(|due| due <= now) {
            self.react(control, now, 0, self.sent.pipe(), false);
        }
        if self.probe.expire(now) {
            control.stats.probes += 1;
            control.timer.restart(now);
        }
    }

    pub(super) fn has_copies(&self, from: u64) -> bool {
        self.sent.has_copies(from)
    }

    /// The retransmissions were spurious.
    pub(super) fn undo(&mut self) {
        self.state = State::Open;
        self.sent.find_all();
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control, now: Instant) {
        let window = &control.window;
        let recover = window.max;
        self.sent.lose_oldest();
        let wait = self.newest.rtt + self.patience(control.timer.fine_srtt());
        while let Some((seq, left)) = self.sent.oldest() {
            if left + wait > now {
                break;
            }
            self.sent.lose(seq);
        }
        self.reorder = None;
        self.resend = true;
        self.probe.forget();
        self.state = State::Timeout(recover);
        control.collapse();
        control.window.nxt = recover;
    }

    #[inline]
    pub(super) fn next(&mut self, control: &mut Control, now: Instant) -> Option<u64> {
        let seq = self.choose(control, now);
        // The retransmission timer, which bounds the wait, has run since the first of them.
        if seq.is_none() && std::mem::take(&mut self.fresh) {
            self.probe.schedule(control, now);
        }
        seq
    }

    fn choose(&mut self, control: &mut Control, now: Instant) -> Option<u64> {
        if let Some(seq) = self.probe.take(control) {
            self.leave(control, now, seq);
            return Some(seq);
        }
        let has_room = std::mem::take(&mut self.resend)
            || match self.state {
                State::Recovery(_) if self.rate.is_none() => self.prr.allows(),
                _ => self.sent.pipe() < control.congestion.window(),
            }
            // A FIN alone is not limited by the window (Linux, `tcp_cwnd_test`).
            || control.window.has_only_its_end();
        if !has_room {
            return None;
        }
        let lost = self.sent.next_lost();
        let next = lost.or_else(|| {
            let advertised = control.window.advertised();
            control.window.take_next(advertised)
        });
        let Some(seq) = next else {
            if let Some(rate) = &mut self.rate
                && control.window.is_written_out()
            {
                rate.limit(self.sent.pipe());
            }
            return None;
        };
        self.leave(control, now, seq);
        match self.state {
            State::Recovery(_) => self.prr.on_sent(),
            State::Timeout(_) => {}
            State::Open => self.fresh = self.sent.sacked() == 0,
        }
        Some(seq)
    }

    fn leave(&mut self, control: &mut Control, now: Instant, seq: u64) {
        if let Some(rate) = &mut self.rate {
            let alone = self.sent.pipe() == 0;
            if alone && rate.is_limited() {
                control.congestion.on_restart(now);
            }
            rate.on_sent(now, seq, alone);
        }
        self.sent.on_sent(now, seq);
    }
}
