//! The fate of the frames of one direction, from the views of its two ends.

use airlane_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Trace;
use super::lateness::Baseline;
use super::record::{FrameId, TraceRecord};

/// A direction, as seen from the near end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// To the near end.
    In,
    /// From it.
    Out,
}

/// The fate of frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameOutcome {
    /// They never arrived.
    Lost,
    /// It arrived this much later than a frame that does not wait; `None` if only one end was recorded.
    Received(Option<Duration>),
}

/// A frame, or a run of lost ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSample {
    /// When the first frame left, by the near end's clock and without the delay of a frame that does not wait; if that
    /// is unknown, when it arrived or should have arrived.
    pub at: Duration,
    /// When the last frame left, in the same sense.
    pub last: Duration,
    /// Number of frames.
    pub frames: u64,
    /// Length of one frame, bytes; zero if unknown.
    pub len: u32,
    /// Bytes queued after the frame.
    pub queue: Option<u32>,
    /// Their fate.
    pub outcome: FrameOutcome,
}

/// All frames of one direction whose fate is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectionTrace {
    /// In order of time.
    pub samples: Vec<TraceSample>,
    /// Frames that arrived.
    pub received: u64,
    /// Frames that did not arrive.
    pub lost: u64,
    /// Frames of unknown fate: sent while the other end did not record, or missed by a recording.
    pub unknown: u64,
}

impl DirectionTrace {
    /// The share of lost frames; zero without frames.
    pub fn loss(&self) -> f64 {
        match self.received + self.lost {
            0 => 0.0,
            all => self.lost as f64 / all as f64,
        }
    }

    fn add(&mut self, sample: TraceSample) {
        match sample.outcome {
            FrameOutcome::Lost => self.lost = self.lost.saturating_add(sample.frames),
            FrameOutcome::Received(_) => self.received += sample.frames,
        }
        self.samples.push(sample);
    }
}

/// Longest run of missing numbers that counts as lost; a longer one was skipped, for example because another peer used
/// them.
const LONGEST_ROW: u64 = 1 << 24;

/// A frame that arrived, and when.
type Arrival = (FrameId, Duration);

impl Trace {
    /// The fate of the frames of a direction. `None` if its receiver was not recorded.
    pub fn path(&self, way: Way) -> Option<DirectionTrace> {
        let (sender, receiver) = match way {
            Way::In => (&self.far, &self.near),
            Way::Out => (&self.near, &self.far),
        };
        if receiver.is_empty() {
            return None;
        }
        let mut path = if sender.is_empty() {
            by_receiver(receiver)
        } else {
            by_both(sender, receiver, way)
        };
        path.samples.sort_by_key(|sample| sample.at);
        Some(path)
    }

    /// The time that a frame and one back take that do not wait; none where only one end was recorded.
    pub fn round_trip(&self) -> Option<Duration> {
        let baseline = |sender, receiver| Baseline::of(&pairs(sender, &arrivals(receiver)));
        let out = baseline(&self.near, &self.far)?;
        let back = baseline(&self.far, &self.near)?;
        // By two clocks that are not synchronised: the offset of one is the opposite of the other's.
        let first = self.near.first().map_or(Duration::ZERO, TraceRecord::at);
        let left = (first + self.span() / 2).as_nanos();
        let came = back.soonest(out.soonest(left));
        Some(Duration::from_nanos(came.saturating_sub(left)))
    }

    /// Time from the first to the last record of the near end.
    pub fn span(&self) -> Duration {
        let first = self.near.first().map_or(Duration::ZERO, TraceRecord::at);
        let last = self.near.last().map_or(Duration::ZERO, TraceRecord::at);
        last.saturating_sub(first)
    }
}

/// All frames that arrived, sorted by number.
fn arrivals(receiver: &[TraceRecord]) -> Vec<(Arrival, u32)> {
    let received = receiver.iter().filter_map(|record| match *record {
        TraceRecord::Received { at, frame, len } => Some(((frame, at), len)),
        _ => None,
    });
    let mut arrivals: Vec<_> = received.collect();
    arrivals.sort_unstable();
    arrivals.dedup_by_key(|((frame, _), _)| *frame);
    arrivals
}

/// When each frame left that came, and when it came, ns.
fn pairs(sender: &[TraceRecord], arrivals: &[(Arrival, u32)]) -> Vec<(u64, u64)> {
    let pairs = sender.iter().filter_map(|record| match *record {
        TraceRecord::Sent { at, frame, .. } => {
            Some((at.as_nanos(), came(arrivals, frame)?.as_nanos()))
        }
        _ => None,
    });
    pairs.collect()
}

fn came(arrivals: &[(Arrival, u32)], frame: FrameId) -> Option<Duration> {
    let at = arrivals.binary_search_by_key(&frame, |((frame, _), _)| *frame);
    at.ok().map(|at| arrivals[at].0.1)
}

/// When a view has holes.
struct Holes(Vec<(Duration, Duration)>);

impl Holes {
    fn of(view: &[TraceRecord]) -> Self {
        let pairs = view.windows(2);
        let holes = pairs.filter(|pair| matches!(pair[1], TraceRecord::Missed { .. }));
        Self(holes.map(|pair| (pair[0].at(), pair[1].at())).collect())
    }

    /// Whether a hole overlaps the time from `from` to `to`, both inclusive.
    fn meet(&self, from: Duration, to: Duration) -> bool {
        let first = self.0.partition_point(|(_, end)| *end < from);
        self.0.get(first).is_some_and(|(begin, _)| *begin <= to)
    }
}

fn by_receiver(receiver: &[TraceRecord]) -> DirectionTrace {
    let mut path = DirectionTrace::default();
    let holes = Holes::of(receiver);
    let arrivals = arrivals(receiver);
    for (i, &((frame, at), len)) in arrivals.iter().enumerate() {
        path.add(TraceSample {
            at,
            last: at,
            frames: 1,
            len,
            queue: None,
            outcome: FrameOutcome::Received(None),
        });
        let Some(&((next, came), _)) = arrivals
            .get(i + 1)
            .filter(|(next, _)| next.0.key == frame.key)
        else {
            continue;
        };
        let row = next.number - frame.number - 1;
        let (begin, end) = (at.min(came), at.max(came));
        if row == 0 {
            continue;
        }
        if row > LONGEST_ROW || holes.meet(begin, end) {
            path.unknown = path.unknown.saturating_add(row);
            continue;
        }
        // The lost frames left between the two that arrived; evenly, for lack of better knowledge.
        let between = (end.as_nanos() - begin.as_nanos()) / (row + 1);
        path.add(TraceSample {
            at: begin + Duration::from_nanos(between),
            last: begin + Duration::from_nanos(between * row),
            frames: row,
            len: 0,
            queue: None,
            outcome: FrameOutcome::Lost,
        });
    }
    path
}

fn by_both(sender: &[TraceRecord], receiver: &[TraceRecord], way: Way) -> DirectionTrace {
    let mut path = DirectionTrace::default();
    let holes = Holes::of(receiver);
    let arrivals = arrivals(receiver);
    let pairs = pairs(sender, &arrivals);
    let baseline = Baseline::of(&pairs);
    // What left before the first frame that arrived, or after the last one, may have arrived, too: the receiver did not
    // record at the same time, and a frame may wait longer than its recording lasts.
    let left = || pairs.iter().map(|(left, _)| *left);
    let known = left().min().unwrap_or(0)..=left().max().unwrap_or(0);
    for record in sender {
        let &TraceRecord::Sent {
            at,
            frame,
            len,
            queue,
        } = record
        else {
            continue;
        };
        let Some(baseline) = baseline else {
            path.unknown += 1;
            continue;
        };
        let soonest = Duration::from_nanos(baseline.soonest(at.as_nanos()));
        let outcome = match came(&arrivals, frame) {
            Some(came) => FrameOutcome::Received(Some(came.saturating_sub(soonest))),
            None if !known.contains(&at.as_nanos()) || holes.meet(soonest, soonest) => {
                path.unknown += 1;
                continue;
            }
            None => FrameOutcome::Lost,
        };
        let at = match way {
            Way::In => soonest,
            Way::Out => at,
        };
        path.add(TraceSample {
            at,
            last: at,
            frames: 1,
            len,
            queue: Some(queue),
            outcome,
        });
    }
    path
}
