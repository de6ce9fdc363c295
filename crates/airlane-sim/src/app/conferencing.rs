//! On/off speech over UDP (the specification, 5.3).
//!
//! Talk and silence are exponential; while talking, packets leave at fixed intervals, the first at
//! the start of the period. The source starts talking. Its stream of random numbers depends on the
//! seed but not on the repetition: every repetition hears the same conversation over other errors.

use airlane_base::{Duration, Instant, Rng};

use super::Place;
use crate::packet::{Packet, Role};
use crate::probe::DelayProbe;

/// One speaker and one listener.
#[derive(Clone, Debug)]
pub(crate) struct Conferencing {
    place: Place,
    len: u32,
    interval: Duration,
    talk: Duration,
    silence: Duration,
    random: Rng,
    /// When the next packet leaves.
    next: Option<Instant>,
    /// When the current talk period ends.
    talk_until: Instant,
    started: bool,
    due: bool,
    pub(crate) sent: u64,
    pub(crate) delays: DelayProbe,
}

impl Conferencing {
    pub(crate) fn new(
        place: Place,
        start: Instant,
        len: u32,
        interval: Duration,
        [talk, silence]: [Duration; 2],
        random: Rng,
    ) -> Self {
        Self {
            place,
            len,
            interval,
            talk,
            silence,
            random,
            next: Some(start),
            talk_until: start,
            started: false,
            due: false,
            sent: 0,
            delays: DelayProbe::default(),
        }
    }

    #[inline]
    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        self.delays.record(now.saturating_since(packet.created));
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        let Some(next) = self.next else { return };
        if next > now {
            return;
        }
        if !self.started {
            self.started = true;
            self.begin_talking(next);
        }
        self.due = true;
        let mut next = next + self.interval;
        if next >= self.talk_until {
            next = self.talk_until + self.draw(self.silence);
            self.begin_talking(next);
        }
        self.next = Some(next);
    }

    /// A talk period starts at `at`. A source without silence talks for ever.
    fn begin_talking(&mut self, at: Instant) {
        self.talk_until = if self.silence == Duration::ZERO {
            Instant::FAR_FUTURE
        } else {
            at + self.draw(self.talk)
        };
    }

    fn draw(&mut self, mean: Duration) -> Duration {
        Duration::from_secs_f64(self.random.exponential(mean.as_secs_f64()))
    }

    pub(super) fn stop(&mut self, _now: Instant) {
        self.next = None;
        self.due = false;
    }

    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Packet> {
        if !self.due {
            return None;
        }
        self.due = false;
        let packet = self.place.forward(now, Role::Datagram, self.sent, self.len);
        self.sent += 1;
        Some(packet)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    pub(super) fn is_finished(&self) -> bool {
        false
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn packet_len(&self) -> u32 {
        self.len
    }
}
