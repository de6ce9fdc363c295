//! The receiving half of an end: cumulative acknowledgments, when they are sent, and what they report.
//!
//! Rules (RFC 5681, section 4.2; RFC 2018, section 4): an out-of-order segment waits in a buffer of one window and is
//! acknowledged at once with `rcv_nxt`, which makes a duplicate acknowledgment. A segment that is a duplicate, or
//! that fills a hole or a part of it, is acknowledged at once too. A segment that continues the data is acknowledged
//! at once, or, with delayed acknowledgments, together with the next one or when the timer expires. With selective
//! acknowledgments the first block contains the segment that caused the acknowledgment, followed by the blocks
//! reported most recently. Bytes leave the buffer in order and once.
//!
//! The buffer holds one window, including what the application has not read; each acknowledgment advertises the rest.
//! If the application reads after a smaller window was advertised, an additional acknowledgment is sent once the
//! window has opened by two segments or half of the buffer (RFC 1122, section 4.2.3.3).
//!
//! A duplicate segment is reported once, before the blocks (RFC 2883). An acknowledgment echoes the timestamp of the
//! oldest segment that it acknowledges (RFC 7323, section 4.3), and a segment with an older timestamp is discarded,
//! even if it is merely late (PAWS, section 5). The FIN is acknowledged at once.
//!
//! Invariants: `rcv_nxt` is never in the buffer; `rcv_nxt` plus the advertised window never decreases.

mod delayed;
mod report;
mod skip;

use airlane_base::{Duration, Instant};
use serde::Serialize;

use super::ecn::Echo;
use super::scale::Scale;
use super::segment::Timestamp;
use super::{Ack, Blocks, Data, Range, ReportKind, TcpConfig};
use delayed::Delayed;
use report::{Destroyed, Report};
use skip::Skip;

/// The counters of a receiver, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReceiverStats {
    /// Segments received.
    pub segments_received: u64,
    /// Of these, duplicates.
    pub segments_duplicate: u64,
    /// Of these, segments received out of order.
    pub segments_out_of_order: u64,
    /// Of these, segments beyond the window, which were discarded.
    pub segments_beyond_window: u64,
    /// Of these, segments older than the one acknowledged last, which were discarded (RFC 7323, section 5).
    pub segments_outdated: u64,
    /// User bytes delivered to the application, in order and once.
    pub delivered_bytes: u64,
}

/// The receiving half of one end.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// Lengths of the buffered segments plus one, at index `seq % waiting.len()`; the length is a power of two, and
    /// zero marks a free slot. Empty until a segment has to wait.
    waiting: Vec<u32>,
    /// The whole window, segments.
    window: u64,
    /// User bytes of a full segment.
    segment: u32,
    rcv_nxt: u64,
    /// The segment received last.
    trigger: u64,
    /// In-order bytes that the application has not read yet.
    readable: u64,
    /// The segments that hold them; at most `window`.
    unread: u64,
    /// The edge of the last advertised window, before rounding, if it was reduced by unread data.
    narrow_edge: Option<u64>,
    /// Bytes delivered on earlier connections.
    delivered_before: u64,
    /// Segments in `waiting`.
    held: u64,
    /// Whether the FIN has arrived, after all data.
    ended: bool,
    /// Whether an acknowledgment must be sent now.
    ack_now: bool,
    /// What the last acknowledgment said, and the timestamp that the next one echoes (RFC 7323's TS.Recent), since when.
    acked: u64,
    recent: Option<(Timestamp, Instant)>,
    /// Whether duplicates are reported, and the last one not reported yet.
    reports_duplicates: bool,
    duplicate: Option<u64>,
    scale: Scale,
    echo: Echo,
    delayed: Option<Delayed>,
    skip: Option<Skip>,
    report: Report,
    destroyed: Option<Box<Destroyed>>,
    stats: ReceiverStats,
}

impl Receiver {
    /// A receiver in its initial state. A full segment has `segment` user bytes; `tick_phase` is that of its host's
    /// clock, as for a [`Sender`](super::Sender).
    pub fn new(config: &TcpConfig, segment: u32, tick_phase: Duration) -> Self {
        Self {
            waiting: vec![],
            window: u64::from(config.window_of(segment)),
            segment,
            rcv_nxt: 0,
            trigger: 0,
            readable: 0,
            unread: 0,
            narrow_edge: None,
            delivered_before: 0,
            held: 0,
            ended: false,
            ack_now: false,
            acked: 0,
            recent: None,
            reports_duplicates: config.dsack.unwrap_or_default(),
            duplicate: None,
            scale: Scale::new(config, segment),
            echo: Echo::default(),
            delayed: Delayed::new(config, tick_phase),
            skip: Skip::new(config),
            report: match config.report() {
                ReportKind::Plain => Report::Nothing,
                ReportKind::Sack => Report::Sack(Box::default()),
                ReportKind::Smart => Report::Trigger,
            },
            destroyed: config
                .loss_memory()
                .map(|memory| Box::new(Destroyed::new(memory))),
            stats: ReceiverStats::default(),
        }
    }

    /// Resets everything for a new connection, except the counters and the memory.
    pub fn restart(&mut self, config: &TcpConfig, tick_phase: Duration) {
        let fresh = Self::new(config, self.segment, tick_phase);
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

    /// Takes a data segment.
    #[inline]
    pub fn handle_data(&mut self, now: Instant, data: &Data) {
        self.stats.segments_received += 1;
        if let Some(stamp) = data.stamp {
            let is_outdated = |(recent, since): (Timestamp, Instant)| {
                stamp.is_before(recent) && now.saturating_since(since) < Timestamp::COMPARABLE
            };
            if self.recent.is_some_and(is_outdated) {
                self.outdated(data.seq);
                return;
            }
            if data.seq <= self.acked {
                self.recent = Some((stamp, now));
            }
        }
        self.trigger = data.seq;
        if let Some(skip) = &mut self.skip {
            skip.on_data(data.seq);
        }
        self.echo.on_data(data.ecn, data.cut);
        if data.seq != self.rcv_nxt || self.unread >= self.window {
            self.keep(data);
            self.ack_now = true;
            if let Some(skip) = &mut self.skip {
                skip.sends(self.rcv_nxt, false, false);
            }
            return;
        }
        let hole = self.held > 0;
        self.deliver(data.len);
        let is_due = if hole {
            self.release();
            true
        } else {
            match &mut self.delayed {
                None => true,
                Some(delayed) => delayed.on_segment(now) || data.len == 0,
            }
        };
        // Nothing follows the FIN that could stand in for its acknowledgment.
        if is_due && (data.len == 0 || !self.skips(hole)) {
            self.ack_now = true;
        }
    }

    /// Whether the acknowledgment that is due is left out. One that is left out is not due any more.
    fn skips(&mut self, hole: bool) -> bool {
        let skip = self.skip.as_mut();
        let skips = skip.is_some_and(|skip| !skip.sends(self.rcv_nxt, true, hole));
        if skips && let Some(delayed) = &mut self.delayed {
            delayed.on_acknowledged();
        }
        skips
    }

    /// The peer probes the window.
    pub fn handle_probe(&mut self) {
        self.ack_now = true;
    }

    /// A link reports that it destroyed segment `seq` on the way here.
    pub fn handle_destroyed(&mut self, seq: u64) {
        let ahead = seq.checked_sub(self.rcv_nxt);
        let is_new = ahead.is_some_and(|ahead| ahead < self.window)
            && (self.waiting.is_empty() || self.waiting[self.slot(seq)] == 0);
        if is_new && let Some(destroyed) = &mut self.destroyed {
            destroyed.insert(seq);
        }
    }

    /// Advances time. An early call does nothing.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(delayed) = &mut self.delayed
            && delayed.due.is_some_and(|due| due <= now)
        {
            delayed.due = None;
            self.ack_now |= !self.skips(self.held > 0);
        }
    }

    /// When `handle_timeout` is due.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.delayed.as_ref()?.due
    }

    /// A segment was sent before the one acknowledged last: it may be 2^32 bytes old, and is discarded.
    #[cold]
    fn outdated(&mut self, seq: u64) {
        self.stats.segments_outdated += 1;
        if seq < self.rcv_nxt {
            self.repeated(seq);
        }
        self.ack_now = true;
    }

    /// Buffers a segment that does not continue the data.
    fn keep(&mut self, data: &Data) {
        if data.seq < self.rcv_nxt {
            self.repeated(data.seq);
            return;
        }
        if data.seq - self.rcv_nxt >= self.window - self.unread {
            self.stats.segments_beyond_window += 1;
            return;
        }
        if self.waiting.is_empty() {
            self.waiting = vec![0; self.window.next_power_of_two() as usize];
        }
        let slot = self.slot(data.seq);
        if self.waiting[slot] == 0 {
            self.waiting[slot] = data.len + 1;
            self.held += 1;
            if let Report::Sack(sack) = &mut self.report {
                sack.held.insert(Range {
                    start: data.seq,
                    end: data.seq + 1,
                });
            }
            self.stats.segments_out_of_order += 1;
        } else {
            self.repeated(data.seq);
        }
    }

    /// A duplicate has arrived.
    fn repeated(&mut self, seq: u64) {
        self.stats.segments_duplicate += 1;
        if self.reports_duplicates {
            self.duplicate = Some(seq);
        }
    }

    /// The acknowledgment to send now.
    #[inline]
    pub fn poll_ack(&mut self) -> Option<Ack> {
        if !std::mem::take(&mut self.ack_now) {
            return None;
        }
        if let Some(delayed) = &mut self.delayed {
            delayed.on_acknowledged();
        }
        let blocks = if self.held == 0 && self.duplicate.is_none() {
            Blocks::default()
        } else {
            self.blocks()
        };
        self.acked = self.rcv_nxt;
        let window = self.scale.advertised(self.window - self.unread);
        // Reading does not undo what rounding took away.
        let edge = self.rcv_nxt + self.window - self.unread;
        self.narrow_edge = (self.unread > 0).then_some(edge);
        Some(Ack {
            ack: self.rcv_nxt,
            stamp: self.recent.map(|(recent, _)| recent),
            echo: self.echo.is_on(),
            blocks,
            window: window as u32,
            eln: match &mut self.destroyed {
                None => false,
                Some(destroyed) => destroyed.holds(self.rcv_nxt),
            },
        })
    }

    fn blocks(&mut self) -> Blocks {
        match &mut self.report {
            Report::Nothing => Blocks::default(),
            Report::Sack(sack) => sack.blocks(self.duplicate.take(), self.trigger),
            Report::Trigger => {
                let mut blocks = Blocks::default();
                let ahead = self.trigger.checked_sub(self.rcv_nxt);
                if ahead.is_some_and(|ahead| ahead < self.window - self.unread)
                    && self.waiting[self.slot(self.trigger)] > 0
                {
                    blocks.push(Range {
                        start: self.trigger,
                        end: self.trigger + 1,
                    });
                }
                blocks
            }
        }
    }

    /// Bytes that became available to the application, in order, since the last call; none if there are none.
    #[inline]
    pub fn poll_deliver(&mut self) -> Option<u64> {
        let bytes = std::mem::take(&mut self.readable);
        self.unread = 0;
        if let Some(edge) = self.narrow_edge {
            let opened = self.rcv_nxt + self.window - edge;
            self.ack_now |= opened >= 2.min(self.window.div_ceil(2));
        }
        (bytes > 0).then_some(bytes)
    }

    /// Whether the application has data left to read.
    #[inline]
    pub fn has_unread(&self) -> bool {
        self.unread > 0
    }

    /// Whether the FIN has arrived, after all data.
    #[inline]
    pub(super) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// User bytes received in order on this connection.
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

    #[inline]
    fn deliver(&mut self, len: u32) {
        self.rcv_nxt += 1;
        self.readable += u64::from(len);
        self.unread += 1;
        self.ended |= len == 0;
        self.stats.delivered_bytes += u64::from(len);
    }

    const fn slot(&self, seq: u64) -> usize {
        seq as usize & (self.waiting.len() - 1)
    }

    /// Delivers the buffered segments that are now in order.
    fn release(&mut self) {
        while self.held > 0 {
            let slot = self.slot(self.rcv_nxt);
            match std::mem::take(&mut self.waiting[slot]) {
                0 => break,
                len => self.deliver(len - 1),
            }
            self.held -= 1;
        }
        if let Report::Sack(sack) = &mut self.report {
            sack.held.cut_below(self.rcv_nxt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Ecn;
    use crate::tcp::Profile;
    use proptest::prelude::*;

    fn segment(seq: u64) -> Data {
        Data {
            seq,
            len: 50,
            retransmission: false,
            ecn: Ecn::NotCapable,
            cut: false,
            stamp: None,
        }
    }

    impl Receiver {
        /// Delivers a segment; returns the number that it acknowledges.
        fn answer(&mut self, data: Data) -> u64 {
            self.handle_data(Instant::ORIGIN, &data);
            let ack = self.poll_ack().unwrap().ack;
            assert_eq!(self.poll_ack(), None);
            ack
        }
    }

    #[test]
    fn a_hole_repeats_the_acknowledgment_until_it_is_filled() {
        let mut r = Receiver::new(&TcpConfig::profile(Profile::Ns2In1999), 50, Duration::ZERO);
        let acks: Vec<u64> = [0, 1, 3, 4, 5, 2, 6].map(|s| r.answer(segment(s))).into();
        assert_eq!(acks, [1, 2, 2, 2, 2, 6, 7]);
        assert_eq!(r.poll_deliver(), Some(350));
        assert_eq!(r.poll_deliver(), None);
        assert_eq!(r.stats().segments_out_of_order, 3);
    }

    #[test]
    fn duplicates_are_counted_and_acknowledged_but_never_delivered_twice() {
        let mut r = Receiver::new(&TcpConfig::profile(Profile::Ns2In1999), 50, Duration::ZERO);
        for s in [0, 0, 2, 2, 1, 1] {
            r.handle_data(Instant::ORIGIN, &segment(s));
        }
        assert_eq!(r.stats().segments_duplicate, 3);
        assert_eq!(r.stats().delivered_bytes, 150);
        assert_eq!(r.rcv_nxt(), 3);
    }

    #[test]
    fn acknowledgments_are_skipped_except_around_holes() {
        let acks = |holes, segments: &[u64]| -> Vec<u64> {
            let skip = format!(
                "profile = \"ns2-1999\"\nskip-acks = {{ count = 1, from = 4, holes = \"{holes}\" }}"
            );
            let config: TcpConfig = toml::from_str(&skip).unwrap();
            let mut r = Receiver::new(&config, 50, Duration::ZERO);
            let answers = segments.iter().filter_map(|s| {
                r.handle_data(Instant::ORIGIN, &segment(*s));
                r.poll_ack().map(|ack| ack.ack)
            });
            answers.collect()
        };
        for holes in ["exempt", "literal"] {
            let all = acks(holes, &[0, 1, 2, 3, 4, 5, 6, 7, 8]);
            assert_eq!(all, [1, 2, 3, 4, 6, 8]);
        }
        // Two segments are missing: the partial acknowledgment of the first advances by one.
        let order = [0, 1, 2, 3, 6, 7, 4, 5, 8, 9];
        assert_eq!(acks("exempt", &order), [1, 2, 3, 4, 4, 4, 5, 8, 10]);
        assert_eq!(acks("literal", &order), [1, 2, 3, 4, 4, 4, 8, 10]);
    }

    #[test]
    fn of_delayed_acknowledgments_as_many_are_skipped() {
        // Whether the timer's acknowledgment of a last segment leaves.
        for (count, every, expected, last) in [
            (1, 2, &[2, 4, 8, 12][..], false),
            (2, 2, &[2, 4, 10], false),
            (1, 3, &[3, 9], true),
            (0, 2, &[2, 4, 6, 8, 10, 12], true),
        ] {
            let text = format!(
                "profile = \"ns2-1999\"\ndelayed-ack = {{ every = {every} }}\n\
                 skip-acks = {{ count = {count}, from = 4 }}"
            );
            let mut r = Receiver::new(&toml::from_str(&text).unwrap(), 50, Duration::ZERO);
            let mut acks = vec![];
            for seq in 0..12 {
                r.handle_data(Instant::ORIGIN, &segment(seq));
                acks.extend(r.poll_ack().map(|ack| ack.ack));
            }
            assert_eq!(acks, expected, "{count} of {every}");
            r.handle_data(Instant::ORIGIN, &segment(12));
            r.handle_timeout(r.poll_timeout().unwrap());
            assert_eq!(r.poll_ack().is_some(), last);
            assert_eq!(r.poll_timeout(), None);
            assert_eq!(r.answer(segment(14)), 13);
        }
    }

    #[test]
    fn a_segment_beyond_the_window_takes_no_other_slot() {
        let config = TcpConfig {
            window: 20,
            ..TcpConfig::profile(Profile::Ns2In1999)
        };
        let mut r = Receiver::new(&config, 50, Duration::ZERO);
        r.handle_data(Instant::ORIGIN, &segment(1));
        r.handle_data(Instant::ORIGIN, &segment(33)); // the slot of segment 1 in a buffer of 32
        r.handle_data(Instant::ORIGIN, &segment(20));
        assert_eq!(r.stats().segments_beyond_window, 2);
        assert_eq!(r.answer(segment(0)), 2);
    }

    proptest! {
        /// Whatever arrives, in any order, the application receives a prefix of the data, once.
        #[test]
        fn delivers_exactly_the_prefix(seqs in prop::collection::vec(0u64..40, 0..200), window in 1u32..40) {
            let mut r = Receiver::new(&TcpConfig { window, ..TcpConfig::profile(Profile::Ns2In1999) }, 50, Duration::ZERO);
            let mut model = std::collections::BTreeSet::new();
            let (mut next, mut read) = (0, 0);
            for s in seqs {
                if s < next + u64::from(window) {
                    model.insert(s);
                }
                while model.contains(&next) {
                    next += 1;
                }
                prop_assert_eq!(r.answer(segment(s)), next);
                read += r.poll_deliver().unwrap_or(0);
                prop_assert_eq!(read, next * 50);
            }
            prop_assert_eq!(r.stats().delivered_bytes, next * 50);
        }
    }
}
