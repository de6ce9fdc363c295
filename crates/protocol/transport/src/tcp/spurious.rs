//! Spurious retransmissions, detected and undone: by timestamps (Eifel, RFC 3522, RFC 4015), and by reported
//! duplicates (DSACK, RFC 2883, RFC 3708).
//!
//! The echoed timestamp of an acknowledgment tells which copy of a segment caused it. If the first acknowledgment
//! after a retransmission was caused by a segment sent before that, nothing was lost: the sender continues with new
//! data and the old window, which slow start reaches again (RFC 4015, section 3.2).
//!
//! If that acknowledgment was lost, the copies tell: if each of them is reported as a duplicate, none was needed.
//! Linux counts them in the same way.

use airlane_base::Instant;

use super::congestion::Curve;
use super::segment::{Ack, Timestamp};
use super::{TcpConfig, UndoKind};

/// The state that a cut took away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// Segments in flight or allowed to be (RFC 4015's pipe_prev).
    pub(super) pipe: u64,
    /// The window and its threshold, segments.
    pub(super) cwnd: f64,
    pub(super) ssthresh: u64,
    /// The curve of CUBIC.
    pub(super) curve: Option<Curve>,
    /// The next segment to be sent for the first time.
    pub(super) end: u64,
}

/// What is known about the last cut.
#[derive(Clone, Copy, Debug)]
struct Before {
    taken: Taken,
    /// The first retransmission, and when it was sent.
    resent: Option<(u64, Timestamp)>,
    /// Copies sent and not reported as duplicates yet.
    copies: u64,
    /// Whether the first retransmission has been acknowledged, so that timestamps say nothing more.
    is_acknowledged: bool,
}

/// The memory of the last cut, if cuts may be undone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    by_timestamps: bool,
    by_duplicates: bool,
    pub(super) kind: UndoKind,
    before: Option<Before>,
}

impl Undo {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            by_timestamps: config.eifel.unwrap_or_default(),
            by_duplicates: config.dsack.unwrap_or_default(),
            kind: config.undo.unwrap_or_default(),
            before: None,
        }
    }

    /// The window is cut; of several cuts in a row the first is kept.
    pub(super) fn on_cut(&mut self, taken: Taken) {
        let is_enabled = self.by_timestamps || self.by_duplicates;
        if is_enabled && self.before.is_none_or(|before| before.is_acknowledged) {
            self.before = Some(Before {
                taken,
                resent: None,
                copies: 0,
                is_acknowledged: false,
            });
        }
    }

    /// Segment `seq` is retransmitted.
    #[inline]
    pub(super) fn on_resent(&mut self, now: Instant, seq: u64) {
        if let Some(before) = &mut self.before {
            before.resent.get_or_insert((seq, Timestamp::of(now)));
            before.copies += 1;
        }
    }

    /// Everything below the number has arrived; returns what a spurious cut took away. `has_copies` tells whether
    /// copies from there on are in flight.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: &Ack, has_copies: impl FnOnce() -> bool) -> Option<Taken> {
        let before = self.before.as_mut()?;
        let (seq, left) = before.resent?;
        if before.is_acknowledged || ack.ack <= seq {
            return None;
        }
        let taken = before.taken;
        let is_earlier = ack.stamp.is_some_and(|stamp| stamp.is_before(left));
        let waits = self.kind == UndoKind::Linux && ack.ack < taken.end;
        if waits && is_earlier && has_copies() {
            return None;
        }
        before.is_acknowledged = true;
        let is_needless = self.by_timestamps && is_earlier;
        if is_needless || !self.by_duplicates {
            self.before = None;
        }
        is_needless.then_some(taken)
    }

    /// As above, from the duplicates that the acknowledgment reports.
    #[inline]
    pub(super) fn on_report(&mut self, ack: &Ack) -> Option<Taken> {
        let before = self.before.as_mut().filter(|_| self.by_duplicates)?;
        let (seq, _) = before.resent?;
        let again = ack.duplicate().filter(|again| again.end > seq)?;
        before.copies = before.copies.saturating_sub(again.len());
        if before.copies > 0 {
            return None;
        }
        self.before.take().map(|before| before.taken)
    }
}
