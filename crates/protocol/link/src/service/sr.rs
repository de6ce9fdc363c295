//! SR: selective repeat with one NAK (section 7.3 of docs/spec/multi-service.md, after Xylomenos 1999,
//! section 4.3).
//!
//! The receiver asks for the earliest missing frame, when a frame comes behind it. After a NAK it
//! sends no other until its window has moved; a hole that remains then is asked for when the next
//! frame comes. So a frame is asked for once at most, and one loss is repaired in a round trip; a
//! NAK or repair that is lost is the timer's affair. A NAK implies that everything before its frame
//! has arrived.
//!
//! Frames, acknowledgments, timers and invariants are those of `selective`; the study header has 3
//! bytes, of NAKs too (XYL-A-3).

use airlane_base::Payload;

use super::selective::Asking;
use crate::mechanism::receive_window::ReceiveWindow;

/// The rule of SR.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct OneNak {
    /// A NAK has been sent since the window moved.
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
