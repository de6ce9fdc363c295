//! Acknowledgments that are left out because a later one says the same (Gopal 2007, section 2.4): on a half-duplex
//! channel each of them takes nearly as long as a segment.
//!
//! Of `k` + 1 acknowledgments one leaves. There is no timer: the last ones of a transfer may be missing.

use crate::tcp::{SkippedHoles, TcpConfig};

/// Which acknowledgments leave.
#[derive(Clone, Debug)]
pub(super) struct Skip {
    count: u64,
    from: u64,
    literal: bool,
    /// What the last acknowledgment said that left.
    sent: u64,
    /// The highest segment that has come.
    highest: u64,
}

impl Skip {
    pub(super) fn new(config: &TcpConfig) -> Option<Self> {
        let skip = config.skip_acks?;
        Some(Self {
            count: u64::from(skip.count),
            from: u64::from(skip.from),
            literal: skip.holes == SkippedHoles::Literal,
            sent: 0,
            highest: 0,
        })
    }

    /// Whether the acknowledgment `ack` leaves that segment `seq` caused. `in_order` says whether it was the one
    /// expected next, `hole` whether segments waited for one before it or do behind it.
    pub(super) fn sends(&mut self, ack: u64, seq: u64, in_order: bool, hole: bool) -> bool {
        self.highest = self.highest.max(seq);
        let exempt = !in_order || self.highest < self.from || (hole && !self.literal);
        let sends = exempt || ack > self.sent + self.count;
        if sends {
            self.sent = ack;
        }
        sends
    }
}
