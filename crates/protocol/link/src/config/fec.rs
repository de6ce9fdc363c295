//! Options of the erasure codes.

use airlane_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arq::USUAL_RETRIES;
use super::problem::Wrong;
use super::timers::{Keepalives, Multiplier, TimerOrigin, TimersConfig};
use super::traits::{ArqOptions, Options, Traits, arq};
use crate::mechanism::blocks::{MOST_PACKETS, PLACES};
use crate::mechanism::reed_solomon::ReedSolomon;
use crate::wire::HeaderProfile;

/// Options of the XOR code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct XorConfig {
    /// Number of packets in a block: n. Left out: 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packets"))]
    pub block: Option<u32>,
}

/// Options of the adaptive XOR code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct XorAdConfig {
    /// Largest number of packets in a block: n. Source: Xylomenos 1999, section 5.2. Left out: 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packets"))]
    pub block: Option<u32>,
    /// How long the source must be silent for a block to end early. Source: Xylomenos 1999, section 5.3. No
    /// default: it should be just above twice the packet interval of the application.
    pub silence: Duration,
}

/// Options of the Reed-Solomon code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RseConfig {
    /// Number of packets in a block: n. Left out: 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packets"))]
    pub block: Option<u32>,
    /// Number of parity frames in a block, which repair as many losses: h. Left out: 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
    pub parity: Option<u32>,
}

/// Options of the Reed-Solomon code with parity frames on request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RseAdConfig {
    /// Number of packets in a block: n. Left out: 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packets"))]
    pub block: Option<u32>,
    /// Number of parity frames that follow a block without a request: h0. Left out: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
    pub initial: Option<u32>,
    /// Total number of parity frames of a block, which repair as many losses: h. Left out: 4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
    pub parity: Option<u32>,
    /// How often the receiver requests parity frames of a block before it gives up: N. Left out: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "requests"))]
    pub retries: Option<u32>,
    /// Number of packets whose blocks are kept for requests. Left out: 127 (study), 1024 (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "packets"))]
    pub window: Option<u32>,
    /// Values of the scheme's timers. Left out: `relaxed` (study), `measured` (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timers: Option<TimersConfig>,
    /// Factor by which sharing the link stretches fixed timers. Source: Xylomenos 1999, section 6.2.2.
    #[serde(default)]
    pub multiplier: Multiplier,
    /// Where timers start.
    #[serde(default)]
    pub timer_origin: TimerOrigin,
    /// Number of keepalives after the last frame. Left out: unlimited (study), 8 (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
    pub keepalives: Option<Keepalives>,
}

/// Default number of packets in a block.
const USUAL_BLOCK: u32 = 8;

impl XorConfig {
    pub(crate) fn block(&self) -> u32 {
        self.block.unwrap_or(USUAL_BLOCK)
    }
}

impl XorAdConfig {
    pub(crate) fn block(&self) -> u32 {
        self.block.unwrap_or(USUAL_BLOCK)
    }
}

impl RseConfig {
    pub(crate) fn block(&self) -> u32 {
        self.block.unwrap_or(USUAL_BLOCK)
    }

    /// Parity frames of a block. The default is two, as one would be XOR.
    pub(crate) fn parity(&self) -> u32 {
        self.parity.unwrap_or(2)
    }
}

impl RseAdConfig {
    pub(crate) fn block(&self) -> u32 {
        self.block.unwrap_or(USUAL_BLOCK)
    }

    /// The default is one: it ends the block and repairs one loss at once.
    pub(crate) fn initial(&self) -> u32 {
        self.initial.unwrap_or(1)
    }

    pub(crate) fn parity(&self) -> u32 {
        self.parity.unwrap_or(4)
    }
}

impl Options for XorConfig {
    fn resolve(&mut self, _scheme: &Traits, _header: HeaderProfile) {
        self.block = Some(self.block());
    }

    fn arq(&self) -> Option<ArqOptions<'_>> {
        None
    }

    fn terms(&self) -> String {
        // The default is the same at both ends.
        let block = self.block;
        block.map_or(String::new(), |block| format!(" block {block}"))
    }

    fn check(&self, _scheme: &Traits, _header: HeaderProfile, at: &str, wrong: Wrong<'_>) {
        check_block(self.block, at, wrong);
    }
}

impl Options for XorAdConfig {
    fn resolve(&mut self, _scheme: &Traits, _header: HeaderProfile) {
        self.block = Some(self.block());
    }

    fn arq(&self) -> Option<ArqOptions<'_>> {
        None
    }

    fn terms(&self) -> String {
        // The default is the same at both ends.
        let block = self.block;
        block.map_or(String::new(), |block| format!(" block {block}"))
    }

    fn check(&self, _scheme: &Traits, _header: HeaderProfile, at: &str, wrong: Wrong<'_>) {
        check_block(self.block, at, wrong);
        if self.silence == Duration::ZERO {
            wrong(
                format!("{at}.silence"),
                "a block that ends after 0 s never has a second packet".to_owned(),
                "just above twice the interval of the application's packets, such as \"100 ms\"",
            );
        }
    }
}

impl Options for RseConfig {
    fn resolve(&mut self, _scheme: &Traits, _header: HeaderProfile) {
        (self.block, self.parity) = (Some(self.block()), Some(self.parity()));
    }

    fn arq(&self) -> Option<ArqOptions<'_>> {
        None
    }

    fn terms(&self) -> String {
        format!(" block {} parity {}", self.block(), self.parity())
    }

    fn check(&self, _scheme: &Traits, _header: HeaderProfile, at: &str, wrong: Wrong<'_>) {
        check_shape(self.block(), self.parity(), at, wrong);
    }
}

impl Options for RseAdConfig {
    fn resolve(&mut self, scheme: &Traits, header: HeaderProfile) {
        (self.block, self.parity) = (Some(self.block()), Some(self.parity()));
        self.initial = Some(self.initial());
        self.retries = self.retries.or(Some(USUAL_RETRIES));
        self.window = self.window.or(Some(scheme.usual_window(header)));
        self.timers = self.timers.take().or_else(|| TimersConfig::usual(header));
        self.keepalives = self.keepalives.or(Some(Keepalives::usual(header)));
    }

    fn arq(&self) -> Option<ArqOptions<'_>> {
        Some(arq!(self, retries: self.retries))
    }

    fn terms(&self) -> String {
        let (n, first, all) = (self.block(), self.initial(), self.parity());
        format!(" block {n} initial {first} parity {all}")
    }

    fn check(&self, _scheme: &Traits, _header: HeaderProfile, at: &str, wrong: Wrong<'_>) {
        let (initial, parity) = (self.initial(), self.parity());
        check_shape(self.block(), parity, at, wrong);
        if initial > parity {
            wrong(
                format!("{at}.initial"),
                format!("{initial} of {parity} parity frames cannot come first"),
                &format!("0 to {parity}, or a larger `parity`"),
            );
        }
    }
}

fn check_shape(n: u32, h: u32, at: &str, wrong: Wrong<'_>) {
    let frames = n.saturating_add(h);
    if n == 0 || h == 0 || frames > PLACES || !ReedSolomon::supports(n, h) {
        wrong(
            at.to_owned(),
            format!("a block of {n} packets and {h} parity frames is impossible"),
            &format!("at least one of each, and at most {PLACES} together"),
        );
    }
}

fn check_block(block: Option<u32>, at: &str, wrong: Wrong<'_>) {
    if let Some(block) = block
        && !(1..=MOST_PACKETS).contains(&block)
    {
        wrong(
            format!("{at}.block"),
            format!("a block of {block} packets is impossible"),
            &format!("a block has 1 to {MOST_PACKETS} packets"),
        );
    }
}
