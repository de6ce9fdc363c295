//! What can be wrong with a work, a study, or a folder of results.

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
        /// What the operating system said.
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
        /// As it was written.
        text: String,
        /// What is wrong.
        problem: String,
    },
    /// What a study composes is no scenario; the file is named by study and point.
    #[error(transparent)]
    Refused(#[from] RefusedFile),
    /// A scenario cannot be simulated.
    #[error("{study} [{point}]: {problem}")]
    Scenario {
        /// Id of the study.
        study: String,
        /// Its values on the axes.
        point: String,
        /// The loader's words.
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
    /// No point of a study is meant, or more than one.
    #[error("{study}: {problem}; its axes: {axes}")]
    Point {
        /// Id of the study.
        study: String,
        /// What is wrong.
        problem: String,
        /// Every axis with its values.
        axes: String,
    },
    /// A name that no study, work or alternative has.
    #[error("there is no {what} \"{name}\"; {help}")]
    Unknown {
        /// What was looked for.
        what: &'static str,
        /// The name.
        name: String,
        /// The one that was probably meant, or those that exist.
        help: String,
    },
    /// Results that do not fit what was asked.
    #[error("{0}")]
    Results(String),
}

impl StudyError {
    /// No `what` of those that exist has this name.
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

    /// Whether the user's input is at fault, not the run.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, Self::Io { .. })
    }
}
