//! A link that is a circuit of GSM's data service.

use airlane_base::Duration;
use airlane_base::config::Problems;
use airlane_gsm::{Parameters, Persistence, Repair};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A circuit of GSM's data service: packets in PPP over a stream of octets, which the radio link protocol carries in
/// frames of whole blocks of 30 bytes, aligned to the block grid.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GsmConfig {
    /// Length of the frames. Source: Ludwig et al. 1999, section 4.2.
    #[serde(default)]
    pub frame: GsmFrame,
    /// Frames that may be unacknowledged. Source: GSM 04.22, k.
    #[serde(default = "default_window")]
    #[schemars(extend("x-unit" = "frames"), range(min = 1, max = 61))]
    pub window: u8,
    /// How long to wait for an acknowledgment with frames of one block; longer ones add 20 ms for each block of the
    /// frame, and 40 ms for each of the peer's. Source: GSM 04.22, T1. Left out: 480 ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t1: Option<Duration>,
    /// When a station that hears nothing gives up, drops what it has in flight, and resets together with its peer.
    /// Source: GSM 04.22, N2; Ludwig et al. 1999, section 5, for `time`.
    #[serde(default)]
    pub persistence: Persistence,
    /// How a station requests missing frames. Source: GSM 04.22, SREJ and REJ.
    #[serde(default)]
    pub repair: Repair,
    /// Whether UDP packets are sent once, in frames without a sequence number that alternate with the repaired ones.
    /// Source: Ludwig et al. 1999, section 5.
    #[serde(default)]
    pub bypass: bool,
}

/// Length of the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GsmFrame {
    /// This many blocks, 1 to 128.
    Blocks(u8),
    /// 1 to 47 blocks, adapted to the fate of previous frames.
    Adaptive,
}

impl Default for GsmFrame {
    fn default() -> Self {
        Self::Blocks(1)
    }
}

const fn default_window() -> u8 {
    61
}

impl GsmConfig {
    /// Adds the problems of these settings.
    pub(super) fn check(&self, problems: &mut Problems) {
        if matches!(self.frame, GsmFrame::Blocks(blocks) if !(1..=128).contains(&blocks)) {
            problems.add("gsm.frame", "no frame has so many blocks", "1 to 128");
        }
        if !(1..=61).contains(&self.window) {
            problems.add(
                "gsm.window",
                "no station has so many frames under way",
                "1 to 61",
            );
        }
        let shortest = Duration::from_millis(10);
        let soon = format!("\"{shortest}\" or more");
        if self.t1.is_some_and(|t1| t1 < shortest) {
            problems.add("gsm.t1", "no answer comes so soon", &soon);
        }
        if self.persistence.too_soon().is_some() {
            problems.add(
                "gsm.persistence.time",
                "nothing is acknowledged so soon",
                &soon,
            );
        }
    }

    /// The parameters that both stations share.
    pub(crate) fn parameters(&self) -> Parameters {
        let defaults = Parameters::default();
        Parameters {
            window: self.window,
            t1: self.t1.unwrap_or(defaults.t1),
            persistence: self.persistence,
            repair: self.repair,
            ..defaults
        }
    }
}
