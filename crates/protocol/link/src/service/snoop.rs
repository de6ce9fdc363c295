//! Snoop: a base station that watches TCP (section 7.10 of docs/spec/multi-service.md, after Balakrishnan,
//! Seshan and Katz 1995 and the module of ns-2 that Xylomenos 1999 used).
//!
//! At the base station's end an agent keeps copies of TCP segments on their way to the wireless host.
//! Duplicate acknowledgments from there, or a local timer, make it retransmit a segment, and duplicates that
//! such a loss explains do not reach the TCP sender. The other end only forwards packets. There are no frames
//! of its own and no header beyond byte 0; packets other than TCP, and data from the wireless host, are raw.
//!
//! ```text
//! frames   DATA (packet)   RETRANSMISSION (packet)
//!          study   | service:4 type:4 |    live   see `wire`, bare
//! agent    connection -> copies of its segments, last acknowledgment, duplicates expected, timer
//! ```
//!
//! With two switches the same agent is any of the four link mechanisms of Balakrishnan et al. 1997: how it
//! detects losses, by duplicates or by what SMART receivers name, and whether it suppresses duplicates.
//!
//! ```text
//!                       suppress = true            suppress = false
//! detect = duplicates   LL-TCP-AWARE               LL
//! detect = smart        LL-SMART-TCP-AWARE         LL-SMART
//! ```
//!
//! Invariants: the agent's state is soft, and losing it never breaks a connection; it keeps at most
//! [`CONNECTIONS`] connections of [`CACHE`](connection::CACHE) segments. By the standard rules it forgets
//! connections that are silent for [`SILENCE`]; a new one replaces the longest silent one if there is no
//! room. An acknowledgment is only withheld while the segment that it asks for is cached.
//!
//! With `notify`, acknowledgments of data from the wireless host are marked if this link lost what they ask for.
//!
//! Left out: all but the first block of selective acknowledgments.

mod connection;
mod counts;
mod notices;
mod ns2;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use airlane_base::{Duration, Instant};

use super::default::DefaultService;
use super::scheme::{Frames, Scheme};
use crate::config::{BaseStation, RepairOrder, SnoopConfig, SnoopDetection, SnoopVariant};
use crate::context::{Context, Origin, PortFacts, earliest};
use crate::flow::{FlowKey, Packet, TcpView};
use crate::wire::{Frame, FrameKind, Header, Layout};
use connection::{Admission, CONNECTIONS, Connection, Rules, SILENCE, Verdict};
use counts::Counts;
pub use counts::SnoopCounts;
use notices::Notices;
use ns2::Ns2;

const FRAMES: Frames = Frames::new(&Layout::BARE, &[FrameKind::Data, FrameKind::Retransmission]);

/// Snoop, at either end.
#[derive(Clone, Debug)]
pub(crate) struct Snoop<P> {
    raw: DefaultService,
    agent: Option<Agent<P>>,
}

/// Identifies a connection, or a pair of hosts, by segments towards the wireless host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    flow: FlowKey,
    connection: u32,
}

#[derive(Clone, Debug)]
struct Agent<P> {
    config: SnoopConfig,
    /// Segments that one acknowledgment has shown to be missing.
    holes: Vec<u32>,
    connections: BTreeMap<Key, Watched<P>>,
    /// At most one entry per cached segment, which bounds it.
    repairs: VecDeque<Repair>,
    serial: u64,
    /// No timer expires before this.
    due: Option<Instant>,
    /// Whether an unexplained duplicate was forwarded: ns-2's module has one count for all states.
    duplicate_seen: bool,
    /// Present if acknowledgments are marked.
    notices: Option<Notices<Key>>,
    counts: Counts,
}

/// A segment to be retransmitted.
#[derive(Clone, Copy, Debug)]
struct Repair {
    /// The connection, and its serial number under this key.
    key: Key,
    serial: u64,
    /// Sequence number of the segment.
    start: u32,
    /// Whether the timer caused it, rather than duplicates.
    by_timer: bool,
}

#[derive(Clone, Debug)]
struct Watched<P> {
    /// In the order in which they were first seen.
    serial: u64,
    tcp: Memory<P>,
}

/// The state kept for one key.
#[derive(Clone, Debug)]
enum Memory<P> {
    Standard(Connection<P>),
    Ns2(Ns2<P>),
}

impl Key {
    fn new(variant: SnoopVariant, flow: FlowKey, segment: &TcpView) -> Self {
        let flow = FlowKey { dscp: 0, ..flow };
        if variant == SnoopVariant::Standard {
            let connection = segment.connection;
            return Self { flow, connection };
        }
        let shared = variant.shares_hosts();
        Self {
            flow: FlowKey {
                src_port: 0,
                dst_port: 0,
                ..flow
            },
            connection: if shared { 0 } else { segment.endpoints },
        }
    }
}

impl<P: Packet> Memory<P> {
    fn new(config: &SnoopConfig, now: Instant, next: u32) -> Self {
        let rules = Rules {
            threshold: config.threshold,
            min_timeout: config.min_timeout,
            smart: config.detect == SnoopDetection::Smart,
        };
        match config.variant {
            SnoopVariant::Standard => Self::Standard(Connection::new(rules, now, next)),
            SnoopVariant::Ns2
            | SnoopVariant::Ns2Agents
            | SnoopVariant::Ns2Cleared
            | SnoopVariant::Ns2Connections => Self::Ns2(Ns2::new(now)),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::Standard(tcp) => tcp.is_empty(),
            Self::Ns2(tcp) => tcp.is_empty(),
        }
    }

    fn active(&self) -> Instant {
        match self {
            Self::Standard(tcp) => tcp.active,
            Self::Ns2(tcp) => tcp.active,
        }
    }

    fn expires(&self) -> Option<Instant> {
        match self {
            Self::Standard(tcp) => tcp.expires,
            Self::Ns2(tcp) => tcp.expires,
        }
    }

    fn on_data(&mut self, now: Instant, segment: &TcpView, packet: &P) -> Admission {
        match self {
            Self::Standard(tcp) => tcp.on_data(now, segment, packet),
            Self::Ns2(tcp) => tcp.on_data(now, segment, packet),
        }
    }

    fn on_ack(
        &mut self,
        now: Instant,
        segment: &TcpView,
        ack: u32,
        duplicate_seen: &mut bool,
        holes: &mut Vec<u32>,
    ) -> Verdict {
        match self {
            Self::Standard(tcp) => tcp.on_ack(now, segment, ack, holes),
            Self::Ns2(tcp) => tcp.on_ack(now, ack, duplicate_seen),
        }
    }

    fn on_timer(&mut self, now: Instant) -> Option<u32> {
        match self {
            Self::Standard(tcp) => tcp.on_timer(now),
            Self::Ns2(tcp) => tcp.on_timer(now),
        }
    }

    fn take_repair(&mut self, now: Instant, start: u32) -> Option<P> {
        match self {
            Self::Standard(tcp) => tcp.take_repair(now, start),
            Self::Ns2(tcp) => tcp.take_repair(start),
        }
    }
}

impl<P: Packet> Agent<P> {
    fn new(config: SnoopConfig) -> Self {
        Self {
            config,
            holes: Vec::new(),
            connections: BTreeMap::new(),
            repairs: VecDeque::new(),
            serial: 0,
            due: None,
            duplicate_seen: false,
            notices: config.notify.then(Notices::default),
            counts: Counts::default(),
        }
    }

    /// Begins to watch a connection, replacing the longest silent one if there is no room.
    fn watch(&mut self, now: Instant, key: Key, next: u32) {
        if self.connections.len() >= CONNECTIONS {
            let all = self.connections.iter();
            let oldest = all.min_by_key(|(_, c)| (c.tcp.active(), c.serial));
            let oldest = *oldest.expect("the table is full").0;
            self.connections.remove(&oldest);
        }
        self.serial += 1;
        let watched = Watched {
            serial: self.serial,
            tcp: Memory::new(&self.config, now, next),
        };
        self.connections.insert(key, watched);
    }

    /// A packet leaves for the wireless host.
    fn on_departure(&mut self, now: Instant, packet: &mut P) {
        let Some(segment) = packet.tcp() else {
            return;
        };
        let flow = packet.flow();
        if let Some((notices, ack)) = self.notices.as_mut().zip(segment.ack) {
            let key = Key::new(SnoopVariant::Standard, flow.reversed(), &segment);
            if notices.marks(&key, ack) {
                packet.mark_lost();
            }
        }
        let key = Key::new(self.config.variant, flow, &segment);
        if segment.rst {
            self.connections.remove(&key);
            return;
        }
        if segment.seq == segment.end {
            return;
        }
        if !self.connections.contains_key(&key) {
            self.watch(now, key, segment.seq);
        }
        let row = self.counts.row(&flow);
        let Some(watched) = self.connections.get_mut(&key) else {
            return;
        };
        if let Memory::Ns2(tcp) = &mut watched.tcp
            && self.config.variant.clears()
            && segment.seq == 0
        {
            tcp.clear(now);
            self.counts.at(row).cleared += 1;
        }
        let kept = watched.tcp.on_data(now, &segment, packet);
        self.counts.at(row).on_data(kept);
        let expires = watched.tcp.expires();
        self.wake_at(expires);
    }

    /// Whether a packet from the wireless host is forwarded.
    fn passes(&mut self, now: Instant, packet: &P) -> bool {
        let Some(segment) = packet.tcp() else {
            return true;
        };
        if let Some(notices) = &mut self.notices {
            let key = Key::new(SnoopVariant::Standard, packet.flow(), &segment);
            notices.on_data(now, key, &segment);
        }
        let flow = packet.flow().reversed();
        let key = Key::new(self.config.variant, flow, &segment);
        if segment.rst {
            self.connections.remove(&key);
            return true;
        }
        let Some((ack, watched)) = segment.ack.zip(self.connections.get_mut(&key)) else {
            return true;
        };
        let seen = &mut self.duplicate_seen;
        self.holes.clear();
        let holes = &mut self.holes;
        let verdict = watched.tcp.on_ack(now, &segment, ack, seen, holes);
        let (serial, expires) = (watched.serial, watched.tcp.expires());
        let row = self.counts.row(&flow);
        self.counts.at(row).on_ack(verdict, self.config.suppress);
        if let Verdict::Repair(start) = verdict {
            self.holes.push(start);
        }
        self.repairs.extend(self.holes.iter().map(|start| Repair {
            key,
            serial,
            start: *start,
            by_timer: false,
        }));
        self.wake_at(expires);
        !(self.config.suppress && matches!(verdict, Verdict::Suppress | Verdict::Repair(_)))
    }

    fn next_repair(&mut self, now: Instant) -> Option<P> {
        while let Some(repair) = self.repairs.pop_front() {
            let watched = self.connections.get_mut(&repair.key);
            let watched = watched.filter(|c| c.serial == repair.serial);
            if let Some(packet) = watched.and_then(|c| c.tcp.take_repair(now, repair.start)) {
                let row = self.counts.row(&packet.flow());
                self.counts.at(row).on_repair(repair.by_timer);
                return Some(packet);
            }
        }
        None
    }

    /// Processes the timers of all connections; returns how many expired.
    fn on_time(&mut self, now: Instant) -> u64 {
        if self.config.variant == SnoopVariant::Standard {
            self.connections
                .retain(|_, c| c.tcp.active() + SILENCE > now);
        }
        let due = |watched: &Watched<P>| watched.tcp.expires().is_some_and(|at| at <= now);
        let expired = self.connections.iter_mut().filter(|(_, c)| due(c));
        let expired = expired.filter_map(|(key, watched)| {
            let start = watched.tcp.on_timer(now)?;
            Some(Repair {
                key: *key,
                serial: watched.serial,
                start,
                by_timer: true,
            })
        });
        let mut expired: Vec<_> = expired.collect();
        expired.sort_unstable_by_key(|repair| repair.serial);
        let timeouts = expired.len() as u64;
        self.repairs.extend(expired);
        let expires = self.connections.values().filter_map(|c| c.tcp.expires());
        self.due = expires.min();
        timeouts
    }

    fn wake_at(&mut self, at: Option<Instant>) {
        self.due = earliest(self.due, at);
    }
}

impl<P: Packet> Snoop<P> {
    /// With an agent if this is the base station's end.
    pub(crate) fn new(config: &SnoopConfig, facts: &PortFacts) -> Self {
        let here = config.base_station == BaseStation::Here;
        Self {
            raw: DefaultService::new(facts),
            agent: here.then(|| Agent::new(*config)),
        }
    }

    fn repair(&mut self, cx: &Context<'_, P>, order: RepairOrder) -> Option<Frame<P>> {
        let agent = self.agent.as_mut()?;
        if agent.config.repairs != order {
            return None;
        }
        let repair = agent.next_repair(cx.now)?;
        Some(self.raw.frame(FrameKind::Retransmission, repair))
    }

    /// The agent's counters, by application; none at the other end.
    pub(crate) fn counts(&self) -> &[SnoopCounts] {
        self.agent.as_ref().map_or(&[], |agent| agent.counts.rows())
    }
}

impl<P: Packet> Scheme<P> for Snoop<P> {
    fn frames(&self) -> Frames {
        FRAMES
    }

    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let Header { seq, kind, .. } = frame.header;
        let Some(packet) = frame.into_packet() else {
            return;
        };
        self.raw.note(cx, seq);
        if let Some(agent) = &mut self.agent
            && !agent.passes(cx.now, &packet)
        {
            cx.ledger.suppressed_acks += 1;
            cx.ledger.suppressed_bytes += packet.len() as u64;
            return;
        }
        cx.deliver(packet, cx.now, kind == FrameKind::Retransmission);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        if let Some(agent) = &mut self.agent
            && agent.due.is_some_and(|due| due <= cx.now)
        {
            cx.ledger.timeouts += agent.on_time(cx.now);
        }
    }

    fn poll_frame(&mut self, cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        self.repair(cx, RepairOrder::First)
    }

    fn poll_spare(&mut self, cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        self.repair(cx, RepairOrder::Last)
    }

    fn has_frames(&self) -> bool {
        let repairs = |agent: &Agent<P>| !agent.repairs.is_empty();
        self.agent.as_ref().is_some_and(repairs)
    }

    fn send(&mut self, cx: &mut Context<'_, P>, mut packet: P, _from: Origin) -> Frame<P> {
        if let Some(agent) = &mut self.agent {
            agent.on_departure(cx.now, &mut packet);
        }
        self.raw.frame(FrameKind::Data, packet)
    }

    fn start_timers(&mut self, _header: &Header, _left: Instant) {}

    fn poll_timeout(&self) -> Option<Instant> {
        self.agent.as_ref()?.due
    }

    /// The agent measures round trips itself.
    fn set_timer_factor(&mut self, _factor: f64) {}

    fn retime(&mut self, fresh: Self) {
        Scheme::<P>::retime(&mut self.raw, fresh.raw);
    }

    fn reset(&mut self, cx: &mut Context<'_, P>) {
        if let Some(agent) = &mut self.agent {
            *agent = Agent {
                counts: std::mem::take(&mut agent.counts),
                ..Agent::new(agent.config)
            };
        }
        Scheme::<P>::reset(&mut self.raw, cx);
    }

    fn is_idle(&self) -> bool {
        let idle = |agent: &Agent<P>| agent.connections.values().all(|c| c.tcp.is_empty());
        self.agent.as_ref().is_none_or(idle)
    }

    fn linger(&self) -> Duration {
        Scheme::<P>::linger(&self.raw)
    }
}
