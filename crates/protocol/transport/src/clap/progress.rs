//! How much of its file a receiver has, and which packets a report may cover.

use airlane_base::{Duration, Instant};

use super::config::FIRST_WAIT;
use super::numbers::Numbers;
use super::packet::NackKind;

/// The packets that have arrived. Numbers count from the file's first packet.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    pub(super) missing: Numbers,
    pub(super) total: u32,
    /// The highest number that has arrived.
    pub(super) highest: Option<u32>,
    /// When the last packet of the file arrived; before the first one, when the connection began.
    pub(super) last_data: Instant,
}

impl Progress {
    pub(super) fn new(now: Instant, total: u32) -> Self {
        Self {
            missing: Numbers::all(total),
            total,
            highest: None,
            last_data: now,
        }
    }

    /// From when on the sender counts as silent if it sends nothing. Before the first packet a receiver sends no
    /// report (section 3.2.2.1) for as long as the sender may still be waiting for the answer to its SYN.
    pub(super) fn silent_at(&self, patience: Duration) -> Instant {
        match self.highest {
            Some(_) => self.last_data + patience,
            None => self.last_data + patience.max(FIRST_WAIT),
        }
    }

    /// The last packet that a report may cover: a silent sender's last packets may have been lost (CLAP-Z13).
    pub(super) fn end(&self, silent: bool) -> Option<u32> {
        match silent {
            true => self.total.checked_sub(1),
            false => self.highest,
        }
    }
}

/// A run of packets to report, first and last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) kind: NackKind,
    pub(super) from: u32,
    pub(super) to: u32,
}
