//! The receiving half of an end: cumulative acknowledgments, when they leave, and what they report.
//!
//! Rules (RFC 5681, section 4.2; RFC 2018, section 4): a segment ahead of a hole waits in a buffer of one
//! window and is acknowledged at once with `rcv_nxt`, so it repeats the last acknowledgment. So is one that
//! is already here, and one that fills a hole or a part of it. One that simply continues the data is
//! acknowledged at once, or with delayed acknowledgments together with the next, or when the clock says so.
//! Where selective acknowledgments are on, each reports the block of the segment that caused it first, and
//! then the blocks that were reported last. Bytes leave the buffer in order and once.
//!
//! Invariant: `rcv_nxt` is never held in the buffer. Left out: window updates (the application reads at
//! once), and the report of duplicates (RFC 2883).

use airlane_base::{Duration, Instant};
use serde::Serialize;

use super::ranges::Ranges;
use super::{Ack, AckClock, Blocks, Data, DelayedAck, MOST_BLOCKS, Range, RecoveryKind, TcpConfig};

/// What a receiver has counted, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReceiverStats {
    /// Segments that arrived.
    pub segments_received: u64,
    /// Of these, segments that were here before.
    pub segments_duplicate: u64,
    /// Of these, segments that arrived ahead of a hole.
    pub segments_out_of_order: u64,
    /// Of these, segments beyond the window, which were dropped.
    pub segments_beyond_window: u64,
    /// User bytes given to the application, in order and once.
    pub delivered_bytes: u64,
}

/// Acknowledgments that wait for a second segment (RFC 5681, section 4.2).
#[derive(Clone, Debug)]
struct Delayed {
    config: DelayedAck,
    /// Where a free-running clock's ticks lie against the driver's origin.
    phase: Duration,
    /// Segments in order that no acknowledgment covers yet.
    unacknowledged: u32,
    /// When these are acknowledged at the latest.
    due: Option<Instant>,
}

impl Delayed {
    fn new(config: &TcpConfig, tick_phase: Duration) -> Option<Self> {
        let delayed = config.delayed_ack?;
        // The same point of this clock's period as of the other's.
        let share = tick_phase.as_secs_f64() / config.tick.as_secs_f64();
        Some(Self {
            config: delayed,
            phase: delayed.within.mul_f64(share),
            unacknowledged: 0,
            due: None,
        })
    }

    /// A segment has come in order; whether it is acknowledged now.
    fn on_segment(&mut self, now: Instant) -> bool {
        self.unacknowledged += 1;
        if self.due.is_none() {
            let within = self.config.within;
            self.due = Some(match self.config.clock {
                AckClock::FromArrival => now + within,
                AckClock::FreeRunning => {
                    let since = (now + self.phase).as_nanos() % within.as_nanos();
                    now + Duration::from_nanos(within.as_nanos() - since)
                }
            });
        }
        self.unacknowledged >= self.config.every
    }

    fn on_acknowledged(&mut self) {
        self.unacknowledged = 0;
        self.due = None;
    }
}

/// What is reported of segments ahead of a hole (RFC 2018, section 4).
#[derive(Clone, Debug, Default)]
struct Sack {
    held: Ranges,
    /// The newest segment of each block that was reported last, the latest first; some may have been
    /// delivered since. A block only grows, so this finds it again.
    recent: [u64; MOST_BLOCKS],
}

impl Sack {
    /// The blocks of the acknowledgment that `trigger` causes.
    fn blocks(&mut self, trigger: u64) -> Blocks {
        let mut blocks = Blocks::default();
        let mut reported = [0; MOST_BLOCKS];
        for seq in std::iter::once(trigger).chain(self.recent) {
            if let Some(block) = self.held.containing(seq)
                && !blocks.contains(&block)
                && blocks.len() < MOST_BLOCKS
            {
                reported[blocks.len()] = seq;
                blocks.push(block);
            }
        }
        self.recent = reported;
        blocks
    }
}

/// The receiving half of one end.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Lengths of waiting segments by `seq % waiting.len()`, a power of two; zero is a free slot. Empty
    /// until a segment waits.
    waiting: Vec<u32>,
    window: u64,
    rcv_nxt: u64,
    /// The segment that came last.
    trigger: u64,
    /// In-order bytes that the application has not taken yet.
    readable: u64,
    /// Bytes of earlier connections.
    delivered_before: u64,
    /// Segments in `waiting`.
    held: u64,
    /// Whether an acknowledgment has to leave now.
    ack_now: bool,
    delayed: Option<Delayed>,
    sack: Option<Box<Sack>>,
    stats: ReceiverStats,
}

impl Receiver {
    /// A receiver that has seen nothing. `tick_phase` is that of its host's clock, as for a
    /// [`Sender`](super::Sender).
    pub fn new(config: &TcpConfig, tick_phase: Duration) -> Self {
        Self {
            waiting: vec![],
            window: u64::from(config.window),
            rcv_nxt: 0,
            trigger: 0,
            readable: 0,
            delivered_before: 0,
            held: 0,
            ack_now: false,
            delayed: Delayed::new(config, tick_phase),
            sack: (config.recovery() == RecoveryKind::Sack).then(Box::default),
            stats: ReceiverStats::default(),
        }
    }

    /// Forgets everything: the receiver of a new connection. Keeps the counters and the memory.
    pub fn restart(&mut self, config: &TcpConfig, tick_phase: Duration) {
        let fresh = Self::new(config, tick_phase);
        let mut waiting = std::mem::take(&mut self.waiting);
        if self.held > 0 {
            waiting.fill(0);
        }
        *self = Self {
            waiting,
            delivered_before: self.stats.delivered_bytes,
            stats: self.stats,
            ..fresh
        };
    }

    /// A segment has arrived.
    #[inline]
    pub fn handle_data(&mut self, now: Instant, data: Data) {
        self.stats.segments_received += 1;
        self.trigger = data.seq;
        if data.seq != self.rcv_nxt {
            self.keep(data);
            self.ack_now = true;
        } else if self.held == 0 {
            self.deliver(data.len);
            self.ack_now |= match &mut self.delayed {
                None => true,
                Some(delayed) => delayed.on_segment(now),
            };
        } else {
            self.deliver(data.len);
            self.release();
            self.ack_now = true;
        }
    }

    /// Time has passed; an early call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(delayed) = &mut self.delayed
            && delayed.due.is_some_and(|due| due <= now)
        {
            delayed.due = None;
            self.ack_now = true;
        }
    }

    /// When `handle_timeout` is due.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.delayed.as_ref()?.due
    }

    /// A segment that does not continue what is here.
    fn keep(&mut self, data: Data) {
        if data.seq < self.rcv_nxt {
            self.stats.segments_duplicate += 1;
            return;
        }
        if data.seq - self.rcv_nxt >= self.window {
            self.stats.segments_beyond_window += 1;
            return;
        }
        if self.waiting.is_empty() {
            self.waiting = vec![0; self.window.next_power_of_two() as usize];
        }
        let slot = self.slot(data.seq);
        if self.waiting[slot] == 0 {
            self.waiting[slot] = data.len.max(1);
            self.held += 1;
            if let Some(sack) = &mut self.sack {
                sack.held.insert(Range {
                    start: data.seq,
                    end: data.seq + 1,
                });
            }
            self.stats.segments_out_of_order += 1;
        } else {
            self.stats.segments_duplicate += 1;
        }
    }

    /// The acknowledgment that has to leave now.
    #[inline]
    pub fn poll_ack(&mut self) -> Option<Ack> {
        if !std::mem::take(&mut self.ack_now) {
            return None;
        }
        if let Some(delayed) = &mut self.delayed {
            delayed.on_acknowledged();
        }
        let blocks = match &mut self.sack {
            Some(sack) if self.held > 0 => sack.blocks(self.trigger),
            _ => Blocks::default(),
        };
        Some(Ack {
            ack: self.rcv_nxt,
            blocks,
        })
    }

    /// In-order bytes for the application since the last call; none if there are none.
    pub fn poll_deliver(&mut self) -> Option<u64> {
        let bytes = std::mem::take(&mut self.readable);
        (bytes > 0).then_some(bytes)
    }

    /// User bytes that have arrived in order on this connection.
    pub fn received(&self) -> u64 {
        self.stats.delivered_bytes - self.delivered_before
    }

    /// The next segment expected.
    pub fn rcv_nxt(&self) -> u64 {
        self.rcv_nxt
    }

    /// Counters.
    pub fn stats(&self) -> &ReceiverStats {
        &self.stats
    }

    fn deliver(&mut self, len: u32) {
        self.rcv_nxt += 1;
        self.readable += u64::from(len);
        self.stats.delivered_bytes += u64::from(len);
    }

    const fn slot(&self, seq: u64) -> usize {
        seq as usize & (self.waiting.len() - 1)
    }

    /// Delivers what waited for the segment before it.
    fn release(&mut self) {
        while self.held > 0 {
            let slot = self.slot(self.rcv_nxt);
            match std::mem::take(&mut self.waiting[slot]) {
                0 => break,
                len => self.deliver(len),
            }
            self.held -= 1;
        }
        if let Some(sack) = &mut self.sack {
            sack.held.cut_below(self.rcv_nxt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn segment(seq: u64) -> Data {
        Data {
            seq,
            len: 50,
            retransmission: false,
        }
    }

    impl Receiver {
        /// The acknowledgment that a segment provokes.
        fn answer(&mut self, data: Data) -> u64 {
            self.handle_data(Instant::ORIGIN, data);
            let ack = self.poll_ack().unwrap().ack;
            assert_eq!(self.poll_ack(), None);
            ack
        }
    }

    #[test]
    fn a_hole_repeats_the_acknowledgment_until_it_is_filled() {
        let mut r = Receiver::new(&TcpConfig::default(), Duration::ZERO);
        let acks: Vec<u64> = [0, 1, 3, 4, 5, 2, 6].map(|s| r.answer(segment(s))).into();
        assert_eq!(acks, [1, 2, 2, 2, 2, 6, 7]);
        assert_eq!(r.poll_deliver(), Some(350));
        assert_eq!(r.poll_deliver(), None);
        assert_eq!(r.stats().segments_out_of_order, 3);
    }

    #[test]
    fn duplicates_are_counted_and_acknowledged_but_never_delivered_twice() {
        let mut r = Receiver::new(&TcpConfig::default(), Duration::ZERO);
        for s in [0, 0, 2, 2, 1, 1] {
            r.handle_data(Instant::ORIGIN, segment(s));
        }
        assert_eq!(r.stats().segments_duplicate, 3);
        assert_eq!(r.stats().delivered_bytes, 150);
        assert_eq!(r.rcv_nxt(), 3);
    }

    #[test]
    fn a_segment_beyond_the_window_takes_nobody_elses_slot() {
        let config = TcpConfig {
            window: 20,
            ..TcpConfig::default()
        };
        let mut r = Receiver::new(&config, Duration::ZERO);
        r.handle_data(Instant::ORIGIN, segment(1));
        r.handle_data(Instant::ORIGIN, segment(33)); // the slot of segment 1 in a buffer of 32
        r.handle_data(Instant::ORIGIN, segment(20));
        assert_eq!(r.stats().segments_beyond_window, 2);
        assert_eq!(r.answer(segment(0)), 2);
    }

    proptest! {
        /// Whatever arrives in whatever order, the application gets a prefix, once.
        #[test]
        fn delivers_exactly_the_prefix(seqs in prop::collection::vec(0u64..40, 0..200), window in 1u32..40) {
            let mut r = Receiver::new(&TcpConfig { window, ..TcpConfig::default() }, Duration::ZERO);
            let mut model = std::collections::BTreeSet::new();
            let mut next = 0;
            for s in seqs {
                if s < next + u64::from(window) {
                    model.insert(s);
                }
                while model.contains(&next) {
                    next += 1;
                }
                prop_assert_eq!(r.answer(segment(s)), next);
            }
            prop_assert_eq!(r.stats().delivered_bytes, next * 50);
        }
    }
}
