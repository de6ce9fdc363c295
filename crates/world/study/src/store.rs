//! Results of single runs on disk: one line of JSON each, appended as they are produced.
//!
//! A line is written in one call, so a killed run leaves whole lines and at most one broken one,
//! which is truncated when the folder is opened again. A result is identified by the hash of its
//! scenario, seed, repetition and [`VERSION`]; results of another version are skipped.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::StudyError;

/// Version of the package and a fingerprint of the code that simulates.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("AIRLANE_MODEL"));

/// The result of one run: values by metric; NaN for what could not be measured.
#[derive(Clone, Debug)]
pub struct RunRecord {
    /// Shared by all runs of a scenario.
    pub names: Arc<[String]>,
    /// In the order of `names`.
    pub values: Vec<f64>,
}

impl RunRecord {
    /// One value; NaN if there is no such metric.
    pub fn get(&self, name: &str) -> f64 {
        let at = self.names.iter().position(|n| n == name);
        at.map_or(f64::NAN, |at| self.values[at])
    }
}

/// Identifies a run: hash of the scenario, seed, repetition.
pub type RunKey = (String, u64, u64);

/// The results in a folder, or only in memory.
#[derive(Debug, Default)]
pub struct Store {
    folder: Option<PathBuf>,
    file: Option<(PathBuf, File)>,
    /// Only looked up by key, never iterated.
    records: HashMap<RunKey, RunRecord>,
    names: BTreeSet<Arc<[String]>>,
    /// Number of lines from another version.
    pub foreign: u64,
}

#[derive(Serialize, Deserialize)]
struct Line {
    version: String,
    scenario: String,
    seed: u64,
    run: u64,
    values: BTreeMap<String, f64>,
    /// Metrics that could not be measured, since JSON has no NaN.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    unmeasured: Vec<String>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

impl Line {
    fn new<'v>(key: &RunKey, values: impl Iterator<Item = (&'v String, f64)> + Clone) -> Self {
        let unmeasured = values.clone().filter(|(_, value)| !value.is_finite());
        Self {
            version: VERSION.to_owned(),
            scenario: key.0.clone(),
            seed: key.1,
            run: key.2,
            values: (values.filter(|(_, value)| value.is_finite()))
                .map(|(name, value)| (name.clone(), value))
                .collect(),
            unmeasured: unmeasured.map(|(name, _)| name.clone()).collect(),
        }
    }

    fn text(&self) -> Result<String, StudyError> {
        let text = serde_json::to_string(self)
            .map_err(|e| StudyError::Results(format!("a result cannot be written: {e}")))?;
        Ok(text + "\n")
    }
}

impl Store {
    /// Opens a folder and reads all results in it.
    ///
    /// # Errors
    /// If a file cannot be read or is not a store.
    pub fn open(folder: &Path) -> Result<Self, StudyError> {
        let mut store = Self {
            folder: Some(folder.to_owned()),
            ..Self::default()
        };
        for path in files(folder)? {
            store.read(&path)?;
        }
        Ok(store)
    }

    fn read(&mut self, path: &Path) -> Result<(), StudyError> {
        let mut bytes = vec![];
        let mut file = File::open(path).map_err(StudyError::io(path))?;
        file.read_to_end(&mut bytes).map_err(StudyError::io(path))?;
        for (number, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
            if line.last() != Some(&b'\n') {
                break;
            }
            let wrong = |e| StudyError::file(path, format!("line {}: {e}", number + 1));
            // Lines of another version may have another layout.
            let version: Version = serde_json::from_slice(line).map_err(wrong)?;
            if version.version != VERSION {
                self.foreign += 1;
                continue;
            }
            let mut line: Line = serde_json::from_slice(line).map_err(wrong)?;
            let unmeasured = line.unmeasured.into_iter().map(|name| (name, f64::NAN));
            line.values.extend(unmeasured);
            let (names, values) = line.values.into_iter().unzip();
            self.keep((line.scenario, line.seed, line.run), names, values);
        }
        Ok(())
    }

    fn keep(&mut self, key: RunKey, names: Vec<String>, values: Vec<f64>) {
        let names: Arc<[String]> = names.into();
        let names = match self.names.get(&names) {
            Some(known) => Arc::clone(known),
            None => {
                self.names.insert(Arc::clone(&names));
                names
            }
        };
        self.records.insert(key, RunRecord { names, values });
    }

    /// The result of a run, if it is known.
    pub fn get(&self, key: &RunKey) -> Option<&RunRecord> {
        self.records.get(key)
    }

    /// Adds a run and, if there is a folder, appends it to `runs{suffix}.jsonl`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn add(
        &mut self,
        key: RunKey,
        names: Vec<String>,
        values: Vec<f64>,
        suffix: &str,
    ) -> Result<(), StudyError> {
        // Names are kept in their order on disk, so that a result is the same whether it was read
        // or run.
        let sorted: BTreeMap<String, f64> = names.into_iter().zip(values).collect();
        if self.folder.is_some() {
            self.write(&key, &sorted, suffix)?;
        }
        let (names, values) = sorted.into_iter().unzip();
        self.keep(key, names, values);
        Ok(())
    }

    fn write(
        &mut self,
        key: &RunKey,
        values: &BTreeMap<String, f64>,
        suffix: &str,
    ) -> Result<(), StudyError> {
        let values = values.iter().map(|(name, value)| (name, *value));
        let text = Line::new(key, values).text()?;
        let (path, file) = self.file(suffix)?;
        file.write_all(text.as_bytes())
            .map_err(StudyError::io(path))
    }

    /// The file to which new runs are appended, without a broken line at its end.
    fn file(&mut self, suffix: &str) -> Result<(&Path, &mut File), StudyError> {
        if self.file.is_none() {
            let folder = self.folder.as_deref().unwrap_or(Path::new(""));
            std::fs::create_dir_all(folder).map_err(StudyError::io(folder))?;
            let path = folder.join(format!("runs{suffix}.jsonl"));
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            let mut file = options.open(&path).map_err(StudyError::io(&path))?;
            // The lock is held until the process ends, however it ends.
            file.try_lock().map_err(|e| match e {
                TryLockError::WouldBlock => StudyError::Results(format!(
                    "{} is being written by another run; wait for it, or take another folder",
                    path.display()
                )),
                TryLockError::Error(e) => StudyError::io(&path)(e),
            })?;
            let mut bytes = vec![];
            file.read_to_end(&mut bytes)
                .map_err(StudyError::io(&path))?;
            let whole = bytes
                .iter()
                .rposition(|b| *b == b'\n')
                .map_or(0, |at| at as u64 + 1);
            file.set_len(whole).map_err(StudyError::io(&path))?;
            file.seek(SeekFrom::End(0)).map_err(StudyError::io(&path))?;
            self.file = Some((path, file));
        }
        let (path, file) = self.file.as_mut().expect("it has just been opened");
        Ok((path, file))
    }

    /// Lets another process write to the folder; the next [`add`](Self::add) locks it again.
    pub fn close(&mut self) {
        self.file = None;
    }

    /// Puts all results of this version into one sorted file.
    ///
    /// # Errors
    /// If a file cannot be written or removed.
    pub fn merge(&mut self) -> Result<(), StudyError> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let old = files(folder)?;
        let path = folder.join("merged.tmp");
        let mut sorted: Vec<&RunKey> = self.records.keys().collect();
        sorted.sort();
        let mut text = String::new();
        for key in sorted {
            let record = &self.records[key];
            let values = record.names.iter().zip(record.values.iter().copied());
            text += &Line::new(key, values).text()?;
        }
        std::fs::write(&path, text).map_err(StudyError::io(&path))?;
        // In this order, being killed loses nothing.
        let merged = folder.join("runs.jsonl");
        std::fs::rename(&path, &merged).map_err(StudyError::io(&merged))?;
        for file in old.iter().filter(|file| **file != merged) {
            std::fs::remove_file(file).map_err(StudyError::io(file))?;
        }
        self.file = None;
        Ok(())
    }
}

/// `runs.jsonl` and `runs-1-of-2.jsonl`, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, StudyError> {
    if !folder.is_dir() {
        return Ok(vec![]);
    }
    let entries = std::fs::read_dir(folder).map_err(StudyError::io(folder))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
            name.is_some_and(|n| n.starts_with("runs") && n.ends_with(".jsonl"))
        })
        .collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(run: u64) -> RunKey {
        ("0123456789abcdef".to_owned(), 1, run)
    }

    fn add(store: &mut Store, run: u64, suffix: &str) {
        let names = vec!["z".to_owned(), "a".to_owned()];
        let value = 0.1 + run as f64 / 3.0;
        store
            .add(key(run), names, vec![value, f64::NAN], suffix)
            .unwrap();
    }

    #[test]
    fn what_was_written_is_read_to_the_last_bit() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        add(&mut store, 7, "");
        let read = Store::open(folder.path()).unwrap();
        let record = read.get(&key(7)).unwrap();
        assert_eq!(record.get("z").to_bits(), (0.1 + 7.0 / 3.0f64).to_bits());
        assert!(record.get("a").is_nan() && record.names.contains(&"a".to_owned()));
        let text = std::fs::read_to_string(folder.path().join("runs.jsonl")).unwrap();
        assert!(
            text.contains("\"unmeasured\":[\"a\"]") && !text.contains("null"),
            "{text}"
        );
        assert!(read.get(&key(6)).is_none());
    }

    #[test]
    fn a_broken_last_line_is_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        add(&mut store, 0, "");
        drop(store);
        let path = folder.path().join("runs.jsonl");
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole[..], b"{\"version\":\"0."].concat()).unwrap();
        let mut store = Store::open(folder.path()).unwrap();
        add(&mut store, 1, "");
        let lines = std::fs::read_to_string(&path).unwrap();
        assert_eq!(lines.lines().count(), 2);
        let store = Store::open(folder.path()).unwrap();
        assert!(store.get(&key(0)).is_some() && store.get(&key(1)).is_some());
    }

    #[test]
    fn results_of_another_version_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        add(&mut Store::open(folder.path()).unwrap(), 0, "");
        let path = folder.path().join("runs.jsonl");
        let other = std::fs::read_to_string(&path)
            .unwrap()
            .replace(VERSION, "0.0.0+other");
        std::fs::write(&path, other).unwrap();
        let store = Store::open(folder.path()).unwrap();
        assert!(store.get(&key(0)).is_none());
        assert_eq!(store.foreign, 1);
    }

    #[test]
    fn shards_merge_into_one_sorted_file() {
        let folder = tempfile::tempdir().unwrap();
        for (run, suffix) in [(1, "-1-of-2"), (0, "-2-of-2")] {
            add(&mut Store::open(folder.path()).unwrap(), run, suffix);
        }
        let mut store = Store::open(folder.path()).unwrap();
        store.merge().unwrap();
        let text = std::fs::read_to_string(folder.path().join("runs.jsonl")).unwrap();
        let runs: Vec<Line> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(runs.iter().map(|l| l.run).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn one_process_writes_a_folder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let mut first = Store::open(folder.path()).unwrap();
        add(&mut first, 0, "");
        let mut second = Store::open(folder.path()).unwrap();
        let refused = second.add(key(1), vec![], vec![], "").unwrap_err();
        assert!(refused.to_string().contains("another run"), "{refused}");
        // Another shard has a file of its own.
        add(&mut second, 1, "-2-of-2");
        drop(first);
        add(&mut Store::open(folder.path()).unwrap(), 2, "");
    }
}
