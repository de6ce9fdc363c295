//! All stations of one channel, as one component with one deadline.
//!
//! At each instant frames end first, then stations whose turn it is begin to send, then every station hears the
//! frames that have begun. Stations that begin at the same instant do not hear each other, nor do those that begin
//! before a start can be heard (`sense_delay`). Propagation takes no time.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Streams};

use crate::aired::{Aired, AiredKind, Watched};
use crate::contention::Contention;
use crate::noise::NoiseConfig;
use crate::place::Places;
use crate::profile::{ACK, DATA_HEADER, Modulation, Profile, RTS};
use crate::signal::{Signal, SignalConfig};
use crate::station::{Outgoing, Phase, Reply, Retries, Station, StationConfig, StationStats};

/// The settings that all stations of a radio share.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioConfig {
    /// The durations of frames and interframe spaces.
    pub profile: Profile,
    /// Frames longer than this, MAC header included, are preceded by RTS and CTS; bytes.
    pub rts_threshold: usize,
    /// Whether a frame survives later ones that are ten times weaker (capture).
    pub capture: bool,
    /// Whether any sensed frame destroys others, not only those that could be decoded.
    pub sensed_destroys: bool,
    /// Noise, which loses frames without a collision.
    pub noise: Vec<NoiseConfig>,
    /// Rates from which each station chooses one per neighbour, lowest first; if empty, all stations use the
    /// profile's rate.
    pub ladder: Vec<Modulation>,
    /// Loses frames whose signal is too weak; none: every frame in range is strong enough.
    pub signal: Option<SignalConfig>,
    /// How long the start of a frame stays unheard; shorter than any frame.
    pub sense_delay: Duration,
}

/// A packet delivered to a station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The station that sent it.
    pub from: usize,
    /// The station that received it.
    pub to: usize,
    /// The packet as it was enqueued.
    pub packet: P,
}

/// Reports that a station is done with a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done<P> {
    /// The station that had it.
    pub station: usize,
    /// When its last transmission began, or that of an RTS that got no answer.
    pub began: Instant,
    /// Whether it was acknowledged. Otherwise the station gave it up; it may have been delivered all the same, if its
    /// acknowledgment was lost.
    pub acknowledged: bool,
    /// The packet as it was enqueued.
    pub packet: P,
}

/// Additional losses from one station to another: a recording, or a model.
pub trait Losses: std::fmt::Debug {
    /// Whether a frame of `bytes`, on the air from `start` to `end`, is lost. It is called for every frame of this
    /// direction, in order.
    fn loses(&mut self, start: Instant, end: Instant, bytes: usize) -> bool;
}

/// The queue of a station is full: the packet comes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full<P>(pub P);

/// The counters of a radio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioStats {
    /// Busy periods: from the first frame on a silent channel to the last answer that belongs to it.
    pub busy_periods: u64,
    /// Of these, periods in which a frame was overlapped at its receiver.
    pub collisions: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Data,
    Ack,
    /// The duration of the frame that each announces.
    Rts(Duration),
    Cts(Duration),
}

/// A frame on the air.
#[derive(Clone, Copy, Debug)]
struct OnAir {
    number: u64,
    from: usize,
    to: usize,
    kind: Kind,
    modulation: Modulation,
    bytes: usize,
    began: Instant,
    end: Instant,
    /// The sequence number of a data frame.
    seq: u64,
}

/// The stations of one channel.
#[derive(Debug)]
pub struct Radio<P> {
    config: RadioConfig,
    places: Places,
    stations: Vec<Station<P>>,
    air: Vec<OnAir>,
    /// How many of the newest frames in `air` have begun but are not heard yet.
    fresh: usize,
    signal: Option<Signal>,
    /// By `from * stations + to`; empty where there are none.
    losses: Vec<Option<Box<dyn Losses>>>,
    frames: u64,
    next: Option<Instant>,
    delivered: VecDeque<Delivery<P>>,
    done: VecDeque<Done<P>>,
    /// The log of frames, if it is kept.
    watched: Option<Watched<P>>,
    stats: RadioStats,
    /// Whether this busy period counts as a collision already.
    collided: bool,
}

impl<P: Clone> Radio<P> {
    /// A radio with these stations. `name` is the prefix of its random streams.
    pub fn new(
        config: RadioConfig,
        stations: &[StationConfig],
        streams: Streams,
        name: &str,
    ) -> Self {
        let places: Vec<_> = stations.iter().map(|s| (s.position, s.hears)).collect();
        let changes = config.signal.as_ref().map_or(&[][..], |s| &s.changes);
        let profile = config.profile;
        let build = |(i, station): (usize, &StationConfig)| {
            let contention = Contention::new(profile.slot, profile.cw_first, profile.cw_max);
            Station::new(
                station,
                stations.len(),
                contention,
                streams.stream(&format!("{name}.{i}.backoff")),
                streams.stream(&format!("{name}.{i}.noise")),
            )
        };
        Self {
            places: Places::new(&places, changes),
            signal: config
                .signal
                .as_ref()
                .map(|signal| Signal::new(signal.noise_w)),
            stations: stations.iter().enumerate().map(build).collect(),
            config,
            air: vec![],
            fresh: 0,
            losses: vec![],
            frames: 0,
            next: None,
            delivered: VecDeque::new(),
            done: VecDeque::new(),
            watched: None,
            stats: RadioStats::default(),
            collided: false,
        }
    }

    /// Adds these losses to all frames from one station to another, answers included.
    pub fn set_losses(&mut self, from: usize, to: usize, losses: Box<dyn Losses>) {
        let all = self.stations.len();
        self.losses.resize_with(all * all, || None);
        self.losses[from * all + to] = Some(losses);
    }

    /// Enqueues a packet of `len` bytes, MAC header excluded, at a station for a neighbour.
    ///
    /// # Errors
    /// The packet, if the station's queue is full.
    ///
    /// # Panics
    /// If there is no such station.
    pub fn enqueue(
        &mut self,
        now: Instant,
        from: usize,
        to: usize,
        len: usize,
        packet: P,
    ) -> Result<(), Full<P>> {
        assert!(to < self.stations.len(), "no station {to}");
        self.stations[from]
            .enqueue(now, Outgoing { to, len, packet })
            .map_err(Full)?;
        self.settle(now, from);
        self.reschedule();
        Ok(())
    }

    /// Performs everything that is due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(at) = self.next.filter(|at| *at <= now) {
            self.end_frames(at);
            for station in 0..self.stations.len() {
                self.on_station(at, station);
            }
            self.hear_fresh(at);
            for station in 0..self.stations.len() {
                self.settle(at, station);
            }
            self.reschedule();
        }
    }

    /// When `handle_timeout` is due.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// The next packet delivered to a station.
    pub fn poll_deliver(&mut self) -> Option<Delivery<P>> {
        self.delivered.pop_front()
    }

    /// The next packet that a station is done with, acknowledged or given up.
    pub fn poll_done(&mut self) -> Option<Done<P>> {
        self.done.pop_front()
    }

    /// From now on frames are logged until they are polled.
    pub fn keep_aired(&mut self) {
        self.watched.get_or_insert_default();
    }

    /// The next frame that has ended, in the order in which they began.
    pub fn poll_aired(&mut self) -> Option<Aired<P>> {
        self.watched.as_mut()?.poll()
    }

    /// Logs a frame that begins.
    fn show(&mut self, now: Instant, frame: OnAir) {
        let Some(watched) = &mut self.watched else {
            return;
        };
        let station = &self.stations[frame.from];
        let profile = &self.config.profile;
        let (kind, nav) = match frame.kind {
            Kind::Data => (AiredKind::Data, profile.data_nav()),
            Kind::Ack => (AiredKind::Ack, Duration::ZERO),
            Kind::Rts(announced) => (AiredKind::Rts, profile.rts_nav(announced)),
            Kind::Cts(announced) => (AiredKind::Cts, profile.cts_nav(announced)),
        };
        let data = kind == AiredKind::Data;
        let packet = station.current.as_ref().filter(|_| data);
        let seen = Aired {
            kind,
            from: frame.from,
            to: frame.to,
            began: now,
            nav,
            modulation: frame.modulation,
            seq: frame.seq,
            again: data && station.has_failed(),
            power_w: self.places.power(now, frame.from, frame.to),
            came: false,
            packet: packet.map(|out| out.packet.clone()),
        };
        watched.begin(frame.number, seen);
    }

    /// The number of stations.
    pub fn stations(&self) -> usize {
        self.stations.len()
    }

    /// Packets queued or being sent at a station.
    pub fn backlog(&self, station: usize) -> usize {
        self.stations[station].backlog()
    }

    /// How many more packets of `len` bytes the queue of a station takes; the packet being sent is not in the queue.
    pub fn room(&self, station: usize, len: usize) -> u64 {
        self.stations[station].room(len)
    }

    /// The counters of a station.
    pub fn station_stats(&self, station: usize) -> StationStats {
        let station = &self.stations[station];
        StationStats {
            draws_at_cw_max: station.contention.draws_at_max(),
            ..station.stats
        }
    }

    /// The counters of the radio.
    pub fn stats(&self) -> RadioStats {
        self.stats
    }

    /// The received power between all stations.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Whether a frame that a station senses destroys others there.
    fn disturbs(&self, from: usize, at: usize) -> bool {
        self.config.sensed_destroys || self.places.receives(from, at)
    }

    fn end_frames(&mut self, now: Instant) {
        // A sender hears only what outlasts its own frame, so all frames of this instant are heard before any station
        // stops sending.
        for i in 0..self.air.len() {
            let frame = self.air[i];
            if frame.end > now {
                continue;
            }
            let mut came = false;
            for station in 0..self.stations.len() {
                if self.places.senses(frame.began, frame.from, station) {
                    came |= self.hear_end(now, station, frame);
                } else if station == frame.to {
                    self.count_loss(frame, true);
                }
            }
            if let Some(watched) = &mut self.watched {
                watched.end(frame.number, came);
            }
        }
        let timeout = now + self.config.profile.answer_timeout();
        let stations = &mut self.stations;
        self.air.retain(|frame| {
            if frame.end > now {
                return true;
            }
            let sender = &mut stations[frame.from];
            sender.sending = false;
            sender.ready_since = now;
            sender.stats.airtime_ns += frame.end.saturating_since(frame.began).as_nanos();
            match frame.kind {
                Kind::Data => sender.phase = Phase::Ack(timeout),
                Kind::Rts(_) => sender.phase = Phase::Cts(timeout),
                Kind::Ack | Kind::Cts(_) => {}
            }
            false
        });
    }

    /// A frame that a station hears has ended; true if it was received at its destination.
    fn hear_end(&mut self, now: Instant, at: usize, frame: OnAir) -> bool {
        let disturbs = self.disturbs(frame.from, at);
        let whole = self.stations[at].ears.end(frame.number, disturbs);
        let near = self.places.receives(frame.from, at);
        let noisy = near
            && (self.is_destroyed(now, at, frame)
                | self.is_too_weak(at, frame)
                | self.is_lost(at, frame));
        let decoded = whole && near && !noisy;
        if at == frame.to && !decoded {
            self.count_loss(frame, whole);
        }
        let station = &mut self.stations[at];
        if station.sending {
            return false;
        }
        station.ears.heard(now, decoded);
        if !decoded {
            return false;
        }
        if at != frame.to {
            let profile = &self.config.profile;
            let nav = match frame.kind {
                Kind::Data => profile.data_nav(),
                Kind::Rts(frame) => profile.rts_nav(frame),
                Kind::Cts(frame) => profile.cts_nav(frame),
                Kind::Ack => return false,
            };
            station.nav = station.nav.max(now + nav);
            return false;
        }
        self.on_frame(now, at, frame);
        true
    }

    /// Whether noise destroys a frame at a station, drawn for every frame that arrives there.
    fn is_destroyed(&mut self, now: Instant, at: usize, frame: OnAir) -> bool {
        let sender = match frame.kind {
            Kind::Data | Kind::Rts(_) => frame.from,
            Kind::Ack | Kind::Cts(_) => frame.to,
        };
        let retried = self.stations[sender].retries != Retries::Off;
        let station = &mut self.stations[at];
        let answer = frame.kind != Kind::Data;
        let mut destroyed = false;
        for noise in &self.config.noise {
            if !answer || noise.control.unwrap_or(retried) {
                destroyed |= noise.destroys(now, &mut station.noise);
            }
        }
        destroyed
    }

    /// Whether the [losses](Self::set_losses) of its direction take a frame, which are asked at its destination.
    fn is_lost(&mut self, at: usize, frame: OnAir) -> bool {
        let way = frame.from * self.stations.len() + frame.to;
        let losses = self.losses.get_mut(way).filter(|_| at == frame.to);
        losses
            .and_then(Option::as_mut)
            .is_some_and(|losses| losses.loses(frame.began, frame.end, frame.bytes))
    }

    /// Whether a frame is lost because its signal is weak.
    fn is_too_weak(&mut self, at: usize, frame: OnAir) -> bool {
        let Some(signal) = &mut self.signal else {
            return false;
        };
        let power = self.places.power(frame.began, frame.from, at);
        let rng = &mut self.stations[at].noise;
        signal.loses(power, frame.modulation, frame.bytes, rng)
    }

    fn count_loss(&mut self, frame: OnAir, whole: bool) {
        let stats = &mut self.stations[frame.from].stats;
        if whole {
            stats.data_noise += u64::from(frame.kind == Kind::Data);
            return;
        }
        match frame.kind {
            Kind::Data => stats.data_collided += 1,
            Kind::Ack => stats.ack_collided += 1,
            Kind::Rts(_) => stats.rts_collided += 1,
            Kind::Cts(_) => stats.cts_collided += 1,
        }
        if !self.collided {
            self.collided = true;
            self.stats.collisions += 1;
        }
    }

    /// A station has received a frame addressed to it.
    fn on_frame(&mut self, now: Instant, at: usize, frame: OnAir) {
        let answer_at = now + self.config.profile.sifs;
        let station = &mut self.stations[at];
        let from_peer = station
            .current
            .as_ref()
            .is_some_and(|out| out.to == frame.from);
        match frame.kind {
            Kind::Data => {
                station.reply = Some((answer_at, Reply::Ack, frame.from));
                if station.is_new(frame.from, frame.seq)
                    && let Some(out) = &self.stations[frame.from].current
                {
                    self.delivered.push_back(Delivery {
                        from: frame.from,
                        to: at,
                        packet: out.packet.clone(),
                    });
                }
            }
            Kind::Ack if from_peer && matches!(station.phase, Phase::Ack(_)) => {
                let fastest = self.config.ladder.len().saturating_sub(1);
                station.rates[frame.from].on_answer(fastest);
                let out = station.finish(now);
                self.finish(at, true, out);
            }
            Kind::Rts(announced) if station.nav <= now => {
                station.reply = Some((answer_at, Reply::Cts(announced), frame.from));
            }
            Kind::Cts(_) if from_peer && matches!(station.phase, Phase::Cts(_)) => {
                station.phase = Phase::Sending;
                station.reply = Some((answer_at, Reply::Data, frame.from));
            }
            Kind::Ack | Kind::Rts(_) | Kind::Cts(_) => {}
        }
    }

    /// Performs what is due at a station, if anything is.
    fn on_station(&mut self, now: Instant, index: usize) {
        let station = &mut self.stations[index];
        if station.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        if let Some((at, reply, to)) = station.reply
            && at <= now
        {
            station.reply = None;
            match reply {
                Reply::Ack => self.send(now, index, to, Kind::Ack),
                Reply::Cts(frame) => self.send(now, index, to, Kind::Cts(frame)),
                Reply::Data => self.send(now, index, to, Kind::Data),
            }
        }
        let station = &mut self.stations[index];
        match station.phase {
            Phase::Ack(until) | Phase::Cts(until) if until <= now => {
                let at_rts = matches!(station.phase, Phase::Cts(_));
                let len = station.current.as_ref().map_or(0, |out| out.len);
                let behind_rts = len + DATA_HEADER > self.config.rts_threshold;
                if !at_rts && let Some(out) = &station.current {
                    station.rates[out.to].on_failure();
                }
                let out = station.fail(now, at_rts, behind_rts);
                self.finish(index, false, out);
            }
            Phase::Contending if station.access_at().is_some_and(|at| at <= now) => {
                self.access(now, index);
            }
            _ => {}
        }
    }

    /// A station may be done with a packet.
    fn finish(&mut self, station: usize, acknowledged: bool, out: Option<Outgoing<P>>) {
        let began = self.stations[station].began;
        self.done.extend(out.map(|out| Done {
            station,
            began,
            acknowledged,
            packet: out.packet,
        }));
    }

    /// A station gets access to the channel.
    fn access(&mut self, now: Instant, index: usize) {
        let station = &mut self.stations[index];
        station.contention.take();
        let Some(out) = &station.current else { return };
        let (to, len) = (out.to, out.len);
        station.phase = Phase::Sending;
        if self.air.is_empty() {
            self.stats.busy_periods += 1;
            self.collided = false;
        }
        let kind = match len + DATA_HEADER > self.config.rts_threshold {
            true => Kind::Rts(self.modulation(index, to).frame(len)),
            false => Kind::Data,
        };
        self.send(now, index, to, kind);
    }

    /// The modulation of data from one station to another.
    fn modulation(&self, from: usize, to: usize) -> Modulation {
        let chosen = self.config.ladder.get(self.stations[from].rates[to].at());
        chosen.copied().unwrap_or(self.config.profile.data)
    }

    fn send(&mut self, now: Instant, from: usize, to: usize, kind: Kind) {
        let data = self.modulation(from, to);
        let control = self.config.profile.control;
        let station = &mut self.stations[from];
        if matches!(kind, Kind::Data | Kind::Rts(_)) {
            station.began = now;
        }
        let (modulation, bytes) = match kind {
            Kind::Data => {
                station.stats.data_frames += 1;
                let payload = station.current.as_ref().map_or(0, |out| out.len);
                (data, payload + DATA_HEADER)
            }
            Kind::Ack => {
                station.stats.ack_frames += 1;
                (control, ACK)
            }
            Kind::Rts(_) => {
                station.stats.rts_frames += 1;
                (control, RTS)
            }
            Kind::Cts(_) => {
                station.stats.cts_frames += 1;
                (control, ACK)
            }
        };
        station.sending = true;
        station.ears.deafen();
        self.frames += 1;
        self.fresh += 1;
        let frame = OnAir {
            number: self.frames,
            from,
            to,
            kind,
            modulation,
            bytes,
            began: now,
            end: now + modulation.airtime(bytes),
            seq: station.seq,
        };
        self.air.push(frame);
        self.show(now, frame);
    }

    /// All stations hear the frames that become audible at this instant, the strongest first.
    fn hear_fresh(&mut self, now: Instant) {
        let begun = self.air.len() - self.fresh;
        let delay = self.config.sense_delay;
        let fresh = self.air[begun..].partition_point(|frame| frame.began + delay <= now);
        if fresh == 0 {
            return;
        }
        self.fresh -= fresh;
        let heard = begun + fresh;
        for at in 0..self.stations.len() {
            let power = |frame: &OnAir| self.places.power(frame.began, frame.from, at);
            let strongest = self.air[begun..heard]
                .iter()
                .filter(|frame| self.places.senses(frame.began, frame.from, at))
                .max_by(|a, b| power(a).total_cmp(&power(b)).then(b.number.cmp(&a.number)))
                .map(|frame| frame.number);
            let Some(strongest) = strongest else { continue };
            for first in [true, false] {
                for i in begun..heard {
                    let OnAir {
                        number,
                        from,
                        began,
                        ..
                    } = self.air[i];
                    if (number == strongest) != first || !self.places.senses(began, from, at) {
                        continue;
                    }
                    let disturbs = self.disturbs(from, at);
                    let power = self.places.power(began, from, at);
                    let capture = self.config.capture;
                    let station = &mut self.stations[at];
                    let silent = !station.sending;
                    station.ears.begin(number, power, disturbs, silent, capture);
                }
            }
        }
    }

    /// Starts or stops the backoff countdown of a station.
    fn settle(&mut self, now: Instant, index: usize) {
        let profile = &self.config.profile;
        let station = &mut self.stations[index];
        // A NAV that ends later than now delays the station like an interframe space that has not begun.
        if !station.is_idle() {
            station.contention.freeze(now);
            return;
        }
        if station.nav > now && station.contention.is_counting() {
            station.contention.freeze(now);
        }
        if !station.contention.is_counting() {
            let (quiet_since, garbage) = station.ears.last();
            let gap = match garbage {
                true => profile.eifs(),
                false => profile.difs(),
            };
            let ready = station.ready_since.max(station.nav) + profile.difs();
            station.contention.resume(ready.max(quiet_since + gap));
        }
    }

    fn reschedule(&mut self) {
        let stations = self.stations.iter().filter_map(Station::poll_timeout);
        let frames = self.air.iter().map(|frame| frame.end);
        let unheard = &self.air[self.air.len() - self.fresh..];
        let delay = self.config.sense_delay;
        let heard = unheard.first().map(|frame| frame.began + delay);
        self.next = stations.chain(frames).chain(heard).min();
    }
}
