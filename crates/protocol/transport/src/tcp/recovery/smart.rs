//! SMART (Keshav and Morgan 1997), as Balakrishnan et al. 1997 simplify it: a gap is a loss at once.
//!
//! Each acknowledgment names the segment that caused it, so the sender knows which have come. What is missing
//! below the highest of these leaves again, whatever the window says, and once more when a round trip has passed
//! since its last copy left and an acknowledgment comes. A segment whose acknowledgment was lost stays a gap
//! and leaves again for nothing: that is the price of needing no threshold. New data leaves while less than
//! the window is on its way. The window is halved at most once for what was on its way together.
//!
//! A timeout forgets what has come, and until all is acknowledged that was sent before it the sender does what
//! Reno does, except that what is reported behind it does not leave again.

use std::collections::VecDeque;

use airlane_base::Instant;

use crate::tcp::Ack;
use crate::tcp::control::Control;
use crate::tcp::ranges::Ranges;

#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Smart {
    /// What has come above `snd_una`.
    delivered: Ranges,
    /// Segments in `delivered`.
    count: u64,
    /// One more than the highest segment in `delivered`; below `snd_una` if there is none.
    high: u64,
    /// Gaps below have left again.
    resent_below: u64,
    /// These gaps, by when their last copies left; some have come since.
    resent: VecDeque<(u64, Instant)>,
    /// What was sent when the window was last cut ends here.
    recover: u64,
    /// What was sent before the last timeout ends here.
    behind_timeout: u64,
    /// Whether an acknowledgment has come since nothing was left to send.
    acknowledged: bool,
}

impl Smart {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        let before = control.window.una;
        control.acknowledge(now, ack);
        if control.window.una >= self.recover || before < self.behind_timeout {
            control.open(now);
        }
        self.on_ack(control, now, ack);
    }

    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        self.on_ack(control, now, ack);
    }

    fn on_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        let window = &control.window;
        self.count -= self.delivered.cut_below(window.una);
        for block in ack.blocks.iter().filter(|block| block.end <= window.max) {
            let mut block = *block;
            block.start = block.start.max(window.una);
            self.count += self.delivered.insert(block);
            self.high = self.high.max(block.end);
        }
        self.acknowledged = true;
        let una = window.una;
        if self.high > una && una >= self.recover && una >= self.behind_timeout {
            self.recover = window.max;
            control.cut(now);
            control.congestion.resume();
        }
    }

    /// What was repaired was not lost.
    pub(super) fn undo(&mut self) {
        self.recover = 0;
        self.behind_timeout = 0;
    }

    pub(super) fn on_timeout(&mut self, control: &mut Control, _now: Instant) {
        *self = Self {
            recover: control.window.max,
            behind_timeout: control.window.max,
            ..Self::default()
        };
        control.collapse();
    }

    /// The gap that leaves again now.
    fn next_gap(&mut self, control: &Control, now: Instant) -> Option<u64> {
        let una = control.window.una;
        let gap = self.delivered.skip(self.resent_below.max(una));
        if gap < self.high {
            self.resent_below = gap + 1;
            self.resent.push_back((gap, now));
            return Some(gap);
        }
        while let Some((seq, left)) = self.resent.front().copied() {
            if seq < una || self.delivered.containing(seq).is_some() {
                self.resent.pop_front();
                continue;
            }
            let round_trip = control.timer.fine_srtt()?;
            if now.saturating_since(left) < round_trip {
                return None;
            }
            self.resent.pop_front();
            self.resent.push_back((seq, now));
            return Some(seq);
        }
        None
    }

    #[inline]
    pub(super) fn next(&mut self, control: &mut Control, now: Instant) -> Option<u64> {
        if control.window.una < self.behind_timeout {
            let window = &mut control.window;
            window.nxt = self.delivered.skip(window.nxt);
            let usable = control.usable(0);
            return control.window.take_next(usable);
        }
        if self.acknowledged {
            if let Some(gap) = self.next_gap(control, now) {
                return Some(gap);
            }
            self.acknowledged = false;
        }
        let window = &mut control.window;
        if window.flight_size() - self.count >= control.congestion.window() {
            return None;
        }
        window.nxt = window.max;
        window.take_next(window.advertised())
    }
}
