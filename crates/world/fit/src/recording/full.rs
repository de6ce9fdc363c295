//! Losses that are the queue's and not the link's: those of frames that met the longest backlog.
//!
//! What waits in front of a frame is how late it came times what the link carries. For a lost frame it is what the frames
//! about it say, and for the others likewise, so that both are judged by one measure. A link whose frames are lost no more
//! often behind a long backlog has no full queue.

use super::capacity::Series;
use super::frames::Frame;

/// Above this part of the longest backlog a queue counts as full, and above that as nearly full.
const FULL: f64 = 0.9;
const NEARLY: f64 = 0.75;
/// So many frames, and losses among them, are needed to say that it was.
const LEAST: [f64; 2] = [30.0, 10.0];
/// So many times as often frames must be lost there.
const TIMES: f64 = 2.0;
/// By so many standard errors.
const ERRORS: f64 = 4.0;

pub(super) struct Full {
    /// What waited in front of each frame, bytes.
    backlog: Vec<f64>,
    longest: f64,
    /// Of the frames that are lost there the link itself loses this part.
    of_link: f64,
}

impl Full {
    /// None if nothing says that the queue was full.
    pub(super) fn of(frames: &[Frame], series: &Series) -> Option<Self> {
        let own = |frame: &Frame| Some(frame.late? * series.bytes_per_s(frame.at)?);
        let met: Vec<Option<f64>> = frames.iter().map(own).collect();
        let mut sorted: Vec<f64> = met.iter().copied().flatten().collect();
        sorted.sort_by(f64::total_cmp);
        // A few frames were late for other reasons.
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

    /// How probably a lost frame was on the link.
    pub(super) fn carried(&self, frame: usize) -> f64 {
        match self.dropped(frame) {
            true => self.of_link,
            false => 1.0,
        }
    }

    fn at_least(&self, frame: usize, part: f64) -> bool {
        self.backlog[frame] >= part * self.longest
    }

    /// Whether a frame that is lost was dropped by the queue.
    pub(super) fn dropped(&self, frame: usize) -> bool {
        self.at_least(frame, FULL)
    }

    /// Whether the queue was so nearly full that what became of the frame says nothing about the link.
    pub(super) fn near(&self, frame: usize) -> bool {
        self.at_least(frame, NEARLY)
    }

    /// What it holds, bytes: the median of what stood in it while it was full.
    pub(super) fn limit(&self, frames: &[Frame], series: &Series) -> u64 {
        let full = (0..frames.len()).filter(|at| self.dropped(*at));
        let stood =
            full.filter_map(|at| Some(frames[at].late? * series.bytes_per_s(frames[at].at)?));
        let mut stood: Vec<f64> = stood.collect();
        stood.sort_by(f64::total_cmp);
        stood.get(stood.len() / 2).map_or(0, |bytes| *bytes as u64)
    }
}
