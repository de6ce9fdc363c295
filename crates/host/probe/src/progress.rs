//! Progress of the applications, for observers while they run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that client and server share with observers. Clones share the same counters.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<[AtomicU64; 4]>);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Counter {
    FileBytes,
    Pages,
    VoiceDown,
    VoiceUp,
}

/// What has arrived so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Complete pages.
    pub pages: u64,
    /// Voice packets from server to client.
    pub voice_down: u64,
    /// Voice packets from client to server.
    pub voice_up: u64,
}

impl Progress {
    pub(crate) fn add(&self, what: Counter, n: u64) {
        self.0[what as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// What has arrived so far.
    pub fn counts(&self) -> Counts {
        let of = |what: Counter| self.0[what as usize].load(Ordering::Relaxed);
        Counts {
            file_bytes: of(Counter::FileBytes),
            pages: of(Counter::Pages),
            voice_down: of(Counter::VoiceDown),
            voice_up: of(Counter::VoiceUp),
        }
    }
}
