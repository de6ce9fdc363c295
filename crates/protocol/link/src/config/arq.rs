//! Options of the schemes that retransmit, and of the raw scheme.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::copies::CopiesConfig;
use super::problem::Wrong;
use super::timers::{Keepalives, Multiplier, TimerOrigin, TimersConfig};
use super::traits::{ArqOptions, Options, Traits, arq, window_terms};
use crate::wire::HeaderProfile;

/// The raw scheme has no options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DefaultConfig {}

/// Options of schemes with a window and one timer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WindowConfig {
    /// Number of frames that may be unacknowledged. Source: Xylomenos 1999, section 4.3. Left out: 127, of
    /// `sr-bitmap` 4096 (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
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
}

/// Options of the selective repeat schemes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SrConfig {
    /// Number of frames that may be unacknowledged. Source: Xylomenos 1999, section 4.3. Left out: 127
    /// (study), 4096 (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
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
    /// Which frames a timeout may retransmit. Left out: `each` (study), `base` (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_resends: Option<TimeoutResends>,
    /// Number of keepalives after the last frame while it is unacknowledged: they reveal the loss of the last
    /// frames. Left out: none, because the timers find such a loss. Live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
    pub keepalives: Option<Keepalives>,
    /// Whether the receiver repeats its request for a frame that has not arrived within its NAK timer, as RLP
    /// does. Left out: false, only the sender's timers find such a frame. Live only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat_naks: bool,
    /// Whether all packets are delayed as long as a repaired one while frames are lost: for senders that
    /// model the round trip of the path, as BBR does. Left out: false. Live only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dejitter: bool,
    /// Among which packets the order is kept. Left out: `all`. Both ends must agree.
    #[serde(default, skip_serializing_if = "Order::is_usual")]
    pub order: Order,
    /// Copies of frames while a flow is thin. Left out: none. Live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<CopiesConfig>,
}

/// Which packets of a reliable service are kept in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All packets of the service: a loss holds up every later packet.
    #[default]
    All,
    /// The packets of each flow: a loss holds up only its own flow. Live only; costs two bytes per frame.
    Flow,
}

impl Order {
    fn is_usual(&self) -> bool {
        *self == Self::All
    }
}

/// Options of RLP and RLP/OOS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RlpConfig {
    /// How often the receiver requests a frame before it gives up: N. Source: Xylomenos 1999, section 4.3.
    /// Left out: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "requests"))]
    pub retries: Option<u32>,
    /// Target for the share of frames that are lost for good: the receiver adapts its number of requests to
    /// the loss that it measures. Source: after Ludwig et al. 1999, section 5. Left out: `retries` requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "share"))]
    pub residual: Option<f64>,
    /// Number of frames that are kept for retransmission. Left out: 127 (study), 1024 (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
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
    /// Copies of frames while a flow is thin. Left out: none. Live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<CopiesConfig>,
    /// Whether TCP's retransmissions are held until all earlier frames can have been repaired, because TCP's
    /// receiver drops older segments that arrive later. RLP/OOS, live only. Source: RFC 7323, section 5.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold_repeats: bool,
}

/// Which frames a timeout may retransmit in selective repeat (section 7.11, "SR under a hole").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutResends {
    /// Only the oldest outstanding frame; the others may have been received out of order.
    Base,
    /// Each frame whose timer expires.
    Each,
}

/// Default number of requests for a frame.
pub(crate) const USUAL_RETRIES: u32 = 3;

impl Options for DefaultConfig {
    fn resolve(&mut self, _scheme: &Traits, _header: HeaderProfile) {}

    fn arq(&self) -> Option<ArqOptions<'_>> {
        None
    }

    fn terms(&self) -> String {
        String::new()
    }

    fn check(&self, _scheme: &Traits, _header: HeaderProfile, _at: &str, _wrong: Wrong<'_>) {}
}

impl Options for WindowConfig {
    fn resolve(&mut self, scheme: &Traits, header: HeaderProfile) {
        self.window = self.window.or(Some(scheme.usual_window(header)));
        self.timers = self.timers.take().or_else(|| TimersConfig::usual(header));
    }

    fn arq(&self) -> Option<ArqOptions<'_>> {
        Some(arq!(self))
    }

    fn terms(&self) -> String {
        window_terms(self.window)
    }

    fn check(&self, _scheme: &Traits, _header: HeaderProfile, _at: &str, _wrong: Wrong<'_>) {}
}

impl Options for SrConfig {
    fn resolve(&mut self, scheme: &Traits, header: HeaderProfile) {
        self.window = self.window.or(Some(scheme.usual_window(header)));
        self.timers = self.timers.take().or_else(|| TimersConfig::usual(header));
        let resends = match header.is_live() {
            true => TimeoutResends::Base,
            false => TimeoutResends::Each,
        };
        self.timeout_resends = self.timeout_resends.or(Some(resends));
    }

    fn arq(&self) -> Option<ArqOptions<'_>> {
        Some(arq!(self, copies: self.copies.as_ref(), dejitter: self.dejitter))
    }

    fn terms(&self) -> String {
        let order = match self.order {
            Order::All => "",
            Order::Flow => " order flow",
        };
        window_terms(self.window) + order
    }

    fn check(&self, scheme: &Traits, header: HeaderProfile, at: &str, wrong: Wrong<'_>) {
        let options = [
            (
                "keepalives",
                self.keepalives.is_some(),
                "sends no keepalives",
            ),
            (
                "repeat-naks",
                self.repeat_naks,
                "has no timers for its requests",
            ),
            ("dejitter", self.dejitter, "has no de-jitter buffer"),
            (
                "order",
                self.order == Order::Flow,
                "keeps the order of all packets",
            ),
        ];
        let study = header == HeaderProfile::Study;
        for (name, _, what) in options.into_iter().filter(|option| study && option.1) {
            wrong(
                format!("{at}.{name}"),
                format!("{} of the works {what}", scheme.name),
                "leave it out, or header = \"live\"",
            );
        }
    }
}

impl Options for RlpConfig {
    fn resolve(&mut self, scheme: &Traits, header: HeaderProfile) {
        if self.residual.is_none() {
            self.retries = self.retries.or(Some(USUAL_RETRIES));
        }
        self.window = self.window.or(Some(scheme.usual_window(header)));
        self.timers = self.timers.take().or_else(|| TimersConfig::usual(header));
        self.keepalives = self.keepalives.or(Some(Keepalives::usual(header)));
    }

    fn arq(&self) -> Option<ArqOptions<'_>> {
        Some(arq!(self, retries: self.retries, copies: self.copies.as_ref()))
    }

    fn terms(&self) -> String {
        window_terms(self.window)
    }

    fn check(&self, scheme: &Traits, header: HeaderProfile, at: &str, wrong: Wrong<'_>) {
        if self.hold_repeats && (scheme.in_order || header == HeaderProfile::Study) {
            wrong(
                format!("{at}.hold-repeats"),
                format!("{} holds nothing that came, or all of it", scheme.name),
                "leave it out, or kind = \"rlp-oos\" with header = \"live\"",
            );
        }
        let Some(residual) = self.residual else {
            return;
        };
        if !(1e-6..=0.5).contains(&residual) {
            wrong(
                format!("{at}.residual"),
                format!("no number of requests leaves a share of {residual}"),
                "0.000001 to 0.5, such as 0.001",
            );
        }
        if self.retries.is_some() {
            wrong(
                format!("{at}.retries"),
                "how often to ask follows from residual".to_owned(),
                "leave one of them out",
            );
        }
    }
}
