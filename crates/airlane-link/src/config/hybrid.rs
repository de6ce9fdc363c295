//! Options of hybrid ARQ.

use airlane_base::Size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ConfigError, Keepalives, Multiplier, RlpConfig, ServiceConfig, TimerOrigin, TimersConfig,
    USUAL_RETRIES,
};
use crate::mechanism::symbols::Shape;

/// Where the redundancy of hybrid ARQ travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hybrid {
    /// Type I: in each frame.
    Inside,
    /// Type II: in frames of its own, on request.
    Increments,
}

/// Options of hybrid ARQ, type I and type II.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HybridConfig {
    /// A symbol has this many bytes and a check of its own: s. Left out: 16 B.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<Size>,
    /// Of type I each frame has this many repair symbols; of type II a frame can have this many in all
    /// before it is sent again. Left out: 2 of type I, 32 of type II.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "symbols"))]
    pub parity: Option<u32>,
    /// How often the receiver asks for a frame before it gives up: N. Left out: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "requests"))]
    pub retries: Option<u32>,
    /// This many frames are kept for repairs. Left out: 127 (study), 1024 (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
    pub window: Option<u32>,
    /// The scheme's timers have these values. Left out: `relaxed` (study), `measured` (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timers: Option<TimersConfig>,
    /// It says by how much sharing stretches fixed timers. Source: Xylomenos 1999, section 6.2.2.
    #[serde(default)]
    pub multiplier: Multiplier,
    /// Where timers start.
    #[serde(default)]
    pub timer_origin: TimerOrigin,
    /// How many keepalives follow the last frame. Left out: unlimited (study), 8 (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
    pub keepalives: Option<Keepalives>,
}

impl HybridConfig {
    pub(crate) fn symbol(&self) -> Size {
        self.symbol.unwrap_or(Size::from_bytes(16))
    }

    pub(crate) fn parity(&self, kind: Hybrid) -> u32 {
        self.parity.unwrap_or(match kind {
            Hybrid::Inside => 2,
            Hybrid::Increments => 32,
        })
    }

    pub(crate) fn shape(&self, kind: Hybrid) -> Shape {
        let most = self.parity(kind) as usize;
        Shape {
            symbol: self.symbol().as_bytes() as usize,
            inside: if kind == Hybrid::Inside { most } else { 0 },
            most,
        }
    }

    pub(super) fn terms(&self, kind: Hybrid) -> String {
        let (symbol, parity) = (self.symbol().as_bytes(), self.parity(kind));
        format!(" symbol {symbol} parity {parity}")
    }

    pub(super) fn resolve(
        &mut self,
        kind: Hybrid,
        live: bool,
        timers: impl FnOnce() -> Option<TimersConfig>,
        keepalives: Keepalives,
    ) {
        self.symbol = Some(self.symbol());
        self.parity = Some(self.parity(kind));
        self.retries = self.retries.or(Some(USUAL_RETRIES));
        self.window = self.window.or(Some(if live { 1024 } else { 127 }));
        self.timers = self.timers.take().or_else(timers);
        self.keepalives = self.keepalives.or(Some(keepalives));
    }

    /// What it has in common with RLP.
    pub(crate) fn rlp(&self) -> RlpConfig {
        RlpConfig {
            retries: self.retries,
            window: self.window,
            timers: self.timers.clone(),
            multiplier: self.multiplier,
            timer_origin: self.timer_origin,
            keepalives: self.keepalives,
            copies: None,
        }
    }

    pub(super) fn check(&self, at: &str, wrong: &mut impl FnMut(String, String, &str)) {
        let symbol = self.symbol();
        let bytes = symbol.as_bytes();
        if !(4..=1024).contains(&bytes) || bytes % 2 == 1 {
            wrong(
                format!("{at}.symbol"),
                format!("frames cannot be cut into symbols of {symbol}"),
                "a symbol has an even number of bytes, \"4 B\" to \"1024 B\"",
            );
        }
        if let Some(parity) = self.parity
            && !(1..=255).contains(&parity)
        {
            wrong(
                format!("{at}.parity"),
                format!("a frame cannot have {parity} repair symbols"),
                "1 to 255 repair symbols; \"rlp\" has none",
            );
        }
    }
}

/// Refuses services that need damaged frames, on a link that hands none up; `why` and `help` say so.
pub fn check_without_damaged_frames(
    services: &[ServiceConfig],
    why: &str,
    help: &str,
) -> Vec<ConfigError> {
    let services = services.iter().enumerate();
    services
        .filter(|(_, service)| service.scheme.uses_damaged_frames())
        .map(|(i, service)| ConfigError {
            path: format!("services[{i}].scheme.kind"),
            problem: format!(
                "{} puts damaged frames to use, and {why}",
                service.scheme.kind()
            ),
            help: help.to_owned(),
        })
        .collect()
}
