//! Slow start and congestion avoidance (RFC 5681), in segments.
//!
//! Slow start opens the window by one segment for each acknowledgment while it lies below `ssthresh`,
//! congestion avoidance by `1/cwnd`; with byte counting (RFC 3465) by as many as it acknowledges. A loss halves
//! what was in use, in whole segments (ns-2 halved exactly from 2006 on), and `ssthresh` is at least 2.

use super::cwnd::Cwnd;

/// An acknowledgment of `segments` new ones, while no loss is being repaired.
#[inline]
pub(super) fn on_ack(cwnd: &mut Cwnd, segments: f64) {
    if cwnd.in_slow_start() {
        cwnd.segments += segments;
    } else {
        cwnd.segments += segments / cwnd.segments;
    }
}

/// Duplicate acknowledgments show a loss while `in_use` segments of the window were used. The window is the half
/// itself, as in ns-2, until somebody resumes with `ssthresh`.
pub(super) fn on_loss(cwnd: &mut Cwnd, in_use: u64) {
    cwnd.segments = halve(cwnd, in_use) as f64;
}

/// The loss was so heavy that nothing tells how much the path takes: slow start.
pub(super) fn on_collapse(cwnd: &mut Cwnd, in_use: u64) {
    halve(cwnd, in_use);
    cwnd.segments = 1.0;
}

fn halve(cwnd: &mut Cwnd, in_use: u64) -> u64 {
    let half = in_use / 2;
    cwnd.ssthresh = half.max(2);
    half
}
