//! The receiving half of an end: cumulative acknowledgments, one for every segment, at once.
//!
//! Rules (the specification, section 4; RFC 5681 4.2 without delayed acknowledgments): every
//! arriving segment is answered with `rcv_nxt`, so an arrival out of order repeats the last
//! acknowledgment, and so does a segment that is already here. Segments ahead of `rcv_nxt` wait in
//! a buffer of one window; bytes leave it in order and once.
//!
//! Invariant: `rcv_nxt` is never held in the buffer. Left out: selective acknowledgments, delayed
//! acknowledgments, window updates (the application reads at once).

use serde::Serialize;

use super::{Ack, Data, TcpConfig};

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

/// The receiving half of one end.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Lengths of waiting segments by `seq % waiting.len()`, a power of two; zero is a free slot. Empty
    /// until a segment waits.
    waiting: Vec<u32>,
    window: u64,
    rcv_nxt: u64,
    /// In-order bytes that the application has not taken yet.
    readable: u64,
    /// Bytes of earlier connections.
    delivered_before: u64,
    /// Whether an acknowledgment has to leave now.
    ack_now: bool,
    stats: ReceiverStats,
}

impl Receiver {
    /// A receiver that has seen nothing.
    pub fn new(config: &TcpConfig) -> Self {
        Self {
            waiting: vec![],
            window: u64::from(config.window),
            rcv_nxt: 0,
            readable: 0,
            delivered_before: 0,
            ack_now: false,
            stats: ReceiverStats::default(),
        }
    }

    /// Forgets everything: the receiver of a new connection. Keeps the counters and the memory.
    pub fn restart(&mut self) {
        self.waiting.fill(0);
        self.rcv_nxt = 0;
        self.readable = 0;
        self.delivered_before = self.stats.delivered_bytes;
        self.ack_now = false;
    }

    /// A segment has arrived.
    #[inline]
    pub fn handle_data(&mut self, data: Data) {
        self.stats.segments_received += 1;
        self.ack_now = true;
        if data.seq == self.rcv_nxt {
            self.deliver(data.len);
            self.release();
        } else {
            self.keep(data);
        }
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
            self.stats.segments_out_of_order += 1;
        } else {
            self.stats.segments_duplicate += 1;
        }
    }

    /// The acknowledgment that has to leave now.
    #[inline]
    pub fn poll_ack(&mut self) -> Option<Ack> {
        std::mem::take(&mut self.ack_now).then_some(Ack { ack: self.rcv_nxt })
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
        while !self.waiting.is_empty() {
            let slot = self.slot(self.rcv_nxt);
            match std::mem::take(&mut self.waiting[slot]) {
                0 => return,
                len => self.deliver(len),
            }
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
            self.handle_data(data);
            let ack = self.poll_ack().unwrap().ack;
            assert_eq!(self.poll_ack(), None);
            ack
        }
    }

    #[test]
    fn a_hole_repeats_the_acknowledgment_until_it_is_filled() {
        let mut r = Receiver::new(&TcpConfig::default());
        let acks: Vec<u64> = [0, 1, 3, 4, 5, 2, 6].map(|s| r.answer(segment(s))).into();
        assert_eq!(acks, [1, 2, 2, 2, 2, 6, 7]);
        assert_eq!(r.poll_deliver(), Some(350));
        assert_eq!(r.poll_deliver(), None);
        assert_eq!(r.stats().segments_out_of_order, 3);
    }

    #[test]
    fn duplicates_are_counted_and_acknowledged_but_never_delivered_twice() {
        let mut r = Receiver::new(&TcpConfig::default());
        for s in [0, 0, 2, 2, 1, 1] {
            r.handle_data(segment(s));
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
        let mut r = Receiver::new(&config);
        r.handle_data(segment(1));
        r.handle_data(segment(33)); // the slot of segment 1 in a buffer of 32
        r.handle_data(segment(20));
        assert_eq!(r.stats().segments_beyond_window, 2);
        assert_eq!(r.answer(segment(0)), 2);
    }

    proptest! {
        /// Whatever arrives in whatever order, the application gets a prefix, once.
        #[test]
        fn delivers_exactly_the_prefix(seqs in prop::collection::vec(0u64..40, 0..200), window in 1u32..40) {
            let mut r = Receiver::new(&TcpConfig { window, ..TcpConfig::default() });
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
