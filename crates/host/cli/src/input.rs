//! Reads the files that the verbs take.

use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use airlane_base::config::{Document, LONGEST_TEXT, RefusedFile, nearest, read_file};
#[cfg(feature = "live")]
use airlane_live::config::LiveConfig;
#[cfg(feature = "lab")]
use airlane_study::shipped::scenarios;
use anyhow::Context as _;

use crate::fault::BadInput;

/// A build without the simulator ships no scenarios.
#[cfg(not(feature = "lab"))]
fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    std::iter::empty()
}

/// The document in `path`, with `assignments` applied. If there is no such file, `path` may name a
/// scenario that ships with the program.
///
/// # Errors
/// If the file cannot be read, is not TOML, or an assignment fits nowhere.
pub(crate) fn document(path: &Path, assignments: &[String]) -> anyhow::Result<Document> {
    let shipped = || scenarios().find(|(name, _)| path == Path::new(name));
    let bytes = match read_file(path, LONGEST_TEXT) {
        Err(error) if error.kind() == ErrorKind::NotFound => match shipped() {
            Some((_, text)) => text.as_bytes().to_vec(),
            None => return Err(BadInput(missing(path, &error)).into()),
        },
        Err(_) if std::fs::metadata(path).is_ok_and(|facts| facts.file_type().is_socket()) => {
            let shown = path.display();
            let why = format!("{shown} is a socket; write the file that the link was started with");
            return Err(BadInput(why).into());
        }
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

/// The message for a missing file; it suggests the shipped scenario that was probably meant.
fn missing(path: &Path, error: &std::io::Error) -> String {
    let name = path.display();
    let known = scenarios().map(|(name, _)| name);
    let bare = path.extension().is_none() && path.components().count() == 1;
    let help = match path.to_str().and_then(|name| nearest(name, known)) {
        Some(meant) if bare => format!("; did you mean {meant}, which comes with the program?"),
        _ if bare && cfg!(feature = "lab") => {
            "; `airlane scenario list` lists the names that are valid here".to_owned()
        }
        _ => String::new(),
    };
    format!("cannot read {name}: {error}{help}")
}

/// The live file in `document`, which was read from `path`. Key files are looked up relative to it.
///
/// # Errors
/// If it describes no end of a link.
#[cfg(feature = "live")]
pub(crate) fn live(document: &Document, path: &Path) -> Result<LiveConfig, RefusedFile> {
    FileContent::Daemon.expect(document)?;
    let file: LiveConfig = document.read()?;
    // The node that applies a reload may run in another directory.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(file.in_folder(path.parent().unwrap_or(Path::new(""))))
}

/// What kind of thing a file describes.
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
    /// Infers the kind from the keys at the top of the file.
    ///
    /// # Errors
    /// If no key decides it.
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
                "airlane does not recognise this file",
                "a scenario has [nodes], [links] and [[flows]]; a daemon file has [tun] and [link]; \
                 an emulator file has `interfaces`",
            ))
        }
    }

    /// Refuses a file of another kind, whose keys would all be called unknown.
    ///
    /// # Errors
    /// If it is one.
    pub(crate) fn expect(self, document: &Document) -> Result<(), RefusedFile> {
        let (wanted, _) = self.told();
        match Self::of(document).ok().filter(|found| *found != self) {
            None => Ok(()),
            Some(found) => {
                let (what, verb) = found.told();
                Err(document.refuse(
                    "",
                    format!("this is {what}, not {wanted}"),
                    format!("`{verb}` reads it"),
                ))
            }
        }
    }

    /// What it is called, and which verb reads it.
    const fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::Scenario => ("a scenario", "airlane sim run"),
            Self::Daemon => ("a daemon file", "airlane up"),
            Self::Air => ("an emulator file", "airlane air"),
        }
    }

    /// The error for a kind of file that this build cannot read.
    #[cfg(not(all(feature = "live", feature = "lab")))]
    pub(crate) fn left_out(self, path: &Path) -> BadInput {
        let (what, _) = self.told();
        let feature = match self {
            Self::Scenario => "lab",
            Self::Daemon | Self::Air => "live",
        };
        crate::features::missing(&format!("{} is {what}, which", path.display()), feature)
    }
}
