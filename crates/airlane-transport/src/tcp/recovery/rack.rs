//! Recovery by time (RACK-TLP, RFC 8985), on selective acknowledgments.
//!
//! A segment is lost when one has come that left later, and a round trip and some patience for reordering have
//! passed since it left itself. That finds copies that are lost again, too, and needs no number of
//! duplicates. The patience is none until reordering was seen, once three segments have come out of order or a
//! recovery goes on, else a quarter of the shortest round trip. Probes show losses at the tail.
//!
//! Whenever less than `cwnd` is on its way one more segment leaves, a lost one before a new one; in a recovery
//! the proportional rate reduction says when. A timeout takes the oldest segment for lost, and those whose
//! time is over; the rest keeps its time, and what has come is remembered.
//!
//! Left out: what depends on the report of duplicates (RFC 2883), that is the growth of the patience.

mod probe;
mod sent;

use airlane_base::{Duration, Instant};

use super::prr::Prr;
use crate::tcp::Ack;
use crate::tcp::control::Control;
use probe::Probe;
use sent::{Segment, Sent};

/// Segments that have come out of order and end all patience.
const DUP_THRESHOLD: u64 = 3;

/// What is being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Losses up to there that acknowledgments have shown.
    Recovery(u64),
    /// A timeout: everything up to there.
    Timeout(u64),
}

/// What the segment says that left last of those that have come.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    left: Option<Instant>,
    seq: u64,
    rtt: Duration,
    shortest: Option<Duration>,
    /// One more than the highest number that has come.
    high: u64,
    reordering: bool,
}

impl Newest {
    /// `seq` has come (RFC 8985, section 6.2, steps 1 to 3).
    /// `known`: it is known to be the copy that left last.
    fn update(&mut self, now: Instant, seq: u64, segment: &Segment, known: bool) {
        let rtt = now.saturating_since(segment.left);
        if segment.again && !known {
            // Sooner than any round trip: that was an earlier copy.
            if self.shortest.is_some_and(|shortest| rtt < shortest) {
                return;
            }
        } else {
            self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
            self.reordering |= !segment.again && seq + 1 < self.high;
        }
        self.high = self.high.max(seq + 1);
        if self
            .left
            .is_none_or(|left| (left, self.seq) <= (segment.left, seq))
        {
            self.left = Some(segment.left);
            self.seq = seq;
            self.rtt = rtt;
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
    /// When patience with a segment ends.
    reorder: Option<Instant>,
    /// The oldest segment leaves now, whatever the window says: the timer has expired.
    resend: bool,
    /// Something new has left since the next probe was thought of.
    fresh: bool,
}

impl Rack {
    pub(super) fn new() -> Self {
        Self {
            sent: Sent::default(),
            newest: Newest::default(),
            state: State::Open,
            prr: Prr::default(),
            probe: Probe::default(),
            reorder: None,
            resend: false,
            fresh: false,
        }
    }

    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        control.acknowledge(now, ack.ack);
        let delivered = self.take_in(now, ack);
        match self.state {
            State::Open => control.open(now),
            State::Recovery(recover) => {
                if ack.ack >= recover {
                    self.state = State::Open;
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
        self.react(control, now, delivered);
    }

    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        let delivered = self.take_in(now, ack);
        self.probe.on_ack(ack.ack, !ack.blocks.is_empty());
        self.react(control, now, delivered);
    }

    /// Marks what has come; how many segments that were.
    fn take_in(&mut self, now: Instant, ack: &Ack) -> u64 {
        let Self { sent, newest, .. } = self;
        let mut delivered = 0;
        sent.acknowledge(ack.ack, |seq, segment| {
            delivered += 1;
            // What its timestamp tells: an earlier copy has come, so when the last one left says nothing.
            if ack.again || !segment.again {
                newest.update(now, seq, segment, ack.again);
            }
        });
        for block in ack.blocks.iter() {
            sent.report(*block, |seq, segment| {
                delivered += 1;
                newest.update(now, seq, segment, false);
            });
        }
        delivered
    }

    fn react(&mut self, control: &mut Control, now: Instant, delivered: u64) {
        let found = self.detect(now);
        if found && self.state == State::Open {
            self.begin(control, now);
        }
        if let State::Recovery(_) = self.state {
            let ssthresh = control.congestion.ssthresh();
            self.prr.on_ack(delivered, self.sent.pipe(), ssthresh);
        }
        match self.state {
            State::Open if self.sent.sacked() == 0 => self.probe.schedule(control, now),
            _ => self.probe.cancel(),
        }
    }

    fn begin(&mut self, control: &mut Control, now: Instant) {
        self.state = State::Recovery(control.window.max);
        let flight = control.window.flight_size();
        control.cut(now);
        control.congestion.resume();
        self.prr = Prr::begin(flight);
    }

    fn patience(&self) -> Duration {
        let repairs = self.state != State::Open || self.sent.sacked() >= DUP_THRESHOLD;
        match self.newest.shortest {
            _ if repairs && !self.newest.reordering => Duration::ZERO,
            None => Duration::ZERO,
            Some(shortest) => shortest / 4,
        }
    }

    /// Finds what is lost (section 6.2, step 5), and when to look again; whether anything was.
    fn detect(&mut self, now: Instant) -> bool {
        self.reorder = None;
        let Some(newest) = self.newest.left else {
            return false;
        };
        let wait = self.newest.rtt + self.patience();
        let mut found = false;
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
            found = true;
        }
        found
    }

    pub(super) fn due(&self) -> Option<Instant> {
        match (self.reorder, self.probe.due()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Its own timers; an early call does nothing.
    pub(super) fn on_timer(&mut self, control: &mut Control, now: Instant) {
        if self.reorder.is_some_and(|due| due <= now) {
            self.react(control, now, 0);
        }
        if self.probe.expire(now) {
            control.stats.probes += 1;
            control.timer.restart(now);
        }
    }

    /// What was repaired was not lost.
    pub(super) fn undo(&mut self) {
        self.state = State::Open;
        self.sent.find_all();
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control, now: Instant) {
        let window = &control.window;
        let recover = window.max;
        self.sent.lose_oldest();
        let wait = self.newest.rtt + self.patience();
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
        // The retransmission timer, which bounds the wait, runs since the first of them.
        if seq.is_none() && std::mem::take(&mut self.fresh) {
            self.probe.schedule(control, now);
        }
        seq
    }

    fn choose(&mut self, control: &mut Control, now: Instant) -> Option<u64> {
        if let Some(seq) = self.probe.take(control) {
            self.sent.on_sent(now, seq);
            return Some(seq);
        }
        let has_room = std::mem::take(&mut self.resend)
            || match self.state {
                State::Recovery(_) => self.prr.allows(),
                State::Open | State::Timeout(_) => self.sent.pipe() < control.congestion.window(),
            };
        if !has_room {
            return None;
        }
        let seq = match self.sent.next_lost() {
            Some(seq) => seq,
            None => {
                let advertised = control.window.advertised();
                control.window.take_next(advertised)?
            }
        };
        self.sent.on_sent(now, seq);
        match self.state {
            State::Recovery(_) => self.prr.on_sent(),
            State::Timeout(_) => {}
            State::Open => self.fresh = self.sent.sacked() == 0,
        }
        Some(seq)
    }
}
