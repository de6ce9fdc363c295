//! The works and scenarios that ship with the program: `build.rs` embeds the files of `studies/`
//! and `scenarios/`.

use std::path::{Path, PathBuf};

use crate::error::StudyError;

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));

/// The folder of the shipped works.
pub(crate) const STUDIES: &str = "studies";

/// The shipped scenarios: name and text of each file, in the order of their names.
pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    SHIPPED.iter().filter_map(|(path, text)| {
        let name = path.strip_prefix("scenarios/")?.strip_suffix(".toml")?;
        Some((name, *text))
    })
}

/// The source of a work's files.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Files {
    /// In folders.
    Disk,
    /// Embedded in the program.
    Shipped,
}

impl Files {
    pub(crate) fn read(self, path: &Path) -> Result<String, StudyError> {
        match self {
            Self::Disk => airlane_base::config::read_text(path).map_err(StudyError::io(path)),
            Self::Shipped => shipped(path)
                .map(str::to_owned)
                .ok_or_else(|| StudyError::file(path, "the program has no such file")),
        }
    }

    pub(crate) fn has(self, path: &Path) -> bool {
        match self {
            Self::Disk => path.is_file(),
            Self::Shipped => shipped(path).is_some(),
        }
    }

    /// The TOML files of a folder, sorted by name; none if there is no such folder.
    pub(crate) fn toml_files(self, folder: &Path) -> Result<Vec<PathBuf>, StudyError> {
        let mut files = match self {
            Self::Disk if !folder.is_dir() => vec![],
            Self::Disk => entries(folder)?,
            Self::Shipped => {
                let paths = SHIPPED.iter().map(|(path, _)| PathBuf::from(path));
                paths.filter(|path| path.parent() == Some(folder)).collect()
            }
        };
        files.retain(|path| path.extension().is_some_and(|e| e == "toml"));
        files.sort();
        Ok(files)
    }

    /// The subfolders that hold a work, sorted by name.
    pub(crate) fn works(self, folder: &Path) -> Result<Vec<PathBuf>, StudyError> {
        let mut folders: Vec<PathBuf> = match self {
            Self::Disk => entries(folder)?,
            Self::Shipped => {
                let paths = SHIPPED.iter().map(|(path, _)| Path::new(*path));
                let folders = paths.filter_map(Path::parent);
                let within = folders.filter(|path| path.parent() == Some(folder));
                within.map(Path::to_owned).collect()
            }
        };
        folders.retain(|path| self.has(&path.join("work.toml")));
        folders.sort();
        folders.dedup();
        Ok(folders)
    }
}

fn shipped(path: &Path) -> Option<&'static str> {
    let mut files = SHIPPED.iter();
    files.find_map(|(name, text)| (Path::new(*name) == path).then_some(*text))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, StudyError> {
    let entries = std::fs::read_dir(folder).map_err(StudyError::io(folder))?;
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect())
}
