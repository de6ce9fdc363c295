//! The frames of one direction of a trace.

use airlane_base::Duration;
use airlane_channel::trace::{FrameOutcome, REACH, Trace, Way};

/// A frame whose fate is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Time of transmission, s.
    pub(super) at: f64,
    /// Delay beyond the minimum, s; none if the frame was lost or its delay is unknown.
    pub(super) late: Option<f64>,
    /// Bytes on the wire.
    pub(super) bytes: f64,
    pub(super) lost: bool,
}

/// The frames of a direction in the order of transmission.
pub(super) fn frames(trace: &Trace, way: Way) -> Vec<Frame> {
    let Some(path) = trace.path(way) else {
        return vec![];
    };
    let known = path.samples.iter().filter(|sample| sample.len > 0);
    let sum: u64 = known.clone().map(|sample| u64::from(sample.len)).sum();
    let usual = sum as f64 / known.count().max(1) as f64;
    let mut frames = vec![];
    for sample in &path.samples {
        let len = match sample.len {
            0 => usual,
            len => f64::from(len),
        };
        let (lost, late) = match sample.outcome {
            FrameOutcome::Lost => (true, None),
            FrameOutcome::Received(late) => (false, late.map(Duration::as_secs_f64)),
        };
        let (first, last) = (sample.at.as_secs_f64(), sample.last.as_secs_f64());
        for i in 0..sample.frames {
            let within = i as f64 / (sample.frames - 1).max(1) as f64;
            frames.push(Frame {
                at: first + (last - first) * within,
                late,
                bytes: len + f64::from(trace.header.overhead_bytes),
                lost,
            });
        }
    }
    frames.sort_by(|a, b| a.at.total_cmp(&b.at));
    frames
}

/// Fraction of the time between the first and the last frame that is close enough to a frame.
pub(super) fn covered(frames: &[Frame]) -> f64 {
    let [first, .., last] = frames else {
        return 0.0;
    };
    let reach = 2.0 * REACH.as_secs_f64();
    let pairs = frames.windows(2);
    let covered: f64 = pairs.map(|pair| (pair[1].at - pair[0].at).min(reach)).sum();
    covered / (last.at - first.at).max(1e-9)
}
