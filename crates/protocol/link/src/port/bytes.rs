//! The frames of a port as bytes.

use super::Port;
use crate::flow::Packet;
use crate::wire::{Codec, Decoded, Frame, FrameError, Layout};

impl<P: Packet> Port<P> {
    /// Length of a frame with its header, without lower layers, bytes.
    #[inline]
    pub fn frame_len(&self, frame: &Frame<P>) -> usize {
        match self.slot(frame.header.service) {
            Some(slot) if !frame.header.kind.is_of_ports() => slot.frame_len(frame),
            _ => self.facts.codec.len_without_packet(frame, &Layout::PORTS) + frame.payload_len(),
        }
    }

    /// The header layout of a service; none if there is no such service.
    pub fn layout_of(&self, service: u8) -> Option<&'static Layout> {
        self.slot(service).map(|slot| slot.frames.layout)
    }

    /// Writes a frame without its packet to `buf`, see [`Codec::encode`].
    pub fn encode_header(&self, frame: &Frame<P>, session: u32, buf: &mut [u8]) -> Option<usize> {
        let layout = self.layout_of(frame.header.service)?;
        self.facts.codec.encode(frame, layout, session, buf)
    }

    /// Parses a frame's header, see [`Codec::decode`].
    ///
    /// # Errors
    /// A [`FrameError`] for bytes that are not a frame of this port.
    pub fn decode(&self, bytes: &[u8]) -> Result<Decoded, FrameError> {
        self.facts
            .codec
            .decode(bytes, |service| self.layout_of(service))
    }

    /// The codec.
    pub fn codec(&self) -> Codec {
        self.facts.codec
    }
}
