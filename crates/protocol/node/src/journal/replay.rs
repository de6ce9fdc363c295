//! Replays a journal.

use airlane_base::{Duration, Instant, Rate, varint};
use airlane_link::{ClassConfig, Port, PortConfig, ServiceConfig};
use airlane_session::ServiceOffer;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::format::{BLOCK_CRC, BLOCK_HEAD, Input, LONGEST, MAGIC, Outputs, VERSION};
use crate::packet::{LivePacket, Pool};

/// Longest packet or frame, bytes.
const LONGEST_INPUT: usize = 1 << 16;
/// Free buffers kept; the queues hold more only for a while.
const BUFFERS: usize = 256;

/// Counts of a journal that was replayed to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Replayed {
    /// Packets from the kernel.
    pub packets_in: u64,
    /// Frames from the link.
    pub frames_in: u64,
    /// Packets for the kernel.
    pub packets_out: u64,
    /// Frames for the link.
    pub frames_out: u64,
    /// Output checks that held.
    pub checks: u64,
    /// Checksum of all outputs.
    pub outputs_crc64: u64,
    /// Time from the first input to the last.
    pub duration_ns: u64,
    /// Offset at which the last block is truncated, if it is.
    pub cut_at_byte: Option<u64>,
}

/// Why a journal was not replayed to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// The bytes are not a journal.
    #[error(
        "this is no journal: it does not begin with \"airjrnal\"; `airlane up --journal` makes one"
    )]
    Magic,
    /// The journal has another version.
    #[error("a journal of version {got}; this program reads version {VERSION}")]
    Version {
        /// The version found.
        got: u8,
    },
    /// The configuration in the head is invalid.
    #[error("the head of the journal is damaged: {problem}")]
    Head {
        /// What is wrong.
        problem: String,
    },
    /// A block or a record is damaged.
    #[error("the journal is damaged at byte {offset}: {problem}")]
    Damaged {
        /// Offset in the journal.
        offset: u64,
        /// What is wrong.
        problem: &'static str,
    },
    /// The outputs differ from the recorded ones.
    #[error(
        "the replay differs from the recording: between {from} and {to} after the first input (byte \
         {offset}) its outputs have the checksum {got:016x}, live they had {stated:016x}; was it another \
         version of airlane?"
    )]
    Diverged {
        /// Offset of the check in the journal.
        offset: u64,
        /// Time of the last check that held.
        from: Duration,
        /// Time of the failed check.
        to: Duration,
        /// Recorded checksum.
        stated: u64,
        /// Checksum of the replayed outputs.
        got: u64,
    },
}

/// Feeds all inputs of a journal to a new port and compares its outputs with the recorded checksums.
///
/// # Errors
/// If the bytes are not a journal, or the outputs differ.
pub fn replay(bytes: &[u8]) -> Result<Replayed, JournalError> {
    let rest = bytes.strip_prefix(MAGIC).ok_or(JournalError::Magic)?;
    let (&version, rest) = rest.split_first().ok_or(JournalError::Magic)?;
    if version != VERSION {
        return Err(JournalError::Version { got: version });
    }
    let head = |problem: &str| JournalError::Head {
        problem: problem.to_owned(),
    };
    let (sizes, rest) = rest
        .split_first_chunk::<BLOCK_HEAD>()
        .ok_or(head("it is cut off"))?;
    let (len, stated) = block_head(*sizes);
    let (config, mut rest) = rest.split_at_checked(len).ok_or(head("it is cut off"))?;
    if BLOCK_CRC.checksum(config) != stated {
        return Err(head("its checksum is wrong"));
    }
    let config: PortConfig =
        serde_json::from_slice(config).map_err(|error| head(&error.to_string()))?;
    let port = Port::new(config).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        head(&problems.join("; "))
    })?;
    let mut replay = Replay {
        port,
        outputs: Outputs::new(),
        pool: Pool::new(LONGEST_INPUT, BUFFERS),
        result: Replayed::default(),
        first: None,
        now: Instant::ORIGIN,
        checked: Duration::ZERO,
    };
    while !rest.is_empty() {
        let offset = (bytes.len() - rest.len()) as u64;
        let damaged = |problem| JournalError::Damaged { offset, problem };
        let Some((head, tail)) = rest.split_first_chunk::<BLOCK_HEAD>() else {
            replay.result.cut_at_byte = Some(offset);
            break;
        };
        let (len, stated) = block_head(*head);
        if len > LONGEST {
            return Err(damaged("the block would be longer than 16 MB"));
        }
        let Some((records, tail)) = tail.split_at_checked(len) else {
            replay.result.cut_at_byte = Some(offset);
            break;
        };
        if BLOCK_CRC.checksum(records) != stated {
            return Err(damaged("the checksum of the block is wrong"));
        }
        replay.block(records, offset + BLOCK_HEAD as u64)?;
        rest = tail;
    }
    Ok(replay.finish())
}

/// Length and checksum.
const fn block_head([l0, l1, l2, l3, c0, c1, c2, c3]: [u8; BLOCK_HEAD]) -> (usize, u32) {
    let len = u32::from_be_bytes([l0, l1, l2, l3]);
    (len as usize, u32::from_be_bytes([c0, c1, c2, c3]))
}

struct Replay {
    port: Port<LivePacket>,
    outputs: Outputs,
    pool: Pool,
    result: Replayed,
    first: Option<Instant>,
    now: Instant,
    /// Time of the last check that held.
    checked: Duration,
}

const ENDS: &str = "a record ends too early";
const NO_RATE: &str = "a rate of 0";
const NO_JSON: &str = "a change of services that cannot be read";

fn read_json<T: DeserializeOwned>(rest: &mut &[u8]) -> Option<T> {
    let len = usize::try_from(varint::read(rest)?).ok()?;
    let (json, tail) = rest.split_at_checked(len)?;
    *rest = tail;
    serde_json::from_slice(json).ok()
}

impl Replay {
    fn block(&mut self, records: &[u8], at: u64) -> Result<(), JournalError> {
        let mut rest = records;
        let mut time = 0u64;
        while let Some((&what, tail)) = rest.split_first() {
            let offset = at + (records.len() - rest.len()) as u64;
            let damaged = |problem| JournalError::Damaged { offset, problem };
            rest = tail;
            let what = Input::of(what).ok_or(damaged("there is no such input"))?;
            let passed = varint::read(&mut rest).ok_or(damaged(ENDS))?;
            time = time.saturating_add(passed);
            let now = Instant::from_nanos(time);
            // Times never go back, and the upper half of the range is reserved for the far future.
            if now < self.now || time > u64::MAX / 2 {
                return Err(damaged("time goes back"));
            }
            self.now = now;
            self.first.get_or_insert(now);
            match what {
                Input::Packet => {
                    let packet = self.bytes(&mut rest).ok_or(damaged(ENDS))?;
                    let (lease, len) = packet;
                    let packet = LivePacket::from_kernel(lease, len)
                        .map_err(|_| damaged("a packet that is no IP packet"))?;
                    self.result.packets_in += 1;
                    self.port.handle_packet(now, packet);
                }
                Input::Frame => {
                    let (lease, len) = self.bytes(&mut rest).ok_or(damaged(ENDS))?;
                    let frame = lease.bytes().get(..len).unwrap_or_default();
                    let decoded = self.port.decode(frame);
                    let decoded = decoded.map_err(|_| damaged("an invalid frame"))?;
                    let (header, at) = (decoded.header, decoded.payload_at);
                    if header.kind.carries_packet() != (len > at) {
                        return Err(damaged("a frame with the packet of another"));
                    }
                    let payload = (len > at).then(|| LivePacket::from_link(lease.share(), at, len));
                    self.result.frames_in += 1;
                    self.port.handle_frame(now, decoded.frame(payload));
                }
                Input::Timeout => self.port.handle_timeout(now),
                Input::Reset => self.port.reset(now),
                Input::Services => {
                    let (services, classes): (Vec<ServiceConfig>, Vec<ClassConfig>) =
                        read_json(&mut rest).ok_or(damaged(NO_JSON))?;
                    // A change that the live port refused is refused again.
                    let _changes = self.port.set_services(now, &services, &classes);
                }
                Input::Agreement => {
                    let offers: Vec<ServiceOffer> = read_json(&mut rest).ok_or(damaged(NO_JSON))?;
                    self.port.begin_agreement(now, &offers);
                }
                Input::Offers => {
                    let offers: Vec<ServiceOffer> = read_json(&mut rest).ok_or(damaged(NO_JSON))?;
                    self.port.handle_offers(now, &offers);
                }
                Input::Room => {
                    let room = varint::read(&mut rest).ok_or(damaged(ENDS))?;
                    self.port
                        .set_frame_room(usize::try_from(room).unwrap_or(usize::MAX));
                }
                Input::Rate => {
                    let bps = varint::read(&mut rest).ok_or(damaged(ENDS))?;
                    let rate = Rate::from_bps(bps).ok_or(damaged(NO_RATE))?;
                    self.port.set_link_rate(rate);
                }
                Input::Path => self.port.path_changed(),
                Input::Share => {
                    let bps = varint::read(&mut rest).ok_or(damaged(ENDS))?;
                    self.port.shift_found(bps);
                }
                Input::Transmit => {
                    let frame = self.port.poll_transmit(now);
                    self.outputs.transmitted(&self.port, frame.as_ref());
                }
                Input::Deliver => {
                    let packet = self.port.poll_deliver();
                    self.outputs.delivered(packet.as_ref());
                }
                Input::Check => {
                    let (stated, tail) = rest.split_first_chunk().ok_or(damaged(ENDS))?;
                    rest = tail;
                    self.check(offset, u64::from_be_bytes(*stated))?;
                }
            }
        }
        Ok(())
    }

    fn bytes(&self, rest: &mut &[u8]) -> Option<(crate::packet::Lease, usize)> {
        let len = usize::try_from(varint::read(rest)?).ok()?;
        let (bytes, tail) = rest.split_at_checked(len)?;
        let mut lease = self.pool.lease();
        lease.bytes_mut().get_mut(..len)?.copy_from_slice(bytes);
        *rest = tail;
        Some((lease, len))
    }

    fn check(&mut self, offset: u64, stated: u64) -> Result<(), JournalError> {
        let to = self.now.saturating_since(self.first.unwrap_or(self.now));
        let got = self.outputs.checksum();
        if got != stated {
            return Err(JournalError::Diverged {
                offset,
                from: self.checked,
                to,
                stated,
                got,
            });
        }
        self.checked = to;
        self.result.checks += 1;
        Ok(())
    }

    fn finish(self) -> Replayed {
        let lasted = self.now.saturating_since(self.first.unwrap_or(self.now));
        Replayed {
            packets_out: self.outputs.packets,
            frames_out: self.outputs.frames,
            outputs_crc64: self.outputs.checksum(),
            duration_ns: lasted.as_nanos(),
            ..self.result
        }
    }
}
