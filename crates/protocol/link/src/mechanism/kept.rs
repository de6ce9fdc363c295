//! What a Reed-Solomon service keeps of a block: all of its frames, until they suffice to decode it.
//!
//! Packets are delivered as received. When as many frames have arrived as the block has packets, the missing
//! packets are decoded and the frames forgotten.

use airlane_base::Payload;

use super::blocks::{Block, Store};
use super::reed_solomon::ReedSolomon;
use super::sum::coded_len;
use crate::context::Context;

/// The frames of a block, and a scheme's own note on it.
#[derive(Clone, Debug)]
pub(crate) struct Kept<P, N = ()> {
    /// Position, payload, coded length.
    frames: Vec<(u32, P, u16)>,
    pub(crate) note: N,
}

impl<P, N> Kept<P, N> {
    /// Number of frames kept.
    pub(crate) fn frames(&self) -> u32 {
        self.frames.len() as u32
    }
}

impl<P, N: Default> Default for Kept<P, N> {
    fn default() -> Self {
        Self {
            frames: Vec::new(),
            note: N::default(),
        }
    }
}

impl<P, N: Default> Store for Kept<P, N> {
    fn clear(&mut self) {
        self.frames.clear();
        self.note = N::default();
    }
}

/// Takes a frame at a position of a block from which none has arrived. Delivers its packet, and any that can
/// be decoded now.
pub(crate) fn take<P: Payload, N>(
    block: &mut Block<Kept<P, N>>,
    code: &mut ReedSolomon,
    cx: &mut Context<'_, P>,
    place: u32,
    payload: P,
    parity_len: u16,
) {
    let packets = code.packets();
    let parity = place >= packets;
    let len = if parity {
        parity_len
    } else {
        coded_len(&payload)
    };
    block.mark(place, cx.now);
    block.store.frames.push((place, payload.clone(), len));
    if !parity {
        block.here += 1;
        cx.deliver(payload, cx.now, false);
    }
    if block.here < packets && block.store.frames() >= packets {
        let since = block.missing_since(cx.now);
        let mut restored = Vec::new();
        let decoded = code.decode(&block.store.frames, |place, packet| {
            restored.push((place, packet));
        });
        let whole = restored.iter().all(|(_, packet)| packet.is_some());
        if decoded.is_err() || !whole {
            cx.ledger.undecodable += 1;
        }
        for (place, packet) in restored {
            block.mark(place, cx.now);
            if let Some(packet) = packet {
                block.here += 1;
                cx.deliver(packet, since, true);
            }
        }
        // A second attempt would give the same result.
        block.store.frames.clear();
    }
    if block.here == packets {
        block.store.frames.clear();
    }
}
