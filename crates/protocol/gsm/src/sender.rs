//! The information that a station keeps until it is acknowledged, and when it polls the peer.

use airlane_base::{Duration, Instant, SeqSpace};

use crate::parameters::{Parameters, Persistence};

/// T1 exceeds the round trip by this, for frames of any length (Ludwig et al. have round trips of 0.28 s).
const MARGIN: Duration = Duration::from_millis(200);

/// Information that is not acknowledged yet.
#[derive(Clone, Debug, Hash)]
struct Unacknowledged<I> {
    information: I,
    blocks: u8,
    first: Instant,
    last: Instant,
    /// How often it was sent.
    sent: u32,
    /// Whether it must be retransmitted.
    again: bool,
}

/// Information in flight, in a window below V(S).
#[derive(Clone, Debug, Hash)]
pub(crate) struct Sender<I> {
    parameters: Parameters,
    space: SeqSpace,
    /// V(A): everything below is acknowledged.
    acknowledged: u8,
    /// V(S): the next new number.
    next: u8,
    kept: Vec<Option<Unacknowledged<I>>>,
    /// How many of them must be retransmitted.
    again: u32,
    t1: Option<Instant>,
    /// When T1 would have expired that a request has stopped. T1 goes on if the requested frame arrives before it was
    /// retransmitted: otherwise nothing would request the frames after it.
    stopped: Option<Instant>,
    /// The polls sent since the first unanswered one, if one is unanswered or due.
    polls: Option<u32>,
    poll_due: bool,
    /// Blocks of the frames whose outcome is known, and whether they were lost.
    pub(crate) fates: Vec<(u8, bool)>,
}

/// The information of a frame.
#[derive(Debug)]
pub(crate) struct Sent<I> {
    pub(crate) number: u8,
    pub(crate) blocks: u8,
    pub(crate) information: I,
    /// Whether it is a retransmission.
    pub(crate) again: bool,
}

impl<I: Clone> Sender<I> {
    pub(crate) fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            space: parameters.space(),
            acknowledged: 0,
            next: 0,
            kept: vec![None; parameters.numbers.into()],
            again: 0,
            t1: None,
            stopped: None,
            polls: None,
            poll_due: false,
            fates: Vec::new(),
        }
    }

    fn outstanding(&self) -> u8 {
        self.space
            .distance(self.next.into(), self.acknowledged.into()) as u8
    }

    /// Whether new information may be sent.
    pub(crate) fn has_room(&self) -> bool {
        !self.waits() && self.outstanding() < self.parameters.window
    }

    /// Whether something must be sent before new information.
    pub(crate) fn has_frames(&self) -> bool {
        self.poll_due || self.again > 0 && !self.waits()
    }

    /// The unacknowledged information, oldest first.
    pub(crate) fn unacknowledged(&self) -> impl Iterator<Item = &I> {
        let kept = self
            .numbers()
            .filter_map(|number| self.kept[usize::from(number)].as_ref());
        kept.map(|kept| &kept.information)
    }

    /// New parameters apply from now on, as far as the information in flight allows.
    pub(crate) fn set_parameters(&mut self, parameters: Parameters) {
        self.parameters = parameters;
    }

    /// Whether nothing is unacknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.acknowledged == self.next
    }

    /// Takes a due poll, which carries no information.
    pub(crate) fn take_poll(&mut self, now: Instant, t1: Duration) -> bool {
        let due = std::mem::take(&mut self.poll_due);
        if due {
            self.polls = self.polls.map(|polls| polls + 1);
            self.t1 = Some(now + t1);
        }
        due
    }

    /// The information of the next frame: the oldest to be retransmitted, or new information. The peer's frames have
    /// `heard` blocks.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        blocks: u8,
        heard: u8,
        fresh: impl FnOnce() -> Option<I>,
    ) -> Option<Sent<I>> {
        // The answer to a poll covers what was sent before it. Information sent after the poll would be sent twice,
        // and with 61 of 62 numbers in flight a receiver would take the second copy for a number ahead.
        if self.waits() {
            return None;
        }
        let sent = self.again(now).or_else(|| {
            let information = self.has_room().then(fresh)??;
            let number = self.next;
            self.next = self.space.next(number.into()) as u8;
            self.kept[usize::from(number)] = Some(Unacknowledged {
                information: information.clone(),
                blocks,
                first: now,
                last: now,
                sent: 1,
                again: false,
            });
            Some(Sent {
                number,
                blocks,
                information,
                again: false,
            })
        })?;
        self.t1 = Some(now + self.parameters.t1_between(sent.blocks, heard));
        self.stopped = None;
        Some(sent)
    }

    fn again(&mut self, now: Instant) -> Option<Sent<I>> {
        if self.again == 0 {
            return None;
        }
        let number = self.numbers().find(|number| {
            let kept = self.kept[usize::from(*number)].as_ref();
            kept.is_some_and(|kept| kept.again)
        })?;
        let kept = self.kept[usize::from(number)].as_mut()?;
        kept.again = false;
        kept.sent += 1;
        kept.last = now;
        self.again -= 1;
        Some(Sent {
            number,
            blocks: kept.blocks,
            information: kept.information.clone(),
            again: true,
        })
    }

    /// A frame with this information, or a poll, was sent only now.
    pub(crate) fn left(&mut self, number: Option<u8>, left: Instant, t1: Duration) {
        if let Some(number) = number
            && let Some(kept) = &mut self.kept[usize::from(number)]
        {
            kept.last = left;
        }
        self.t1 = self.t1.map(|_| left + t1);
    }

    /// The round trip of the newest information that this acknowledges. Information that waited for a retransmission
    /// arrived long before it was acknowledged.
    pub(crate) fn round_trip(&self, now: Instant, about: u8) -> Option<Duration> {
        if !self.is_known(about) {
            return None;
        }
        let mut newest = None;
        for number in self.numbers().take_while(|number| *number != about) {
            let kept = self.kept[usize::from(number)].as_ref();
            newest = Some(kept.filter(|kept| kept.sent == 1 && !kept.again)?.last);
        }
        newest.map(|left| now.saturating_since(left))
    }

    /// The unacknowledged numbers, oldest first.
    fn numbers(&self) -> impl Iterator<Item = u8> + use<I> {
        let from = u32::from(self.acknowledged);
        let space = self.space;
        (0..u32::from(self.outstanding())).map(move |at| space.add(from, at) as u8)
    }

    /// Whether the peer may refer to this number.
    fn is_known(&self, number: u8) -> bool {
        let ahead = self.space.distance(number.into(), self.acknowledged.into());
        ahead <= self.outstanding().into()
    }

    /// Whether only an answer to a poll counts.
    pub(crate) fn waits(&self) -> bool {
        self.polls.is_some()
    }

    /// Everything below was received. False if no correct peer says so.
    pub(crate) fn on_ready(&mut self, about: u8) -> bool {
        if !self.is_known(about) {
            return false;
        }
        while self.acknowledged != about {
            if let Some(kept) = self.kept[usize::from(self.acknowledged)].take() {
                self.again -= u32::from(kept.again);
                if kept.sent == 1 {
                    self.fates.push((kept.blocks, false));
                }
            }
            self.acknowledged = self.space.next(self.acknowledged.into()) as u8;
        }
        if self.is_idle() {
            (self.t1, self.stopped) = (None, None);
        } else if self.again == 0 && self.t1.is_none() {
            self.t1 = self.stopped.take();
        }
        true
    }

    /// Everything below was received, and the rest must be retransmitted.
    pub(crate) fn on_reject(&mut self, about: u8) {
        if self.on_ready(about) {
            self.numbers().for_each(|number| self.mark(number));
        }
    }

    /// This number must be retransmitted, unless it was sent too recently for the request to know of it.
    pub(crate) fn on_selective_reject(&mut self, now: Instant, about: u8, heard: u8) {
        let kept = self.kept[usize::from(about)].as_ref();
        let knows = kept.is_some_and(|kept| {
            let t1 = self.parameters.t1_between(kept.blocks, heard);
            // Every request knows of the first transmission.
            kept.sent == 1 || now >= kept.last + t1.saturating_sub(MARGIN)
        });
        if knows && self.is_known(about) && about != self.next {
            self.mark(about);
            self.stopped = self.t1.take().or(self.stopped);
        }
    }

    /// The answer to a poll.
    pub(crate) fn on_final(&mut self, about: u8) {
        if self.polls.is_some() && self.is_known(about) {
            self.polls = None;
            self.poll_due = false;
            (self.t1, self.stopped) = (None, None);
            self.on_reject(about);
        }
    }

    fn mark(&mut self, number: u8) {
        if let Some(kept) = &mut self.kept[usize::from(number)]
            && !kept.again
        {
            kept.again = true;
            self.again += 1;
            if kept.sent == 1 {
                self.fates.push((kept.blocks, true));
            }
        }
    }

    /// Whether T1 has expired by now and had not before.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        let due = self.t1.is_some_and(|at| at <= now);
        if due {
            self.t1 = None;
            self.poll_due = true;
            self.polls.get_or_insert(0);
        }
        due
    }

    /// Whether the peer has not answered for so long that the link must be reset.
    pub(crate) fn gives_up(&self, now: Instant) -> bool {
        match self.parameters.persistence {
            Persistence::Polls(most) => self.poll_due && self.polls > Some(most),
            Persistence::Frames(most) => {
                let kept = &self.kept[usize::from(self.acknowledged)];
                let often = kept
                    .as_ref()
                    .is_some_and(|kept| kept.again && kept.sent > most);
                often || self.poll_due && self.polls > Some(most)
            }
            Persistence::Time(_) => self.gives_up_at().is_some_and(|at| at <= now),
        }
    }

    fn gives_up_at(&self) -> Option<Instant> {
        let Persistence::Time(bound) = self.parameters.persistence else {
            return None;
        };
        let oldest = self.kept[usize::from(self.acknowledged)].as_ref()?;
        Some(oldest.first + bound)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.t1.into_iter().chain(self.gives_up_at()).min()
    }

    /// Discards everything; returns the information whose outcome is unknown.
    pub(crate) fn reset(&mut self) -> Vec<I> {
        let lost = self.numbers().collect::<Vec<_>>();
        let lost = lost
            .into_iter()
            .filter_map(|number| self.kept[usize::from(number)].take());
        let lost = lost.map(|kept| kept.information).collect();
        *self = Self::new(self.parameters);
        lost
    }
}
