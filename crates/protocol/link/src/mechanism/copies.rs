//! Copies: a thin flow's frames are sent again before the peer can have detected their loss.
//!
//! The loss of a request, a first window or a voice packet costs a round trip, because the peer has to
//! request it; and where nothing follows, a timeout first. Flows with few bytes can afford to be sent twice.
//! (RFC 2198 repeats old speech with the new; RFC 8985 probes for tail loss. Here the link does both, for any
//! traffic.)
//!
//! ```text
//! original leaves ── after ──► copy 1 ── after ──► copy 2 ...        `number` of them
//! ```
//! 1. A copy leaves only when its service has neither a repair nor a new packet to send. So copies delay no
//!    packet of their own service, and a service that is never idle sends none.
//! 2. Copies are paid from a token bucket that fills at `share` of the link's rate, with a depth of [`DEPTH`]
//!    at that rate. A copy that the bucket cannot pay is not sent: a flow counts as thin while it can.
//! 3. `longest` excludes long packets. `above` stops all copies while the loss that requests show is lower:
//!    each frame weighs 1/256, and an unknown link is assumed to be lossy.
//! 4. No copy is sent if the peer is known to have the frame, or if the frame is to be repaired anyway.
//!    Congestion is no reason to stop: losses there hurt as much, and the bucket is small.
//! 5. Where packets have a budget, it and the duration of fades determine the spacing of copies
//!    ([`Copies::space`]).
//!
//! Invariant: at most the newest [`MOST`] copies of each kind are pending.

use std::collections::VecDeque;

use airlane_base::{Bucket, Duration, Instant, Payload, Probability, Rate, Seq};

use crate::config::CopiesConfig;
use crate::context::{PortFacts, earliest};
use crate::wire::{Frame, Layout};

/// More than TCP's initial window of ten segments.
const MOST: usize = 64;

/// Depth of the bucket as time at its rate: an initial window on a link where that is little.
const DEPTH: Duration = Duration::from_millis(250);

/// Nine of ten fades end within this multiple of their mean length; the second multiple covers all but one in
/// 400.
const MOST_FADES: f64 = 2.5;
const LONGEST_FADES: u64 = 6;

/// Assumed loss of an unknown link.
const UNKNOWN: f64 = 0.05;
/// Weight of each frame in the loss estimate.
const WEIGHT: f64 = 1.0 / 256.0;

/// A pending copy.
#[derive(Clone, Copy, Debug)]
struct Planned {
    at: Instant,
    seq: Seq,
    /// Number of copies of this frame left to send, this one included.
    left: u32,
}

/// Pending copies in order of time: all wait equally long.
#[derive(Clone, Debug)]
struct Row {
    planned: VecDeque<Planned>,
    /// Number of copies due, from the front.
    due: usize,
}

impl Row {
    fn new() -> Self {
        Self {
            planned: VecDeque::with_capacity(MOST),
            due: 0,
        }
    }

    /// The last planned copy may be for a later time: its frame left later, or the wait was longer.
    fn plan(&mut self, mut copy: Planned) {
        copy.at = self
            .planned
            .back()
            .map_or(copy.at, |last| last.at.max(copy.at));
        if self.planned.len() == MOST {
            self.planned.pop_front();
            self.due = self.due.saturating_sub(1);
        }
        self.planned.push_back(copy);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while self.deadline().is_some_and(|at| at <= now) {
            self.due += 1;
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.planned.get(self.due).map(|copy| copy.at)
    }

    fn next_due(&mut self) -> Option<Planned> {
        self.due = self.due.checked_sub(1)?;
        self.planned.pop_front()
    }

    fn clear(&mut self) {
        self.planned.clear();
        self.due = 0;
    }
}

/// The copies of a sender.
#[derive(Clone, Debug)]
pub(crate) struct Copies {
    number: u32,
    after: Duration,
    longest: usize,
    above: f64,
    loss: f64,
    bucket: Bucket,
    /// Bytes of a frame other than its packet.
    overhead: usize,
    /// Delay of the first copy after its frame, and of one late copy, where one is sent.
    spacing: (Duration, Option<Duration>),
    soon: Row,
    late: Row,
}

impl Copies {
    pub(crate) fn new(config: &CopiesConfig, facts: &PortFacts, layout: &Layout) -> Self {
        let bps = facts.rate.as_bps() as f64 * config.share;
        let rate = Rate::from_bps((bps as u64).max(1)).unwrap_or(facts.rate);
        let overhead = facts.codec.header_len(layout) + facts.frame_overhead;
        let frames = (facts.max_payload + overhead) * 2;
        Self {
            number: config.number,
            after: config.after,
            longest: config
                .longest
                .map_or(usize::MAX, |size| size.as_bytes() as usize),
            above: config.above.map_or(0.0, Probability::value),
            loss: UNKNOWN,
            bucket: Bucket::new(rate, DEPTH, frames),
            overhead,
            spacing: (config.after, None),
            soon: Row::new(),
            late: Row::new(),
        }
    }

    /// Sets the spacing: fades last `fade` on average, requests are answered within `asked`, and a copy
    /// within `helps` of its frame is in time. The first copy waits until most fades are over. Where a
    /// request after a long fade would be too late, a second copy leaves when nearly all fades are over.
    pub(crate) fn space(&mut self, fade: Duration, asked: Duration, helps: Duration) {
        let last = helps.saturating_sub(self.after).max(self.after);
        let first = fade.mul_f64(MOST_FADES).clamp(self.after, last);
        let longest = fade * LONGEST_FADES;
        let late = longest.max(first + self.after).min(last);
        let asks_in_time = longest + asked + self.after < helps;
        self.spacing = (first, (!asks_in_time && late > first).then_some(late));
    }

    /// Takes over the share of `fresh`, which is configured for another link rate.
    pub(crate) fn retime(&mut self, fresh: &Self) {
        self.bucket.retime(&fresh.bucket);
    }

    /// An original frame has left.
    pub(crate) fn on_left(&mut self, seq: Seq, left: Instant) {
        self.loss -= self.loss * WEIGHT;
        let (first, late) = self.spacing;
        self.soon.plan(Planned {
            at: left + first,
            seq,
            left: self.number,
        });
        if let Some(late) = late {
            self.late.plan(Planned {
                at: left + late,
                seq,
                left: 1,
            });
        }
    }

    /// The peer has requested a frame for the first time.
    pub(crate) fn on_lost(&mut self) {
        self.loss += WEIGHT;
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        self.soon.handle_timeout(now);
        self.late.handle_timeout(now);
    }

    /// The next copy to hand over. `again` returns a frame to repeat, if repeating it is worthwhile.
    pub(crate) fn next<P: Payload>(
        &mut self,
        now: Instant,
        again: impl Fn(Seq) -> Option<Frame<P>>,
    ) -> Option<Frame<P>> {
        while let Some(copy) = self.soon.next_due().or_else(|| self.late.next_due()) {
            if self.loss < self.above {
                continue;
            }
            let frame = again(copy.seq).filter(|frame| frame.payload_len() <= self.longest);
            let Some(frame) = frame else {
                continue;
            };
            if !self.bucket.take(now, frame.payload_len() + self.overhead) {
                continue;
            }
            if copy.left > 1 {
                self.soon.plan(Planned {
                    at: now + self.after,
                    left: copy.left - 1,
                    ..copy
                });
            }
            return Some(frame);
        }
        None
    }

    /// When `handle_timeout` has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        earliest(self.soon.deadline(), self.late.deadline())
    }

    /// Forgets all frames.
    pub(crate) fn reset(&mut self) {
        self.soon.clear();
        self.late.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Codec, FrameKind, HeaderProfile};

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const NONE: [Seq; 0] = [];

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + MS(ms)
    }

    /// A link of 1 Mbit/s, of which copies may use `share`.
    fn copies(number: u32, share: f64) -> Copies {
        let facts = PortFacts {
            codec: Codec::new(HeaderProfile::Live),
            rate: "1 Mbit/s".parse().unwrap(),
            delay: Duration::ZERO,
            max_payload: 1_000,
            frame_overhead: 0,
        };
        let config = CopiesConfig {
            number,
            after: MS(5),
            share,
            longest: None,
            above: None,
        };
        Copies::new(&config, &facts, &Layout::SEQ)
    }

    fn due(copies: &mut Copies, now: Instant, kept: impl Fn(Seq) -> bool) -> Vec<Seq> {
        copies.handle_timeout(now);
        let again = |seq| kept(seq).then(|| Frame::with_packet(FrameKind::Copy, seq, vec![0; 91]));
        let frames = std::iter::from_fn(|| copies.next(now, again));
        frames.map(|frame| frame.header.seq).collect()
    }

    #[test]
    fn copies_leave_after_their_delay_and_again_after_another() {
        let mut copies = copies(2, 1.0);
        copies.on_left(7, at(10));
        copies.on_left(8, at(12));
        assert_eq!(copies.deadline(), Some(at(15)));
        assert_eq!(due(&mut copies, at(14), |_| true), NONE);
        assert_eq!(due(&mut copies, at(15), |_| true), [7]);
        assert_eq!(due(&mut copies, at(19), |_| true), [8]);
        assert_eq!(due(&mut copies, at(24), |_| true), [7, 8]);
        assert_eq!(copies.deadline(), None);
    }

    #[test]
    fn acknowledged_frames_get_no_copy() {
        let mut copies = copies(1, 1.0);
        for seq in 0..3 {
            copies.on_left(seq, at(0));
        }
        assert_eq!(due(&mut copies, at(5), |seq| seq != 1), [0, 2]);
        assert_eq!(due(&mut copies, at(12), |_| true), NONE);
    }

    #[test]
    fn copies_beyond_the_bucket_are_not_sent_later() {
        // 250 ms at 0.1 Mbit/s are 3125 B: 31 frames of 100 B.
        let mut copies = copies(1, 0.1);
        for seq in 0..40 {
            copies.on_left(seq, at(0));
        }
        let sent = due(&mut copies, at(5), |_| true);
        assert_eq!(sent, (0..31).collect::<Vec<_>>());
        assert_eq!(due(&mut copies, at(1_000), |_| true), NONE);
        assert_eq!(copies.deadline(), None);
    }

    #[test]
    fn long_packets_and_clean_links_get_no_copies() {
        let mut copies = copies(1, 1.0);
        (copies.longest, copies.above) = (90, 0.0);
        copies.on_left(0, at(0));
        assert_eq!(due(&mut copies, at(5), |_| true), NONE);
        (copies.longest, copies.above) = (91, 0.02);
        let mut lossy = |from: u32, lost: u32| {
            let mut sent = 0;
            for seq in from..from + 1_000 {
                let now = at(10 * u64::from(seq));
                copies.on_left(seq, now);
                sent += due(&mut copies, now + MS(5), |_| true).len();
                if lost > 0 && seq % lost == 0 {
                    copies.on_lost();
                }
            }
            sent
        };
        let unknown = lossy(1, 0);
        assert!((200..300).contains(&unknown), "{unknown}");
        assert_eq!(lossy(1_001, 100), 0, "1 % is less than 2 %");
        assert!(lossy(2_001, 20) > 800, "5 % is more");
    }

    #[test]
    fn copies_are_spaced_by_fade_length_and_by_the_time_to_help() {
        let mut copies = copies(1, 1.0);
        // Fade length, time to answer a request, time within which a copy helps; expected times of both
        // copies.
        for (fade, asked, helps, first, late) in [
            (0, 50, 275, 5, None),
            (10, 50, 275, 25, None),
            (40, 50, 275, 100, Some(240)),
            (80, 50, 275, 200, Some(270)),
            // An answer to a request never arrives in time.
            (0, 300, 150, 5, Some(10)),
            (20, 300, 150, 50, Some(120)),
            (80, 300, 150, 145, None),
            (80, 300, 0, 5, None),
        ] {
            copies.space(MS(fade), MS(asked), MS(helps));
            assert_eq!(copies.spacing, (MS(first), late.map(MS)), "{fade} ms");
        }
        copies.space(MS(20), MS(300), MS(150));
        copies.on_left(0, at(0));
        copies.on_left(1, at(20));
        assert_eq!(due(&mut copies, at(49), |_| true), NONE);
        assert_eq!(due(&mut copies, at(70), |_| true), [0, 1]);
        assert_eq!(due(&mut copies, at(120), |_| true), [0]);
        assert_eq!(due(&mut copies, at(140), |seq| seq != 1), NONE);
        assert_eq!(copies.deadline(), None);
    }

    #[test]
    fn only_the_newest_frames_get_copies() {
        let mut copies = copies(1, 1.0);
        for seq in 0..100 {
            copies.on_left(seq, at(0));
            copies.handle_timeout(at(5));
        }
        let sent = due(&mut copies, at(6), |_| true);
        assert_eq!(sent, (36..100).collect::<Vec<_>>());
    }
}
