//! The progress of simulations and the time left: a bar on a terminal, otherwise a line every ten
//! seconds. Both go to standard error.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use airlane_study::ExecutionWatch;
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output;

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(10);
/// Time until the first line; the progress made by then gives the first estimate of the rest.
const FIRST: Duration = Duration::from_secs(2);

/// The progress of some simulations.
pub(crate) struct ProgressLine {
    /// `None` if standard error is not a terminal.
    bar: Option<ProgressBar>,
    /// The start of each line.
    what: String,
    began: Instant,
    next: Mutex<Duration>,
}

impl ProgressLine {
    /// Progress of `total` simulations; silent if there is nothing to wait for.
    pub(crate) fn new(what: &str, total: u64) -> Self {
        let bar = output::is_watched().then(|| {
            let target = if total > 1 {
                ProgressDrawTarget::stderr()
            } else {
                ProgressDrawTarget::hidden()
            };
            let bar = ProgressBar::with_draw_target(Some(total), target);
            if let Ok(style) = ProgressStyle::with_template("{bar:36} {pos}/{len} runs, {eta} left")
            {
                bar.set_style(style);
            }
            bar
        });
        Self {
            bar,
            what: what.to_owned(),
            began: Instant::now(),
            next: Mutex::new(FIRST),
        }
    }

    /// Reports that `done` of `total` are done.
    pub(crate) fn at(&self, done: u64, total: u64) {
        if let Some(bar) = &self.bar {
            bar.set_length(total);
            bar.set_position(done);
        } else if let Some(line) = self.line(self.began.elapsed(), done, total) {
            output::note(&line);
        }
    }

    /// The line to print after `elapsed`, if one is due.
    fn line(&self, elapsed: Duration, done: u64, total: u64) -> Option<String> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if elapsed < *next || done == 0 || done >= total {
            return None;
        }
        *next = elapsed + EVERY;
        let left = elapsed.mul_f64((total - done) as f64 / done as f64);
        let left = HumanDuration(left);
        let what = &self.what;
        Some(format!("{what}: {done} of {total} runs, about {left} left"))
    }

    /// Ends the display, whether or not everything is done.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl ExecutionWatch for ProgressLine {
    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    fn about(&self, left: u64, time: Duration) {
        let time = if time < Duration::from_secs(1) {
            "less than a second".to_owned()
        } else {
            format!("about {}", HumanDuration(time))
        };
        let line = format!("{}: {left} runs more, {time}", self.what);
        match &self.bar {
            Some(bar) => bar.suspend(|| output::note(&line)),
            None => output::note(&line),
        }
    }

    fn at(&self, done: u64, total: u64) {
        Self::at(self, done, total);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_progress_line_appears_soon_and_then_every_ten_seconds() {
        let progress = ProgressLine::new("F4.2", 400);
        let line = |seconds, done| progress.line(Duration::from_secs(seconds), done, 400);
        assert_eq!(line(1, 2), None);
        let first = line(3, 10).unwrap();
        assert_eq!(first, "F4.2: 10 of 400 runs, about 2 minutes left");
        assert_eq!(line(12, 20), None);
        assert!(line(13, 20).is_some());
        assert_eq!(line(60, 400), None);
    }
}
