//! Errors of works, studies and folders of results.

use std::path::{Path, PathBuf};

use airlane_base::config::{RefusedFile, nearest};

/// Why a study cannot be run or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StudyError {
    /// A file or folder cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file of a work is wrong.
    #[error("{}: {problem}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// An assignment cannot be made.
    #[error("`{text}`: {problem}; write PATH=VALUE, such as links.radio*.errors.rate=0.05")]
    Assignment {
        /// The assignment as written.
        text: String,
        /// What is wrong.
        problem: String,
    },
    /// The composition of a study is not a valid scenario; the error names study and point.
    #[error(transparent)]
    Refused(#[from] RefusedFile),
    /// A scenario cannot be simulated.
    #[error("{study} [{point}]: {problem}")]
    Scenario {
        /// Id of the study.
        study: String,
        /// Its values on the axes.
        point: String,
        /// The message of the scenario loader.
        problem: String,
    },
    /// A claim cannot be judged.
    #[error("{study}: claim {claim}: {problem}")]
    Claim {
        /// Id of the study.
        study: String,
        /// Id of the claim.
        claim: String,
        /// What is wrong.
        problem: String,
    },
    /// A figure cannot be drawn.
    #[error("{study}: figure: {problem}")]
    Figure {
        /// Id of the study.
        study: String,
        /// What is wrong.
        problem: String,
    },
    /// The values select no point of a study, or more than one.
    #[error("{study}: {problem}; its axes: {axes}")]
    Point {
        /// Id of the study.
        study: String,
        /// What is wrong.
        problem: String,
        /// Every axis with its values.
        axes: String,
    },
    /// No study, work or alternative has this name.
    #[error("there is no {what} \"{name}\"; {help}")]
    Unknown {
        /// The kind of thing that was looked up.
        what: &'static str,
        /// The name.
        name: String,
        /// The name that was probably meant, or those that exist.
        help: String,
    },
    /// The results do not fit the request.
    #[error("{0}")]
    Results(String),
}

impl StudyError {
    /// The error for a `what` that does not exist under this name.
    pub fn unknown<'a>(
        what: &'static str,
        name: &str,
        known: impl Iterator<Item = &'a str> + Clone,
    ) -> Self {
        let help = match nearest(name, known.clone()) {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("there are: {}", known.collect::<Vec<_>>().join(", ")),
        };
        Self::Unknown {
            what,
            name: name.to_owned(),
            help,
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn file(path: &Path, problem: impl ToString) -> Self {
        Self::File {
            path: path.to_owned(),
            problem: problem.to_string(),
        }
    }

    /// Whether the user's input is at fault rather than the run.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Io { .. })
    }
}
