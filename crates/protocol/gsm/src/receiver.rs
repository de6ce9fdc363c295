//! The information that a station has received from its peer, and what it requests.

use airlane_base::{Duration, Instant, SeqSpace};

use crate::parameters::{Parameters, Repair};

/// The state of a number ahead of V(R).
#[derive(Clone, Debug, Hash)]
enum Place<I> {
    /// Nothing is known about it.
    Unknown,
    /// It is missing and must be requested.
    Missing,
    /// It was requested, and will be requested again at this time.
    Asked(Instant),
    /// It was received.
    Here(I),
}

/// What became of received information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It was delivered or buffered.
    New,
    /// It had been received before.
    Duplicate,
    /// Discarded: it will be sent again after the information missing before it.
    TooEarly,
}

/// Information from the peer, in a window that starts at V(R).
#[derive(Clone, Debug, Hash)]
pub(crate) struct Receiver<I> {
    window: u8,
    repair: Repair,
    space: SeqSpace,
    /// V(R): everything below was received.
    next: u8,
    places: Vec<Place<I>>,
    /// How many of them are missing and must be requested.
    missing: u32,
    /// How many were requested.
    asked: u32,
    /// A request for everything from V(R) on: due now, or at the given time again.
    reject: Option<Option<Instant>>,
}

impl<I> Receiver<I> {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        Self {
            window: parameters.window,
            repair: parameters.repair,
            space: parameters.space(),
            next: 0,
            places: (0..parameters.numbers).map(|_| Place::Unknown).collect(),
            missing: 0,
            asked: 0,
            reject: None,
        }
    }

    /// New parameters apply from now on.
    pub(crate) fn set_parameters(&mut self, parameters: &Parameters) {
        (self.window, self.repair) = (parameters.window, parameters.repair);
    }

    /// V(R).
    pub(crate) fn next(&self) -> u8 {
        self.next
    }

    /// Takes information; `give` receives what can be delivered.
    pub(crate) fn take(&mut self, number: u8, information: I, mut give: impl FnMut(I)) -> Arrival {
        let ahead = self.space.distance(number.into(), self.next.into());
        if ahead >= u32::from(self.window) {
            return Arrival::Duplicate;
        }
        if ahead > 0 && self.repair == Repair::GoBack {
            self.reject.get_or_insert(None);
            return Arrival::TooEarly;
        }
        if matches!(self.places[usize::from(number)], Place::Here(_)) {
            return Arrival::Duplicate;
        }
        self.put(number, Place::Here(information));
        if ahead > 0 {
            for before in 0..ahead {
                let before = self.space.add(self.next.into(), before) as u8;
                if matches!(self.places[usize::from(before)], Place::Unknown) {
                    self.put(before, Place::Missing);
                }
            }
            return Arrival::New;
        }
        self.reject = None;
        while let Some(information) = self.take_next() {
            give(information);
        }
        Arrival::New
    }

    /// Removes the information at V(R), if it was received, and advances V(R).
    fn take_next(&mut self) -> Option<I> {
        if !matches!(self.places[usize::from(self.next)], Place::Here(_)) {
            return None;
        }
        let Place::Here(information) = self.put(self.next, Place::Unknown) else {
            unreachable!("the place was looked at above")
        };
        self.next = self.space.next(self.next.into()) as u8;
        Some(information)
    }

    /// Replaces the state of a number; returns the old state.
    fn put(&mut self, number: u8, place: Place<I>) -> Place<I> {
        self.missing += u32::from(matches!(place, Place::Missing));
        self.asked += u32::from(matches!(place, Place::Asked(_)));
        let before = std::mem::replace(&mut self.places[usize::from(number)], place);
        self.missing -= u32::from(matches!(before, Place::Missing));
        self.asked -= u32::from(matches!(before, Place::Asked(_)));
        before
    }

    fn numbers(&self) -> impl Iterator<Item = u8> + use<I> {
        let from = u32::from(self.next);
        let space = self.space;
        (0..u32::from(self.window)).map(move |at| space.add(from, at) as u8)
    }

    /// Whether there is something to request.
    pub(crate) fn has_requests(&self) -> bool {
        self.missing > 0 || self.reject == Some(None)
    }

    /// The next number to request selectively, oldest first. An answer may take as long as `patience`.
    pub(crate) fn next_missing(&mut self, now: Instant, patience: Duration) -> Option<u8> {
        if self.missing == 0 {
            return None;
        }
        let number = self
            .numbers()
            .find(|number| matches!(self.places[usize::from(*number)], Place::Missing))?;
        self.put(number, Place::Asked(now + patience));
        Some(number)
    }

    /// A request for this number was sent only now.
    pub(crate) fn left(&mut self, number: u8, patience_ends: Instant) {
        if let Place::Asked(until) = &mut self.places[usize::from(number)] {
            *until = patience_ends;
        }
    }

    /// Whether to request everything from V(R) on.
    pub(crate) fn take_reject(&mut self, now: Instant, patience: Duration) -> bool {
        let due = self.reject == Some(None);
        if due {
            self.reject = Some(Some(now + patience));
        }
        due
    }

    /// The peer polls: information received out of order is discarded, because it will be sent again.
    pub(crate) fn on_poll(&mut self) {
        self.places
            .iter_mut()
            .for_each(|place| *place = Place::Unknown);
        (self.missing, self.asked, self.reject) = (0, 0, None);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.asked > 0 {
            for number in self.numbers() {
                if matches!(self.places[usize::from(number)], Place::Asked(at) if at <= now) {
                    self.put(number, Place::Missing);
                }
            }
        }
        if matches!(self.reject, Some(Some(at)) if at <= now) {
            self.reject = Some(None);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let asked = (self.asked > 0).then(|| {
            let asked = self.places.iter().filter_map(|place| match place {
                Place::Asked(at) => Some(*at),
                _ => None,
            });
            asked.min()
        });
        let reject = self.reject.flatten();
        asked.flatten().into_iter().chain(reject).min()
    }

    pub(crate) fn reset(&mut self) {
        self.on_poll();
        self.next = 0;
    }
}
