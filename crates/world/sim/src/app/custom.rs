//! A flow with a user-supplied application ([`Application`]), over TCP or UDP.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};
use airlane_link::mobility::Hint;
use airlane_transport::{Endpoint, TcpConfig};

use super::datagrams::Datagrams;
use super::end::{End, under_way};
use super::exchange::Totals;
use super::place::FlowPlace;
use crate::custom::{Application, Delivery, Host};
use crate::packet::{Packet, Role};
use crate::probe::{DelayProbe, rate_bps};

#[derive(Debug)]
enum Transport {
    /// First end, second end.
    Tcp(Box<[End; 2]>),
    Udp {
        waiting: VecDeque<Packet>,
        /// Datagrams sent from each end.
        seq: [u64; 2],
        datagrams: Box<Datagrams>,
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
    /// When its ends first sent something, and when data was last sent or received.
    first_sent: Option<Instant>,
    last_active: Instant,
    delivered_bytes: u64,
    received: u64,
    /// Response times, as the application reports them.
    pub(crate) times: DelayProbe,
}

impl Custom {
    /// Uses TCP if given the phases of two clocks, UDP otherwise.
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
                datagrams: Box::default(),
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
            last_active: start,
            delivered_bytes: 0,
            received: 0,
            times: DelayProbe::default(),
        }
    }

    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        if self.stopped && self.is_tcp() {
            return;
        }
        let delivery = match &mut self.transport {
            Transport::Tcp(ends) => {
                self.received += u64::from(packet.role().is_data() && packet.asks().is_none());
                let end = End::of(packet);
                ends[end].handle_packet(now, packet);
                let read = ends[end].read();
                read.map(|len_bytes| Delivery {
                    end,
                    len_bytes,
                    delay: None,
                })
            }
            Transport::Udp { datagrams, .. } => {
                datagrams.arrive(now, packet);
                Some(Delivery {
                    end: usize::from(packet.to == self.place.nodes[1]),
                    len_bytes: u64::from(packet.len),
                    delay: Some(now.saturating_since(packet.created)),
                })
            }
        };
        // After the stop, only the fate of datagrams is still recorded.
        if let Some(delivery) = delivery
            && !self.stopped
        {
            self.delivered_bytes += delivery.len_bytes;
            self.last_active = now;
            self.call(now, |app, host| app.on_delivered(host, delivery));
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

    /// Calls the application, and carries out what it asked for.
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
            self.last_active = now;
            match &mut self.transport {
                Transport::Tcp(ends) => ends[end.min(1)].write(len_bytes),
                Transport::Udp { waiting, seq, .. } => {
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

    pub(super) fn stop(&mut self, now: Instant) {
        self.stopped = true;
        if let Transport::Udp { datagrams, .. } = &mut self.transport {
            datagrams.stop(now);
        }
    }

    pub(super) fn poll_transmit(&mut self, now: Instant, packet: &mut Packet) -> bool {
        if self.stopped {
            return false;
        }
        match &mut self.transport {
            Transport::Udp {
                waiting, datagrams, ..
            } => {
                let sent = packet.replace_by(waiting.pop_front());
                datagrams.sent += u64::from(sent);
                sent
            }
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

    /// The ends of its connections; none over UDP.
    pub(crate) fn ends(&self) -> &[End] {
        match &self.transport {
            Transport::Tcp(ends) => &**ends,
            Transport::Udp { .. } => &[],
        }
    }

    fn is_tcp(&self) -> bool {
        matches!(self.transport, Transport::Tcp(_))
    }

    /// Its datagrams, over UDP.
    pub(crate) fn datagrams(&self) -> Option<&Datagrams> {
        match &self.transport {
            Transport::Tcp(_) => None,
            Transport::Udp { datagrams, .. } => Some(datagrams),
        }
    }

    /// Delivered bits over the time from the first send to the last send or arrival, or to the stop if the
    /// application has not finished.
    pub(crate) fn throughput_bps(&self, stopped: Instant) -> Option<f64> {
        let end = match self.is_finished() {
            true => self.last_active,
            false => stopped,
        };
        rate_bps(self.delivered_bytes, end.saturating_since(self.first_sent?))
    }

    /// Delivered user bytes of both directions.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals {
            segments_received: self.received,
            ..Totals::default()
        };
        match &self.transport {
            Transport::Udp { datagrams, .. } => {
                totals.segments_sent = datagrams.sent;
                totals.segments_received = datagrams.received;
                totals.under_way = datagrams.under_way();
            }
            Transport::Tcp(ends) => {
                let [first, second] = &**ends;
                totals.under_way = under_way(first, second) + under_way(second, first);
                ends.iter().for_each(|end| totals.count(end));
            }
        }
        totals
    }
}
