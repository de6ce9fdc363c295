//! Whose fault an error is, which decides the exit code: the user's who gave something wrong, or the run's.

use std::fmt;

use airlane_base::config::RefusedFile;

/// Something wrong with what the user gave: exit code 2.
#[derive(Debug)]
pub(crate) struct BadInput(pub(crate) String);

impl fmt::Display for BadInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// An error that is in the log already.
#[derive(Debug)]
pub(crate) struct Told {
    /// Whether the user's input is at fault.
    pub(crate) bad_input: bool,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("what is wrong is in the log")
    }
}

impl std::error::Error for Told {}

/// Whether the user's input is at fault, not the run.
pub(crate) fn is_bad_input(error: &anyhow::Error) -> bool {
    #[cfg(feature = "lab")]
    let study = error
        .downcast_ref()
        .is_some_and(airlane_study::StudyError::is_bad_input);
    #[cfg(not(feature = "lab"))]
    let study = false;
    error.downcast_ref::<BadInput>().is_some()
        || error
            .downcast_ref::<Told>()
            .is_some_and(|told| told.bad_input)
        || error.downcast_ref::<RefusedFile>().is_some()
        || study
}
