//! SR: selective repeat with one NAK (section 7.3 of docs/spec/multi-service.md, after Xylomenos 1999,
//! section 4.3).
//!
//! The receiver requests the earliest missing frame when a later frame arrives. After a NAK it sends no other
//! until its window has moved; a hole that remains then is requested when the next frame arrives. So a frame
//! is requested at most once, and one loss is repaired per round trip; a lost NAK or repair is left to the
//! timer. A NAK acknowledges everything before its frame.
//!
//! Frames, acknowledgments, timers and invariants are those of `selective`; the study header has 3 bytes,
//! also in NAKs (XYL-A-3).

use airlane_base::Payload;

use super::selective::Asking;
use crate::mechanism::receive_window::ReceiveWindow;

/// The rule of SR.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct OneNak {
    /// Whether a NAK has been sent since the window moved.
    asked: bool,
}

impl Asking for OneNak {
    const NAK_ACKNOWLEDGES: bool = true;

    fn on_settled<P: Payload>(&mut self, window: &mut ReceiveWindow<P>, moved: bool) {
        if moved {
            self.asked = false;
        } else if !self.asked && !window.is_empty() {
            window.ask(window.expected());
            self.asked = true;
        }
    }
}
