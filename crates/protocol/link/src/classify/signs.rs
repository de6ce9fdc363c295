//! Recognises the protocol inside a datagram by its first bytes.
//!
//! ```text
//! QUIC        long header with a version that is in use (RFC 9000, 17.2; RFC 9369), or port 443
//! STUN        the cookie at its place (RFC 8489, 5): a WebRTC session, whose media are RTP
//! RTP         version 2 and no type of RTCP (RFC 5761, 4), twice with one source and numbers that follow (RFC 3550, 5.1)
//! WireGuard   a type from 1 to 4, and three zeros
//! uTP         a SYN of 20 bytes with number 1 (BEP 29)
//! names       ports 53, 5353 (DNS) and 123 (NTP)
//! ```
//! A recognised protocol holds for the life of the flow. It selects how the flow is judged, and in the end
//! only which service repairs it: a forged signature affects only the flow that carries it.

use crate::flow::{FlowKey, UDP};

/// The protocols that are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Quic,
    Rtp,
    Stun,
    WireGuard,
    Utp,
    Names,
}

/// The state of an RTP stream, or of what may be one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stream {
    source: u32,
    number: u16,
    seen: bool,
}

const COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];
const DNS: u16 = 53;
const NTP: u16 = 123;
const MDNS: u16 = 5353;
const HTTPS: u16 = 443;
/// Largest gap in sequence numbers between two packets that still counts as consecutive.
const MISSED: u16 = 32;

/// The protocol by port number.
pub(super) fn of_ports(flow: &FlowKey) -> Option<Sign> {
    let either = |port| flow.src_port == port || flow.dst_port == port;
    match flow.protocol {
        UDP if either(DNS) || either(NTP) || either(MDNS) => Some(Sign::Names),
        UDP if either(HTTPS) => Some(Sign::Quic),
        _ => None,
    }
}

/// The protocol after this datagram, given what was known before.
pub(super) fn of_payload(payload: &[u8], known: Option<Sign>, stream: &mut Stream) -> Option<Sign> {
    let Some(&[first, second, third, fourth, fifth, ..]) = payload.first_chunk::<8>() else {
        return known;
    };
    if payload.get(4..8) == Some(&COOKIE) && first < 4 {
        return Some(Sign::Stun);
    }
    if let Some(rtp) = rtp(payload) {
        let follows = stream.seen
            && rtp.source == stream.source
            && (1..=MISSED).contains(&rtp.number.wrapping_sub(stream.number));
        *stream = rtp;
        return follows.then_some(Sign::Rtp).or(known);
    }
    if known.is_some() {
        return known;
    }
    match first {
        0xc0.. if used_version([second, third, fourth, fifth]) => Some(Sign::Quic),
        1..=4 if [second, third, fourth] == [0; 3] && payload.len() >= 32 => Some(Sign::WireGuard),
        0x41 if payload.len() == 20 && payload[16..18] == [0, 1] => Some(Sign::Utp),
        _ => None,
    }
}

fn used_version(version: [u8; 4]) -> bool {
    matches!(
        version,
        [0, 0, 0, 1] | [0x6b, 0x33, 0x43, 0xcf] | [0xff, 0, 0, _]
    )
}

fn rtp(payload: &[u8]) -> Option<Stream> {
    let head: &[u8; 12] = payload.first_chunk()?;
    let kind = head[1] & 0x7f;
    (head[0] >> 6 == 2 && !(64..96).contains(&kind)).then(|| Stream {
        source: u32::from_be_bytes([head[8], head[9], head[10], head[11]]),
        number: u16::from_be_bytes([head[2], head[3]]),
        seen: true,
    })
}
