//! Explicit congestion notification (RFC 3168): a queue marks a packet that it would otherwise have to drop later.
//!
//! New segments are marked as ECN-capable; retransmissions are not. A receiver of a marked segment says so in every
//! acknowledgment until the sender announces, in a new segment, that it has cut its window. The sender cuts as for a
//! loss but has nothing to repair; it cuts at most once per flight, for marks and losses together.

/// The ECN field of an IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The transport does not support ECN.
    #[default]
    NotCapable,
    /// The packet may be marked.
    Capable,
    /// A queue has marked the packet.
    Marked,
}

/// The receiving half.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Echo {
    on: bool,
}

impl Echo {
    /// Takes a segment; `cut` if it announces a cut window (CWR).
    #[inline]
    pub(super) fn on_data(&mut self, ecn: Ecn, cut: bool) {
        self.on = ecn == Ecn::Marked || (self.on && !cut);
    }

    /// Whether acknowledgments echo a mark.
    #[inline]
    pub(super) const fn is_on(self) -> bool {
        self.on
    }
}

/// The sending half.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reaction {
    enabled: bool,
    /// What was sent before the last cut, for a mark or a loss, ends here.
    cut: u64,
    /// The same for the last mark.
    marked: u64,
    /// Whether the next new segment announces the cut.
    tells: bool,
}

impl Reaction {
    pub(super) fn new(enabled: bool) -> Self {
        Self {
            enabled,
            ..Self::default()
        }
    }

    /// An acknowledgment echoes a mark, and `una` is the oldest segment in flight; true if the window has to be cut.
    #[inline]
    pub(super) const fn asks_for_cut(&self, una: u64) -> bool {
        self.enabled && una >= self.cut
    }

    /// The window is cut for a mark; `max` is the end of what has been sent.
    pub(super) const fn on_mark(&mut self, max: u64) {
        self.cut = max;
        self.marked = max;
        self.tells = true;
    }

    /// The window is cut for a loss; true if a mark had already cut it for a flight that includes `una`.
    pub(super) const fn on_loss(&mut self, una: u64, max: u64) -> bool {
        self.cut = max;
        una < self.marked
    }

    /// The ECN fields of a segment that is sent now: what queues may do with it, and whether it announces a cut.
    #[inline]
    pub(super) fn on_sent(&mut self, retransmission: bool) -> (Ecn, bool) {
        if !self.enabled || retransmission {
            return (Ecn::NotCapable, false);
        }
        (Ecn::Capable, std::mem::take(&mut self.tells))
    }
}
