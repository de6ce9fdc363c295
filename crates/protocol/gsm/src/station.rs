//! One end of a radio link: both directions, and what each frame says about them.
//!
//! A frame is sent every few blocks and carries up to three things: a request for retransmission or an
//! acknowledgment, a poll or its answer, and information. In a real channel a station without news still reports its
//! state. Here it stops when its peer has had two times T1 to receive the report, so that an idle link costs the
//! simulator nothing.
//!
//! Information is lost in one way only: a station that hears nothing for longer than its persistence resets the link,
//! and its peer with it. Both return the information that was in flight.
//! Left out: negotiation, which is [`Negotiation`](crate::Negotiation)'s; DISC and REMAP; RNR, which no station here sends,
//! is read like RR.

use std::hash::{Hash, Hasher};

use airlane_base::{Duration, Instant};

use crate::frame::{Body, Frame, Header, Supervisory, Unnumbered};
use crate::parameters::Parameters;
use crate::receiver::{Arrival, Receiver};
use crate::sender::Sender;

/// The counters of a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames with information sent, each transmission counted.
    pub information: u64,
    /// Of these, retransmissions.
    pub repeated: u64,
    /// Polls sent.
    pub polls: u64,
    /// How often T1 expired.
    pub timeouts: u64,
    /// Frames received whose information was a duplicate.
    pub duplicates: u64,
    /// Frames received whose information was discarded: out of order at an end that buffers none, or before a reset.
    pub refused: u64,
    /// How often this station gave up and reset the link.
    pub resets: u64,
    /// Frames with information sent whose arrival was unknown when either station reset the link.
    pub abandoned: u64,
    /// How often the link was reset, by either station.
    pub anew: u64,
}

/// Counters do not affect behaviour, so stations that differ only in them are equal here.
impl Hash for Counts {
    fn hash<H: Hasher>(&self, _state: &mut H) {}
}

/// The state of a reset.
#[derive(Clone, Copy, Debug, Hash)]
enum Anew {
    /// SABM is sent next.
    Due,
    /// SABM is sent again at this time.
    Waits(Instant),
}

/// The length of a frame, blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lengths {
    /// With new information.
    pub full: u8,
    /// Without any.
    pub bare: u8,
}

/// One end of a link.
#[derive(Clone, Debug, Hash)]
pub struct Station<I> {
    parameters: Parameters,
    sender: Sender<I>,
    receiver: Receiver<I>,
    anew: Option<Anew>,
    /// UA is sent next.
    agrees: bool,
    /// The answer to a poll is sent next.
    answers: bool,
    /// V(R) has changed, or the peer does not know it.
    news: bool,
    /// Until when it reports its state.
    speaks_until: Option<Instant>,
    /// Whether frames may take longer than T1.
    cautious: bool,
    /// If so, the number of the reset that this end requests next, or has requested.
    mark: u8,
    /// The number of the last reset that the peer requested.
    asked: u8,
    /// Blocks of the longest of the peer's last frames, reduced by one with each frame. Until one arrives, the peer's
    /// frames are assumed to be as long as this end's shortest.
    heard: u8,
    /// The round trip of the last acknowledgment, until it is read.
    round_trip: Option<Duration>,
    abandoned: Vec<I>,
    counts: Counts,
}

impl<I: Clone> Station<I> {
    /// An end of a link whose parameters both ends have agreed on.
    pub fn new(parameters: Parameters) -> Self {
        Self {
            parameters,
            sender: Sender::new(parameters),
            receiver: Receiver::new(&parameters),
            anew: None,
            agrees: false,
            answers: false,
            news: false,
            speaks_until: None,
            cautious: false,
            mark: 1,
            asked: 0,
            heard: 0,
            round_trip: None,
            abandoned: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// If the delay of a link may exceed T1, an answer may belong to an earlier SABM, and a second SABM may arrive
    /// after the first was answered: one end would reset the link without the other. So resets are numbered: the end
    /// that requests one waits for its own answer, whatever the peer requests, and an end that gets the same request
    /// again answers it and continues. Such a station reports its state once, and again when polled.
    #[must_use]
    pub fn cautious(self) -> Self {
        Self {
            cautious: true,
            ..self
        }
    }

    /// The counters.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether new information could be sent.
    pub fn has_room(&self) -> bool {
        self.anew.is_none() && self.sender.has_room()
    }

    /// Whether something other than new information must be sent now.
    pub fn has_frames(&self, now: Instant) -> bool {
        self.owes()
            || self.anew.is_none()
                && (self.news || self.speaks_until.is_some_and(|until| now < until))
    }

    /// Whether something must be sent that cannot wait: anything but a report of this end's state.
    pub fn owes(&self) -> bool {
        let link = self.agrees || matches!(self.anew, Some(Anew::Due));
        let asks = self.receiver.has_requests() || self.sender.has_frames();
        link || self.anew.is_none() && (asks || self.answers)
    }

    /// Whether the peer does not know this end's state.
    pub fn has_news(&self) -> bool {
        self.anew.is_none() && self.news
    }

    /// The unacknowledged information, oldest first.
    pub fn unacknowledged(&self) -> impl Iterator<Item = &I> {
        self.sender.unacknowledged()
    }

    /// Sets the parameters that both ends have agreed on. The window does not shrink below what is in flight.
    pub fn set_parameters(&mut self, parameters: Parameters) {
        self.parameters = parameters;
        self.sender.set_parameters(parameters);
        self.receiver.set_parameters(&parameters);
    }

    /// The parameters that both ends have agreed on.
    pub fn parameters(&self) -> Parameters {
        self.parameters
    }

    /// Whether everything is acknowledged and nothing must be sent.
    pub fn is_settled(&self) -> bool {
        self.anew.is_none() && self.sender.is_idle() && !self.owes() && !self.news
    }

    /// Whether everything was sent and acknowledged.
    pub fn is_idle(&self, now: Instant) -> bool {
        self.anew.is_none() && self.sender.is_idle() && !self.has_frames(now)
    }

    /// When [`Self::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.anew {
            Some(Anew::Due) => None,
            Some(Anew::Waits(at)) => Some(at),
            None => {
                let sender = self.sender.poll_timeout();
                sender.into_iter().chain(self.receiver.poll_timeout()).min()
            }
        }
    }

    /// Runs the timers that have expired by now.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.anew {
            Some(Anew::Waits(at)) if at <= now => {
                self.counts.timeouts += 1;
                self.anew = Some(Anew::Due);
            }
            Some(_) => {}
            None => {
                self.receiver.handle_timeout(now);
                self.counts.timeouts += u64::from(self.sender.handle_timeout(now));
                if self.sender.gives_up(now) {
                    self.counts.resets += 1;
                    self.mark = self.mark % 3 + 1;
                    self.forget();
                    self.anew = Some(Anew::Due);
                }
            }
        }
    }

    /// The frame to send now, of the given length unless it repeats information. `fresh` supplies new information,
    /// and is called only if there is room. None if there is nothing to send.
    pub fn transmit(
        &mut self,
        now: Instant,
        blocks: Lengths,
        fresh: impl FnOnce() -> Option<I>,
    ) -> Option<Frame<I>> {
        let frame = |blocks, header, information| Frame {
            blocks,
            header,
            information,
        };
        let link = |what, command| Header {
            command,
            poll: true,
            body: Body::Unnumbered(what),
        };
        let beginning = |answers: bool, mark| Header {
            command: !answers,
            poll: true,
            body: Body::Beginning { answers, mark },
        };
        if self.heard == 0 {
            self.heard = blocks.bare;
        }
        if std::mem::take(&mut self.agrees) {
            let header = match self.cautious {
                true => beginning(true, self.asked),
                false => link(Unnumbered::Ua, false),
            };
            return Some(frame(blocks.bare, header, None));
        }
        match self.anew {
            Some(Anew::Due) => {
                let t1 = self.parameters.t1_between(blocks.bare, self.heard);
                self.anew = Some(Anew::Waits(now + t1));
                let header = match self.cautious {
                    true => beginning(false, self.mark),
                    false => link(Unnumbered::Sabm, true),
                };
                return Some(frame(blocks.bare, header, None));
            }
            Some(Anew::Waits(_)) => return None,
            None => {}
        }
        let answers = std::mem::take(&mut self.answers);
        // A request travels with information, if there is any.
        let patience = self.parameters.t1_between(blocks.full, self.heard);
        // An answer reports the state of this end, so it makes no request.
        let request = if answers {
            None
        } else if self.receiver.take_reject(now, patience) {
            Some((Supervisory::Reject, self.receiver.next()))
        } else {
            let missing = self.receiver.next_missing(now, patience);
            missing.map(|number| (Supervisory::SelectiveReject, number))
        };
        let polls = !answers && self.sender.take_poll(now, patience);
        self.counts.polls += u64::from(polls);
        let carried = if polls {
            None
        } else {
            self.sender.next(now, blocks.full, self.heard, fresh)
        };
        let speaks = self.news || self.speaks_until.is_some_and(|until| now < until);
        if carried.is_none() && request.is_none() && !polls && !answers && !speaks {
            return None;
        }
        let (says, about) = request.unwrap_or((Supervisory::Ready, self.receiver.next()));
        // A selective request acknowledges nothing.
        self.news &= says == Supervisory::SelectiveReject;
        self.counts.information += u64::from(carried.is_some());
        self.counts.repeated += u64::from(carried.as_ref().is_some_and(|sent| sent.again));
        let body = Body::Numbered {
            says,
            about,
            carries: carried.as_ref().map(|sent| sent.number),
        };
        let header = Header {
            command: !answers,
            poll: polls || answers,
            body,
        };
        Some(match carried {
            Some(sent) => frame(sent.blocks, header, Some(sent.information)),
            None => frame(blocks.bare, header, None),
        })
    }

    /// Takes a frame whose blocks all arrived; `give` receives information in the order in which the peer sent it.
    pub fn handle_frame(&mut self, now: Instant, frame: Frame<I>, mut give: impl FnMut(I)) {
        let Header {
            command,
            poll,
            body,
        } = frame.header;
        self.heard = frame.blocks.max(self.heard.saturating_sub(1));
        match body {
            Body::Unnumbered(Unnumbered::Sabm) => {
                if self.anew.take().is_none() {
                    self.forget();
                }
                self.agrees = true;
            }
            Body::Unnumbered(Unnumbered::Ua) => self.anew = None,
            Body::Beginning {
                answers: false,
                mark,
            } => {
                let again = std::mem::replace(&mut self.asked, mark) == mark;
                self.agrees = true;
                if self.anew.is_none() && !again {
                    self.forget();
                }
            }
            Body::Beginning { mark, .. } => {
                if mark == self.mark {
                    self.anew = None;
                }
            }
            Body::Unnumbered(_) => {}
            // Anything sent before the reset has no meaning after it.
            Body::Numbered { carries, .. } if self.anew.is_some() => {
                self.counts.refused += u64::from(carries.is_some());
            }
            Body::Numbered { about, carries, .. }
                if about.max(carries.unwrap_or(0)) >= self.parameters.numbers => {}
            Body::Numbered {
                says,
                about,
                carries,
            } => {
                if poll && !command {
                    self.sender.on_final(about);
                } else if !self.sender.waits() {
                    match says {
                        Supervisory::Ready | Supervisory::NotReady => {
                            if self.cautious {
                                self.round_trip = self.sender.round_trip(now, about);
                            }
                            self.sender.on_ready(about);
                        }
                        Supervisory::Reject => self.sender.on_reject(about),
                        Supervisory::SelectiveReject => {
                            self.sender.on_selective_reject(now, about, self.heard)
                        }
                    }
                }
                if let Some((number, information)) = carries.zip(frame.information) {
                    match self.receiver.take(number, information, &mut give) {
                        Arrival::New => {}
                        Arrival::Duplicate => self.counts.duplicates += 1,
                        Arrival::TooEarly => self.counts.refused += 1,
                    }
                    self.news = true;
                    let t1 = self.parameters.t1_between(frame.blocks, frame.blocks);
                    self.speaks_until = (!self.cautious).then(|| now + t1 * 2);
                }
                if poll && command {
                    self.receiver.on_poll();
                    self.answers = true;
                }
            }
        }
    }

    /// A frame of one block had to wait for others and is sent only now: its timers run from now.
    pub fn left(&mut self, header: Header, left: Instant) {
        let t1 = self.parameters.t1_between(1, self.heard);
        match header.body {
            Body::Numbered {
                says,
                about,
                carries,
            } => {
                if carries.is_some() || header.poll && header.command {
                    self.sender.left(carries, left, t1);
                }
                if says == Supervisory::SelectiveReject {
                    self.receiver.left(about, left + t1);
                }
            }
            Body::Beginning { answers: false, .. } => {
                self.anew = self.anew.map(|anew| match anew {
                    Anew::Waits(_) => Anew::Waits(left + t1),
                    Anew::Due => Anew::Due,
                });
            }
            Body::Beginning { .. } | Body::Unnumbered(_) => {}
        }
    }

    /// The round trip of the last acknowledged information, if not read yet.
    pub fn take_round_trip(&mut self) -> Option<Duration> {
        self.round_trip.take()
    }

    /// The information in flight when the link was reset, oldest first; it is unknown whether the peer has it.
    pub fn poll_abandoned(&mut self) -> Option<I> {
        self.abandoned.pop()
    }

    /// Blocks of the frames whose first transmission has a known outcome since the last call, and whether they were
    /// lost.
    pub fn fates(&mut self) -> impl Iterator<Item = (u8, bool)> {
        self.sender.fates.drain(..)
    }

    /// The peer has left: both ends are reset separately, without a handshake.
    pub fn leave(&mut self) {
        self.forget();
        (self.anew, self.agrees) = (None, false);
        (self.mark, self.asked) = (1, 0);
    }

    /// Resets both directions.
    fn forget(&mut self) {
        let lost = self.sender.reset();
        self.counts.anew += 1;
        self.counts.abandoned += lost.len() as u64;
        self.abandoned.splice(0..0, lost.into_iter().rev());
        self.receiver.reset();
        (self.answers, self.news, self.speaks_until) = (false, false, None);
    }
}
