//! How fast the path delivers (draft-cheng-iccrg-delivery-rate-estimation): what had been delivered when a segment
//! left, against what has been when it has come.
//!
//! A sample is the slower of the rates of departures and of arrivals, so that neither a burst nor acknowledgments
//! that come together make it larger than the path. Where the sender had nothing to send, it says less.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use super::sent::Segment;

/// What stood when a segment left.
#[derive(Clone, Copy, Debug)]
struct Departure {
    delivered: u64,
    delivered_at: Instant,
    /// When the first of the flight left that was acknowledged last.
    first_left: Instant,
    limited: bool,
}

/// What the segments of one acknowledgment say together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    /// Segments delivered when the newest of these left, and by now.
    pub(super) prior: u64,
    pub(super) total: u64,
    /// The time that they took; none if that is shorter than a round trip can be.
    pub(super) interval: Option<Duration>,
    pub(super) limited: bool,
}

/// The account of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct DeliveryRate {
    /// Number of the first entry.
    una: u64,
    departures: VecDeque<Departure>,
    delivered: u64,
    delivered_at: Instant,
    first_left: Instant,
    /// Until so many are delivered, samples say too little.
    limited: Option<u64>,
    /// When the newest left that the present acknowledgment shows to have come, and its number.
    newest: Option<(Instant, u64)>,
}

impl DeliveryRate {
    /// A copy of `seq` leaves; `alone` if nothing else is on its way.
    pub(super) fn on_sent(&mut self, now: Instant, seq: u64, alone: bool) {
        if alone {
            self.first_left = now;
            self.delivered_at = now;
        }
        let departure = Departure {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_left: self.first_left,
            limited: self.limited.is_some(),
        };
        let place = seq.checked_sub(self.una);
        match place.and_then(|place| self.departures.get_mut(place as usize)) {
            Some(known) => *known = departure,
            None => self.departures.push_back(departure),
        }
    }

    /// `seq`, which is not below what was acknowledged before, has come.
    pub(super) fn on_delivered(&mut self, seq: u64, segment: &Segment) {
        self.delivered += 1;
        if self.newest.is_none_or(|(left, _)| left <= segment.left) {
            self.newest = Some((segment.left, seq));
        }
    }

    /// Everything below `una` has come; what this acknowledgment says of the rate.
    pub(super) fn finish(
        &mut self,
        now: Instant,
        una: u64,
        shortest: Option<Duration>,
    ) -> Option<Delivered> {
        let newest = self.newest.take().and_then(|(left, seq)| {
            let place = seq.checked_sub(self.una)?;
            Some((left, *self.departures.get(place as usize)?))
        });
        while self.una < una && self.departures.pop_front().is_some() {
            self.una += 1;
        }
        if self.limited.is_some_and(|until| self.delivered > until) {
            self.limited = None;
        }
        let (left, newest) = newest?;
        self.delivered_at = now;
        self.first_left = left;
        let sending = left.saturating_since(newest.first_left);
        let arriving = now.saturating_since(newest.delivered_at);
        let interval = sending.max(arriving);
        Some(Delivered {
            prior: newest.delivered,
            total: self.delivered,
            interval: Some(interval).filter(|it| shortest.is_none_or(|shortest| *it >= shortest)),
            limited: newest.limited,
        })
    }

    /// Nothing is left to send though more could be, or little is sent on purpose, with `pipe` on their way.
    pub(super) fn limit(&mut self, pipe: u64) {
        self.limited = Some(self.delivered + pipe.max(1));
    }

    /// Whether nothing was left to send.
    pub(super) const fn is_limited(&self) -> bool {
        self.limited.is_some()
    }
}
