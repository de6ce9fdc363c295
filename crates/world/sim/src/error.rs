//! Why a scenario cannot be simulated.

use airlane_base::config::{Document, Problems, RefusedFile, Validate as _};

use crate::empirical::TableError;
use crate::scenario::Scenario;

/// Why a scenario was refused, before anything was simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Its file cannot be read, or describes no world. Each problem names the TOML path, the
    /// value, and what is allowed.
    #[error(transparent)]
    Refused(#[from] RefusedFile),
    /// A table that it names cannot be read.
    #[error("{place} names {file}, which cannot be read: {reason}")]
    Unreadable {
        /// Where the scenario names it: `flows[0].app.distributions`.
        place: String,
        /// The file.
        file: String,
        /// What the operating system said.
        reason: String,
    },
    /// A table that it names holds no distribution.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A recording that a link is to replay, or the times at which it may send, cannot be had.
    #[error("{place} names {file}, which cannot be used: {reason}")]
    Trace {
        /// Where the scenario names it: `links.radio.errors`.
        place: String,
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Scenarios that are to be compared have different flows or repetitions.
    #[error("cannot compare \"{left}\" with \"{right}\": {reason}")]
    Incomparable {
        /// Name of the first.
        left: String,
        /// Name of the second.
        right: String,
        /// What differs.
        reason: String,
    },
    /// A name was given that nothing has.
    #[error("there is no {what} \"{name}\"; write one of: {}", .known.join(", "))]
    Unknown {
        /// What was named: a link, a flow, an event.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that there are.
        known: Vec<String>,
    },
    /// A custom piece was given for a part of the scenario that cannot take it.
    #[error("no custom piece can stand at \"{place}\": {reason}")]
    NoPlace {
        /// The link or flow.
        place: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// Results over time were asked for in more intervals than there is room for.
    #[error(
        "intervals of {interval} are too short in {runs} x {duration} with {flows} flows: at most {most} numbers are kept"
    )]
    ShortInterval {
        /// How long they are.
        interval: String,
        /// How long a run is.
        duration: String,
        /// How many flows there are.
        flows: usize,
        /// How many runs.
        runs: u64,
        /// How many numbers are kept.
        most: u64,
    },
    /// A weight policy gave weights that no port can take.
    #[error("the weight policy of link \"{link}\": {reason}")]
    Weights {
        /// The link.
        link: String,
        /// What is wrong with them.
        reason: String,
    },
    /// A capture was asked for where there is nothing to capture.
    #[error("cannot capture \"{point}\": {reason}")]
    NoCapture {
        /// Where, as it was written.
        point: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// A capture could not be written.
    #[error("the capture of \"{point}\" could not be written: {reason}")]
    CaptureFailed {
        /// Where it was taken.
        point: String,
        /// What the operating system said.
        reason: String,
    },
    /// The threads for the repetitions could not be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the operating system said.
        reason: String,
    },
}

impl ScenarioError {
    /// Of a file that the scenario names and that cannot be used: where it does so, and what is wrong.
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

/// The place of a name among those that there are.
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
    /// Checks a scenario that did not come from a file.
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
        // A number that is too large for TOML is among the problems; it has no line then.
        let text = toml::to_string(self).unwrap_or_default();
        let document = Document::parse(&text, "scenario")?;
        Err(document.locate(problems).into())
    }
}
