//! Reasons for which packets are dropped before a service takes them.

use serde::{Deserialize, Serialize};

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// The packets of its flow had waited longer than CoDel's target for a whole interval.
    #[serde(rename = "codel")]
    CoDel,
    /// The service's window was full, and it has no queue.
    WindowFull,
    /// The link was disconnected.
    Disconnected,
    /// It had exceeded its budget or the service's patience.
    TooOld,
    /// It does not fit a frame.
    TooBig,
}

impl DropReason {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::QueueFull,
        Self::CoDel,
        Self::WindowFull,
        Self::Disconnected,
        Self::TooOld,
        Self::TooBig,
    ];

    /// The reason's name, as in results: `queue-full`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue-full",
            Self::CoDel => "codel",
            Self::WindowFull => "window-full",
            Self::Disconnected => "disconnected",
            Self::TooOld => "too-old",
            Self::TooBig => "too-big",
        }
    }
}
