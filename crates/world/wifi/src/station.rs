//! One station: its queue, the frame that it tries to send, and what it owes to others.

use std::collections::VecDeque;
use std::num::NonZeroU32;

use airlane_base::{Duration, Instant, QueueLimit, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::auto_rate::AutoRate;
use crate::contention::Contention;
use crate::place::{Position, Thresholds};
use crate::reception::Reception;

/// How often a frame is tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Retries {
    /// Once; the contention window stays what it is.
    Off,
    /// 7 times, or 4 times if an RTS precedes it (802.11's short and long retry limits).
    #[default]
    On,
    /// Up to so many times, or 4 times if an RTS precedes it.
    Limit(NonZeroU32),
    /// Until it has been acknowledged.
    Unlimited,
}

/// Attempts of a frame that is sent without an RTS, and of an RTS.
const SHORT_LIMIT: u32 = 7;
/// Attempts of a frame behind an RTS.
const LONG_LIMIT: u32 = 4;

/// A station as its driver describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct StationConfig {
    /// Where it stands, metres.
    pub position: Position,
    /// What it hears.
    pub hears: Thresholds,
    /// How often it tries a frame.
    pub retries: Retries,
    /// How much may wait beside the frame that it tries to send.
    pub queue: QueueLimit,
}

/// What a station counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StationStats {
    /// Packets that were handed to it.
    pub accepted: u64,
    /// Packets that it took for transmission, each once however often it was tried.
    pub taken: u64,
    /// Times that it was done with a packet, one way or the other, and no other waited.
    pub underflows: u64,
    /// Packets that found its queue full.
    pub queue_drops: u64,
    /// Times that it tried a packet again.
    pub retries: u64,
    /// Packets that it gave up.
    pub retry_drops: u64,
    /// Data frames that it sent, each attempt.
    pub data_frames: u64,
    /// Data frames among them that were overlapped where they should have arrived.
    pub data_collided: u64,
    /// Data frames among them that noise destroyed where they should have arrived, or that were too weak to be heard there.
    pub data_noise: u64,
    /// Acknowledgments that it sent.
    pub ack_frames: u64,
    /// Acknowledgments among them that were overlapped where they should have arrived.
    pub ack_collided: u64,
    /// RTS that it sent.
    pub rts_frames: u64,
    /// RTS among them that were overlapped where they should have arrived.
    pub rts_collided: u64,
    /// CTS that it sent.
    pub cts_frames: u64,
    /// CTS among them that were overlapped where they should have arrived.
    pub cts_collided: u64,
    /// How long the frames took that it sent, of all kinds, ended ones alone.
    pub airtime_ns: u64,
    /// Packets that came to it, each once.
    pub delivered: u64,
    /// Frames that came again because their acknowledgment was lost.
    pub repeated: u64,
    /// Backoffs that it drew from the largest window.
    pub draws_at_cw_max: u64,
}

impl StationStats {
    /// Frames that it sent, of all kinds.
    pub fn frames(&self) -> u64 {
        self.data_frames + self.ack_frames + self.rts_frames + self.cts_frames
    }

    /// Frames among them that were overlapped where they should have arrived.
    pub fn collided(&self) -> u64 {
        self.data_collided + self.ack_collided + self.rts_collided + self.cts_collided
    }
}

/// A packet on its way out.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing<P> {
    pub(crate) to: usize,
    pub(crate) len: usize,
    pub(crate) packet: P,
}

/// What a station is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its turn, or a packet.
    Contending,
    /// The end of its own RTS, DATA, or the gap between CTS and DATA.
    Sending,
    /// A CTS, until this time.
    Cts(Instant),
    /// An acknowledgment, until this time.
    Ack(Instant),
}

/// What a station sends a SIFS behind what it has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Ack,
    /// The frame that was announced takes this long.
    Cts(Duration),
    Data,
}

/// The state machine of one station. The radio tells it what it hears.
#[derive(Clone, Debug)]
pub(crate) struct Station<P> {
    pub(crate) retries: Retries,
    limit: QueueLimit,
    queue: VecDeque<Outgoing<P>>,
    queued_bytes: usize,
    pub(crate) current: Option<Outgoing<P>>,
    /// Attempts at `current` that failed: without an answer to the RTS, or to the frame itself.
    short_failures: u32,
    long_failures: u32,
    /// The number of `current`.
    pub(crate) seq: u64,
    /// When it began to send a packet last, or to announce one.
    pub(crate) began: Instant,
    pub(crate) phase: Phase,
    /// What it owes, to whom, and when.
    pub(crate) reply: Option<(Instant, Reply, usize)>,
    pub(crate) contention: Contention,
    pub(crate) ears: Reception,
    /// Whether it sends now.
    pub(crate) sending: bool,
    /// Others have asked for silence until then.
    pub(crate) nav: Instant,
    /// Since when nothing of its own keeps it from counting: its last frame, its last timeout, or its last draw.
    pub(crate) ready_since: Instant,
    pub(crate) backoffs: Rng,
    pub(crate) noise: Rng,
    /// The last frame that came from each station.
    last_seq: Vec<u64>,
    /// How fast it sends to each station, where it chooses.
    pub(crate) rates: Vec<AutoRate>,
    pub(crate) stats: StationStats,
}

impl<P> Station<P> {
    pub(crate) fn new(
        config: &StationConfig,
        stations: usize,
        contention: Contention,
        backoffs: Rng,
        noise: Rng,
    ) -> Self {
        Self {
            retries: config.retries,
            limit: config.queue,
            queue: VecDeque::new(),
            queued_bytes: 0,
            current: None,
            short_failures: 0,
            long_failures: 0,
            seq: 0,
            began: Instant::ORIGIN,
            phase: Phase::Contending,
            reply: None,
            contention,
            ears: Reception::default(),
            sending: false,
            nav: Instant::ORIGIN,
            ready_since: Instant::ORIGIN,
            backoffs,
            noise,
            last_seq: vec![0; stations],
            rates: vec![AutoRate::default(); stations],
            stats: StationStats::default(),
        }
    }

    /// Takes a packet, or gives it back because the queue is full.
    pub(crate) fn enqueue(&mut self, now: Instant, out: Outgoing<P>) -> Result<(), P> {
        if self.current.is_none() {
            self.stats.accepted += 1;
            self.stats.taken += 1;
            self.current = Some(out);
            self.seq += 1;
            if !self.contention.is_drawn(now) {
                self.contention.draw(&mut self.backoffs);
                self.ready_since = now;
            }
            return Ok(());
        }
        if !self
            .limit
            .admits(self.queue.len(), self.queued_bytes, out.len)
        {
            self.stats.queue_drops += 1;
            return Err(out.packet);
        }
        self.stats.accepted += 1;
        self.queued_bytes += out.len;
        self.queue.push_back(out);
        Ok(())
    }

    /// Packets that wait or are being sent.
    pub(crate) fn backlog(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }

    /// How many packets of `len` bytes more may wait.
    pub(crate) fn room(&self, len: usize) -> u64 {
        match self.limit {
            QueueLimit::Packets(limit) => limit.saturating_sub(self.queue.len() as u64),
            QueueLimit::Bytes(limit) => {
                let free = limit.saturating_sub(self.queued_bytes as u64);
                free / (len as u64).max(1)
            }
        }
    }

    /// Whether its backoff may count.
    pub(crate) fn is_idle(&self) -> bool {
        self.phase == Phase::Contending
            && self.reply.is_none()
            && !self.sending
            && self.ears.is_quiet()
    }

    /// Whether an attempt at its frame has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.short_failures + self.long_failures > 0
    }

    /// When it may begin to send, if nothing comes between.
    pub(crate) fn access_at(&self) -> Option<Instant> {
        self.current.as_ref()?;
        self.contention.expires()
    }

    /// Its next deadline.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let waits = match self.phase {
            Phase::Cts(until) | Phase::Ack(until) => Some(until),
            Phase::Contending => self.access_at(),
            Phase::Sending => None,
        };
        let reply = self.reply.map(|(at, ..)| at);
        waits.into_iter().chain(reply).min()
    }

    /// An attempt has failed, at the RTS or at the frame itself. Gives the packet if it is given up.
    pub(crate) fn fail(
        &mut self,
        now: Instant,
        at_rts: bool,
        behind_rts: bool,
    ) -> Option<Outgoing<P>> {
        let failures = match at_rts || !behind_rts {
            true => &mut self.short_failures,
            false => &mut self.long_failures,
        };
        *failures += 1;
        let within = |limit| self.short_failures < limit && self.long_failures < LONG_LIMIT;
        let over = match self.retries {
            Retries::Off => true,
            Retries::On => !within(SHORT_LIMIT),
            Retries::Limit(limit) => !within(limit.get()),
            Retries::Unlimited => false,
        };
        if over {
            self.stats.retry_drops += 1;
            return self.finish(now);
        }
        self.stats.retries += 1;
        self.contention.widen();
        self.contend(now);
        None
    }

    /// The frame is done with. Gives the packet; the next one moves up.
    pub(crate) fn finish(&mut self, now: Instant) -> Option<Outgoing<P>> {
        let done = self.current.take();
        self.short_failures = 0;
        self.long_failures = 0;
        self.contention.reset();
        match self.queue.pop_front() {
            None => self.stats.underflows += 1,
            Some(next) => {
                self.queued_bytes -= next.len;
                self.current = Some(next);
                self.stats.taken += 1;
                self.seq += 1;
            }
        }
        self.contend(now);
        done
    }

    fn contend(&mut self, now: Instant) {
        self.phase = Phase::Contending;
        self.ready_since = now;
        self.contention.draw(&mut self.backoffs);
    }

    /// A data frame has come. Whether it is a new one.
    pub(crate) fn is_new(&mut self, from: usize, seq: u64) -> bool {
        let new = self.last_seq[from] != seq;
        self.last_seq[from] = seq;
        match new {
            true => self.stats.delivered += 1,
            false => self.stats.repeated += 1,
        }
        new
    }
}
