//! A flow whose application somebody else wrote ([`Application`]), over TCP or UDP.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};
use airlane_link::mobility::Hint;
use airlane_transport::{Endpoint, TcpConfig};

use super::end::End;
use super::exchange::Totals;
use super::place::FlowPlace;
use crate::custom::{Application, Delivery, Host};
use crate::packet::{Packet, Role};
use crate::probe::DelayProbe;

#[derive(Debug)]
enum Transport {
    /// The first end, the second.
    Tcp(Box<[End; 2]>),
    Udp {
        waiting: VecDeque<Packet>,
        /// Datagrams sent from each end.
        seq: [u64; 2],
    },
}

/// One application with its endpoints.
#[derive(Debug)]
pub(crate) struct Custom {
    place: FlowPlace,
    start: Instant,
    started: bool,
    stopped: bool,
    packet_len: u32,
    app: Box<dyn Application>,
    host: Host,
    transport: Transport,
    first_sent: Option<Instant>,
    last_delivered: Option<Instant>,
    delivered_bytes: u64,
    received: u64,
    /// The delays of datagrams.
    pub(crate) delays: DelayProbe,
    /// Of responses, as the application says.
    pub(crate) times: DelayProbe,
}

impl Custom {
    /// Over TCP with the phases of two clocks, otherwise over UDP.
    pub(crate) fn new(
        place: FlowPlace,
        start: Instant,
        packet_len: u32,
        app: Box<dyn Application>,
        tcp: Option<(&TcpConfig, [Duration; 2])>,
    ) -> Self {
        let transport = match tcp {
            None => Transport::Udp {
                waiting: VecDeque::new(),
                seq: [0; 2],
            },
            Some((config, phases)) => {
                let end = |end: usize| End::new(config, place, packet_len, phases[end], end, 0);
                Transport::Tcp(Box::new([0, 1].map(end)))
            }
        };
        Self {
            place,
            start,
            started: false,
            stopped: false,
            packet_len,
            app,
            host: Host::default(),
            transport,
            first_sent: None,
            last_delivered: None,
            delivered_bytes: 0,
            received: 0,
            delays: DelayProbe::default(),
            times: DelayProbe::default(),
        }
    }

    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        if self.stopped && self.is_tcp() {
            return;
        }
        let delivery = match &mut self.transport {
            Transport::Tcp(ends) => {
                self.received += u64::from(packet.role().carries_data());
                let end = End::of(packet);
                ends[end].handle_packet(now, packet);
                let read = ends[end].read();
                read.map(|len_bytes| Delivery {
                    end,
                    len_bytes,
                    delay: None,
                })
            }
            Transport::Udp { .. } => {
                let delay = now.saturating_since(packet.created);
                self.delays.record(delay);
                self.received += 1;
                Some(Delivery {
                    end: usize::from(packet.to == self.place.nodes[1]),
                    len_bytes: u64::from(packet.len),
                    delay: Some(delay),
                })
            }
        };
        if let Some(delivery) = delivery {
            self.delivered_bytes += delivery.len_bytes;
            self.last_delivered = Some(now);
            if !self.stopped {
                self.call(now, |app, host| app.on_delivered(host, delivery));
            }
        }
    }

    pub(super) fn handle_destroyed(&mut self, packet: &Packet) {
        if let Transport::Tcp(ends) = &mut self.transport {
            ends[End::of(packet)].handle_destroyed(packet);
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.stopped {
            return;
        }
        if !self.started {
            if now < self.start {
                return;
            }
            self.started = true;
            self.call(now, |app, host| app.on_start(host));
        }
        if let Transport::Tcp(ends) = &mut self.transport {
            for end in ends.iter_mut() {
                end.handle_timeout(now);
            }
        }
        if self.host.timer.is_some_and(|at| at <= now) {
            self.host.timer = None;
            self.call(now, |app, host| app.on_timer(host));
        }
    }

    /// Lets the application act, and does what it wants.
    fn call(&mut self, now: Instant, act: impl FnOnce(&mut dyn Application, &mut Host)) {
        self.host.now = now;
        act(&mut *self.app, &mut self.host);
        for duration in self.host.responses.drain(..) {
            self.times.record(duration);
        }
        for (end, len_bytes) in self.host.sends.drain(..) {
            if len_bytes == 0 {
                continue;
            }
            self.first_sent.get_or_insert(now);
            match &mut self.transport {
                Transport::Tcp(ends) => ends[end.min(1)].write(len_bytes),
                Transport::Udp { waiting, seq } => {
                    let mut rest = len_bytes;
                    while rest > 0 {
                        let len = rest.min(u64::from(self.packet_len.max(1))) as u32;
                        rest -= u64::from(len);
                        let number = seq[end.min(1)];
                        seq[end.min(1)] += 1;
                        waiting.push_back(match end {
                            0 => self.place.forward(now, Role::Datagram, number, len),
                            _ => self.place.backward(now, Role::Datagram, number, len),
                        });
                    }
                }
            }
        }
    }

    pub(super) fn handle_hint(&mut self, now: Instant, end: usize, hint: Hint<()>) {
        if let Transport::Tcp(ends) = &mut self.transport {
            ends[end].handle_hint(now, hint);
        }
    }

    pub(super) fn stop(&mut self, _now: Instant) {
        self.stopped = true;
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, packet: &mut Packet) -> bool {
        if self.stopped {
            return false;
        }
        match &mut self.transport {
            Transport::Udp { waiting, .. } => packet.replace_by(waiting.pop_front()),
            Transport::Tcp(ends) => ends.iter_mut().any(|end| end.poll_transmit(now, packet)),
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.stopped {
            return None;
        }
        if !self.started {
            return Some(self.start);
        }
        let timers = self.ends().iter().map(|end| end.poll_timeout());
        timers.flatten().chain(self.host.timer).min()
    }

    pub(super) fn is_finished(&self) -> bool {
        let mut ends = self.ends().iter();
        self.host.finished && ends.all(|end| end.endpoint().is_acknowledged())
    }

    pub(super) fn place(&self) -> &FlowPlace {
        &self.place
    }

    /// The ends of its connections; there are none over UDP.
    pub(crate) fn ends(&self) -> &[End] {
        match &self.transport {
            Transport::Tcp(ends) => &**ends,
            Transport::Udp { .. } => &[],
        }
    }

    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self.transport, Transport::Tcp(_))
    }

    /// Delivered bits per second, from the first that was sent to the last that arrived.
    pub(crate) fn throughput_bps(&self) -> Option<f64> {
        let time = self.last_delivered?.saturating_since(self.first_sent?);
        (time > Duration::ZERO).then(|| self.delivered_bytes as f64 * 8.0 / time.as_secs_f64())
    }

    /// Counters of both directions.
    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals {
            segments_received: self.received,
            delivered_bytes: self.delivered_bytes,
            ..Totals::default()
        };
        if let Transport::Udp { seq, .. } = &self.transport {
            totals.segments_sent = seq.iter().sum();
        }
        for end in self.ends() {
            totals.count(end);
        }
        totals
    }
}
