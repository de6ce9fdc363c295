//! Decodes a trace. Whatever the bytes are, it neither panics nor allocates out of proportion to their number.

use airlane_base::{Duration, varint};

use super::Trace;
use super::encode::{
    KEY, LONG_TIME, MISSED, NEXT, RECEIVED, SAME_LEN, SAME_QUEUE, State, TIME_SHIFT,
};
use super::format::{
    BLOCK_HEAD, CRC, LATEST_US, LONGEST_BLOCK, LONGEST_FRAME, LONGEST_HEADER, MAGIC, VERSION,
};
use super::record::{FrameId, TraceHeader, TraceRecord};

/// Why bytes are not a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file does not begin like a trace.
    #[error("this is no trace: it does not begin with \"airtrace\"; `airlane record` makes one")]
    Magic,
    /// The file has another version.
    #[error("a trace of version {got}; this program reads version {VERSION}")]
    Version {
        /// The version found.
        got: u8,
    },
    /// The header is truncated or malformed.
    #[error("the header at byte {offset} is damaged: {problem}")]
    Header {
        /// Its offset in the file, bytes.
        offset: u64,
        /// The problem.
        problem: &'static str,
    },
    /// A block is damaged.
    #[error("the block at byte {offset} is damaged: {problem}")]
    Block {
        /// Its offset in the file, bytes.
        offset: u64,
        /// The problem.
        problem: &'static str,
    },
    /// The checksum of a block does not match.
    #[error(
        "the block at byte {offset} is damaged: its checksum is {stated:08x}, its records have {got:08x}"
    )]
    Checksum {
        /// Its offset in the file, bytes.
        offset: u64,
        /// The checksum in the file.
        stated: u32,
        /// The checksum of the records.
        got: u32,
    },
    /// A record is malformed.
    #[error("the record at byte {offset} makes no sense: {problem}")]
    Record {
        /// Its offset in the file, bytes.
        offset: u64,
        /// The problem.
        problem: &'static str,
    },
}

impl Trace {
    /// Decodes a trace. One that is truncated within its last block gives the blocks before it, and [`Trace::cut_at`]
    /// reports it.
    ///
    /// # Errors
    /// Names the problem and its offset.
    pub fn read(bytes: &[u8]) -> Result<Self, TraceError> {
        let rest = bytes.strip_prefix(MAGIC).ok_or(TraceError::Magic)?;
        let (&version, rest) = rest.split_first().ok_or(TraceError::Magic)?;
        if version != VERSION {
            return Err(TraceError::Version { got: version });
        }
        let offset = |rest: &[u8]| (bytes.len() - rest.len()) as u64;
        let at = offset(rest);
        let header = |problem| TraceError::Header {
            offset: at,
            problem,
        };
        let (len, rest) = rest.split_first_chunk().ok_or(header("it is cut off"))?;
        let len = u32::from_be_bytes(*len) as usize;
        if len > LONGEST_HEADER {
            return Err(header("it would be longer than 64 kB"));
        }
        let (fields, mut rest) = rest.split_at_checked(len).ok_or(header("it is cut off"))?;
        let mut trace = Self {
            header: read_header(fields).map_err(header)?,
            ..Self::default()
        };
        while !rest.is_empty() {
            let block = offset(rest);
            let wrong = |problem| TraceError::Block {
                offset: block,
                problem,
            };
            let Some((head, tail)) = rest.split_first_chunk::<BLOCK_HEAD>() else {
                trace.cut_at = Some(block);
                break;
            };
            let [end, l0, l1, l2, l3, c0, c1, c2, c3] = *head;
            let len = u32::from_be_bytes([l0, l1, l2, l3]) as usize;
            if len > LONGEST_BLOCK {
                return Err(wrong("it would be longer than 1 MB"));
            }
            let Some((records, tail)) = tail.split_at_checked(len) else {
                trace.cut_at = Some(block);
                break;
            };
            let (stated, got) = (u32::from_be_bytes([c0, c1, c2, c3]), CRC.checksum(records));
            if stated != got {
                return Err(TraceError::Checksum {
                    offset: block,
                    stated,
                    got,
                });
            }
            let view = match end {
                0 => &mut trace.near,
                1 => &mut trace.far,
                _ => return Err(wrong("it belongs to neither end")),
            };
            read_block(records, block + BLOCK_HEAD as u64, view)?;
            rest = tail;
        }
        Ok(trace)
    }
}

fn read_header(mut fields: &[u8]) -> Result<TraceHeader, &'static str> {
    let mut number = || varint::read(&mut fields).ok_or("a number in it does not end");
    let rate_bps = number()?;
    let overhead_bytes = number()?;
    let started_unix_s = number()?;
    Ok(TraceHeader {
        rate_bps,
        overhead_bytes: u32::try_from(overhead_bytes).map_err(|_| "the overhead is too large")?,
        started_unix_s,
        name: str::from_utf8(fields)
            .map_err(|_| "the name is no UTF-8 text")?
            .to_owned(),
    })
}

fn read_block(records: &[u8], at: u64, view: &mut Vec<TraceRecord>) -> Result<(), TraceError> {
    let mut state = State::default();
    let mut earliest = view.last().map_or(Duration::ZERO, TraceRecord::at);
    let mut rest = records;
    while !rest.is_empty() {
        let offset = at + (records.len() - rest.len()) as u64;
        let wrong = |problem| TraceError::Record { offset, problem };
        let record = read_record(&mut rest, &mut state).map_err(wrong)?;
        let Some(record) = record else {
            continue;
        };
        if record.at() < earliest {
            return Err(wrong("time goes back"));
        }
        earliest = record.at();
        view.push(record);
    }
    Ok(())
}

const ENDLESS: &str = "a number does not end";

/// The next record; `None` for one that only changes the state.
fn read_record(rest: &mut &[u8], state: &mut State) -> Result<Option<TraceRecord>, &'static str> {
    let (&first, tail) = rest.split_first().ok_or("there is none")?;
    *rest = tail;
    let kind = first & 3;
    if kind == KEY {
        let key = varint::read(rest).ok_or(ENDLESS)?;
        let last = &mut state.last[usize::from(first & NEXT != 0)];
        last.key = Some(u32::try_from(key).map_err(|_| "a key has 32 bits")?);
        last.next = 0;
        return Ok(None);
    }
    let mut passed = u64::from(first >> TIME_SHIFT);
    if passed == LONG_TIME {
        let more = varint::read(rest).ok_or(ENDLESS)?;
        passed = passed.saturating_add(more);
    }
    state.at_us = state.at_us.saturating_add(passed);
    if state.at_us > LATEST_US {
        return Err("it is later than any recording lasts");
    }
    let at = Duration::from_micros(state.at_us);
    if kind == MISSED {
        let records = varint::read(rest).ok_or(ENDLESS)?;
        return Ok(Some(TraceRecord::Missed { at, records }));
    }
    let last = &mut state.last[usize::from(kind)];
    let key = last.key.ok_or("no keys were named before it")?;
    let mut number = last.next;
    if first & NEXT == 0 {
        let ahead = varint::unzigzag(varint::read(rest).ok_or(ENDLESS)?);
        number = number.wrapping_add(ahead as u64);
    }
    if first & SAME_LEN == 0 {
        let len = varint::read(rest).filter(|len| *len <= LONGEST_FRAME);
        last.len = len.ok_or("no frame is so long")? as u32;
    }
    last.next = number.wrapping_add(1);
    let (frame, len) = (FrameId { key, number }, last.len);
    if kind == RECEIVED {
        return Ok(Some(TraceRecord::Received { at, frame, len }));
    }
    if first & SAME_QUEUE == 0 {
        let queue = varint::read(rest).ok_or(ENDLESS)?;
        last.queue = u32::try_from(queue).map_err(|_| "no queue is so long")?;
    }
    let queue = last.queue;
    Ok(Some(TraceRecord::Sent {
        at,
        frame,
        len,
        queue,
    }))
}
