//! The results of a part of the bench, row by row, and what could not be run.

use std::fmt;

/// Rows, and the reasons for missing ones.
#[derive(Debug)]
pub struct Measured<R> {
    /// The results.
    pub rows: Vec<R>,
    /// What could not be run, and why.
    pub failures: Vec<String>,
}

impl<R> Default for Measured<R> {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            failures: Vec::new(),
        }
    }
}

impl<R> Measured<R> {
    /// Notes what could not be run.
    pub(super) fn failed(&mut self, what: impl fmt::Display, error: &dyn fmt::Display) {
        let error = error.to_string();
        self.failures.push(format!("{what}: {}", error.trim()));
    }
}
