//! Options of GSM's radio link protocol.

use airlane_gsm::{Persistence, Repair};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Wrong;
use super::timers::{Multiplier, TimerOrigin, TimersConfig};
use super::traits::{ArqOptions, Options, Traits, arq, window_terms};
use crate::wire::HeaderProfile;

/// Options of GSM's radio link protocol.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GsmRlpConfig {
    /// Number of frames that may be unacknowledged. Source: GSM 04.22, k. Left out: the maximum of 61; 31
    /// live with selective repair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
    pub window: Option<u32>,
    /// When an end without an answer gives up and both ends reset. Source: GSM 04.22, N2; Ludwig et al. 1999,
    /// section 5, for `time`.
    #[serde(default)]
    pub persistence: Persistence,
    /// How an end requests missing frames. Source: GSM 04.22, SREJ and REJ.
    #[serde(default)]
    pub repair: Repair,
    /// Values of the scheme's timers; T1 is `rto`. Left out: `relaxed` (study), `measured` (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timers: Option<TimersConfig>,
    /// Factor by which sharing the link stretches fixed timers. Source: Xylomenos 1999, section 6.2.2.
    #[serde(default)]
    pub multiplier: Multiplier,
    /// Where timers start.
    #[serde(default)]
    pub timer_origin: TimerOrigin,
}

/// Half of the number space. Where a frame may take longer than T1, it may have been retransmitted before it
/// arrives, and with a larger window a receiver that buffers frames could not tell an old frame from one
/// ahead.
const HALF: u32 = 31;

impl Options for GsmRlpConfig {
    fn resolve(&mut self, scheme: &Traits, header: HeaderProfile) {
        let most = match self.repair {
            Repair::Selective if header.is_live() => HALF,
            _ => scheme.study_window_at_most,
        };
        self.window = self.window.or(Some(most));
        self.timers = self.timers.take().or_else(|| TimersConfig::usual(header));
    }

    fn arq(&self) -> Option<ArqOptions<'_>> {
        Some(arq!(self))
    }

    fn terms(&self) -> String {
        window_terms(self.window)
    }

    fn check(&self, scheme: &Traits, header: HeaderProfile, at: &str, wrong: Wrong<'_>) {
        let most = scheme.live_window_at_most;
        if let Some(window) = self
            .window
            .filter(|window| (HALF + 1..=most).contains(window))
            && header.is_live()
            && self.repair == Repair::Selective
        {
            wrong(
                format!("{at}.window"),
                format!(
                    "of 62 numbers {window} are too many where a frame may come late and again"
                ),
                "1 to 31, or repair = \"go-back\"",
            );
        }
        if let Some(soon) = self.persistence.too_soon() {
            wrong(
                format!("{at}.persistence"),
                "nothing is acknowledged so soon".to_owned(),
                &format!("\"{soon}\" or more"),
            );
        }
    }
}
