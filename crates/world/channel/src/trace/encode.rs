//! Encodes a trace, block by block, while a link runs: nothing is allocated after the first full block.

use airlane_base::{Instant, varint};

use super::format::{BLOCK_HEAD, CRC, LATEST_US, LONGEST_FRAME, LONGEST_HEADER, MAGIC, VERSION};
use super::record::{FrameId, TraceEnd, TraceHeader, TraceRecord, whole_us};

/// A block is finished once it has this many bytes.
const FULL: usize = 1 << 14;
/// Upper bound for a record, bytes.
const LONGEST_RECORD: usize = 64;

pub(super) const SENT: u8 = 0;
pub(super) const RECEIVED: u8 = 1;
pub(super) const KEY: u8 = 2;
pub(super) const MISSED: u8 = 3;
pub(super) const NEXT: u8 = 1 << 2;
pub(super) const SAME_LEN: u8 = 1 << 3;
pub(super) const SAME_QUEUE: u8 = 1 << 4;
pub(super) const TIME_SHIFT: u8 = 5;
/// Times from this value on do not fit the first byte.
pub(super) const LONG_TIME: u64 = 7;

impl TraceHeader {
    /// Appends the file's magic, version and header.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut fields = Vec::new();
        varint::write(&mut fields, self.rate_bps);
        varint::write(&mut fields, u64::from(self.overhead_bytes));
        varint::write(&mut fields, self.started_unix_s);
        // A name is short; what would not be read back is cut off.
        let room = LONGEST_HEADER - 64;
        let end = (0..=self.name.len().min(room))
            .rev()
            .find(|end| self.name.is_char_boundary(*end));
        fields.extend_from_slice(&self.name.as_bytes()[..end.unwrap_or(0)]);
        out.extend_from_slice(MAGIC);
        out.push(VERSION);
        out.extend_from_slice(&(fields.len() as u32).to_be_bytes());
        out.extend_from_slice(&fields);
    }
}

/// Appends a finished block of records.
pub fn write_block(end: TraceEnd, records: &[u8], out: &mut Vec<u8>) {
    out.reserve(BLOCK_HEAD + records.len());
    out.push(end as u8);
    out.extend_from_slice(&(records.len() as u32).to_be_bytes());
    out.extend_from_slice(&CRC.checksum(records).to_be_bytes());
    out.extend_from_slice(records);
}

/// The last record of one kind, which the next one is encoded against.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    pub(super) key: Option<u32>,
    /// The number expected next.
    pub(super) next: u64,
    pub(super) len: u32,
    pub(super) queue: u32,
}

/// The encoder's state within a block, which records are encoded against.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    pub(super) at_us: u64,
    /// By kind: sent, received.
    pub(super) last: [Last; 2],
}

/// Encodes records into blocks.
#[derive(Clone, Debug)]
pub struct Encoder {
    end: TraceEnd,
    records: Vec<u8>,
    count: u64,
    state: State,
}

impl Encoder {
    /// Begins an empty block of one end.
    pub fn new(end: TraceEnd) -> Self {
        Self {
            end,
            records: Vec::with_capacity(FULL + LONGEST_RECORD),
            count: 0,
            state: State::default(),
        }
    }

    /// Adds a frame that left at `now`.
    pub fn sent(&mut self, start: Instant, now: Instant, frame: FrameId, len: usize, queue: usize) {
        self.push(&TraceRecord::Sent {
            at: whole_us(start, now),
            frame,
            len: len as u32,
            queue: u32::try_from(queue).unwrap_or(u32::MAX),
        });
    }

    /// Adds a frame that arrived at `now`.
    pub fn received(&mut self, start: Instant, now: Instant, frame: FrameId, len: usize) {
        self.push(&TraceRecord::Received {
            at: whole_us(start, now),
            frame,
            len: len as u32,
        });
    }

    /// Notes that `records` records are missing.
    pub fn missed(&mut self, start: Instant, now: Instant, records: u64) {
        let at = whole_us(start, now);
        self.push(&TraceRecord::Missed { at, records });
    }

    /// Adds a record. Times must not go back.
    pub fn push(&mut self, record: &TraceRecord) {
        self.count += 1;
        let at_us = (record.at().as_nanos() / 1_000).min(LATEST_US);
        match *record {
            TraceRecord::Sent {
                frame, len, queue, ..
            } => self.frame(SENT, at_us, frame, len, Some(queue)),
            TraceRecord::Received { frame, len, .. } => {
                self.frame(RECEIVED, at_us, frame, len, None)
            }
            TraceRecord::Missed { records, .. } => {
                self.first_byte(MISSED, at_us);
                varint::write(&mut self.records, records);
            }
        }
    }

    fn frame(&mut self, kind: u8, at_us: u64, frame: FrameId, len: u32, queue: Option<u32>) {
        let len = len.min(LONGEST_FRAME as u32);
        let mut last = self.state.last[usize::from(kind)];
        if last.key != Some(frame.key) {
            let way = if kind == RECEIVED { NEXT } else { 0 };
            self.records.push(KEY | way);
            varint::write(&mut self.records, u64::from(frame.key));
            last.key = Some(frame.key);
            last.next = 0;
        }
        let flag = |bit, set| if set { bit } else { 0 };
        let (next, same_len) = (last.next == frame.number, last.len == len);
        let same_queue = queue.is_none_or(|queue| queue == last.queue);
        let flags = flag(NEXT, next)
            | flag(SAME_LEN, same_len)
            | flag(SAME_QUEUE, same_queue && queue.is_some());
        self.first_byte(kind | flags, at_us);
        if !next {
            let ahead = frame.number.wrapping_sub(last.next) as i64;
            varint::write(&mut self.records, varint::zigzag(ahead));
        }
        if !same_len {
            varint::write(&mut self.records, u64::from(len));
        }
        if let Some(queue) = queue {
            if !same_queue {
                varint::write(&mut self.records, u64::from(queue));
            }
            last.queue = queue;
        }
        last.next = frame.number.wrapping_add(1);
        last.len = len;
        self.state.last[usize::from(kind)] = last;
    }

    fn first_byte(&mut self, bits: u8, at_us: u64) {
        let passed = at_us.saturating_sub(self.state.at_us);
        self.state.at_us = self.state.at_us.max(at_us);
        let short = passed.min(LONG_TIME);
        self.records.push(bits | (short as u8) << TIME_SHIFT);
        if let Some(more) = passed.checked_sub(LONG_TIME) {
            varint::write(&mut self.records, more);
        }
    }

    /// Whether the block is long enough to be finished.
    pub fn is_full(&self) -> bool {
        self.records.len() >= FULL
    }

    /// Records in the block.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Discards the block. Returns how many records it had.
    pub fn drop_block(&mut self) -> u64 {
        let count = self.count;
        self.begin();
        count
    }

    /// Appends the block to `out` unless it is empty, and begins the next one.
    pub fn finish_block(&mut self, out: &mut Vec<u8>) {
        if self.count == 0 {
            return;
        }
        write_block(self.end, &self.records, out);
        self.begin();
    }

    fn begin(&mut self) {
        self.records.clear();
        self.count = 0;
        self.state = State::default();
    }
}
