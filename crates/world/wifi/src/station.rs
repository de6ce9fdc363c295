//! One station: its queue, the frame that it is sending, and the answers that it owes.

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
/// Attempts of a frame after an RTS.
const LONG_LIMIT: u32 = 4;

/// The configuration of a station.
#[derive(Clone, Debug, PartialEq)]
pub struct StationConfig {
    /// Its position, metres.
    pub position: Position,
    /// The thresholds of its receiver.
    pub hears: Thresholds,
    /// How often it tries a frame.
    pub retries: Retries,
    /// The limit of its queue; the frame being sent does not count.
    pub queue: QueueLimit,
}

/// The counters of a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StationStats {
    /// Packets enqueued.
    pub accepted: u64,
    /// Packets taken for transmission, each counted once however often it was tried.
    pub taken: u64,
    /// Times that it was done with a packet and its queue was empty.
    pub underflows: u64,
    /// Packets dropped because its queue was full.
    pub queue_drops: u64,
    /// Retries.
    pub retries: u64,
    /// Packets dropped at the retry limit.
    pub retry_drops: u64,
    /// Data frames sent, every attempt counted.
    pub data_frames: u64,
    /// Of these, frames overlapped at their receiver.
    pub data_collided: u64,
    /// Of these, frames that noise destroyed at their receiver, or that were too weak there.
    pub data_noise: u64,
    /// Acknowledgments sent.
    pub ack_frames: u64,
    /// Of these, acknowledgments overlapped at their receiver.
    pub ack_collided: u64,
    /// RTS frames sent.
    pub rts_frames: u64,
    /// Of these, RTS overlapped at their receiver.
    pub rts_collided: u64,
    /// CTS frames sent.
    pub cts_frames: u64,
    /// Of these, CTS overlapped at their receiver.
    pub cts_collided: u64,
    /// Total duration of the frames sent, of all types; only frames that have ended count.
    pub airtime_ns: u64,
    /// Packets received, duplicates not counted.
    pub delivered: u64,
    /// Duplicates received because the acknowledgment was lost.
    pub repeated: u64,
    /// Backoffs drawn from the largest window.
    pub draws_at_cw_max: u64,
}

impl StationStats {
    /// Frames sent, of all types.
    pub fn frames(&self) -> u64 {
        self.data_frames + self.ack_frames + self.rts_frames + self.cts_frames
    }

    /// Of these, frames overlapped at their receiver.
    pub fn collided(&self) -> u64 {
        self.data_collided + self.ack_collided + self.rts_collided + self.cts_collided
    }
}

/// A packet being sent.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing<P> {
    pub(crate) to: usize,
    pub(crate) len: usize,
    pub(crate) packet: P,
}

/// What a station is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Channel access, or a packet.
    Contending,
    /// The end of its own RTS, DATA, or the gap between CTS and DATA.
    Sending,
    /// A CTS, until this time.
    Cts(Instant),
    /// An acknowledgment, until this time.
    Ack(Instant),
}

/// The answer that a station sends a SIFS after a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Ack,
    /// The duration of the announced frame.
    Cts(Duration),
    Data,
}

/// The state machine of one station. The radio tells it which frames it hears.
#[derive(Clone, Debug)]
pub(crate) struct Station<P> {
    pub(crate) retries: Retries,
    limit: QueueLimit,
    queue: VecDeque<Outgoing<P>>,
    queued_bytes: usize,
    pub(crate) current: Option<Outgoing<P>>,
    /// Failed attempts at `current`: without an answer to the RTS, or to the frame itself.
    short_failures: u32,
    long_failures: u32,
    /// The sequence number of `current`.
    pub(crate) seq: u64,
    /// When it last began to send a packet, or the RTS for one.
    pub(crate) began: Instant,
    pub(crate) phase: Phase,
    /// The answer that it owes, to which station, and when.
    pub(crate) reply: Option<(Instant, Reply, usize)>,
    pub(crate) contention: Contention,
    pub(crate) ears: Reception,
    /// Whether it is sending.
    pub(crate) sending: bool,
    /// The network allocation vector: it must stay silent until this time.
    pub(crate) nav: Instant,
    /// Since when nothing of its own stops the countdown: its last frame, its last timeout, or its last draw.
    pub(crate) ready_since: Instant,
    pub(crate) backoffs: Rng,
    pub(crate) noise: Rng,
    /// The sequence number of the last frame from each station.
    last_seq: Vec<u64>,
    /// The rate to each station, if it chooses rates.
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

    /// Enqueues a packet, or returns it because the queue is full.
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

    /// Packets queued or being sent.
    pub(crate) fn backlog(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }

    /// How many more packets of `len` bytes fit into the queue.
    pub(crate) fn room(&self, len: usize) -> u64 {
        match self.limit {
            QueueLimit::Packets(limit) => limit.saturating_sub(self.queue.len() as u64),
            QueueLimit::Bytes(limit) => {
                let free = limit.saturating_sub(self.queued_bytes as u64);
                free / (len as u64).max(1)
            }
        }
    }

    /// Whether its backoff may count down.
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

    /// When it may begin to send unless the channel becomes busy.
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

    /// An attempt has failed, at the RTS or at the frame itself. Returns the packet if it is given up.
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

    /// The station is done with the frame. Returns its packet; the next one takes its place.
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

    /// A data frame was received; true if it is new.
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
