//! File transfer: a greedy source over one TCP connection (docs/spec/multi-service.md, 5.1).

use airlane_base::{Duration, Instant, Rate};
use airlane_link::mobility::Hint;
use airlane_transport::{Endpoint, TcpConfig};

use super::end::End;
use super::place::FlowPlace;
use super::progress::Progress;
use crate::packet::{Packet, Role};
use crate::probe::DelayProbe;

/// A file transfer in progress.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    place: FlowPlace,
    start: Instant,
    started: bool,
    stopped: bool,
    /// Rate at which the receiving application consumes data; without one, it consumes at once.
    takes: Option<Rate>,
    /// Until when it is consuming the data that it read last.
    busy: Instant,
    /// Sender, receiver.
    ends: [End; 2],
    /// From sending to arrival, for each segment that arrived.
    pub(crate) delays: DelayProbe,
    /// Present if the scenario asks for it.
    pub(crate) progress: Option<Box<Progress>>,
    /// When the receiving application last got data, and the longest time between two such reads.
    last_read: Option<Instant>,
    longest_pause: Duration,
}

impl Bulk {
    pub(crate) fn new(
        place: FlowPlace,
        start: Instant,
        config: &TcpConfig,
        segment: u32,
        bytes: Option<u64>,
        takes: Option<Rate>,
        phases: [Duration; 2],
    ) -> Self {
        let mut ends = [0, 1].map(|end| End::new(config, place, segment, phases[end], end, 0));
        ends[0].write(bytes.unwrap_or(u64::MAX));
        if bytes.is_some() && config.handshake.unwrap_or_default() {
            ends[0].close();
        }
        Self {
            place,
            start,
            started: false,
            stopped: false,
            takes,
            busy: Instant::ORIGIN,
            ends,
            delays: DelayProbe::default(),
            progress: None,
            last_read: None,
            longest_pause: Duration::ZERO,
        }
    }

    /// The longest time in which the receiving application got no new data, if it got any at all.
    pub(crate) fn longest_pause(&self) -> Option<Duration> {
        self.last_read.map(|_| self.longest_pause)
    }

    fn end_pause(&mut self, now: Instant) {
        let pause = self
            .last_read
            .map_or(Duration::ZERO, |last| now.saturating_since(last));
        self.longest_pause = self.longest_pause.max(pause);
    }

    /// Starts measuring the sender's windows; `segment` is as in [`new`](Self::new).
    pub(crate) fn watch(&mut self, segment: u32, level: Option<f64>) {
        self.ends[0].watch(segment, level);
    }

    #[inline]
    pub(super) fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        // Arrivals after the stop change no metric: metrics cover the run, not the drain.
        if self.stopped {
            return;
        }
        if packet.role() == Role::Data && packet.asks().is_none() {
            self.delays.record(now.saturating_since(packet.created));
        }
        let end = End::of(packet);
        let known = match self.progress {
            Some(_) => self.news(),
            None => [0; 2],
        };
        self.ends[end].handle_packet(now, packet);
        if self.progress.is_some() {
            self.follow(now, packet, known);
        }
        if end == 1 {
            self.take(now);
        }
    }

    /// Segments that the receiver has received, and how many of them carried nothing new.
    fn news(&self) -> [u64; 2] {
        let stats = self.ends[1].endpoint().receiver().stats();
        let vain = stats.segments_duplicate + stats.segments_beyond_window;
        [stats.segments_received, vain]
    }

    /// Tells the probe what a packet has changed.
    fn follow(&mut self, now: Instant, packet: &Packet, [received, vain]: [u64; 2]) {
        let [now_received, now_vain] = self.news();
        let Some(progress) = &mut self.progress else {
            return;
        };
        match packet.role() {
            Role::Ack => progress.on_acknowledged(now, packet.created),
            Role::Data if now_received > received => {
                let bytes = match now_vain > vain {
                    true => 0,
                    false => packet.len.saturating_sub(self.ends[1].header_len()),
                };
                progress.on_arrived(now, packet.created, bytes.into());
            }
            _ => {}
        }
    }

    /// The receiving application reads what is available, once it has consumed what it read before.
    #[inline]
    fn take(&mut self, now: Instant) {
        if now < self.busy {
            return;
        }
        let Some(bytes) = self.ends[1].read() else {
            return;
        };
        self.end_pause(now);
        self.last_read = Some(now);
        if let Some(rate) = self.takes {
            self.busy = now + rate.transmission_time(bytes as usize);
        }
    }

    pub(super) fn handle_destroyed(&mut self, packet: &Packet) {
        self.ends[End::of(packet)].handle_destroyed(packet);
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if !self.started {
            self.started = now >= self.start;
        } else if !self.stopped {
            for end in &mut self.ends {
                end.handle_timeout(now);
            }
            self.take(now);
        }
    }

    pub(super) fn handle_hint(&mut self, now: Instant, end: usize, hint: Hint<()>) {
        self.ends[end].handle_hint(now, hint);
    }

    pub(super) fn stop(&mut self, now: Instant) {
        // An incomplete transfer is still waiting at the stop, and this pause counts too.
        if !self.ends[0].endpoint().sender().is_acknowledged() {
            self.end_pause(now);
        }
        self.stopped = true;
        if let Some(progress) = &mut self.progress {
            progress.stop(now);
        }
    }

    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Instant, packet: &mut Packet) -> bool {
        if !self.started || self.stopped {
            return false;
        }
        let [sender, receiver] = &mut self.ends;
        let sent = receiver.poll_transmit(now, packet) || sender.poll_transmit(now, packet);
        if let Some(progress) = &mut self.progress
            && sent
        {
            match packet.role() {
                Role::Ack => progress.on_acknowledges(now),
                Role::Data => progress.on_sent(now),
                _ => {}
            }
        }
        sent
    }

    #[inline]
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.stopped {
            None
        } else if !self.started {
            Some(self.start)
        } else {
            let [sender, receiver] = &self.ends;
            let timers = earlier(sender.poll_timeout(), receiver.poll_timeout());
            match receiver.endpoint().receiver().has_unread() {
                false => timers,
                true => earlier(timers, Some(self.busy)),
            }
        }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.ends[0].endpoint().is_acknowledged()
    }

    pub(super) fn place(&self) -> &FlowPlace {
        &self.place
    }

    /// Sender, receiver.
    pub(crate) fn ends(&self) -> &[End; 2] {
        &self.ends
    }
}

#[inline]
fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
