//! IP packets as the live node carries them: a reference-counted buffer out of a pool, and the
//! flow that the classifier sees, read once.

pub mod ecn;
mod headers;
mod mss;
mod pool;
mod tcp;

use airlane_base::{Payload, unpadded};
use airlane_link::{FlowKey, Packet, TcpView};

pub use headers::Headers;
pub use mss::{clamp_mss, needs_clamping};
pub use pool::{Buffer, Lease, Pool};

/// One IP packet, or what a frame carried of it. A clone shares the bytes.
#[derive(Clone, Debug)]
pub struct LivePacket {
    buffer: Buffer,
    start: u32,
    end: u32,
    /// None for what came from the link: it is delivered, not classified.
    flow: Option<FlowKey>,
}

impl LivePacket {
    /// The first `len` bytes of `lease`, a packet from the kernel. Gives the lease back if they
    /// are no IP packet.
    pub fn from_kernel(lease: Lease, len: usize) -> Result<Self, Lease> {
        match lease.bytes().get(..len).and_then(Headers::parse) {
            Some(headers) => Ok(Self {
                flow: Some(headers.flow()),
                buffer: lease.share(),
                start: 0,
                end: len as u32,
            }),
            None => Err(lease),
        }
    }

    /// What stands in `buffer` from `start` to `end`: what a frame from the link carried.
    pub fn from_link(buffer: Buffer, start: usize, end: usize) -> Self {
        debug_assert!(start <= end && end <= buffer.bytes().len());
        Self {
            buffer,
            start: start as u32,
            end: end as u32,
            flow: None,
        }
    }

    /// A copy, changed by `change`.
    pub fn changed<T>(&self, change: impl FnOnce(&mut [u8]) -> T) -> Self {
        let bytes = self.bytes();
        let mut lease = self.buffer.another(bytes.len());
        let copy = &mut lease.bytes_mut()[..bytes.len()];
        copy.copy_from_slice(bytes);
        change(copy);
        Self {
            buffer: lease.share(),
            start: 0,
            end: bytes.len() as u32,
            flow: self.flow,
        }
    }

    /// The packet.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer.bytes()[self.start as usize..self.end as usize]
    }
}

impl AsRef<[u8]> for LivePacket {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Payload for LivePacket {
    fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    fn image(&self) -> impl AsRef<[u8]> {
        self.bytes()
    }

    fn coded(&self, image: &[u8], len: usize) -> Self {
        let mut lease = self.buffer.another(len);
        let bytes = &mut lease.bytes_mut()[..len];
        let known = image.len().min(len);
        bytes[..known].copy_from_slice(&image[..known]);
        bytes[known..].fill(0);
        Self::from_link(lease.share(), 0, len)
    }

    fn recovered(&self, image: &[u8], len: usize) -> Option<Self> {
        let bytes = unpadded(image, len)?;
        Headers::parse(bytes)?;
        Some(self.coded(bytes, len))
    }
}

impl Packet for LivePacket {
    fn flow(&self) -> FlowKey {
        self.flow
            .or_else(|| Headers::parse(self.bytes()).map(|headers| headers.flow()))
            .unwrap_or_else(headers::no_flow)
    }

    fn tcp(&self) -> Option<TcpView> {
        tcp::view(self.bytes())
    }
}
