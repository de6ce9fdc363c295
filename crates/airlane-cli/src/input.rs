//! Reading the files that the verbs take.

use std::io::ErrorKind;
use std::path::Path;

use airlane_base::config::{
    Document, LONGEST_DATA, LONGEST_TEXT, RefusedFile, nearest, read_file, read_text,
};
use airlane_live::config::LiveConfig;
use airlane_sim::Scenario;
use airlane_study::{StudyError, Work, shipped};
use anyhow::Context as _;

use crate::args::StudiesArgs;
use crate::fault::BadInput;

/// The document in `path` with `assignments` on top of it. Where there is no such file, the name of a scenario that
/// comes with the program stands for it.
///
/// # Errors
/// If the file cannot be read, is not TOML, or an assignment fits nowhere.
pub(crate) fn document(path: &Path, assignments: &[String]) -> anyhow::Result<Document> {
    let shipped = || shipped::scenarios().find(|(name, _)| path == Path::new(name));
    let bytes = match read_file(path, LONGEST_TEXT) {
        Err(error) if error.kind() == ErrorKind::NotFound => match shipped() {
            Some((_, text)) => text.as_bytes().to_vec(),
            None => return Err(BadInput(missing(path, &error)).into()),
        },
        read => read.with_context(|| BadInput(format!("cannot read {}", path.display())))?,
    };
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

/// That there is no such file, and the scenario of the program that was probably meant.
fn missing(path: &Path, error: &std::io::Error) -> String {
    let name = path.display();
    let known = shipped::scenarios().map(|(name, _)| name);
    let bare = path.extension().is_none() && path.components().count() == 1;
    let help = match path.to_str().and_then(|name| nearest(name, known)) {
        Some(meant) if bare => format!("; did you mean {meant}, which comes with the program?"),
        _ if bare => "; `airlane scenario list` has the names that may stand here".to_owned(),
        _ => String::new(),
    };
    format!("cannot read {name}: {error}{help}")
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

/// The works in the folder that was named; else those in `studies`, if it has any, and those that came with the
/// program, of which one in the folder takes the place.
///
/// # Errors
/// If a file is missing or wrong.
pub(crate) fn works(studies: &StudiesArgs) -> Result<Vec<Work>, StudyError> {
    match &studies.studies {
        Some(folder) => Work::load_all(folder),
        None => Work::here_and_shipped(Path::new("studies")),
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
