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
    /// This many frames may be unacknowledged. Source: GSM 04.22, k. Left out: as many as may be, 61; live, and one by one,
    /// 31.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
    pub window: Option<u32>,
    /// When an end that hears nothing gives up, and both begin anew. Source: GSM 04.22, N2; Ludwig et al. 1999, section 5,
    /// for `time`.
    #[serde(default)]
    pub persistence: Persistence,
    /// How an end asks for what is missing. Source: GSM 04.22, SREJ and REJ.
    #[serde(default)]
    pub repair: Repair,
    /// The scheme's timers have these values; T1 is `rto`. Left out: `relaxed` (study), `measured` (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timers: Option<TimersConfig>,
    /// It says by how much sharing stretches fixed timers. Source: Xylomenos 1999, section 6.2.2.
    #[serde(default)]
    pub multiplier: Multiplier,
    /// Where timers start.
    #[serde(default)]
    pub timer_origin: TimerOrigin,
}

/// Half of the numbers: where a frame may take longer than T1 it may have been sent again by then, and what is kept would
/// not tell a frame that comes again from one that is ahead.
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
