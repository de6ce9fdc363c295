//! A recording of the running link: each datagram sent or received becomes a record of a
//! [trace](airlane_channel::trace), which a client of the control socket reads and stores.
//!
//! The node writes no file: it may lack the permission, and a full or slow disk must not affect the link. Blocks wait
//! in memory for the client, up to 1 MB; blocks above that are dropped, counted, and marked as missing in the trace.
//!
//! Frames are identified by the sequence numbers of the secure session, which cover every datagram. Without
//! security, acknowledgments and retransmissions have no number of their own, so that their loss cannot be
//! detected, and recording is refused.

use airlane_base::{Duration, Instant};
use airlane_channel::trace::{Encoder, FrameId, TraceEnd};
use airlane_node::Tap;

pub use airlane_node::Recorded;

/// Limit of bytes that wait for the client: one second of 100,000 frames in each direction.
const ROOM: usize = 1 << 20;
/// Interval at which blocks are finished, and the most that a crash loses.
const INTERVAL: Duration = Duration::from_millis(50);

/// Records while a client asks for it.
#[derive(Debug, Default)]
pub(crate) struct Recorder(Option<Box<Running>>);

#[derive(Debug)]
struct Running {
    start: Instant,
    encoder: Encoder,
    /// Finished blocks.
    blocks: Vec<u8>,
    next: Instant,
    records: u64,
    missed: u64,
    /// Records missed since the last block that was kept; the next block begins with their number.
    gap: u64,
}

/// Summary of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) lasted: Duration,
    pub(crate) records: u64,
    pub(crate) missed: u64,
}

impl Recorder {
    /// Starts a recording.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.0 = Some(Box::new(Running {
            start: now,
            encoder: Encoder::new(TraceEnd::Near),
            blocks: Vec::with_capacity(ROOM / 4),
            next: now + INTERVAL,
            records: 0,
            missed: 0,
            gap: 0,
        }));
    }

    /// When [`Recorder::is_due`] becomes true.
    pub(crate) fn poll_timeout(&self) -> Instant {
        self.0.as_ref().map_or(Instant::FAR_FUTURE, |r| r.next)
    }

    /// Whether it is time to send the client the finished blocks.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.poll_timeout() <= now
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Moves the waiting blocks to `out`.
    pub(crate) fn take(&mut self, now: Instant, out: &mut Vec<u8>) {
        if let Some(running) = &mut self.0 {
            running.finish();
            running.next = now + INTERVAL;
            out.append(&mut running.blocks);
        }
    }

    /// Ends the recording and moves the remaining blocks to `out`.
    pub(crate) fn end(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Ended> {
        self.take(now, out);
        let running = self.0.take()?;
        Some(Ended {
            lasted: now.saturating_since(running.start),
            records: running.records,
            missed: running.missed,
        })
    }

    /// Records of this recording that were dropped for lack of room.
    pub(crate) fn missed(&self) -> u64 {
        self.0.as_ref().map_or(0, |running| running.missed)
    }
}

/// Handshakes have no sequence number and are left out.
impl Tap for Recorder {
    fn sent(&mut self, now: Instant, datagram: &[u8], waiting: usize) {
        if let (Some(running), Some(frame)) = (&mut self.0, frame_of(datagram)) {
            running.mark_gap(now);
            let (start, len) = (running.start, datagram.len());
            running.encoder.sent(start, now, frame, len, waiting);
            running.count();
        }
    }

    fn received(&mut self, now: Instant, datagram: &[u8]) {
        if let (Some(running), Some(frame)) = (&mut self.0, frame_of(datagram)) {
            running.mark_gap(now);
            let (start, len) = (running.start, datagram.len());
            running.encoder.received(start, now, frame, len);
            running.count();
        }
    }
}

impl Running {
    fn count(&mut self) {
        self.records += 1;
        if self.encoder.is_full() {
            self.finish();
        }
    }

    fn mark_gap(&mut self, now: Instant) {
        if self.gap > 0 && self.encoder.count() == 0 {
            self.encoder.missed(self.start, now, self.gap);
        }
    }

    fn finish(&mut self) {
        if self.encoder.count() == 0 {
            return;
        }
        if self.blocks.len() < ROOM {
            self.encoder.finish_block(&mut self.blocks);
            self.gap = 0;
            return;
        }
        // Do not count the gap mark itself.
        let dropped = self.encoder.drop_block() - u64::from(self.gap > 0);
        self.missed += dropped;
        self.gap += dropped;
    }
}

fn frame_of(datagram: &[u8]) -> Option<FrameId> {
    let (key, number) = airlane_secure::data_number(datagram)?;
    let number = number.into();
    Some(FrameId { key, number })
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_channel::trace::{Trace, TraceHeader, TraceRecord};

    fn datagram(key: u8, number: u32) -> Vec<u8> {
        let mut bytes = vec![0xc0, 0, 0, key];
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes.resize(100, 0);
        bytes
    }

    fn read(blocks: &[u8]) -> Trace {
        let mut file = Vec::new();
        TraceHeader::default().encode(&mut file);
        file.extend_from_slice(blocks);
        Trace::read(&file).unwrap()
    }

    #[test]
    fn unread_records_are_dropped_and_marked() {
        let mut recorder = Recorder::default();
        recorder.sent(Instant::ORIGIN, &datagram(1, 0), 0);
        let start = Instant::from_nanos(77);
        recorder.begin(start);
        let mut now = start;
        let mut number = 0;
        let mut send = |recorder: &mut Recorder, now: &mut Instant, frames| {
            for _ in 0..frames {
                *now += Duration::from_micros(10);
                recorder.sent(*now, &datagram(1, number), number as usize * 1_000);
                number += 1;
            }
        };
        // A client that does not read until far more has been sent than there is room for.
        send(&mut recorder, &mut now, 500_000);
        let missed = recorder.missed();
        assert!(missed > 100_000, "{missed}");
        let mut blocks = Vec::new();
        recorder.take(now, &mut blocks);
        assert!(blocks.len() < ROOM + (1 << 15), "{} bytes", blocks.len());
        send(&mut recorder, &mut now, 1_000);
        recorder.received(now, &datagram(2, 7));
        // A handshake, and a datagram that is too short.
        recorder.received(now, &[1; 144]);
        recorder.received(now, &[0xc0]);
        let ended = recorder.end(now, &mut blocks).unwrap();
        assert!(!recorder.is_on());
        assert_eq!(ended.records, 501_001);
        let trace = read(&blocks);
        let (mut marked, mut sent, mut received) = (0, 0, 0);
        for record in &trace.near {
            match record {
                TraceRecord::Missed { records, .. } => marked += records,
                TraceRecord::Sent { .. } => sent += 1,
                TraceRecord::Received { .. } => received += 1,
            }
        }
        assert_eq!((sent, received), (501_000 - ended.missed, 1));
        assert_eq!(marked, ended.missed);
    }
}
