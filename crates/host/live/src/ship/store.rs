//! Stores files while they are incomplete, and moves them into place when all are complete.
//!
//! Incomplete files are in `.airlane-parts` in the same directory, each under a name derived from its path,
//! length and time, with a list of its missing ranges: a later attempt resumes every file that has not
//! changed. Partial files of other jobs are kept for a week.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::Duration;

use airlane_ship::{Entry, Kind, Manifest, Ranges};
use serde::{Deserialize, Serialize};

use super::ShipError;
use super::entry::{WORK, age, digest, dress, here, is_there, make_part, part};
use super::inbox::Inbox;

/// Adjacent data are written together, up to this length, bytes.
const TOGETHER: usize = 256 << 10;
/// Limit of open files.
const OPEN: usize = 16;
/// The list of the last job, and its missing ranges.
const LIST: &str = "list.json";
const MISSING: &str = "missing.json";
/// Suffix of the file with the missing ranges of another job's partial file.
const ASIDE: &str = ".missing";
/// Time for which partial files of abandoned jobs are kept.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The files of one job.
pub struct Store {
    inbox: Inbox,
    work: Inbox,
    work_name: String,
    overwrite: bool,
    manifest: Manifest,
    /// Hash of the list.
    list: String,
    starts: Vec<u64>,
    /// Whether each entry of the list is already in place.
    here: Vec<bool>,
    /// Directories that this job makes, also in an attempt that was killed.
    folders: BTreeSet<String>,
    /// Open files, the newest last.
    open: Vec<(usize, File)>,
    waiting: Vec<u8>,
    waiting_at: u64,
    notes: Vec<String>,
    /// [`Inbox::sync`], except in tests.
    sync: fn(&Inbox) -> io::Result<()>,
}

/// Missing ranges of the list with this hash.
#[derive(Serialize, Deserialize)]
struct Remembered {
    list: String,
    missing: Ranges,
    /// Directories that the job makes, which get their mode and time at its end.
    #[serde(default)]
    folders: BTreeSet<String>,
}

impl Store {
    /// Prepares a directory for these files. Returns the ranges that are missing there.
    ///
    /// # Errors
    /// Why it cannot be used, in words for both ends.
    pub fn open(
        folder: &Path,
        manifest: &Manifest,
        overwrite: bool,
    ) -> Result<(Self, Ranges), ShipError> {
        let inbox = Inbox::open(folder)?;
        let here = here(&inbox, manifest, overwrite)?;
        let (work, work_name) = inbox.private(WORK)?;
        let mut store = Self {
            inbox,
            work,
            work_name,
            overwrite,
            starts: manifest.starts(),
            list: digest(manifest),
            manifest: manifest.clone(),
            here,
            folders: BTreeSet::new(),
            open: Vec::new(),
            waiting: Vec::with_capacity(TOGETHER),
            waiting_at: 0,
            notes: Vec::new(),
            sync: Inbox::sync,
        };
        let missing = store.prepare()?;
        Ok((store, missing))
    }

    /// Notes for the operator.
    pub(super) fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn prepare(&mut self) -> Result<Ranges, ShipError> {
        let room = self.inbox.room();
        let room = room.map_err(ShipError::file(self.inbox.path(), "find the free space at"))?;
        let mut known = self.known();
        let mut missing = Ranges::none();
        let files: Vec<_> = self
            .manifest
            .files()
            .map(|(place, entry)| (place, entry.clone()))
            .collect();
        for (place, entry) in &files {
            if self.here[*place] {
                continue;
            }
            let name = part(entry);
            let before = known.remove(&name);
            let facts = self.work.look(&name).ok().flatten();
            let is_whole = facts.is_some_and(|facts| facts.st_size as u64 == entry.bytes);
            let lacks = before.filter(|lacks| is_whole && lacks.check(entry.bytes).is_ok());
            for (from, len) in lacks.unwrap_or_else(|| Ranges::all(entry.bytes)).iter() {
                missing.push(self.starts[*place] + from, len);
            }
        }
        if missing.bytes() > room {
            return Err(ShipError::Input(format!(
                "{} bytes are missing, and {room} fit into {}; make room there",
                missing.bytes(),
                self.inbox.path().display()
            )));
        }
        for (place, entry) in &files {
            if self.here[*place] {
                continue;
            }
            make_part(&self.work, entry)?;
        }
        self.set_aside(&known)?;
        let list = serde_json::to_vec(&self.manifest).map_err(io::Error::other);
        list.and_then(|list| self.work.write(LIST, &list))
            .map_err(ShipError::file(
                self.work.path(),
                "write the list of the job to",
            ))?;
        self.save(&missing)?;
        Ok(missing)
    }

    /// Missing ranges of each partial file, as earlier jobs left them.
    fn known(&mut self) -> BTreeMap<String, Ranges> {
        let mut known = BTreeMap::new();
        for (name, _) in self.work.files().unwrap_or_default() {
            let of = name.strip_suffix(ASIDE).map(str::to_owned);
            let lacks = of
                .as_ref()
                .and_then(|_| serde_json::from_slice(&self.work.read(&name)?).ok());
            if let (Some(of), Some(lacks)) = (of, lacks) {
                known.insert(of, lacks);
            }
        }
        let last = || {
            let list = self.work.read(LIST)?;
            let manifest: Manifest = serde_json::from_slice(&list).ok()?;
            let remembered: Remembered = serde_json::from_slice(&self.work.read(MISSING)?).ok()?;
            let total = manifest.total();
            let is_sound =
                remembered.list == digest(&manifest) && remembered.missing.check(total).is_ok();
            is_sound.then_some((manifest, remembered))
        };
        if let Some((
            manifest,
            Remembered {
                list,
                missing,
                folders,
            },
        )) = last()
        {
            if list == self.list {
                self.folders = folders;
            }
            let starts = manifest.starts();
            for (place, entry) in manifest.files() {
                known.insert(part(entry), missing.within(starts[place], entry.bytes));
            }
        }
        known
    }

    /// Saves the missing ranges of partial files of other jobs, and removes those that are too old.
    fn set_aside(&mut self, known: &BTreeMap<String, Ranges>) -> Result<(), ShipError> {
        let mine: BTreeSet<String> = self
            .manifest
            .files()
            .map(|(_, entry)| part(entry))
            .collect();
        let failed =
            |error| ShipError::file(self.work.path(), "keep the parts of other jobs in")(error);
        let (mut count, mut bytes, mut gone) = (0_u64, 0_u64, 0_u64);
        for (name, facts) in self.work.files().map_err(failed)? {
            if name == LIST || name == MISSING || name.ends_with(ASIDE) {
                continue;
            }
            let aside = name.clone() + ASIDE;
            let is_kept = known.contains_key(&name) && age(&facts) < KEPT;
            if mine.contains(&name) || !is_kept {
                self.work.remove(&aside).ok();
            }
            if mine.contains(&name) {
                continue;
            }
            if !is_kept {
                gone += facts.st_blocks as u64 * 512;
                self.work.remove(&name).map_err(failed)?;
                continue;
            }
            count += 1;
            bytes += facts.st_blocks as u64 * 512;
            let lacks = serde_json::to_vec(&known[&name]).map_err(io::Error::other);
            lacks
                .and_then(|lacks| self.work.write(&aside, &lacks))
                .map_err(failed)?;
        }
        let path = self.work.path().display();
        if count > 0 {
            let days = KEPT.as_secs() / (24 * 3_600);
            self.notes.push(format!(
                "{path} keeps {count} unfinished files of other jobs, {bytes} bytes, for {days} days after they changed"
            ));
        }
        if gone > 0 {
            self.notes.push(format!(
                "{path}: {gone} bytes of jobs that nobody can go on with are removed"
            ));
        }
        Ok(())
    }

    /// Discards files in place that overlap these damaged ranges, so that they are requested again.
    ///
    /// # Errors
    /// If that would replace a file that must not be replaced.
    pub(super) fn make_anew(&mut self, damaged: &Ranges) -> Result<(), ShipError> {
        self.open.clear();
        for (place, entry) in self.manifest.files() {
            if !self.here[place] || damaged.within(self.starts[place], entry.bytes).is_empty() {
                continue;
            }
            if !self.overwrite {
                return Err(is_there(&self.inbox, entry));
            }
            make_part(&self.work, entry)?;
            self.here[place] = false;
        }
        self.save(damaged)
    }

    /// Stores bytes of the stream.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn keep(&mut self, at: u64, bytes: &[u8]) -> Result<(), ShipError> {
        let goes_on = at == self.waiting_at + self.waiting.len() as u64;
        if !goes_on || self.waiting.len() + bytes.len() > TOGETHER {
            self.flush()?;
            self.waiting_at = at;
        }
        self.waiting.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes the buffered bytes.
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

    /// Reads bytes of the stream, after [`Store::flush`].
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

    /// Applies `act` to the file at a position of the stream, at most to the file's end. Returns the number of bytes.
    fn at(
        &mut self,
        at: u64,
        room: usize,
        doing: &'static str,
        act: impl FnOnce(&File, u64, usize) -> io::Result<()>,
    ) -> Result<usize, ShipError> {
        let place = self.starts.partition_point(|start| *start <= at) - 1;
        let inside = at - self.starts[place];
        let entry = &self.manifest.entries()[place];
        let left = entry.bytes - inside;
        let len = left.min(room as u64) as usize;
        let path = || self.inbox.path().join(&entry.path);
        match self.open.iter().position(|(open, _)| *open == place) {
            Some(found) => self.open[found..].rotate_left(1),
            None => {
                let opened = match self.here[place] {
                    true => self.inbox.reading(&entry.path),
                    false => self.work.file(&part(entry), false),
                };
                let file = opened.map_err(|error| ShipError::file(&path(), "open")(error))?;
                if self.open.len() == OPEN {
                    self.open.remove(0);
                }
                self.open.push((place, file));
            }
        }
        if let Some((_, file)) = self.open.last() {
            act(file, inside, len).map_err(|error| ShipError::file(&path(), doing)(error))?;
        }
        Ok(len)
    }

    /// Saves the missing ranges for a later attempt.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn save(&mut self, missing: &Ranges) -> Result<(), ShipError> {
        self.flush()?;
        let remembered = Remembered {
            list: self.list.clone(),
            missing: missing.clone(),
            folders: self.folders.clone(),
        };
        let text = serde_json::to_vec(&remembered).map_err(io::Error::other);
        text.and_then(|text| self.work.write(MISSING, &text))
            .map_err(ShipError::file(
                self.work.path(),
                "write what is missing to",
            ))
    }

    /// Completes the job: moves files and directories into place, sets permissions and times, and syncs them
    /// to the disk.
    ///
    /// If this is killed half-way, some files are in place, where the next attempt finds them.
    ///
    /// # Errors
    /// If something else is in a place by now, or the system refuses.
    pub fn finish(&mut self) -> Result<(), ShipError> {
        self.flush()?;
        self.open.clear();
        let work_path = self.work.path().to_owned();
        let sync = self.sync;
        let synced = |inbox: &Inbox| sync(inbox).map_err(ShipError::file(inbox.path(), "sync"));
        // A name never reaches the disk before its file's contents.
        synced(&self.inbox)?;
        let entries = self.manifest.entries().iter();
        for Entry { path, .. } in entries.filter(|entry| entry.kind == Kind::Folder) {
            let found = self.inbox.look(path);
            let found = found.map_err(ShipError::file(&self.inbox.path().join(path), "find"))?;
            if found.is_none() {
                self.folders.insert(path.clone());
            }
        }
        // A later attempt finds whole those that have no names yet.
        self.save(&Ranges::none())?;
        let allowed = !self
            .work
            .umask()
            .map_err(ShipError::file(&work_path, "find"))?;
        // Detect files created meanwhile before anything is moved; only the last moment remains unchecked.
        let there = here(&self.inbox, &self.manifest, self.overwrite)?;
        for (place, entry) in self.manifest.entries().iter().enumerate() {
            let target = self.inbox.path().join(&entry.path);
            if entry.kind == Kind::Folder {
                let made = self.inbox.make_folder(&entry.path, entry.mode & 0o777);
                made.map_err(ShipError::file(&target, "make"))?;
                continue;
            }
            if self.here[place] {
                continue;
            }
            if there[place] && !self.overwrite {
                return Err(is_there(&self.inbox, entry));
            }
            let name = part(entry);
            let dressed = self
                .work
                .file(&name, false)
                .and_then(|file| dress(&file, entry, allowed));
            dressed.map_err(ShipError::file(&target, "set permissions and time of"))?;
            match self
                .work
                .place(&name, &self.inbox, &entry.path, self.overwrite)
            {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(is_there(&self.inbox, entry));
                }
                placed => placed.map_err(ShipError::file(&target, "rename"))?,
            }
        }
        // Creating files in a directory changes its time, and its final mode may forbid it: innermost
        // directories first.
        let made = self.manifest.entries().iter().rev();
        for entry in made.filter(|entry| self.folders.contains(&entry.path)) {
            let target = self.inbox.path().join(&entry.path);
            let dressed = self
                .inbox
                .reading(&entry.path)
                .and_then(|folder| dress(&folder, entry, allowed));
            dressed.map_err(ShipError::file(&target, "set permissions and time of"))?;
        }
        synced(&self.inbox)?;
        self.work.remove(MISSING).ok();
        self.work.remove(LIST).ok();
        // It stays if it has partial files of other jobs.
        let removed = self.inbox.remove_folder(&self.work_name);
        removed
            .map(drop)
            .map_err(ShipError::file(&work_path, "remove"))
    }
}

#[cfg(test)]
mod tests;
