//! Acknowledgments that are skipped because a later one carries the same information (Gopal 2007, section 2.4): on a
//! half-duplex channel each takes nearly as long as a data segment.
//!
//! One of every `k` + 1 acknowledgments that would be sent is sent, delayed ones included. There is no timer, so the
//! last ones of a transfer may be missing.

use crate::tcp::{SkippedHoles, TcpConfig};

/// Decides which acknowledgments are sent.
#[derive(Clone, Debug)]
pub(super) struct Skip {
    /// What the acknowledgments left out between two that are sent stand for, segments.
    span: u64,
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
            span: u64::from(skip.count) * u64::from(config.delayed_ack.map_or(1, |d| d.every)),
            from: u64::from(skip.from),
            literal: skip.holes == SkippedHoles::Literal,
            sent: 0,
            highest: 0,
        })
    }

    pub(super) fn on_data(&mut self, seq: u64) {
        self.highest = self.highest.max(seq);
    }

    /// Whether to send acknowledgment `ack`. `in_order` says whether the segment that causes it was the expected one,
    /// `hole` whether out-of-order segments waited before it or still wait.
    pub(super) fn sends(&mut self, ack: u64, in_order: bool, hole: bool) -> bool {
        let exempt = !in_order || self.highest < self.from || (hole && !self.literal);
        let sends = exempt || ack > self.sent + self.span;
        if sends {
            self.sent = ack;
        }
        sends
    }
}
