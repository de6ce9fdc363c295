//! Explicit congestion notification (RFC 3168): a queue marks what it would have to drop later.
//!
//! New segments say that they may be marked; segments sent again may not. A receiver that has got a marked one says
//! so in every acknowledgment, until the sender tells in a new segment that it has cut its window. The sender
//! cuts as for a loss, with nothing to repair, at most once for what was on its way together, losses included.

/// What an IP header says of congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The transport would not understand a mark.
    #[default]
    NotCapable,
    /// It may be marked.
    Capable,
    /// A queue has marked it.
    Marked,
}

/// The receiving half.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Echo {
    on: bool,
}

impl Echo {
    /// A segment has come; `cut` if its sender has cut its window.
    #[inline]
    pub(super) fn on_data(&mut self, ecn: Ecn, cut: bool) {
        self.on = ecn == Ecn::Marked || (self.on && !cut);
    }

    /// Whether acknowledgments tell of a mark.
    #[inline]
    pub(super) const fn is_on(self) -> bool {
        self.on
    }
}

/// The sending half.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reaction {
    enabled: bool,
    /// What was sent before the last cut, by a mark or a loss, ends here.
    cut: u64,
    /// Likewise for the last mark.
    marked: u64,
    /// The next new segment tells that the window was cut.
    tells: bool,
}

impl Reaction {
    pub(super) fn new(enabled: bool) -> Self {
        Self {
            enabled,
            ..Self::default()
        }
    }

    /// An acknowledgment tells of a mark, and `una` is the oldest segment outstanding; whether the window is cut.
    #[inline]
    pub(super) const fn asks_for_cut(&self, una: u64) -> bool {
        self.enabled && una >= self.cut
    }

    /// The window is cut for a mark; what has been sent ends with `max`.
    pub(super) const fn on_mark(&mut self, max: u64) {
        self.cut = max;
        self.marked = max;
        self.tells = true;
    }

    /// The window is cut for a loss; whether a mark had it cut already for what includes `una`.
    pub(super) const fn on_loss(&mut self, una: u64, max: u64) -> bool {
        self.cut = max;
        una < self.marked
    }

    /// What a segment says that leaves: what queues may do with it, and whether the window was cut.
    #[inline]
    pub(super) fn on_sent(&mut self, retransmission: bool) -> (Ecn, bool) {
        if !self.enabled || retransmission {
            return (Ecn::NotCapable, false);
        }
        (Ecn::Capable, std::mem::take(&mut self.tells))
    }
}
