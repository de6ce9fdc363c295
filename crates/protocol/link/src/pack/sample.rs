//! TCP/IP packets as hosts send them, for tests of header compression.

use super::Divisible;
use crate::flow::{FlowKey, Packet, TCP};
use crate::sample::{flow, payload};

/// A packet with visible bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bytes(pub(super) Vec<u8>);

payload!(Bytes, bytes => bytes.0.len());

impl Divisible for Bytes {
    fn visible(&self) -> Option<&[u8]> {
        Some(&self.0)
    }
    fn with_head(&self, cut: usize, head: &[u8]) -> Option<Self> {
        let rest = self.0.get(cut..)?;
        Some(Self([head, rest].concat()))
    }
}

impl Packet for Bytes {
    fn flow(&self) -> FlowKey {
        let ip = if self.0[0] >> 4 == 6 { 40 } else { 20 };
        let port = |at: usize| u16::from_be_bytes([self.0[ip + at], self.0[ip + at + 1]]);
        flow(TCP, port(0), port(2))
    }
}

/// A TCP segment as a host would send it.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) v6: bool,
    pub(super) port: u16,
    pub(super) class: u8,
    pub(super) number: u16,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) checksum: u16,
    pub(super) options: Vec<u8>,
    pub(super) data: usize,
}

impl Segment {
    pub(super) fn new(port: u16) -> Self {
        Self {
            v6: false,
            port,
            class: 0,
            number: 7,
            seq: 1_000,
            ack: 5,
            flags: 0x10,
            window: 500,
            checksum: 0xabcd,
            options: stamps(100, 200),
            data: 1_000,
        }
    }

    pub(super) fn packet(&self) -> Bytes {
        let tcp = 20 + self.options.len();
        let mut bytes = if self.v6 {
            let mut ip = vec![0x60 | self.class >> 4, self.class << 4 | 0xa, 1, 2];
            ip.extend_from_slice(&((tcp + self.data) as u16).to_be_bytes());
            ip.extend_from_slice(&[6, 64]);
            ip.extend_from_slice(&[7; 32]);
            ip
        } else {
            let mut ip = vec![0x45, self.class];
            ip.extend_from_slice(&((20 + tcp + self.data) as u16).to_be_bytes());
            ip.extend_from_slice(&self.number.to_be_bytes());
            ip.extend_from_slice(&[0x40, 0, 64, 6, 0, 0, 10, 7, 0, 1, 10, 7, 0, 2]);
            let words = ip.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w[1]));
            let sum: u32 = words.sum();
            let folded = (sum & 0xffff) + (sum >> 16);
            let folded = (folded & 0xffff) + (folded >> 16);
            ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
            ip
        };
        for word in [self.port, 443] {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        for word in [self.seq, self.ack] {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        bytes.extend_from_slice(&[((tcp / 4) << 4) as u8, self.flags]);
        for word in [self.window, self.checksum, 0] {
            bytes.extend_from_slice(&word.to_be_bytes());
        }
        bytes.extend_from_slice(&self.options);
        bytes.resize(bytes.len() + self.data, 0x55);
        Bytes(bytes)
    }
}

/// TCP's timestamp option.
pub(super) fn stamps(value: u32, echo: u32) -> Vec<u8> {
    let words = [value.to_be_bytes(), echo.to_be_bytes()].concat();
    [&[1, 1, 8, 10][..], &words].concat()
}
