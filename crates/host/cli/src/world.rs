//! Reads the input of simulations: scenarios with their tables, and published works.

use std::path::Path;

use airlane_base::config::{Document, LONGEST_DATA, read_file, read_text};
use airlane_sim::Scenario;
use airlane_study::{StudyError, Work};

use crate::args::StudiesArgs;
use crate::fault::BadInput;
use crate::input::FileContent;

/// The scenario in `document`, which was read from `path`, with the tables and recordings that it
/// names, which are looked up relative to it.
///
/// # Errors
/// If it does not describe a world, or a table cannot be read.
pub(crate) fn scenario(document: &Document, path: &Path) -> anyhow::Result<Scenario> {
    FileContent::Scenario.expect(document)?;
    let mut scenario: Scenario = document.read()?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let text = |file: &Path| read_text(&folder.join(file)).map_err(|error| error.to_string());
    let bytes = |file: &Path| {
        read_file(&folder.join(file), LONGEST_DATA).map_err(|error| error.to_string())
    };
    let loaded = scenario
        .load_tables(text)
        .and_then(|()| scenario.load_traces(bytes));
    match loaded {
        Ok(()) => Ok(scenario),
        Err(error) => Err(match error.named_file() {
            Some((place, problem)) => {
                let help =
                    "files are looked for beside the scenario; an absolute path is taken as it is";
                document.refuse(place, problem, help).into()
            }
            None => BadInput(error.to_string()).into(),
        }),
    }
}

/// The works in the given folder; otherwise the works that ship with the program, replaced or
/// extended by those in `studies`.
///
/// # Errors
/// If a file is missing or invalid.
pub(crate) fn works(studies: &StudiesArgs) -> Result<Vec<Work>, StudyError> {
    match &studies.studies {
        Some(folder) => Work::load_all(folder),
        None => Work::here_and_shipped(Path::new("studies")),
    }
}
