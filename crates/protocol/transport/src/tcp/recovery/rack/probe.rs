//! Tail loss probes (RFC 8985, section 7): a segment that elicits an acknowledgment before the retransmission timer
//! expires.
//!
//! Two smoothed round trips after the last acknowledgment or new segment, one more segment is sent: a new one if
//! there is any, otherwise the highest one again. Its acknowledgment reveals losses at the tail, which would
//! otherwise end in a timeout and slow start. At most one probe is outstanding.

use airlane_base::{Duration, Instant};

use crate::tcp::control::Control;

/// The longest delay of a lone segment's acknowledgment (RFC 8985's WCDelAckT).
const LONGEST_ACK_DELAY: Duration = Duration::from_millis(200);
/// The delay of a probe before the first round trip sample.
const FIRST: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Probe {
    /// When a probe is due.
    due: Option<Instant>,
    /// A probe is to be sent now.
    leaves: bool,
    /// The end of what had been sent when the last probe was sent, and whether the probe was a retransmission.
    out: Option<(u64, bool)>,
}

impl Probe {
    pub(super) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// New data is in flight, or less than before: schedules the next probe.
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
        // Never later than the retransmission timer: a probe then takes its place (section 7.2).
        self.due = control.timer.due().map(|rto| rto.min(now + wait));
    }

    /// No probe is needed: losses are being repaired.
    pub(super) const fn cancel(&mut self) {
        self.due = None;
        self.leaves = false;
    }

    /// Resets the state after a timeout.
    pub(super) const fn forget(&mut self) {
        self.cancel();
        self.out = None;
    }

    /// Advances time; true if a probe is due now.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.due.is_none_or(|due| due > now) {
            return false;
        }
        self.due = None;
        self.leaves = true;
        true
    }

    /// The segment to send as a probe now.
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

    /// An acknowledgment has arrived; true if a probe repaired a loss, which calls for a cut (section 7.4.2).
    pub(super) fn on_ack(&mut self, ack: u64, reports: bool) -> bool {
        match self.out {
            Some((end, again)) if ack >= end => {
                if again && ack == end && reports {
                    // Not decided yet.
                    return false;
                }
                self.out = None;
                again && ack > end
            }
            _ => false,
        }
    }
}
