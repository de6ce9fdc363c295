//! Progress on stderr: a bar on a terminal, one line per step elsewhere.

use std::io::{IsTerminal, stderr};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The progress of the bench.
#[derive(Debug)]
pub struct ProgressLine {
    bar: Option<ProgressBar>,
    steps: u64,
    begun: u64,
}

impl ProgressLine {
    /// Starts with this many steps.
    pub fn new(steps: u64) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(steps);
            let style = "{bar:20} {pos}/{len}, {eta} left: {msg}";
            bar.set_style(
                ProgressStyle::with_template(style).expect("the template has known keys only"),
            );
            bar.enable_steady_tick(Duration::from_secs(1));
            bar
        });
        Self {
            bar,
            steps,
            begun: 0,
        }
    }

    /// The next step begins.
    pub fn step(&mut self, what: &str) {
        match &self.bar {
            Some(bar) => {
                bar.set_position(self.begun);
                bar.set_message(what.to_owned());
            }
            None => eprintln!("[{}/{}] {what}", self.begun + 1, self.steps),
        }
        self.begun += 1;
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
