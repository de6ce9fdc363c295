//! Decides whether an error is the fault of the user's input or of the run; the exit code depends
//! on it.

use std::fmt;

use airlane_base::config::RefusedFile;

/// Wrong input from the user: exit code 2.
#[derive(Debug)]
pub(crate) struct BadInput(pub(crate) String);

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// An error that has already been logged.
#[derive(Debug)]
pub(crate) struct LoggedError {
    /// Whether the user's input is at fault.
    pub(crate) bad_input: bool,
}

impl fmt::Display for LoggedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the log says what is wrong")
    }
}

impl std::error::Error for LoggedError {}

/// Whether the user's input is at fault rather than the run.
pub(crate) fn is_bad_input(error: &anyhow::Error) -> bool {
    #[cfg(feature = "lab")]
    let study = error
        .downcast_ref()
        .is_some_and(airlane_study::StudyError::is_bad_input);
    #[cfg(not(feature = "lab"))]
    let study = false;
    error.downcast_ref::<BadInput>().is_some()
        || error
            .downcast_ref::<LoggedError>()
            .is_some_and(|logged| logged.bad_input)
        || error.downcast_ref::<RefusedFile>().is_some()
        || study
}
