//! Tail loss probes (RFC 8985, section 7): a segment that asks for an acknowledgment before the timer gives up.
//!
//! Two smoothed round trips behind the last acknowledgment or new segment one more leaves, a new one if there is
//! any, else the highest again. What it provokes shows the losses of the tail, which the retransmission timer
//! would have met with slow start. One probe is out at a time.

use airlane_base::{Duration, Instant};

use crate::tcp::control::Control;

/// How long a receiver keeps the acknowledgment of a lone segment (RFC 8985's WCDelAckT).
const LONGEST_ACK_DELAY: Duration = Duration::from_millis(200);
/// Before the first round trip.
const FIRST: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// When one leaves.
    due: Option<Instant>,
    /// One leaves now.
    leaves: bool,
    /// What had been sent when the last one left, whether that was a segment sent again.
    out: Option<(u64, bool)>,
}

impl Probe {
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Something new is outstanding, or less than before.
    pub(super) fn schedule(&mut self, control: &Control, now: Instant) {
        self.due = None;
        let flight = control.window.flight_size();
        if flight == 0 || self.out.is_some() {
            return;
        }
        let wait = match control.timer.fine_srtt() {
            None => FIRST,
            Some(srtt) if flight == 1 => srtt * 2 + LONGEST_ACK_DELAY,
            Some(srtt) => srtt * 2,
        };
        // Not behind the retransmission timer: then it comes in its place (section 7.2).
        self.due = control.timer.due().map(|rto| rto.min(now + wait));
    }

    /// None is needed: losses are being repaired.
    pub(super) const fn cancel(&mut self) {
        self.due = None;
        self.leaves = false;
    }

    /// Behind a timeout.
    pub(super) const fn forget(&mut self) {
        self.cancel();
        self.out = None;
    }

    /// Time has passed; whether one leaves now.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.due.is_none_or(|due| due > now) {
            return false;
        }
        self.due = None;
        self.leaves = true;
        true
    }

    /// The segment that leaves as a probe now.
    pub(super) fn take(&mut self, control: &mut Control) -> Option<u64> {
        if !std::mem::take(&mut self.leaves) || control.window.flight_size() == 0 {
            return None;
        }
        let window = &mut control.window;
        let advertised = window.advertised();
        let (seq, again) = match window.take_next(advertised) {
            Some(seq) => (seq, false),
            None => (window.max - 1, true),
        };
        self.out = Some((window.max.max(seq + 1), again));
        Some(seq)
    }

    /// An acknowledgment has come; whether a probe has repaired a loss, which asks for less (section 7.4.2).
    pub(super) fn on_ack(&mut self, ack: u64, reports: bool) -> bool {
        match self.out {
            Some((end, again)) if ack >= end => {
                if again && ack == end && reports {
                    // Not yet clear.
                    return false;
                }
                self.out = None;
                again && ack > end
            }
            _ => false,
        }
    }
}
