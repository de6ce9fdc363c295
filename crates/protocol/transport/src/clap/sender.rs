//! The end that has the file: it sends repairs before new packets, at the pace of its interface, until the receiver
//! has the whole file.

use airlane_base::{Duration, Instant};

use super::config::{ANSWER_WAIT, ClapConfig, ClapVersion, GIVE_UP, MOST_PACKETS, REPEATS};
use super::numbers::Numbers;
use super::pacer::{Pacer, Status};
use super::packet::{Data, Failure, Feedback, Forward, Nack, Stamp};
use super::rounds::Rounds;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    /// When the SYN is repeated, how long the last wait was, and how many repeats are left.
    Asking {
        again: Instant,
        wait: Duration,
        left: u32,
    },
    Sending,
    Finished,
    Failed(Failure),
}

/// The counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClapSenderStats {
    /// Packets of the file sent, repairs included.
    pub data_sent: u64,
    /// Packets of the file sent again.
    pub repairs: u64,
    /// NACKs received.
    pub nacks: u64,
    /// Packets that fit no state of the connection: a FIN before everything was sent, anything before its SYN was
    /// answered.
    pub refused: u64,
}

/// The sending end of a connection.
#[derive(Clone, Debug)]
pub struct ClapSender {
    state: State,
    count: u32,
    /// The lowest number that has not been sent.
    next_new: u32,
    /// Packets reported missing that have not been sent again yet.
    asked: Numbers,
    /// Of the sender-driven version alone.
    rounds: Option<Rounds>,
    /// Of the carousel alone: the packet that is sent again next, once all have been sent.
    turn_of: Option<u32>,
    pacer: Pacer,
    /// The offset of the pacer's decisions.
    phase: Duration,
    /// Whether a packet may leave now.
    turn: bool,
    asks: bool,
    agrees: bool,
    /// The timestamp of the last NACK received.
    echo: Option<Stamp>,
    heard: Instant,
    first_sent: Option<Instant>,
    stats: ClapSenderStats,
}

impl ClapSender {
    /// An end for a file of `count` packets; it sends nothing until it is [opened](Self::open). The settings must be
    /// valid. `phase` is the offset of the rate decisions within an interval; it should be uniform over the interval
    /// and differ from run to run.
    ///
    /// # Errors
    /// If the file has no packets, or more than the ends keep bits for.
    pub fn new(config: &ClapConfig, count: u32, phase: Duration) -> Result<Self, Failure> {
        if !(1..=MOST_PACKETS).contains(&count) {
            return Err(Failure::Length(count));
        }
        Ok(Self {
            state: State::Closed,
            count,
            next_new: 0,
            asked: Numbers::none(count),
            rounds: (config.version == ClapVersion::SenderDriven)
                .then(|| Rounds::new(config, count)),
            turn_of: (config.version == ClapVersion::Carousel).then_some(0),
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

    /// Requests a connection from the receiver.
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

    /// The status of the sender's own interface over its last interval. It takes effect at the next decision.
    pub fn set_local(&mut self, status: Status) {
        self.pacer.set_local(status);
    }

    /// The status that a probe brought back along the path. It replaces that of the own interface for two intervals,
    /// or for as long as the settings say.
    pub fn set_route(&mut self, now: Instant, status: Status) {
        self.pacer.set_route(now, status);
    }

    /// The measured rate of the path, packets per second. It takes effect at once and overrides every interface's
    /// status, for paths where no interface reports one (Gopal 2007 has no rule for them).
    pub fn set_found(&mut self, now: Instant, packets_per_second: f64) {
        self.pacer.set_found(now, packets_per_second);
    }

    /// Returns to the rate that the interfaces' status gives.
    pub fn forget_found(&mut self, now: Instant) {
        self.pacer.forget_found(now);
    }

    /// Takes a packet from the receiver.
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

    /// Reports of packets that were never sent are ignored (CLAP-Z12), and so are reports before the handshake.
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
        if let Some(rounds) = &mut self.rounds {
            rounds.on_nack(nack);
        }
        true
    }

    /// A FIN means that the receiver has everything, which is impossible for packets never sent. A repeated FIN is
    /// answered again.
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

    /// The next packet to send now. The driver fills in the bytes of the file.
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
        let waits = |rounds: &Rounds| !rounds.may_send(now);
        if self.rounds.as_ref().is_some_and(waits) || !std::mem::take(&mut self.turn) {
            return None;
        }
        let has_room = self.rounds.as_ref().is_none_or(Rounds::has_room);
        let new = (self.next_new < self.count && has_room).then_some(self.next_new);
        // The newest packet asks again, so that the report covers all that have been sent.
        let newest = self.rounds.as_ref().and(self.next_new.checked_sub(1));
        let seq = self.asked.first().or(new).or(newest).or(self.turn_of)?;
        let again = seq < self.next_new;
        self.asked.remove(seq);
        if let Some(turn) = self.turn_of.as_mut().filter(|_| again) {
            *turn = (seq + 1) % self.count;
        }
        self.next_new = self.next_new.max(seq + 1);
        self.first_sent.get_or_insert(now);
        self.stats.data_sent += 1;
        self.stats.repairs += u64::from(again);
        let (repairs, more) = (!self.asked.is_empty(), self.next_new < self.count);
        let rounds = self.rounds.as_mut();
        Some(Forward::Data(Data {
            seq,
            stamp: Stamp::of(now),
            echo: self.echo,
            again,
            solicits: rounds.is_some_and(|rounds| rounds.on_sent(now, seq, repairs, more)),
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

    /// Whether the receiver has confirmed the whole file.
    pub fn is_finished(&self) -> bool {
        self.state == State::Finished
    }

    /// Why the connection ended without that.
    pub fn failure(&self) -> Option<Failure> {
        match self.state {
            State::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// When the first packet of the file was sent.
    pub fn first_sent(&self) -> Option<Instant> {
        self.first_sent
    }

    /// The counters.
    pub fn stats(&self) -> &ClapSenderStats {
        &self.stats
    }
}
