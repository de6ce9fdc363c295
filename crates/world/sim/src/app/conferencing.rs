//! On/off speech over UDP (docs/spec/multi-service.md, 5.3).
//!
//! Talk and silence periods are exponential. While talking, packets leave at fixed intervals, the first at the start
//! of the period. The source starts talking. A talk period is rounded to whole intervals, at least one, and silence
//! begins at the end of the last interval, so packets are never closer than one interval. Hence a link that is faster
//! than the source never queues, and the delay of the raw service has no deviation, as published (XYL-Q-F5.5-1).
//!
//! The random stream depends on the seed but not on the repetition: every repetition carries the same conversation
//! over different errors.

use airlane_base::{Duration, Instant, Rng, Streams};

use super::datagrams::Datagrams;
use super::place::FlowPlace;
use super::progress::Progress;
use crate::packet::{Packet, Role};
use crate::probe::rate_bps;
use crate::scenario::{ConferencingConfig, FlowConfig};

/// When packets leave.
#[derive(Clone, Debug)]
pub(crate) struct Departures {
    interval: Duration,
    talk: Duration,
    silence: Duration,
    random: Rng,
    /// From this time on nothing leaves.
    end: Option<Instant>,
    /// When the next packet leaves.
    next: Option<Instant>,
    /// Packets of the current talk period that have not been sent; zero before the first period.
    remaining: u64,
}

impl Departures {
    /// Those of a conversation, drawn from the streams of traffic.
    pub(crate) fn of(flow: &FlowConfig, app: &ConferencingConfig, traffic: Streams) -> Self {
        let packet = app.packet.expect("resolved: every flow has a packet size");
        let start = Instant::ORIGIN + flow.start;
        Self {
            interval: app.rate.transmission_time(packet.as_bytes() as usize),
            talk: app.talk,
            silence: app.silence,
            random: traffic.stream(&format!("flow.{}.talk", flow.name)),
            end: app.lasts.map(|lasts| start + lasts),
            next: Some(start).filter(|_| app.lasts != Some(Duration::ZERO)),
            remaining: 0,
        }
    }

    fn draw(&mut self, mean: Duration) -> Duration {
        Duration::from_secs_f64(self.random.exponential(mean.as_secs_f64()))
    }
}

impl Iterator for Departures {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        let now = self.next?;
        if self.remaining == 0 {
            let intervals = self.draw(self.talk).as_secs_f64() / self.interval.as_secs_f64();
            self.remaining = ((intervals + 0.5) as u64).max(1);
        }
        self.remaining -= 1;
        let silence = if self.remaining == 0 {
            self.draw(self.silence)
        } else {
            Duration::ZERO
        };
        let next = now + self.interval + silence;
        self.next = Some(next).filter(|next| self.end.is_none_or(|end| *next < end));
        Some(now)
    }
}

/// One speaker and one listener.
#[derive(Clone, Debug)]
pub(crate) struct Conferencing {
    place: FlowPlace,
    len: u32,
    start: Instant,
    departures: Departures,
    due: bool,
    pub(crate) datagrams: Datagrams,
    /// Bytes received before the stop.
    bytes: u64,
    /// Present if the scenario asks for it.
    pub(crate) progress: Option<Box<Progress>>,
}

impl Conferencing {
    pub(crate) fn new(place: FlowPlace, start: Instant, len: u32, departures: Departures) -> Self {
        Self {
            place,
            len,
            start,
            departures,
            due: false,
            datagrams: Datagrams::default(),
            bytes: 0,
            progress: None,
        }
    }

    #[inline]
    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        self.datagrams.arrive(now, packet);
        if self.departures.end.is_none_or(|end| now <= end) {
            self.bytes = self.datagrams.bytes;
        }
        if let Some(progress) = &mut self.progress {
            progress.on_arrived(now, packet.created, packet.len.into());
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.departures.next.is_some_and(|next| next <= now) {
            self.departures.next();
            self.due = true;
        }
    }

    pub(super) fn stop(&mut self, now: Instant) {
        if let Some(progress) = &mut self.progress {
            progress.stop(now);
        }
        self.datagrams.stop(now);
        self.departures.next = None;
        self.due = false;
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, packet: &mut Packet) -> bool {
        if !std::mem::take(&mut self.due) {
            return false;
        }
        *packet = self
            .place
            .forward(now, Role::Datagram, self.datagrams.sent, self.len);
        self.datagrams.sent += 1;
        if let Some(progress) = &mut self.progress {
            progress.on_sent(now);
        }
        true
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.departures.next
    }

    pub(super) fn is_finished(&self) -> bool {
        false
    }

    pub(super) fn place(&self) -> &FlowPlace {
        &self.place
    }

    /// Bits received before the stop, over the time that the application was on.
    pub(crate) fn throughput_bps(&self, stopped: Instant) -> Option<f64> {
        let end = self.departures.end.map_or(stopped, |end| end.min(stopped));
        rate_bps(self.bytes, end.saturating_since(self.start))
    }
}
