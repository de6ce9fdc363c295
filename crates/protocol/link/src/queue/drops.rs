//! Why packets are dropped before a service takes them.

use serde::{Deserialize, Serialize};

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DropReason {
    /// The waiting room was full.
    QueueFull,
    /// It, or others of its flow, had waited longer than CoDel's target for a whole interval.
    #[serde(rename = "codel")]
    CoDel,
    /// The service's window was full and there is no waiting room.
    WindowFull,
    /// The link was taken away.
    Disconnected,
    /// It had waited for longer than its budget, or than its service is patient.
    TooOld,
    /// It does not fit a frame.
    TooBig,
}

impl DropReason {
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
