//! Errors for scenarios that cannot be simulated.

use airlane_base::config::{Document, Problems, RefusedFile, Validate as _};

use crate::empirical::TableError;
use crate::scenario::Scenario;

/// Why a scenario was refused before the simulation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Its file cannot be read or is not valid. Each problem names the TOML path, the value, and what is allowed.
    #[error(transparent)]
    Refused(#[from] RefusedFile),
    /// A table that it names cannot be read.
    #[error("{place} names {file}, which cannot be read: {reason}")]
    Unreadable {
        /// Where the scenario names it, such as `flows[0].app.distributions`.
        place: String,
        /// The file.
        file: String,
        /// The error of the operating system.
        reason: String,
    },
    /// A table that it names is not a valid distribution.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A trace of errors or sending opportunities for a link cannot be used.
    #[error("{place} names {file}, which cannot be used: {reason}")]
    Trace {
        /// Where the scenario names it, such as `links.radio.errors`.
        place: String,
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Scenarios to be compared have different flows or repetitions.
    #[error("cannot compare \"{left}\" with \"{right}\": {reason}")]
    Incomparable {
        /// Name of the first.
        left: String,
        /// Name of the second.
        right: String,
        /// What differs.
        reason: String,
    },
    /// A name that does not exist.
    #[error("there is no {what} \"{name}\"; write one of: {}", .known.join(", "))]
    Unknown {
        /// The kind of name: a link, a flow, an event.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// A user-supplied part was given for a place in the scenario that cannot take it.
    #[error("no custom piece can stand at \"{place}\": {reason}")]
    NoPlace {
        /// The link or flow.
        place: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// Results over time were requested in more intervals than can be kept.
    #[error(
        "intervals of {interval} are too short in {runs} x {duration} with {flows} flows: at most {most} numbers are kept"
    )]
    ShortInterval {
        /// The length of an interval.
        interval: String,
        /// The length of a run.
        duration: String,
        /// The number of flows.
        flows: usize,
        /// The number of runs.
        runs: u64,
        /// The limit.
        most: u64,
    },
    /// A weight policy returned weights that no port can apply.
    #[error("the weight policy of link \"{link}\": {reason}")]
    Weights {
        /// The link.
        link: String,
        /// What is wrong with them.
        reason: String,
    },
    /// A capture was requested where there is nothing to capture.
    #[error("cannot capture \"{point}\": {reason}")]
    NoCapture {
        /// The capture point, as written.
        point: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A capture could not be written.
    #[error("the capture of \"{point}\" could not be written: {reason}")]
    CaptureFailed {
        /// The capture point.
        point: String,
        /// The error of the operating system.
        reason: String,
    },
    /// The threads for the repetitions could not be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// The number requested.
        threads: usize,
        /// The error of the operating system.
        reason: String,
    },
}

impl ScenarioError {
    /// If a file that the scenario names cannot be used: where it is named, and what is wrong.
    pub fn named_file(&self) -> Option<(&str, String)> {
        match self {
            Self::Unreadable {
                place,
                file,
                reason,
            }
            | Self::Trace {
                place,
                file,
                reason,
            } => Some((place, format!("{file} cannot be used: {reason}"))),
            _ => None,
        }
    }
}

/// The index of a name among the existing ones.
///
/// # Errors
/// If it is not among them.
pub(crate) fn known<T: AsRef<str>>(
    what: &'static str,
    name: &str,
    all: &[T],
) -> Result<usize, ScenarioError> {
    let place = all.iter().position(|known| known.as_ref() == name);
    place.ok_or_else(|| ScenarioError::Unknown {
        what,
        name: name.to_owned(),
        known: all.iter().map(|known| known.as_ref().to_owned()).collect(),
    })
}

impl Scenario {
    /// Checks a scenario that was not read from a file.
    ///
    /// # Errors
    /// All problems; their lines are those of [`Scenario::to_toml`].
    pub fn check(&self) -> Result<(), ScenarioError> {
        let mut problems = Problems::new();
        self.validate(&mut problems);
        self.check_tables(&mut problems);
        if problems.is_empty() {
            return Ok(());
        }
        // A number too large for TOML is among the problems; it then has no line.
        let text = toml::to_string(self).unwrap_or_default();
        let document = Document::parse(&text, "scenario")?;
        Err(document.locate(problems).into())
    }
}
