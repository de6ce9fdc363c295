//! BLAKE3 hashes of files in order, computed in pieces as soon as their bytes are present.

use airlane_ship::{Digest, Manifest};

use super::ShipError;

/// Length of a piece, bytes.
pub(super) const STRETCH: usize = 256 << 10;

/// The hashes of a job's files, as far as computed.
pub(super) struct Digester {
    /// Start and end of each file.
    files: Vec<(u64, u64)>,
    done: Vec<Digest>,
    hasher: blake3::Hasher,
    at: u64,
    buffer: Box<[u8]>,
}

impl Digester {
    pub(super) fn new(manifest: &Manifest) -> Self {
        let starts = manifest.starts();
        let files = manifest
            .files()
            .map(|(i, entry)| (starts[i], starts[i] + entry.bytes));
        Self {
            files: files.collect(),
            done: Vec::new(),
            hasher: blake3::Hasher::new(),
            at: 0,
            buffer: vec![0; STRETCH].into_boxed_slice(),
        }
    }

    /// Position up to which bytes have been hashed.
    pub(super) const fn at(&self) -> u64 {
        self.at
    }

    /// Hashes one piece before `end`. Returns whether there may be more.
    pub(super) fn step(
        &mut self,
        end: u64,
        read: impl FnOnce(u64, &mut [u8]) -> Result<(), ShipError>,
    ) -> Result<bool, ShipError> {
        let Some((start, ends)) = self.files.get(self.done.len()).copied() else {
            return Ok(false);
        };
        self.at = self.at.max(start);
        let len = ends.min(end).saturating_sub(self.at).min(STRETCH as u64) as usize;
        if len > 0 {
            let bytes = &mut self.buffer[..len];
            read(self.at, bytes)?;
            self.hasher.update(bytes);
            self.at += len as u64;
        }
        if self.at == ends {
            let digest = self.hasher.finalize().to_hex().to_string();
            self.done.push(Digest(digest));
            self.hasher.reset();
            return Ok(true);
        }
        Ok(len > 0 && self.at < end)
    }

    /// All hashes, once computed.
    pub(super) fn all(&self) -> Option<&[Digest]> {
        (self.done.len() == self.files.len()).then_some(&self.done)
    }

    /// Starts over, because data are sent again.
    pub(super) fn restart(&mut self) {
        self.done.clear();
        self.hasher.reset();
        self.at = 0;
    }
}
