//! SR/M1: selective repeat with several NAKs per window (section 7.4 of docs/spec/multi-service.md, after
//! Xylomenos 1999, section 4.3).
//!
//! Whenever a hole appears in the received numbers, every frame in it is requested, in ascending order, and
//! never again: one NAK for each lost frame. Losses of NAKs and repairs are left to the timer. A NAK does not
//! acknowledge earlier frames.
//!
//! Frames, acknowledgments, timers and invariants are those of `selective`; the study header has 3 bytes,
//! also in NAKs (XYL-A-3).

use airlane_base::{Payload, Seq};

use super::selective::Asking;
use crate::mechanism::receive_window::ReceiveWindow;

/// The rule of SR/M1.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct NakForEach;

impl Asking for NakForEach {
    fn on_newest<P: Payload>(&mut self, window: &mut ReceiveWindow<P>, from: Seq, seq: Seq) {
        window.ask_before(from, seq, |_| true);
    }
}
