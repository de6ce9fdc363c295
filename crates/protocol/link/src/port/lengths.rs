//! Adapts the length of a service's frames to their losses ([`FrameLength`]).
//!
//! A frame was lost if it is repaired. It has arrived if it has not been repaired within the time that this
//! takes, or if a later frame has. So the departing frames of any service that retransmits reveal the losses;
//! other services keep the longest frames. The rule receives the outcomes in the order in which frames left.

use std::collections::VecDeque;

use airlane_base::{Duration, FrameLength, Instant, Rate, Seq};

use crate::config::MAX_LIVE_WINDOW;

/// The shortest fragment of a packet that is worth a frame.
const LEAST: usize = 32;
/// Unit of the rule: what the link sends in this time.
const UNIT: Duration = Duration::from_millis(20);
/// A frame not repaired after this many round trips and frames has arrived: the next frame reveals a loss,
/// the request may wait for one frame, and the repair for those already handed over, before it leaves itself.
const ROUND_TRIPS: u64 = 2;
const FRAMES: u64 = 6;
/// A window of the shortest frames takes at least this many round trips to leave: a frame can be lost several
/// times before the link is idle.
const WINDOW: u64 = 12;

/// A frame whose outcome is not known.
#[derive(Clone, Copy, Debug)]
struct Pending {
    seq: Seq,
    len: u32,
    left: Instant,
}

/// The adaptive length of a service's frames.
#[derive(Clone, Debug)]
pub(super) struct Lengths {
    rule: FrameLength,
    /// Bytes of a frame other than its payload.
    overhead: usize,
    rate: Rate,
    window: usize,
    pending: VecDeque<Pending>,
}

impl Lengths {
    /// For frames with `overhead` bytes and up to `most` bytes of payload; `window` of them may be
    /// unacknowledged.
    pub(super) fn new(overhead: usize, most: usize, window: u32, rate: Rate) -> Self {
        let bounds = [LEAST.min(most), most].map(|carried| (carried + overhead) as u32);
        Self {
            rule: FrameLength::new(bounds, overhead as f64, 1.0, unit(rate)).doubting(),
            overhead,
            rate,
            window: window.max(1) as usize,
            pending: VecDeque::new(),
        }
    }

    /// The link has another rate.
    pub(super) fn retime(&mut self, rate: Rate) {
        self.rule.set_unit(unit(rate));
        self.rate = rate;
    }

    /// A frame of `len` bytes in total leaves for the first time.
    pub(super) fn original(&mut self, seq: Seq, len: usize, left: Instant) {
        // No window is larger.
        if self.pending.len() == MAX_LIVE_WINDOW as usize {
            self.settle_first(false);
        }
        self.pending.push_back(Pending {
            seq,
            len: len as u32,
            left,
        });
    }

    /// A frame is retransmitted. Numbers wrap: it is the latest with this one.
    pub(super) fn repair(&mut self, seq: Seq) {
        let youngest = self.pending.iter().rposition(|pending| pending.seq == seq);
        if let Some(at) = youngest {
            (0..at).for_each(|_| self.settle_first(false));
            self.settle_first(true);
        }
    }

    /// Settles frames that would have been repaired by now. Returns the payload that a frame should carry.
    pub(super) fn settle(&mut self, now: Instant, round_trip: Duration) -> usize {
        while let Some(first) = self.pending.front() {
            let frame = first.len.max(self.rule.length()) as usize;
            let patience = round_trip * ROUND_TRIPS + self.rate.transmission_time(frame) * FRAMES;
            if now < first.left + patience {
                break;
            }
            self.settle_first(false);
        }
        let least = self.rate.bytes_within(round_trip * WINDOW) / self.window;
        (self.rule.length() as usize)
            .max(least)
            .saturating_sub(self.overhead)
    }

    fn settle_first(&mut self, lost: bool) {
        if let Some(known) = self.pending.pop_front() {
            self.rule.outcome(known.len, lost);
        }
    }

    /// A new epoch: the outcome of pending frames will never be known.
    pub(super) fn reset(&mut self) {
        self.pending.clear();
    }
}

fn unit(rate: Rate) -> f64 {
    rate.bytes_within(UNIT).max(1) as f64
}
