//! The file of a journal, and the thread that writes it. A full or slow disk, or the size limit, ends the
//! journal with one log entry; the link goes on.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use airlane_node::Journals;
use airlane_node::journal::{MAGIC, Sink};

use crate::device::DeviceError;

/// Limit of blocks that wait for the disk: 16 MB.
const WAITING: usize = 256;

/// Creates the journal files of the ports.
#[derive(Debug)]
pub(crate) struct JournalFiles {
    pub(crate) path: PathBuf,
    /// Size limit of each, bytes.
    pub(crate) most: u64,
}

impl Journals for JournalFiles {
    /// With listed peers the peer's name is inserted before the extension: `base.farm.journal`.
    fn begin(&mut self, peer: Option<&str>) -> io::Result<Box<dyn Sink>> {
        let extension = self.path.extension().and_then(|e| e.to_str());
        let path = match (peer, extension) {
            (None, _) => self.path.clone(),
            (Some(name), Some(extension)) => {
                self.path.with_extension(format!("{name}.{extension}"))
            }
            (Some(name), None) => self.path.with_extension(name),
        };
        let file = JournalFile::create(&path, self.most).map_err(io::Error::other)?;
        Ok(Box::new(file))
    }
}

/// A journal with its own writer thread.
#[derive(Debug)]
pub struct JournalFile {
    path: PathBuf,
    to_disk: Option<SyncSender<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
    written: u64,
    /// Size limit, bytes.
    most: u64,
}

impl JournalFile {
    /// Creates the file. A journal that is there gets the name with `.before`, since a node that was started again has
    /// most to tell of its end. A journal holds packets in the clear, so only the owner may read it.
    ///
    /// # Errors
    /// If the file cannot be created, or if another file is there that is no journal.
    pub fn create(path: &Path, most: u64) -> Result<Self, DeviceError> {
        let failed =
            |error| DeviceError::new(&path.display().to_string(), "make the journal", error);
        keep_before(path).map_err(failed)?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        let (to_disk, blocks) = sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn({
                let path = path.to_owned();
                move || write(file, &path, &blocks)
            })
            .map_err(failed)?;
        tracing::info!(path = %path.display(), "journal begins");
        Ok(Self {
            path: path.to_owned(),
            to_disk: Some(to_disk),
            thread: Some(thread),
            written: 0,
            most,
        })
    }
}

/// Renames a journal that is there.
fn keep_before(path: &Path) -> io::Result<()> {
    if !path.is_file() {
        return Ok(());
    }
    let mut head = Vec::new();
    File::open(path)?
        .take(MAGIC.len() as u64)
        .read_to_end(&mut head)?;
    if !MAGIC.starts_with(&head) {
        let why = "a file is there that is no journal, and is not replaced";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
    }
    let mut before = path.as_os_str().to_owned();
    before.push(".before");
    std::fs::rename(path, before)
}

impl Sink for JournalFile {
    fn write(&mut self, bytes: Vec<u8>) -> bool {
        let Some(to_disk) = &self.to_disk else {
            return false;
        };
        self.written += bytes.len() as u64;
        let why = match self.written > self.most {
            true => "it is as long as --journal-size allows",
            false => match to_disk.try_send(bytes) {
                Ok(()) => return true,
                Err(TrySendError::Full(_)) => "the disk is too slow",
                // The thread has logged the error.
                Err(TrySendError::Disconnected(_)) => "the disk refused it",
            },
        };
        self.to_disk = None;
        tracing::warn!(path = %self.path.display(), why, "journal ends; the link goes on");
        false
    }
}

impl Drop for JournalFile {
    fn drop(&mut self) {
        self.to_disk = None;
        if let Some(thread) = self.thread.take() {
            let _said_already = thread.join();
        }
    }
}

fn write(mut file: File, path: &Path, blocks: &Receiver<Vec<u8>>) {
    let mut written = Ok(());
    while written.is_ok()
        && let Ok(block) = blocks.recv()
    {
        written = file.write_all(&block);
    }
    if let Err(error) = written.and_then(|()| file.sync_all()) {
        tracing::warn!(path = %path.display(), %error, "the journal cannot be written");
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn another_file_is_not_replaced_and_the_journal_before_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let live = folder.path().join("hill-top.toml");
        std::fs::write(&live, "schema = 1\n").unwrap();
        let error = JournalFile::create(&live, 1 << 20).unwrap_err().to_string();
        assert!(error.contains("no journal"), "{error}");
        assert_eq!(std::fs::read_to_string(&live).unwrap(), "schema = 1\n");

        let path = folder.path().join("hill-top.journal");
        std::fs::write(&path, b"airjrnal\x02the end of a node").unwrap();
        drop(JournalFile::create(&path, 1 << 20).unwrap());
        let before = std::fs::read(folder.path().join("hill-top.journal.before")).unwrap();
        assert!(before.ends_with(b"the end of a node"));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_full_disk_ends_the_journal() {
        let mut file = JournalFile::create(Path::new("/dev/full"), 1 << 30).unwrap();
        // The writer thread finds the disk full as soon as it is scheduled.
        let mut written = 0;
        while file.write(vec![7; 100]) {
            written += 1;
            assert!(written < 30_000, "the disk is full");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(!file.write(vec![7]), "it has ended");
    }
}
