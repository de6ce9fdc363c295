//! The journal's file, and the thread that writes it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use airlane_base::{Duration, Instant};
use airlane_link::PortConfig;

use super::format::{Input, JournalBlock, Outputs, write_head};
use crate::device::DeviceError;

/// A block is finished when it has so many bytes, or began so long ago.
const FULL: usize = 1 << 16;
const OLD: Duration = Duration::from_secs(1);
/// Room for the record that fills a block.
const ROOM: usize = FULL + (1 << 12);
/// Blocks that wait for the disk at most: 16 MB.
const WAITING: usize = 256;

/// A file for a journal, not written to yet.
#[derive(Debug)]
pub struct JournalFile {
    file: File,
    path: PathBuf,
    /// Longest that it may become, bytes.
    most: u64,
}

impl JournalFile {
    /// Makes the file; one that exists is replaced. A journal holds packets as they were, so nobody else
    /// may read it.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub fn create(path: &Path, most: u64) -> Result<Self, DeviceError> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .map_err(|error| {
                DeviceError::new(&path.display().to_string(), "make the journal", error)
            })?;
        Ok(Self {
            file,
            path: path.to_owned(),
            most,
        })
    }
}

/// Why a journal has ended before its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is as long as it may become.
    Full,
    /// The disk did not keep up.
    Slow,
    /// The disk refused; the thread has said why.
    Refused,
}

/// A journal that is being written.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    to_disk: Option<SyncSender<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
    block: JournalBlock,
    began: Option<Instant>,
    pub(super) outputs: Outputs,
    written: u64,
    most: u64,
}

impl Journal {
    pub(super) fn begin(file: JournalFile, config: &PortConfig) -> io::Result<Self> {
        let mut head = Vec::new();
        write_head(config, &mut head)?;
        let written = head.len() as u64;
        let JournalFile { file, path, most } = file;
        let (to_disk, blocks) = sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn({
                let path = path.clone();
                move || write(file, &path, &head, &blocks)
            })?;
        tracing::info!(path = %path.display(), "journal begins");
        Ok(Self {
            path,
            to_disk: Some(to_disk),
            thread: Some(thread),
            block: JournalBlock::new(ROOM),
            began: None,
            outputs: Outputs::new(),
            written,
            most,
        })
    }

    /// An input without bytes.
    pub(super) fn input(&mut self, now: Instant, what: Input) -> &mut JournalBlock {
        if self.block.records.len() >= FULL || self.began.is_some_and(|began| now >= began + OLD) {
            self.finish_block(now);
        }
        self.began.get_or_insert(now);
        self.block.begin(what, now);
        &mut self.block
    }

    /// Whether it is still being written.
    pub(super) const fn is_open(&self) -> bool {
        self.to_disk.is_some()
    }

    fn finish_block(&mut self, now: Instant) {
        let Some(to_disk) = &self.to_disk else {
            self.block = JournalBlock::new(0);
            return;
        };
        if self.began.take().is_none() {
            return;
        }
        self.block.begin(Input::Check, now);
        let sum = self.outputs.checksum().to_be_bytes();
        self.block.records.extend_from_slice(&sum);
        let block = self.block.take(ROOM);
        let length = block.len() as u64;
        if self.written + length > self.most {
            self.end(End::Full);
            return;
        }
        self.written += length;
        match to_disk.try_send(block) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.end(End::Slow),
            Err(TrySendError::Disconnected(_)) => self.end(End::Refused),
        }
    }

    fn end(&mut self, why: End) {
        self.to_disk = None;
        let why = match why {
            End::Full => "it is as long as --journal-size allows",
            End::Slow => "the disk is too slow",
            End::Refused => "the disk refused it",
        };
        tracing::warn!(path = %self.path.display(), why, "journal ends; the link goes on");
    }
}

impl Drop for Journal {
    /// Whatever ends the node, a panic included, its last inputs are those that matter.
    fn drop(&mut self) {
        let last = self.began.unwrap_or(Instant::ORIGIN);
        self.finish_block(last);
        self.to_disk = None;
        if let Some(thread) = self.thread.take() {
            let _said_already = thread.join();
        }
    }
}

fn write(mut file: File, path: &Path, head: &[u8], blocks: &Receiver<Vec<u8>>) {
    let mut written = file.write_all(head);
    while written.is_ok()
        && let Ok(block) = blocks.recv()
    {
        written = file.write_all(&block);
    }
    if let Err(error) = written.and_then(|()| file.sync_all()) {
        tracing::warn!(path = %path.display(), %error, "the journal cannot be written");
    }
}
