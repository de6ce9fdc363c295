//! One trace from the captures (pcap or pcapng) of the two ends of a link.
//!
//! Packets in a capture have no sequence number: one is recognised by its first bytes, without the fields that change on
//! the way (code points, hop limits, checksums). Among identical copies, those belong together whose time difference
//! matches that of other packets. The first capture is that of the end which sends most: its own packets come from the
//! address that most of its bytes come from.
//!
//! Left out: IP fragments, address translation on the way.

use std::collections::BTreeMap;

use airlane_base::Duration;
use airlane_base::random::fnv1a;
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::{Block, PcapNgReader};

use super::Trace;
use super::record::{FrameId, TraceHeader, TraceRecord};

/// Leading bytes that identify a packet; captures are seldom truncated below that.
const TELLING: usize = 96;

/// Why two files do not make a trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CapturesError {
    /// A file is not a capture.
    #[error("{file} is no capture: {reason}; give pcap or pcapng")]
    Unreadable {
        /// Which of the two files.
        file: &'static str,
        /// The reader's error.
        reason: String,
    },
    /// The packets of this link type cannot be located.
    #[error("{file} has link type {link}; give a capture of IP, Ethernet or Linux's \"any\"")]
    LinkType {
        /// Which of the two files.
        file: &'static str,
        /// Its link type.
        link: u32,
    },
    /// The captures have no packet in common.
    #[error("no packet is in both captures; take both ends of one link at the same time")]
    Strangers,
}

/// An IP packet of a capture.
#[derive(Clone, Debug)]
struct Seen {
    at: std::time::Duration,
    key: u64,
    len: u32,
    source: Vec<u8>,
    to: Vec<u8>,
}

fn read(bytes: &[u8], file: &'static str) -> Result<Vec<Seen>, CapturesError> {
    let unreadable = |reason: String| CapturesError::Unreadable { file, reason };
    let mut found = vec![];
    let mut put = |at, link: DataLink, data: &[u8]| {
        let front = match link {
            DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => 0,
            DataLink::ETHERNET if data.get(12..14) == Some(&[0x81, 0]) => 18,
            DataLink::ETHERNET => 14,
            DataLink::NULL | DataLink::LOOP => 4,
            DataLink::LINUX_SLL => 16,
            other => {
                let link = other.into();
                return Err(CapturesError::LinkType { file, link });
            }
        };
        found.extend(data.get(front..).and_then(|ip| packet(at, ip)));
        Ok(())
    };
    if bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
        let mut reader = PcapNgReader::new(bytes).map_err(|e| unreadable(e.to_string()))?;
        loop {
            let links: Vec<DataLink> = reader.interfaces().iter().map(|i| i.linktype).collect();
            let Some(block) = reader.next_block() else {
                break;
            };
            let (block, _) = block.map_err(|e| unreadable(e.to_string()))?;
            if let Block::EnhancedPacket(packet) = block
                && let Some(link) = links.get(packet.interface_id as usize)
            {
                put(packet.timestamp, *link, &packet.data)?;
            }
        }
    } else {
        let mut reader = PcapReader::new(bytes).map_err(|e| unreadable(e.to_string()))?;
        let link = reader.header().datalink;
        while let Some(packet) = reader.next_packet() {
            let packet = packet.map_err(|e| unreadable(e.to_string()))?;
            put(packet.timestamp(), link, packet.data())?;
        }
    }
    found.sort_by_key(|seen| seen.at);
    Ok(found)
}

fn packet(at: std::time::Duration, ip: &[u8]) -> Option<Seen> {
    let mut telling = [0; TELLING];
    let known = ip.len().min(TELLING);
    telling[..known].copy_from_slice(&ip[..known]);
    let (head, protocol, len, addresses) = match ip.first()? >> 4 {
        4 => {
            telling[1] = 0;
            telling[8] = 0;
            telling[10..12].fill(0);
            let head = usize::from(ip[0] & 15) * 4;
            let len = u16::from_be_bytes([*ip.get(2)?, *ip.get(3)?]);
            (head, *ip.get(9)?, u32::from(len), ip.get(12..20)?)
        }
        6 => {
            (telling[0], telling[1], telling[7]) = (0x60, 0, 0);
            let len = u16::from_be_bytes([*ip.get(4)?, *ip.get(5)?]);
            (40, *ip.get(6)?, u32::from(len) + 40, ip.get(8..40)?)
        }
        _ => return None,
    };
    // A network card may compute checksums after the packet is captured.
    let sum = match protocol {
        6 => Some(16),
        17 => Some(6),
        _ => None,
    };
    if let Some(sum) = sum.and_then(|sum| telling.get_mut(head + sum..head + sum + 2)) {
        sum.fill(0);
    }
    // Padding after the packet does not count.
    telling[(len as usize).min(TELLING)..].fill(0);
    let (source, to) = addresses.split_at(addresses.len() / 2);
    Some(Seen {
        at,
        key: fnv1a(&telling),
        len,
        source: source.to_owned(),
        to: to.to_owned(),
    })
}

impl Trace {
    /// Builds a trace of both directions.
    ///
    /// # Errors
    /// If a file is not a capture, or the two are not of the two ends of one link.
    pub fn of_captures(near: &[u8], far: &[u8], name: String) -> Result<Self, CapturesError> {
        let [near, far] = [read(near, "the first file")?, read(far, "the second file")?];
        let mut bytes: BTreeMap<&[u8], u64> = BTreeMap::new();
        for seen in &near {
            *bytes.entry(&seen.source).or_default() += u64::from(seen.len);
        }
        let own = bytes
            .iter()
            .max_by_key(|(_, bytes)| **bytes)
            .map(|(own, _)| own.to_vec());
        let own = own.ok_or(CapturesError::Strangers)?;
        let start = |all: &[Seen]| {
            all.first()
                .map_or(std::time::Duration::ZERO, |seen| seen.at)
        };
        let starts = [start(&near), start(&far)];
        let mut trace = Self {
            header: TraceHeader {
                name,
                started_unix_s: starts[0].as_secs(),
                ..TraceHeader::default()
            },
            ..Self::default()
        };
        let mut common = false;
        for (key, out) in [(1, true), (2, false)] {
            let of = |all: &[Seen]| -> Vec<Seen> {
                let way = all
                    .iter()
                    .filter(|seen| own == if out { &*seen.source } else { &*seen.to });
                way.cloned().collect()
            };
            let (sent, came) = if out {
                (of(&near), of(&far))
            } else {
                (of(&far), of(&near))
            };
            let [sent_at, came_at] = if out { starts } else { [starts[1], starts[0]] };
            let (mut left, mut right) = (vec![], vec![]);
            let frame = |number: usize| FrameId {
                key,
                number: number as u64,
            };
            for (number, seen) in sent.iter().enumerate() {
                let at = since(seen.at, sent_at);
                left.push(TraceRecord::Sent {
                    at,
                    frame: frame(number),
                    len: seen.len,
                    queue: 0,
                });
            }
            for (number, seen) in matched(&sent, &came) {
                let at = since(seen.at, came_at);
                right.push(TraceRecord::Received {
                    at,
                    frame: frame(number),
                    len: seen.len,
                });
            }
            common |= !right.is_empty();
            let (to_near, to_far) = if out { (left, right) } else { (right, left) };
            trace.near.extend(to_near);
            trace.far.extend(to_far);
        }
        trace.near.sort_by_key(TraceRecord::at);
        trace.far.sort_by_key(TraceRecord::at);
        if common {
            Ok(trace)
        } else {
            Err(CapturesError::Strangers)
        }
    }
}

fn since(at: std::time::Duration, start: std::time::Duration) -> Duration {
    let time = at.saturating_sub(start);
    Duration::from_micros(u64::try_from(time.as_micros()).unwrap_or(u64::MAX / 1_000))
}

/// The packets received, in order of arrival, each with the index of its sent copy.
fn matched<'a>(sent: &[Seen], came: &'a [Seen]) -> Vec<(usize, &'a Seen)> {
    let mut copies: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (place, seen) in sent.iter().enumerate() {
        copies.entry(seen.key).or_default().push(place);
    }
    let micros = |seen: &Seen| seen.at.as_micros() as i128;
    let late = |place: usize, seen: &Seen| micros(seen) - micros(&sent[place]);
    let single = came
        .iter()
        .filter_map(|seen| match copies.get(&seen.key)?.as_slice() {
            [only] => Some(late(*only, seen)),
            _ => None,
        });
    let mut usual: Vec<i128> = single.collect();
    usual.sort_unstable();
    let usual = usual.get(usual.len() / 2).copied().unwrap_or(0);
    let mut found = vec![];
    for seen in came {
        let Some(places) = copies.get_mut(&seen.key) else {
            continue;
        };
        let nearest = (0..places.len()).min_by_key(|at| (late(places[*at], seen) - usual).abs());
        found.extend(nearest.map(|at| (places.remove(at), seen)));
    }
    found
}
