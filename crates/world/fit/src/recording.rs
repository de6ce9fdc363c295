//! Fits a link to a recording: its own losses and capacity, separated from the effects of its queue.
//!
//! | of each direction | found by |
//! |---|---|
//! | capacity | bytes over time between arrivals while a queue stands: the later frame left before the earlier one came |
//! | losses at a full queue | frames that met the longest backlog, where these are lost more often than others |
//! | losses of the link | one state, or two that alternate in real time (maximum likelihood; Schwarz 1978 decides) |
//!
//! [`Note`]s name what a recording does not show; a [`RecordingError`] means that it shows nothing.

mod capacity;
mod frames;
mod full;
mod loss;
mod note;
mod stable;
#[cfg(test)]
mod tests;

use airlane_base::{Duration, Rate, Size};
use airlane_channel::trace::{Trace, Way};

pub use capacity::Capacity;
pub use loss::LossModel;
pub use note::Note;

use frames::{Frame, covered, frames};

/// Minimum number of frames of a fit.
pub const LEAST_FRAMES: u64 = 1_000;
/// Minimum fraction of the time that frames sample; below it, losses between frames would go unseen.
pub const LEAST_COVERED: f64 = 0.5;
/// With fewer losses, or bursts, their rate is known only within a factor of about one and a half.
pub const LEAST_EVENTS: u64 = 30;

/// The link of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkFit {
    /// Length of the recording.
    pub span: Duration,
    /// The minimum round trip; none where only one end was recorded.
    pub round_trip: Option<Duration>,
    /// The rate to which the node shaped its frames.
    pub shaped: Option<Rate>,
    /// The direction from the (first) end that recorded; none where the receiver was not recorded.
    pub out: Option<WayFit>,
    /// The direction to it.
    pub into: Option<WayFit>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct WayFit {
    /// Frames whose fate is known.
    pub frames: u64,
    /// Their mean length on the wire.
    pub length: Size,
    /// The lost ones among them.
    pub lost: u64,
    /// The lost frames that a full queue dropped.
    pub lost_at_full_queue: u64,
    /// Losses of the link itself.
    pub loss: LossModel,
    /// Standard error of the mean loss, which accounts for bursts.
    pub loss_error: f64,
    /// Capacity.
    pub capacity: Capacity,
    /// Limit of its queue; none if it was never seen full.
    pub queue: Option<Size>,
    /// Remarks.
    pub notes: Vec<Note>,
}

/// Why a recording cannot be fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// Too few frames were sent.
    #[error(
        "the recording tells what became of {frames} frames; at least {LEAST_FRAMES} are needed: record while the link is used"
    )]
    TooFew {
        /// Frames in the direction with more.
        frames: u64,
    },
    /// Frames are too far apart.
    #[error(
        "the link was idle: frames speak for {:.0} % of the time, and what it does to bursts of frames is not in them; \
         record while a file is sent, such as with `airlane test`", covered * 100.0
    )]
    Idle {
        /// Fraction of the time that frames sample, in the direction with more.
        covered: f64,
    },
}

impl LinkFit {
    /// Fits a recording.
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
        // The two directions have nothing in common, and a long recording takes seconds.
        let (out_fit, into_fit) = rayon::join(|| WayFit::of(&out), || WayFit::of(&into));
        let [out, into] = [(out_fit, out), (into_fit, into)];
        // The minimum delay contains the transmission time of a frame.
        let sending = [&out, &into].map(|(fit, frames)| match fit {
            Some(fit) if !matches!(fit.capacity, Capacity::AtLeast(_)) => {
                let least = frames
                    .iter()
                    .map(|frame| frame.bytes)
                    .fold(f64::MAX, f64::min);
                least * 8.0 / fit.capacity.mean().as_bps() as f64
            }
            _ => 0.0,
        });
        let sending = Duration::from_secs_f64(sending.iter().sum());
        let round_trip = trace.round_trip().map(|time| time.saturating_sub(sending));
        Ok(Self {
            span: trace.span(),
            round_trip,
            shaped: Rate::from_bps(trace.header.rate_bps),
            out: out.0,
            into: into.0,
        })
    }

    /// Whether only one direction was recorded.
    pub const fn one_sided(&self) -> bool {
        self.out.is_none() || self.into.is_none()
    }
}

impl WayFit {
    fn of(frames: &[Frame]) -> Option<Self> {
        if frames.is_empty() {
            return None;
        }
        // The link did not carry what a full queue dropped, which the frames that arrived reveal.
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
            length: {
                let bytes: f64 = frames.iter().map(|frame| frame.bytes).sum();
                Size::from_bytes((bytes / frames.len() as f64) as u64)
            },
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
