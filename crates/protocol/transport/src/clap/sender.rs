//! The end that has the file: repairs before new packets, at the pace of its interface, until the receiver has all.

use airlane_base::{Duration, Instant};

use super::config::{ANSWER_WAIT, ClapConfig, GIVE_UP, MOST_PACKETS, REPEATS};
use super::numbers::Numbers;
use super::pacer::{Pacer, Status};
use super::packet::{Data, Failure, Feedback, Forward, Nack, Stamp};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// The SYN is repeated then, so long after the one before, and so many repeats are left.
    Asking {
        again: Instant,
        wait: Duration,
        left: u32,
    },
    Sending,
    Finished,
    Failed(Failure),
}

/// What a sender counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClapSenderStats {
    /// Packets of the file sent, repairs included.
    pub data_sent: u64,
    /// Packets of the file sent again.
    pub repairs: u64,
    /// NACKs that came.
    pub nacks: u64,
    /// What came and fitted no state of the connection: a FIN before all was sent, anything before its SYN was answered.
    pub refused: u64,
}

/// The sending end of a connection.
#[derive(Clone, Debug)]
pub struct ClapSender {
    state: State,
    count: u32,
    /// The lowest number that has not been sent.
    next_new: u32,
    /// What was reported missing and has not been sent since.
    asked: Numbers,
    pacer: Pacer,
    /// Where the decisions of the pacer lie.
    phase: Duration,
    /// Whether a packet may leave now.
    turn: bool,
    asks: bool,
    agrees: bool,
    /// The stamp of the last NACK that came.
    echo: Option<Stamp>,
    heard: Instant,
    first_sent: Option<Instant>,
    stats: ClapSenderStats,
}

impl ClapSender {
    /// An end for a file of `count` packets, which sends nothing before it is [opened](Self::open). The settings are
    /// valid. `phase` says when in each interval the rate is decided; it should be uniform in the interval, and different
    /// from run to run.
    ///
    /// # Errors
    /// If there are no packets, or more than ends keep bits for.
    pub fn new(config: &ClapConfig, count: u32, phase: Duration) -> Result<Self, Failure> {
        if !(1..=MOST_PACKETS).contains(&count) {
            return Err(Failure::Length(count));
        }
        Ok(Self {
            state: State::Closed,
            count,
            next_new: 0,
            asked: Numbers::none(count),
            pacer: Pacer::new(config),
            phase,
            turn: false,
            asks: false,
            agrees: false,
            echo: None,
            heard: Instant::ORIGIN,
            first_sent: None,
            stats: ClapSenderStats::default(),
        })
    }

    /// Asks the receiver for a connection.
    pub fn open(&mut self, now: Instant) {
        if self.state == State::Closed {
            self.asks = true;
            self.state = State::Asking {
                again: now + ANSWER_WAIT,
                wait: ANSWER_WAIT,
                left: REPEATS,
            };
        }
    }

    /// What the own interface did in its last interval. It counts from the next decision on.
    pub fn set_local(&mut self, status: Status) {
        self.pacer.set_local(status);
    }

    /// What a probe along the path brought back. It counts for two intervals or as long as
    /// is set, in the place of the own interface.
    pub fn set_route(&mut self, now: Instant, status: Status) {
        self.pacer.set_route(now, status);
    }

    /// What the path was found to carry, packets per second. It counts at once, and in the place of all that interfaces
    /// say: for paths where none says anything (Gopal 2007 has no rule for them).
    pub fn set_found(&mut self, now: Instant, packets_per_second: f64) {
        self.pacer.set_found(now, packets_per_second);
    }

    /// What interfaces say counts again.
    pub fn forget_found(&mut self, now: Instant) {
        self.pacer.forget_found(now);
    }

    /// Something has come from the receiver.
    pub fn handle(&mut self, now: Instant, packet: &Feedback<'_>) {
        let taken = match packet {
            Feedback::SynAck { first: 0 } => self.on_syn_ack(now),
            Feedback::Nack(nack) => self.on_nack(now, nack),
            Feedback::Fin { first: 0 } => self.on_fin(),
            Feedback::SynAck { .. } | Feedback::Fin { .. } => false,
        };
        match taken {
            true => self.heard = now,
            false => self.stats.refused += 1,
        }
    }

    fn on_syn_ack(&mut self, now: Instant) -> bool {
        if matches!(self.state, State::Asking { .. }) {
            self.state = State::Sending;
            self.asks = false;
            self.pacer.start(now, self.phase);
            return true;
        }
        self.state == State::Sending
    }

    /// What it covers beyond what was sent says nothing (CLAP-Z12). Only who has agreed reports.
    fn on_nack(&mut self, now: Instant, nack: &Nack<'_>) -> bool {
        if !self.on_syn_ack(now) {
            return false;
        }
        self.stats.nacks += 1;
        self.echo = Some(nack.stamp);
        for (n, missing) in nack.packets() {
            if n >= self.next_new {
                break;
            }
            match missing {
                true => self.asked.insert(n),
                false => self.asked.remove(n),
            };
        }
        true
    }

    /// Only who has all may end, and nobody has what was never sent. A repeated FIN is answered again.
    fn on_fin(&mut self) -> bool {
        let ends = match self.state {
            State::Sending => self.next_new == self.count,
            State::Finished => true,
            State::Closed | State::Asking { .. } | State::Failed(_) => false,
        };
        if ends {
            self.finish(State::Finished);
            self.agrees = true;
        }
        ends
    }

    fn finish(&mut self, state: State) {
        self.state = state;
        self.turn = false;
        self.asks = false;
        self.pacer.stop();
    }

    /// Time has passed; an early call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Asking { again, wait, left } if now >= again => self.ask_again(now, wait, left),
            State::Sending if now >= self.heard + GIVE_UP => {
                self.finish(State::Failed(Failure::Silence));
            }
            State::Sending => self.turn |= self.pacer.handle_timeout(now),
            _ => {}
        }
    }

    fn ask_again(&mut self, now: Instant, wait: Duration, left: u32) {
        let Some(left) = left.checked_sub(1) else {
            self.finish(State::Failed(Failure::NoAnswer));
            return;
        };
        let wait = wait * 2;
        self.asks = true;
        self.state = State::Asking {
            again: now + wait,
            wait,
            left,
        };
    }

    /// The next packet to leave now. The driver fills in the bytes of the file.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Forward> {
        if std::mem::take(&mut self.asks) {
            return Some(Forward::Syn {
                first: 0,
                count: self.count,
            });
        }
        if std::mem::take(&mut self.agrees) {
            return Some(Forward::FinAck { first: 0 });
        }
        if !std::mem::take(&mut self.turn) {
            return None;
        }
        let repair = self.asked.first();
        let seq = match repair {
            Some(seq) => seq,
            None if self.next_new < self.count => self.next_new,
            None => return None,
        };
        self.asked.remove(seq);
        self.next_new = self.next_new.max(seq + 1);
        self.first_sent.get_or_insert(now);
        self.stats.data_sent += 1;
        self.stats.repairs += u64::from(repair.is_some());
        Some(Forward::Data(Data {
            seq,
            stamp: Stamp::of(now),
            echo: self.echo,
            again: repair.is_some(),
        }))
    }

    /// When `handle_timeout` is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Asking { again, .. } => Some(again),
            State::Sending => {
                let pacer = self.pacer.poll_timeout();
                pacer.into_iter().chain([self.heard + GIVE_UP]).min()
            }
            State::Closed | State::Finished | State::Failed(_) => None,
        }
    }

    /// Whether the receiver has said that it has all.
    pub fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// Why it has ended without that.
    pub fn failure(&self) -> Option<Failure> {
        match self.state {
            State::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// When the first packet of the file left.
    pub fn first_sent(&self) -> Option<Instant> {
        self.first_sent
    }

    /// What it has counted.
    pub fn stats(&self) -> &ClapSenderStats {
        &self.stats
    }
}
