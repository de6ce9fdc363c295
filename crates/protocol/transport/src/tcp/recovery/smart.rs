//! SMART (Keshav and Morgan 1997), as Balakrishnan et al. 1997 simplify it: a gap is a loss at once.
//!
//! Each acknowledgment names the segment that caused it, so the sender knows which segments were delivered. A missing
//! segment below the highest of these is retransmitted regardless of the window, and again when an acknowledgment
//! arrives more than a round trip after its last copy was sent. A segment whose acknowledgment was lost looks like a
//! gap and is retransmitted needlessly: that is the price of having no threshold. New data is sent while less than
//! the window is in flight. The window is halved at most once per flight.
//!
//! A timeout discards what was reported. Until everything sent before it is acknowledged, the sender acts as Reno,
//! except that segments reported after the timeout are not retransmitted.

use std::collections::VecDeque;

use airlane_base::Instant;

use crate::tcp::Ack;
use crate::tcp::control::Control;
use crate::tcp::ranges::Ranges;

#[derive(Clone, Debug, Default)]
pub(in crate::tcp) struct Smart {
    /// Segments delivered above `snd_una`.
    delivered: Ranges,
    /// Segments in `delivered`.
    count: u64,
    /// One more than the highest segment in `delivered`; below `snd_una` if there is none.
    high: u64,
    /// The gaps below this number were retransmitted.
    resent_below: u64,
    /// These gaps, by when their last copies were sent; some were delivered since.
    resent: VecDeque<(u64, Instant)>,
    /// The end of what had been sent when the window was last cut.
    recover: u64,
    /// The end of what had been sent at the last timeout.
    behind_timeout: u64,
    /// Whether an acknowledgment has arrived since nothing was left to send.
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

    /// The retransmissions were spurious.
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

    /// The gap to retransmit now.
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
