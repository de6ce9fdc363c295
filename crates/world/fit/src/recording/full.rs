//! Losses at a full queue: those of frames that met the longest backlog.
//!
//! The backlog of a frame is its queueing delay times the capacity. A lost frame has the backlog of its neighbours; so have
//! all others here, so that both are judged by one measure. Where a long backlog does not raise the loss, no queue was
//! full.

use super::capacity::Series;
use super::frames::Frame;

/// Fractions of the longest backlog above which a queue counts as full, and as nearly full.
const FULL: f64 = 0.9;
const NEARLY: f64 = 0.75;
/// Minimum number of frames at a full queue, and of losses among them.
const LEAST: [f64; 2] = [30.0, 10.0];
/// Minimum factor between the loss there and elsewhere,
const TIMES: f64 = 2.0;
/// and minimum difference in standard errors.
const ERRORS: f64 = 4.0;

pub(super) struct Full {
    /// Backlog of each frame, bytes.
    backlog: Vec<f64>,
    longest: f64,
    /// Fraction of the losses there that are the link's own.
    of_link: f64,
}

impl Full {
    /// None if there is no evidence of a full queue.
    pub(super) fn of(frames: &[Frame], series: &Series) -> Option<Self> {
        let own = |frame: &Frame| Some(frame.late? * series.bytes_per_s(frame.at)?);
        let met: Vec<Option<f64>> = frames.iter().map(own).collect();
        let mut sorted: Vec<f64> = met.iter().copied().flatten().collect();
        sorted.sort_by(f64::total_cmp);
        // A few frames are late for other reasons.
        let longest = *sorted.get(sorted.len().checked_sub(1 + sorted.len() / 1_000)?)?;
        let mut after = vec![None; frames.len()];
        let mut next = None;
        for i in (0..frames.len()).rev() {
            after[i] = next;
            next = met[i].or(next);
        }
        let mut before = None;
        let backlog = (0..frames.len()).map(|i| {
            let about = [before, after[i]]
                .into_iter()
                .flatten()
                .fold(f64::MAX, f64::min);
            before = met[i].or(before);
            about
        });
        let backlog: Vec<f64> = backlog
            .map(|backlog| if backlog == f64::MAX { 0.0 } else { backlog })
            .collect();
        let mut full = Self {
            backlog,
            longest,
            of_link: 0.0,
        };
        let [mut there, mut elsewhere] = [[0.0; 2]; 2];
        for (i, frame) in frames.iter().enumerate() {
            let counted = match (full.at_least(i, FULL), full.at_least(i, NEARLY)) {
                (true, _) => &mut there,
                (_, false) => &mut elsewhere,
                _ => continue,
            };
            counted[0] += 1.0;
            counted[1] += f64::from(u8::from(frame.lost));
        }
        if there[0] < LEAST[0] || there[1] < LEAST[1] || elsewhere[0] < LEAST[0] {
            return None;
        }
        let [a, b] = [there, elsewhere].map(|[all, lost]| lost / all);
        let error = libm::sqrt(a * (1.0 - a) / there[0] + b * (1.0 - b) / elsewhere[0]);
        full.of_link = b / a;
        (a > TIMES * b && a - b > ERRORS * error).then_some(full)
    }

    /// Probability that the link carried a lost frame.
    pub(super) fn carried(&self, frame: usize) -> f64 {
        match self.dropped(frame) {
            true => self.of_link,
            false => 1.0,
        }
    }

    fn at_least(&self, frame: usize, part: f64) -> bool {
        self.backlog[frame] >= part * self.longest
    }

    /// Whether the queue dropped a lost frame.
    pub(super) fn dropped(&self, frame: usize) -> bool {
        self.at_least(frame, FULL)
    }

    /// Whether the queue was so nearly full that the frame's fate says nothing about the link.
    pub(super) fn near(&self, frame: usize) -> bool {
        self.at_least(frame, NEARLY)
    }

    /// Its limit, bytes: the median of the backlog while it was full.
    pub(super) fn limit(&self, frames: &[Frame], series: &Series) -> u64 {
        let full = (0..frames.len()).filter(|at| self.dropped(*at));
        let stood =
            full.filter_map(|at| Some(frames[at].late? * series.bytes_per_s(frames[at].at)?));
        let mut stood: Vec<f64> = stood.collect();
        stood.sort_by(f64::total_cmp);
        stood.get(stood.len() / 2).map_or(0, |bytes| *bytes as u64)
    }
}
