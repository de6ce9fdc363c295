//! An entry of the file list on the disk: whether it is in place, its partial file, and its final attributes.

use std::fs::{File, FileTimes, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use airlane_ship::{Entry, Kind, Manifest, printable};
use rustix::fs::Stat;

use super::ShipError;
use super::inbox::{Inbox, is_folder};
use super::source::nanoseconds;

/// Directory of incomplete files.
pub(super) const WORK: &str = ".airlane-parts";
/// Coarsest resolution of a file system's timestamps, ns.
const ROUNDED: u64 = 2_000_000_000;

/// Files of the list that seem to be in place, by length and time; their hashes are checked later like those
/// of received files.
///
/// # Errors
/// If something else is there and must not, or cannot, be replaced.
pub(super) fn here(
    inbox: &Inbox,
    manifest: &Manifest,
    overwrite: bool,
) -> Result<Vec<bool>, ShipError> {
    let look = |entry: &Entry| {
        let path = inbox.path().join(&entry.path);
        // Similar names are refused as well: concurrent receivers use -2 and so on.
        if entry.path.starts_with(WORK) {
            return Err(ShipError::Input(format!(
                "{}: names that begin so are reserved for the receiver; send it under another",
                printable(&path.to_string_lossy())
            )));
        }
        let found = inbox.look(&entry.path).map_err(|error| match error.raw_os_error() {
            Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => ShipError::Input(format!(
                "{}: a folder of this path is a link, and received files never go through links",
                printable(&path.to_string_lossy())
            )),
            _ => ShipError::file(&path, "find")(error),
        })?;
        let conflict = |what| {
            let path = path.to_string_lossy();
            ShipError::Input(format!(
                "{} is already there, {what}; remove it, or name another folder",
                printable(&path)
            ))
        };
        match (found, entry.kind) {
            (None, _) => Ok(false),
            (Some(facts), Kind::Folder) if is_folder(&facts) => Ok(true),
            (Some(_), Kind::Folder) => Err(conflict("and no folder")),
            (Some(facts), Kind::File) if is_folder(&facts) => Err(conflict("a folder")),
            (Some(facts), Kind::File) if is_as_sent(&facts, entry) => Ok(true),
            (Some(_), Kind::File) if overwrite => Ok(false),
            (Some(_), Kind::File) => Err(is_there(inbox, entry)),
        }
    };
    manifest.entries().iter().map(look).collect()
}

pub(super) fn is_there(inbox: &Inbox, entry: &Entry) -> ShipError {
    let path = inbox.path().join(&entry.path);
    ShipError::Input(format!(
        "{} is already there; airlane recv --overwrite replaces it",
        printable(&path.to_string_lossy())
    ))
}

pub(super) fn is_as_sent(facts: &Stat, entry: &Entry) -> bool {
    let is_file = rustix::fs::FileType::from_raw_mode(facts.st_mode).is_file();
    let modified = nanoseconds(facts.st_mtime, facts.st_mtime_nsec);
    is_file && facts.st_size as u64 == entry.bytes && modified.abs_diff(entry.modified_ns) < ROUNDED
}

/// The name of an incomplete file.
pub(super) fn part(entry: &Entry) -> String {
    let Entry {
        path,
        bytes,
        modified_ns,
        ..
    } = entry;
    let name = blake3::hash(format!("{bytes} {modified_ns} {path}").as_bytes());
    name.to_hex()[..32].to_owned()
}

pub(super) fn make_part(work: &Inbox, entry: &Entry) -> Result<(), ShipError> {
    let name = part(entry);
    let made = work
        .file(&name, true)
        .and_then(|file| file.set_len(entry.bytes));
    made.map_err(ShipError::file(&work.path().join(&name), "make"))
}

pub(super) fn digest(manifest: &Manifest) -> String {
    let mut hasher = blake3::Hasher::new();
    for (_, entry) in manifest.files() {
        hasher.update(part(entry).as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

pub(super) fn age(facts: &Stat) -> Duration {
    let modified = UNIX_EPOCH + Duration::from_secs(u64::try_from(facts.st_mtime).unwrap_or(0));
    SystemTime::now()
        .duration_since(modified)
        .unwrap_or_default()
}

pub(super) fn dress(file: &File, entry: &Entry, allowed: u32) -> io::Result<()> {
    let modified = UNIX_EPOCH + Duration::from_nanos(entry.modified_ns);
    file.set_times(FileTimes::new().set_modified(modified))?;
    file.set_permissions(Permissions::from_mode(entry.mode & allowed & 0o777))
}
