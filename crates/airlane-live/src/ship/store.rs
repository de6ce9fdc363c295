//! Where files lie while they come, and where they go when all of them are here.
//!
//! A job has a folder of its own beside its files, `.airlane-` and a name that follows from its list: each file by its
//! number, and what is missing of them (`missing.json`). It is what a later try goes on with.

use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use airlane_ship::{Entry, Kind, Manifest, Ranges};

use super::ShipError;

/// Neighbours are written together, up to this.
const TOGETHER: usize = 256 << 10;
/// Files that are open at once.
const OPEN: usize = 16;
const MISSING: &str = "missing.json";

/// The files of one job.
pub(super) struct Store {
    folder: PathBuf,
    work: PathBuf,
    manifest: Manifest,
    starts: Vec<u64>,
    /// The newest last.
    open: Vec<(usize, File)>,
    waiting: Vec<u8>,
    waiting_at: u64,
}

/// Why there is no place for a job, in words for both ends.
pub(super) type Refusal = String;

impl Store {
    /// A place for these files in a folder, and what is missing of them there.
    pub(super) fn open(
        folder: &Path,
        manifest: &Manifest,
        overwrite: bool,
    ) -> Result<(Self, Ranges), Refusal> {
        for entry in manifest.entries() {
            let target = folder.join(&entry.path);
            if entry.kind == Kind::File && !overwrite && target.symlink_metadata().is_ok() {
                return Err(format!(
                    "{} is already there; airlane recv --overwrite replaces it",
                    target.display()
                ));
            }
        }
        let list = serde_json::to_vec(manifest).map_err(|error| error.to_string())?;
        let name = blake3::hash(&list).to_hex();
        let mut store = Self {
            folder: folder.to_owned(),
            work: folder.join(format!(".airlane-{}", &name[..16])),
            starts: manifest.starts(),
            manifest: manifest.clone(),
            open: Vec::new(),
            waiting: Vec::with_capacity(TOGETHER),
            waiting_at: 0,
        };
        let missing = store.prepare().map_err(|error| error.to_string())?;
        Ok((store, missing))
    }

    fn prepare(&mut self) -> Result<Ranges, ShipError> {
        fs::create_dir_all(&self.work).map_err(ShipError::file(&self.work, "make"))?;
        let total = self.manifest.total();
        let mut missing = self
            .remembered()
            .filter(|missing| missing.check(total).is_ok());
        for (place, entry) in self.manifest.files() {
            let path = self.part(place);
            let is_whole = path
                .metadata()
                .is_ok_and(|facts| facts.len() == entry.bytes);
            if !is_whole {
                let made = OpenOptions::new()
                    .write(true)
                    .create(true)
                    .truncate(true)
                    .open(&path);
                let made = made.and_then(|file| file.set_len(entry.bytes));
                made.map_err(ShipError::file(&path, "make"))?;
                if let Some(missing) = &mut missing {
                    let mut all = Ranges::none();
                    all.push(self.starts[place], entry.bytes);
                    *missing = missing.with(&all);
                }
            }
        }
        Ok(missing.unwrap_or_else(|| Ranges::all(total)))
    }

    fn remembered(&self) -> Option<Ranges> {
        serde_json::from_slice(&fs::read(self.work.join(MISSING)).ok()?).ok()
    }

    fn part(&self, place: usize) -> PathBuf {
        self.work.join(place.to_string())
    }

    /// Keeps bytes of the row.
    pub(super) fn keep(&mut self, at: u64, bytes: &[u8]) -> Result<(), ShipError> {
        let goes_on = at == self.waiting_at + self.waiting.len() as u64;
        if !goes_on || self.waiting.len() + bytes.len() > TOGETHER {
            self.flush()?;
            self.waiting_at = at;
        }
        self.waiting.extend_from_slice(bytes);
        Ok(())
    }

    /// What waits is written.
    pub(super) fn flush(&mut self) -> Result<(), ShipError> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut from = 0;
        while from < waiting.len() {
            let bytes = &waiting[from..];
            from += self.at(
                self.waiting_at + from as u64,
                bytes.len(),
                "write",
                |file, inside, len| file.write_all_at(&bytes[..len], inside),
            )?;
        }
        self.waiting = waiting;
        self.waiting_at += self.waiting.len() as u64;
        self.waiting.clear();
        Ok(())
    }

    /// Reads bytes of the row; what waits has been written.
    pub(super) fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), ShipError> {
        let mut from = 0;
        while from < bytes.len() {
            let bytes = &mut bytes[from..];
            let room = bytes.len();
            from += self.at(at + from as u64, room, "read", |file, inside, len| {
                file.read_exact_at(&mut bytes[..len], inside)
            })?;
        }
        Ok(())
    }

    /// Does something with the file at a place of the row, at most to its end; with how many bytes.
    fn at(
        &mut self,
        at: u64,
        room: usize,
        doing: &'static str,
        act: impl FnOnce(&File, u64, usize) -> io::Result<()>,
    ) -> Result<usize, ShipError> {
        let place = self.starts.partition_point(|start| *start <= at) - 1;
        let inside = at - self.starts[place];
        let left = self.manifest.entries()[place].bytes - inside;
        let len = left.min(room as u64) as usize;
        let path = self.part(place);
        match self.open.iter().position(|(open, _)| *open == place) {
            Some(found) => self.open[found..].rotate_left(1),
            None => {
                let opened = OpenOptions::new().read(true).write(true).open(&path);
                let file = opened.map_err(ShipError::file(&path, "open"))?;
                if self.open.len() == OPEN {
                    self.open.remove(0);
                }
                self.open.push((place, file));
            }
        }
        if let Some((_, file)) = self.open.last() {
            act(file, inside, len).map_err(ShipError::file(&path, doing))?;
        }
        Ok(len)
    }

    /// Remembers what is missing, for a later try.
    pub(super) fn save(&mut self, missing: &Ranges) -> Result<(), ShipError> {
        self.flush()?;
        let (path, new) = (self.work.join(MISSING), self.work.join("missing.new"));
        let text = serde_json::to_vec(missing).map_err(io::Error::other);
        text.and_then(|text| fs::write(&new, text))
            .and_then(|()| fs::rename(&new, &path))
            .map_err(ShipError::file(&path, "write"))
    }

    /// All is here: files and folders get their names, permissions and times.
    pub(super) fn finish(&mut self) -> Result<(), ShipError> {
        self.flush()?;
        self.open.clear();
        let places: Vec<_> = self.manifest.entries().iter().enumerate().collect();
        for (place, entry) in &places {
            let target = self.folder.join(&entry.path);
            if entry.kind == Kind::Folder {
                fs::create_dir_all(&target).map_err(ShipError::file(&target, "make"))?;
                continue;
            }
            if let Some(above) = target.parent() {
                fs::create_dir_all(above).map_err(ShipError::file(above, "make"))?;
            }
            let part = self.part(*place);
            dress(&part, entry).map_err(ShipError::file(&part, "set permissions and time"))?;
            fs::rename(&part, &target).map_err(ShipError::file(&target, "give its name"))?;
        }
        // A folder changes as things are put into it, and may forbid that in the end: the innermost first.
        for (_, entry) in places
            .iter()
            .rev()
            .filter(|(_, entry)| entry.kind == Kind::Folder)
        {
            let target = self.folder.join(&entry.path);
            dress(&target, entry).map_err(ShipError::file(&target, "set permissions and time"))?;
        }
        fs::remove_dir_all(&self.work).map_err(ShipError::file(&self.work, "remove"))
    }
}

fn dress(path: &Path, entry: &Entry) -> io::Result<()> {
    let modified = UNIX_EPOCH + Duration::from_nanos(entry.modified_ns);
    File::open(path)?.set_times(FileTimes::new().set_modified(modified))?;
    fs::set_permissions(path, Permissions::from_mode(entry.mode & 0o777))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let entry = |path: &str, kind, bytes, mode| Entry {
            path: path.to_owned(),
            kind,
            bytes,
            mode,
            modified_ns: 1_000_000_007,
        };
        Manifest::new(vec![
            entry("d", Kind::Folder, 0, 0o750),
            entry("d/a", Kind::File, 4, 0o640),
            entry("d/none", Kind::File, 0, 0o600),
            entry("d/b", Kind::File, 6, 0o400),
        ])
        .unwrap()
    }

    #[test]
    fn files_come_in_any_order_and_a_later_try_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let (mut store, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
        assert_eq!(missing, Ranges::all(10));
        store.keep(7, b"rld").unwrap();
        let mut missing = Ranges::none();
        missing.push(0, 7);
        store.save(&missing).unwrap();
        drop(store);
        let (mut store, again) = Store::open(folder.path(), &manifest(), false).unwrap();
        assert_eq!(again, missing);
        store.keep(0, b"hel").unwrap();
        store.keep(3, b"lowo").unwrap();
        store.flush().unwrap();
        let mut all = [0; 10];
        store.read(0, &mut all).unwrap();
        assert_eq!(&all, b"helloworld");
        store.finish().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert_eq!(fs::read(at("d/a")).unwrap(), b"hell");
        assert_eq!(fs::read(at("d/b")).unwrap(), b"oworld");
        assert_eq!(fs::read(at("d/none")).unwrap(), b"");
        let facts = at("d/b").metadata().unwrap();
        assert_eq!(facts.permissions().mode() & 0o777, 0o400);
        let since = facts
            .modified()
            .unwrap()
            .duration_since(UNIX_EPOCH)
            .unwrap();
        assert_eq!(since, Duration::from_nanos(1_000_000_007));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let refused = Store::open(folder.path(), &manifest(), false)
            .err()
            .unwrap();
        assert!(refused.contains("d/a is already there"), "{refused}");
        assert!(Store::open(folder.path(), &manifest(), true).is_ok());
    }

    #[test]
    fn what_was_remembered_wrongly_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(folder.path(), &manifest(), false).unwrap();
        for text in ["[[0,11]]", "nonsense", "[[3,0]]"] {
            fs::write(store.work.join(MISSING), text).unwrap();
            let (_, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
            assert_eq!(missing, Ranges::all(10), "{text}");
        }
        fs::write(store.work.join(MISSING), "[]").unwrap();
        fs::write(store.part(3), "short").unwrap();
        let (_, missing) = Store::open(folder.path(), &manifest(), false).unwrap();
        assert_eq!(missing.iter().collect::<Vec<_>>(), [(4, 6)]);
    }
}
