//! Reading the files that the verbs take.

use std::path::Path;

use airlane_base::config::{Document, RefusedFile};
use airlane_live::config::LiveConfig;
use airlane_sim::Scenario;
use airlane_study::{StudyError, Work};
use anyhow::Context as _;

use crate::args::StudiesArgs;
use crate::fault::BadInput;

/// The document in `path` with `assignments` on top of it.
///
/// # Errors
/// If the file cannot be read, is not TOML, or an assignment fits nowhere.
pub(crate) fn document(path: &Path, assignments: &[String]) -> anyhow::Result<Document> {
    let bytes =
        std::fs::read(path).with_context(|| BadInput(format!("cannot read {}", path.display())))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|b| **b == b'\n')
            .count();
        BadInput(format!("{}:{line}: this is not UTF-8 text", path.display()))
    })?;
    let mut document = Document::parse(&text, &path.display().to_string())?;
    for assignment in assignments {
        document.set(assignment)?;
    }
    Ok(document)
}

/// The live file in `document`, which was read from `path`. Keys are looked for beside it.
///
/// # Errors
/// If it describes no end of a link.
pub(crate) fn live(document: &Document, path: &Path) -> Result<LiveConfig, RefusedFile> {
    let file: LiveConfig = document.read()?;
    // The node that takes over a reload may stand in another folder.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(file.in_folder(path.parent().unwrap_or(Path::new(""))))
}

/// The scenario in `document`, which was read from `path`, with the tables and recordings that it
/// names. They are looked for beside the scenario.
///
/// # Errors
/// If it describes no world, or a table cannot be read.
pub(crate) fn scenario(document: &Document, path: &Path) -> anyhow::Result<Scenario> {
    let mut scenario: Scenario = document.read()?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let text =
        |file: &Path| std::fs::read_to_string(folder.join(file)).map_err(|error| error.to_string());
    let bytes = |file: &Path| std::fs::read(folder.join(file)).map_err(|error| error.to_string());
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

/// The works in the folder that was named; else those in `studies`, and where there is no such folder
/// those that came with the program.
///
/// # Errors
/// If a file is missing or wrong.
pub(crate) fn works(studies: &StudiesArgs) -> Result<Vec<Work>, StudyError> {
    let here = Path::new("studies");
    match &studies.studies {
        Some(folder) => Work::load_all(folder),
        None if here.is_dir() => Work::load_all(here),
        None => Work::shipped(),
    }
}

/// What a file describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileContent {
    /// A simulated world.
    Scenario,
    /// One end of a live link.
    Daemon,
    /// An emulated link between two interfaces.
    Air,
}

impl FileContent {
    /// Tells the kind from the keys at the top of the file.
    ///
    /// # Errors
    /// If no key tells it.
    pub(crate) fn of(document: &Document) -> Result<Self, RefusedFile> {
        let has = |keys: &[&str]| keys.iter().any(|key| document.has(key));
        if has(&["interfaces"]) {
            Ok(Self::Air)
        } else if has(&["tun", "link"]) {
            Ok(Self::Daemon)
        } else if has(&["nodes", "links", "flows"]) {
            Ok(Self::Scenario)
        } else {
            Err(document.refuse(
                "",
                "this is no file that airlane knows",
                "a scenario has [nodes], [links] and [[flows]]; a daemon file has [tun] and [link]; \
                 an emulator file has `interfaces`",
            ))
        }
    }
}
