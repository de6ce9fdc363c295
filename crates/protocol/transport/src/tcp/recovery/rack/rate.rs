//! The delivery rate estimator (draft-cheng-iccrg-delivery-rate-estimation): what had been delivered when a segment
//! was sent, compared with what has been delivered when it arrives.
//!
//! A sample is the smaller of the send rate and the delivery rate, so neither a burst nor aggregated acknowledgments
//! make it larger than the path's rate. It underestimates the path if the sender had nothing to send.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use super::sent::Segment;

/// The state of the connection when a segment was sent.
#[derive(Clone, Copy, Debug)]
struct Departure {
    delivered: u64,
    delivered_at: Instant,
    /// When the first segment of the flight was sent that was acknowledged last.
    first_left: Instant,
    limited: bool,
}

/// The sample that the segments of one acknowledgment give.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    /// Segments delivered when the newest of these was sent, and by now.
    pub(super) prior: u64,
    pub(super) total: u64,
    /// How long their delivery took; none if that is shorter than any round trip.
    pub(super) interval: Option<Duration>,
    pub(super) limited: bool,
}

/// The estimator of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct DeliveryRate {
    /// The segment of the first entry.
    una: u64,
    departures: VecDeque<Departure>,
    delivered: u64,
    delivered_at: Instant,
    first_left: Instant,
    /// Samples are application-limited until this many segments are delivered.
    limited: Option<u64>,
    /// When the newest segment was sent that this acknowledgment reports as delivered, and its number.
    newest: Option<(Instant, u64)>,
}

impl DeliveryRate {
    /// A copy of `seq` is sent; `alone` if nothing else is in flight.
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

    /// `seq` was delivered; it is not below the last acknowledged number.
    pub(super) fn on_delivered(&mut self, seq: u64, segment: &Segment) {
        self.delivered += 1;
        if self.newest.is_none_or(|(left, _)| left <= segment.left) {
            self.newest = Some((segment.left, seq));
        }
    }

    /// Everything below `una` was delivered; returns the sample of this acknowledgment.
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

    /// The sender is limited by its application, or sends little on purpose, with `pipe` segments in flight.
    pub(super) fn limit(&mut self, pipe: u64) {
        self.limited = Some(self.delivered + pipe.max(1));
    }

    /// Whether the sender was limited by its application.
    pub(super) const fn is_limited(&self) -> bool {
        self.limited.is_some()
    }
}
