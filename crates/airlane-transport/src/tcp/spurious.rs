//! Retransmissions that were not needed, found out and undone: Eifel (RFC 3522, RFC 4015).
//!
//! The timestamp that an acknowledgment echoes tells which copy of a segment caused it. If the first
//! acknowledgment behind a retransmission was caused by what had left before that, nothing was lost: the sender goes
//! on with new data, at the window it had, which slow start reaches again (RFC 4015, section 3.2).

use airlane_base::Instant;

use super::segment::{Ack, Timestamp};

/// What stood before the window was cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    /// Segments that were on their way or allowed to be (RFC 4015's pipe_prev).
    pub(super) pipe: u64,
    /// What was sent again first, and when.
    pub(super) resent: Option<(u64, Timestamp)>,
}

/// The memory of the last cut, where it may be undone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    enabled: bool,
    before: Option<Before>,
}

impl Undo {
    pub(super) const fn new(enabled: bool) -> Self {
        Self {
            enabled,
            before: None,
        }
    }

    /// The window is cut; of cuts in a row the first counts.
    pub(super) fn on_cut(&mut self, flight: u64, ssthresh: u64) {
        if self.enabled && self.before.is_none() {
            self.before = Some(Before {
                pipe: flight.max(ssthresh),
                resent: None,
            });
        }
    }

    /// Segment `seq` is sent again.
    #[inline]
    pub(super) fn on_resent(&mut self, now: Instant, seq: u64) {
        if let Some(before) = &mut self.before {
            before.resent.get_or_insert((seq, Timestamp::of(now)));
        }
    }

    /// Everything below the number has arrived; what stood before a cut that was not needed.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Option<u64> {
        let before = self.before?;
        let (seq, left) = before.resent?;
        if ack.ack <= seq {
            return None;
        }
        self.before = None;
        let is_earlier = ack.stamp.is_some_and(|stamp| stamp.is_before(left));
        is_earlier.then_some(before.pipe)
    }
}
