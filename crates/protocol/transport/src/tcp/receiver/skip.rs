//! Acknowledgments that are skipped because a later one carries the same information (Gopal 2007, section 2.4): on a
//! half-duplex channel each takes nearly as long as a data segment.
//!
//! One of every `k` + 1 acknowledgments is sent. There is no timer, so the last ones of a transfer may be missing.

use crate::tcp::{SkippedHoles, TcpConfig};

/// Decides which acknowledgments are sent.
#[derive(Clone, Debug)]
pub(super) struct Skip {
    count: u64,
    from: u64,
    literal: bool,
    /// The number in the last acknowledgment that was sent.
    sent: u64,
    /// The highest segment received.
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

    /// Whether to send acknowledgment `ack`, caused by segment `seq`. `in_order` says whether that was the expected
    /// segment, `hole` whether out-of-order segments waited before it or still wait.
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
