//! Where the ports of a node keep their journals.

use std::path::{Path, PathBuf};

use super::link::PeerLink;
use crate::device::DeviceError;
use crate::journal::JournalFile;

/// Where each port keeps its journal.
#[derive(Debug)]
pub(super) struct Journals {
    path: PathBuf,
    /// Longest that each may become.
    most: u64,
    /// Whether each has its peer's name: `base.farm.journal`.
    named: bool,
}

impl Journals {
    pub(super) fn new(path: &Path, most: u64, named: bool) -> Self {
        let path = path.to_owned();
        Self { path, most, named }
    }

    /// Has a port without state keep a journal.
    pub(super) fn begin(&self, link: &mut PeerLink) -> Result<(), DeviceError> {
        let name = &link.config.name;
        let path = match self.path.extension().and_then(|e| e.to_str()) {
            _ if !self.named => self.path.clone(),
            Some(extension) => self.path.with_extension(format!("{name}.{extension}")),
            None => self.path.with_extension(name),
        };
        let file = JournalFile::create(&path, self.most)?;
        let begun = link.port.keep_journal(file);
        begun.map_err(|error| DeviceError::new(name, "begin the journal", error))
    }
}
