//! SR/M2: selective repeat with several NAKs per frame (section 7.5 of docs/spec/multi-service.md, after
//! Xylomenos 1999, section 4.3).
//!
//! Every frame of a hole is asked for at once, in ascending order, as in SR/M1. Since NAKs leave in
//! that order, repairs come back in that order: one that overtakes an older hole proves that the
//! older NAK or its repair was lost. So when a missing frame comes that was asked for k times, every
//! older hole asked for k times or less is asked for once more. Timeouts are the last resort, for
//! lost tails.
//!
//! Frames, acknowledgments, timers and invariants are those of `selective`; the study header has 3
//! bytes, of NAKs too (XYL-A-3).

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
