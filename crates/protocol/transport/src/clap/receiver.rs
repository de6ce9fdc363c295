//! The end that receives the file: it tracks which packets are missing, reports them as its version prescribes, and
//! ends the connection when none is missing.

use airlane_base::Instant;

use super::config::{ANSWER_WAIT, ClapConfig, GIVE_UP, MOST_PACKETS, REPEATS};
use super::packet::{Data, Failure, Feedback, Forward, Nack, NackKind, Stamp};
use super::progress::{Progress, Report};
use super::reporter::Reporter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listening,
    Receiving,
    /// When the last FIN was sent, and how many repeats are left.
    Ending {
        last: Instant,
        left: u32,
    },
    /// It has the whole file and has said so often enough.
    Closed {
        last: Instant,
    },
    Failed(Failure),
}

/// What a receiver did with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// A packet of the file that was missing: the driver keeps its bytes.
    New,
    /// A packet of the file that the receiver already has.
    Duplicate,
    /// Not a packet of the file.
    Control,
    /// It belongs to no connection of this end.
    Refused,
}

/// The counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClapReceiverStats {
    /// Packets of the file received, duplicates included.
    pub data_received: u64,
    /// Packets of the file that the receiver already had.
    pub duplicates: u64,
    /// Duplicates received before the first sweep was sent.
    pub duplicates_before_sweep: u64,
    /// NACKs sent.
    pub nacks: u64,
    /// Sweeps among them.
    pub sweeps: u64,
    /// Packets that fit no connection: data before its SYN, numbers beyond the file.
    pub refused: u64,
}

/// The receiving end of a connection.
#[derive(Clone, Debug)]
pub struct ClapReceiver {
    state: State,
    /// The number of the file's first packet.
    first: u32,
    progress: Progress,
    reporter: Reporter,
    span: u32,
    report: Option<Report>,
    agrees: bool,
    ends: bool,
    /// When a packet last came from the sender.
    heard: Instant,
    completed: Option<Instant>,
    stats: ClapReceiverStats,
}

impl ClapReceiver {
    /// An end that waits for a SYN. The settings must be valid.
    pub fn new(config: &ClapConfig) -> Self {
        Self {
            state: State::Listening,
            first: 0,
            progress: Progress::default(),
            reporter: Reporter::new(config),
            span: config.report_span(),
            report: None,
            agrees: false,
            ends: false,
            heard: Instant::ORIGIN,
            completed: None,
            stats: ClapReceiverStats::default(),
        }
    }

    /// Takes a packet from the sender.
    pub fn handle(&mut self, now: Instant, packet: Forward) -> Taken {
        let taken = match packet {
            Forward::Syn { first, count } => self.on_syn(now, first, count),
            Forward::Data(data) => self.on_data(now, data),
            Forward::FinAck { first } => self.on_fin_ack(first),
        };
        match taken {
            Taken::Refused => self.stats.refused += 1,
            _ => self.heard = now,
        }
        self.decide(now);
        taken
    }

    fn on_syn(&mut self, now: Instant, first: u32, count: u32) -> Taken {
        match self.state {
            State::Listening => {
                let fits = (1..=MOST_PACKETS).contains(&count);
                if !fits || first.checked_add(count - 1).is_none() {
                    return Taken::Refused;
                }
                self.state = State::Receiving;
                self.first = first;
                self.progress = Progress::new(now, count);
            }
            State::Failed(_) => return Taken::Refused,
            _ if (first, count) != (self.first, self.progress.total) => return Taken::Refused,
            // The answer was lost.
            _ => {}
        }
        self.agrees = true;
        Taken::Control
    }

    fn on_data(&mut self, now: Instant, data: Data) -> Taken {
        let place = data.seq.checked_sub(self.first);
        let place = place.filter(|place| *place < self.progress.total);
        let Some(place) = place.filter(|_| !matches!(self.state, State::Failed(_))) else {
            return Taken::Refused;
        };
        self.stats.data_received += 1;
        let new = self.progress.missing.remove(place);
        if !new {
            self.stats.duplicates += 1;
            self.stats.duplicates_before_sweep += u64::from(self.stats.sweeps == 0);
            self.on_late_data(now);
        }
        self.progress.last_data = now;
        self.progress.highest = self.progress.highest.max(Some(place));
        self.reporter.on_data(now, place, &data);
        if new && self.progress.missing.is_empty() {
            self.complete(now);
        }
        match new {
            true => Taken::New,
            false => Taken::Duplicate,
        }
    }

    /// Nothing is missing any more: only that is left to report.
    fn complete(&mut self, now: Instant) {
        self.completed = Some(now);
        self.report = None;
        self.ends = true;
        self.state = State::Ending {
            last: now,
            left: REPEATS,
        };
    }

    /// A sender that still sends has not learned that the file is complete.
    fn on_late_data(&mut self, now: Instant) {
        if let State::Closed { last } = &mut self.state
            && now >= *last + ANSWER_WAIT
        {
            *last = now;
            self.ends = true;
        }
    }

    fn on_fin_ack(&mut self, first: u32) -> Taken {
        match self.state {
            State::Ending { last, .. } if first == self.first => {
                self.state = State::Closed { last };
                Taken::Control
            }
            State::Closed { .. } if first == self.first => Taken::Control,
            _ => Taken::Refused,
        }
    }

    /// Time has passed; an early call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.state {
            State::Receiving if now >= self.heard + GIVE_UP => {
                self.state = State::Failed(Failure::Silence);
                self.report = None;
            }
            State::Ending { last, left } if now >= last + ANSWER_WAIT => {
                self.state = match left.checked_sub(1) {
                    None => State::Closed { last },
                    Some(left) => {
                        self.ends = true;
                        State::Ending { last: now, left }
                    }
                };
            }
            _ => {}
        }
        self.decide(now);
    }

    /// Decides whether to send a report.
    fn decide(&mut self, now: Instant) {
        if self.state != State::Receiving {
            return;
        }
        if let Some(report) = self.reporter.poll(now, &self.progress) {
            self.stats.sweeps += u64::from(report.kind == NackKind::Sweep);
            self.reporter.on_report(now);
            self.report = Some(report);
        }
    }

    /// The next packet to send now. The bitmap of a NACK is written into `bitmap`; a report that does not fit goes on
    /// in the next one. 1,000 bytes are always enough.
    pub fn poll_transmit<'a>(
        &mut self,
        now: Instant,
        bitmap: &'a mut [u8],
    ) -> Option<Feedback<'a>> {
        if std::mem::take(&mut self.agrees) {
            return Some(Feedback::SynAck { first: self.first });
        }
        if std::mem::take(&mut self.ends) {
            return Some(Feedback::Fin { first: self.first });
        }
        let report = self.report.filter(|_| !bitmap.is_empty())?;
        let room = u32::try_from(bitmap.len()).unwrap_or(u32::MAX);
        let most = self.span.min(room.saturating_mul(8));
        let last = report.to.min(report.from.saturating_add(most - 1));
        self.report = (last < report.to).then_some(Report {
            from: last + 1,
            ..report
        });
        self.stats.nacks += 1;
        let count = last - report.from + 1;
        let bitmap = &mut bitmap[..count.div_ceil(8) as usize];
        bitmap.fill(0);
        for i in 0..count {
            if self.progress.missing.contains(report.from + i) {
                bitmap[i as usize / 8] |= 0x80 >> (i % 8);
            }
        }
        Some(Feedback::Nack(Nack {
            kind: report.kind,
            seq: self.first + report.from,
            count,
            bitmap,
            stamp: Stamp::of(now),
        }))
    }

    /// When `handle_timeout` is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Receiving => {
                let report = self.reporter.due(&self.progress);
                report.into_iter().chain([self.heard + GIVE_UP]).min()
            }
            State::Ending { last, .. } => Some(last + ANSWER_WAIT),
            State::Listening | State::Closed { .. } | State::Failed(_) => None,
        }
    }

    /// When the last missing packet arrived.
    pub fn completed(&self) -> Option<Instant> {
        self.completed
    }

    /// Packets of the file received so far, each counted once.
    pub fn held(&self) -> u32 {
        self.progress.total - self.progress.missing.count()
    }

    /// Why the connection ended without the file.
    pub fn failure(&self) -> Option<Failure> {
        match self.state {
            State::Failed(failure) => Some(failure),
            _ => None,
        }
    }

    /// The counters.
    pub fn stats(&self) -> &ClapReceiverStats {
        &self.stats
    }
}
