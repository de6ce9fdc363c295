//! What link a recording shows: what its frames meet, told apart from what its queue did to them.
//!
//! | of each direction | found by |
//! |---|---|
//! | capacity | bytes over time between arrivals while a queue stands: the later frame left before the earlier one came |
//! | losses at a full queue | frames that met the longest backlog, where these are lost more often than others |
//! | losses of the link | one state, or two that alternate in real time (maximum likelihood; Schwarz 1978 decides) |
//!
//! What a recording cannot tell is said: [`Note`]s, and [`RecordingError`] where it tells nothing.

mod capacity;
mod full;
mod loss;
mod stable;
#[cfg(test)]
mod tests;

use airlane_base::{Duration, Rate, Size};
use airlane_channel::trace::{FrameOutcome, REACH, Trace, Way};

pub use capacity::Capacity;
pub use loss::LossModel;

/// With fewer frames, nothing is fitted.
pub const LEAST_FRAMES: u64 = 1_000;
/// The part of the time that frames speak for, at least: below it nobody knows what the silence hides.
pub const LEAST_COVERED: f64 = 0.5;
/// With fewer losses, or bursts, their rate is not known within a factor of one and a half or so.
pub const LEAST_EVENTS: u64 = 30;

/// A link, as a recording shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkFit {
    /// How long the recording is.
    pub span: Duration,
    /// Of a frame and one back that do not wait; none where one end was recorded.
    pub round_trip: Option<Duration>,
    /// What the node shaped to.
    pub shaped: Option<Rate>,
    /// Frames from the (first) end that recorded; none where their receiver was not recorded.
    pub out: Option<WayFit>,
    /// Frames to it.
    pub into: Option<WayFit>,
}

/// One direction of it.
#[derive(Clone, Debug, PartialEq)]
pub struct WayFit {
    /// Frames whose fate is known.
    pub frames: u64,
    /// Those of them that were lost.
    pub lost: u64,
    /// Those of the lost that a full queue dropped.
    pub lost_at_full_queue: u64,
    /// What the link itself does.
    pub loss: LossModel,
    /// Standard error of the mean loss, bursts counted in.
    pub loss_error: f64,
    /// What it carries.
    pub capacity: Capacity,
    /// What may wait in front of it; none if its queue was never full.
    pub queue: Option<Size>,
    /// What else is to be said.
    pub notes: Vec<Note>,
}

/// What a recording does not tell, or tells against the model.
#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    /// Too few losses, or bursts: a recording so long would do.
    Short {
        /// How many there were.
        events: u64,
        /// Whether bursts are few and not losses.
        bursts: bool,
        /// How long a recording would have enough of them.
        needs: Duration,
    },
    /// Frames spoke for so small a part of the time that bursts cannot be told from single losses.
    Idle {
        /// That part.
        covered: f64,
    },
    /// Loss is higher while more is sent, not counting a full queue: a policer, or a medium that others use.
    GrowsWithLoad {
        /// Loss while little is sent.
        light: f64,
        /// Loss while much is.
        heavy: f64,
    },
    /// The two halves of the recording are not of one link.
    Changed {
        /// Loss in the first half.
        first: f64,
        /// Loss in the second.
        second: f64,
    },
    /// No queue stood below the node for long enough: what the link carries is at least what it was given.
    NeverFilled,
}

/// Why nothing can be said.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// Hardly anything was sent.
    #[error(
        "the recording tells what became of {frames} frames; at least {LEAST_FRAMES} are needed: record while the link is used"
    )]
    TooFew {
        /// In the direction with more.
        frames: u64,
    },
    /// Frames are too far apart.
    #[error(
        "the link was idle: frames speak for {:.0} % of the time, and what it does to bursts of frames is not in them; \
         record while a file is sent, such as with `airlane test`", covered * 100.0
    )]
    Idle {
        /// The part of the time that has frames, in the direction with more.
        covered: f64,
    },
}

/// A frame whose fate is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// When it left, s.
    pub(crate) at: f64,
    /// How much later than soonest it came, s; none if it is lost, or nobody knows.
    pub(crate) late: Option<f64>,
    /// Bytes on the wire.
    pub(crate) bytes: f64,
    pub(crate) lost: bool,
}

impl LinkFit {
    /// What the recording shows.
    ///
    /// # Errors
    /// If it has too few frames, or the link was idle.
    pub fn of(trace: &Trace) -> Result<Self, RecordingError> {
        let [out, into] = [Way::Out, Way::In].map(|way| frames(trace, way));
        let most = out.len().max(into.len()) as u64;
        if most < LEAST_FRAMES {
            return Err(RecordingError::TooFew { frames: most });
        }
        let covered = covered(&out).max(covered(&into));
        if covered < LEAST_COVERED {
            return Err(RecordingError::Idle { covered });
        }
        Ok(Self {
            span: trace.span(),
            round_trip: trace.round_trip(),
            shaped: Rate::from_bps(trace.header.rate_bps),
            out: WayFit::of(&out),
            into: WayFit::of(&into),
        })
    }

    /// A recording that was made over this link's first direction knows the second as little as this does.
    pub const fn one_sided(&self) -> bool {
        self.out.is_none() || self.into.is_none()
    }
}

impl WayFit {
    fn of(frames: &[Frame]) -> Option<Self> {
        if frames.is_empty() {
            return None;
        }
        // What a full queue drops the link did not carry: which that is shows by what did arrive.
        let arrived = capacity::Series::of(frames, |_| 0.0);
        let full = full::Full::of(frames, &arrived);
        let carried = |at| full.as_ref().map_or(1.0, |full| full.carried(at));
        let series = capacity::Series::of(frames, carried);
        let dropped = |at: usize| full.as_ref().is_some_and(|full| full.near(at));
        let seen: Vec<Frame> = (0..frames.len())
            .filter(|at| !dropped(*at))
            .map(|at| frames[at])
            .collect();
        let mut notes = vec![];
        let covered = covered(frames);
        let (loss, loss_error) = loss::fit(&seen, covered >= LEAST_COVERED);
        notes.extend((covered < LEAST_COVERED).then_some(Note::Idle { covered }));
        notes.extend(short(&seen, &loss));
        notes.extend(stable::changed(&seen));
        notes.extend(stable::grows_with_load(&seen));
        let capacity = series.capacity();
        notes.extend(matches!(capacity, Capacity::AtLeast(_)).then_some(Note::NeverFilled));
        let count = |is: &dyn Fn(usize) -> bool| (0..frames.len()).filter(|at| is(*at)).count();
        Some(Self {
            frames: frames.len() as u64,
            lost: count(&|at| frames[at].lost) as u64,
            lost_at_full_queue: count(&|at| {
                full.as_ref().is_some_and(|full| full.dropped(at)) && frames[at].lost
            }) as u64,
            loss,
            loss_error,
            capacity,
            queue: full.map(|full| Size::from_bytes(full.limit(frames, &series))),
            notes,
        })
    }
}

/// The frames of a direction, in the order in which they left.
fn frames(trace: &Trace, way: Way) -> Vec<Frame> {
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

/// The part of the time from the first frame to the last that is within reach of one.
fn covered(frames: &[Frame]) -> f64 {
    let [first, .., last] = frames else {
        return 0.0;
    };
    let reach = 2.0 * REACH.as_secs_f64();
    let pairs = frames.windows(2);
    let covered: f64 = pairs.map(|pair| (pair[1].at - pair[0].at).min(reach)).sum();
    covered / (last.at - first.at).max(1e-9)
}

fn short(frames: &[Frame], loss: &LossModel) -> Option<Note> {
    let [first, .., last] = frames else {
        return None;
    };
    let span = last.at - first.at;
    let lost = frames.iter().filter(|frame| frame.lost).count() as u64;
    let (events, bursts) = match loss {
        LossModel::None => return None,
        LossModel::Uniform { .. } => (lost, false),
        LossModel::TwoState { good, bad, .. } => {
            let round = good.as_secs_f64() + bad.as_secs_f64();
            ((span / round) as u64, true)
        }
    };
    (events < LEAST_EVENTS).then(|| Note::Short {
        events,
        bursts,
        needs: Duration::from_secs((span * LEAST_EVENTS as f64 / events.max(1) as f64) as u64 + 1),
    })
}
