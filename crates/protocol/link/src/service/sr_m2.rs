//! SR/M2: selective repeat with several NAKs per frame (section 7.5 of docs/spec/multi-service.md, after
//! Xylomenos 1999, section 4.3).
//!
//! Every frame of a hole is requested at once, in ascending order, as in SR/M1. Since NAKs leave in that
//! order, repairs arrive in that order: one that arrives before an older hole is filled proves that the older
//! NAK or its repair was lost. So when a missing frame arrives that was requested k times, every older hole
//! requested k times or less is requested once more. Timeouts are the last resort, for tail losses.
//!
//! Frames, acknowledgments, timers and invariants are those of `selective`; the study header has 3 bytes,
//! also in NAKs (XYL-A-3).

use airlane_base::{Payload, Seq};

use super::selective::Asking;
use crate::mechanism::receive_window::ReceiveWindow;

/// The rule of SR/M2.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct NaksForEach;

impl Asking for NaksForEach {
    fn on_newest<P: Payload>(&mut self, window: &mut ReceiveWindow<P>, from: Seq, seq: Seq) {
        window.ask_before(from, seq, |_| true);
    }

    fn on_missing<P: Payload>(&mut self, window: &mut ReceiveWindow<P>, seq: Seq, asked: u32) {
        window.ask_before(window.expected(), seq, |older| older <= asked);
    }
}
