//! How long a service's frames are, where that follows what becomes of them ([`FrameLength`]).
//!
//! A frame was lost if it is repaired, and has come if it is not in the time that this takes, or if one behind it is: so any
//! service that sends again what was lost tells enough by the frames that leave, and others keep the longest frames.
//! What is known is taken in the order in which frames left, as the rule wants it.

use std::collections::VecDeque;

use airlane_base::{Duration, FrameLength, Instant, Rate, Seq};

use crate::config::MAX_LIVE_WINDOW;

/// The shortest part of a packet that is worth a frame.
const LEAST: usize = 32;
/// The rule counts in what a link sends in this time.
const UNIT: Duration = Duration::from_millis(20);
/// What has not been repaired after so many round trips and frames has come: the next frame shows that one was lost, the
/// request may wait for one, and the repair for those that are handed over already, before it leaves itself.
const ROUND_TRIPS: u64 = 2;
const FRAMES: u64 = 6;
/// A window of the shortest frames takes so many round trips to leave: a frame can be lost several times before the link is
/// idle.
const WINDOW: u64 = 12;

/// A frame whose fate is not known.
#[derive(Clone, Copy, Debug)]
struct Pending {
    seq: Seq,
    len: u32,
    left: Instant,
}

/// The length of a service's frames.
#[derive(Clone, Debug)]
pub(super) struct Lengths {
    rule: FrameLength,
    /// Bytes of a frame beside what it carries.
    overhead: usize,
    rate: Rate,
    window: usize,
    pending: VecDeque<Pending>,
}

impl Lengths {
    /// Of frames that have `overhead` bytes beside up to `most`; `window` of them may be unacknowledged.
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

    /// A frame of `len` bytes in all leaves for the first time.
    pub(super) fn original(&mut self, seq: Seq, len: usize, left: Instant) {
        // No window has more.
        if self.pending.len() == MAX_LIVE_WINDOW as usize {
            self.settle_first(false);
        }
        self.pending.push_back(Pending {
            seq,
            len: len as u32,
            left,
        });
    }

    /// A frame leaves again. Numbers come round: it is the youngest with this one.
    pub(super) fn repair(&mut self, seq: Seq) {
        let youngest = self.pending.iter().rposition(|pending| pending.seq == seq);
        if let Some(at) = youngest {
            (0..at).for_each(|_| self.settle_first(false));
            self.settle_first(true);
        }
    }

    /// What would have been repaired by now has come. Gives how much a frame should carry.
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

    /// A new epoch: nobody will say what became of frames.
    pub(super) fn reset(&mut self) {
        self.pending.clear();
    }
}

fn unit(rate: Rate) -> f64 {
    rate.bytes_within(UNIT).max(1) as f64
}
