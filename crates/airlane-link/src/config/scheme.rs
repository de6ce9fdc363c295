//! What people write about a scheme: its kind and its options.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::copies::CopiesConfig;
use super::fec::{RseAdConfig, RseConfig, XorAdConfig, XorConfig};
use super::snoop::SnoopConfig;
use super::timers::{Keepalives, Multiplier, TimerOrigin, TimersConfig};
use crate::wire::Layout;

/// The link layer schemes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[schemars(extend("examples" = [{ "kind": "sr-m2" }]))]
pub enum SchemeConfig {
    /// No recovery (Xylomenos 1999, section 3.3: the raw link).
    Default(DefaultConfig),
    /// Go back N: a timeout sends everything again.
    Gbn(WindowConfig),
    /// Selective repeat with one NAK at a time.
    Sr(SrConfig),
    /// Selective repeat with one NAK for each frame.
    SrM1(SrConfig),
    /// Selective repeat with several NAKs per frame.
    SrM2(SrConfig),
    /// Selective repeat with bitmaps of what has arrived.
    SrBitmap(WindowConfig),
    /// Limited retransmission, delivery in order.
    Rlp(RlpConfig),
    /// Limited retransmission, delivery as received.
    RlpOos(RlpConfig),
    /// A parity frame behind every n packets.
    Xor(XorConfig),
    /// A parity frame behind n packets, or when the source falls silent.
    XorAd(XorAdConfig),
    /// h Reed-Solomon parity frames behind every n packets.
    Rse(RseConfig),
    /// Reed-Solomon parity frames behind every n packets, most of them on request.
    RseAd(RseAdConfig),
    /// An agent at the base station that watches TCP.
    Snoop(SnoopConfig),
}

/// Nothing to choose.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DefaultConfig {}

/// Options of schemes with a window and one timer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WindowConfig {
    /// This many frames may be unacknowledged. Source: Xylomenos 1999, section 4.3. Left out: 127, of
    /// `sr-bitmap` 4096 (live).
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
}

/// Options of the selective repeat schemes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SrConfig {
    /// This many frames may be unacknowledged. Source: Xylomenos 1999, section 4.3. Left out: 127
    /// (study), 4096 (live).
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
    /// What a timeout may resend. Left out: `each` (study), `base` (live).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_resends: Option<TimeoutResends>,
    /// How many keepalives follow the last frame while it is not acknowledged: they let the peer see
    /// a lost tail. Left out: none: the timers find it. Live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "frames"))]
    pub keepalives: Option<Keepalives>,
    /// Whether the receiver asks again for what has not come within its NAK timer, as RLP does. Left out:
    /// false: only the sender's timers find it. Live only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat_naks: bool,
    /// Whether packets go up as late as one that had to be repaired, while frames are lost: for senders
    /// that model the path's round trip, as BBR does. Left out: false. Live only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dejitter: bool,
    /// Among which packets the order is kept. Left out: `all`. Both ends must have the same.
    #[serde(default, skip_serializing_if = "Order::is_usual")]
    pub order: Order,
    /// Frames are copied so while a flow is thin. Left out: none. Live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<CopiesConfig>,
}

/// Which packets of a reliable service go up in the order in which they came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// All of the service: what is lost holds up everything behind it.
    #[default]
    All,
    /// Those of one flow: what is lost holds up its own flow. Live only; two bytes a frame.
    Flow,
}

impl Order {
    fn is_usual(&self) -> bool {
        *self == Self::All
    }
}

impl SrConfig {
    /// The fields of its frames.
    pub(crate) const fn layout(&self) -> Layout {
        match self.order {
            Order::All => Layout::SeqAck,
            Order::Flow => Layout::Lanes,
        }
    }
}

/// Options of RLP and RLP/OOS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RlpConfig {
    /// How often the receiver asks for a frame before it gives up: N. Source: Xylomenos 1999, section
    /// 4.3. Left out: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "requests"))]
    pub retries: Option<u32>,
    /// This many frames are kept for retransmission. Left out: 127 (study), 1024 (live).
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
    /// Frames are copied so while a flow is thin. Left out: none. Live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<CopiesConfig>,
}

/// What a timeout may resend in selective repeat (section 7.11, "SR under a hole").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeoutResends {
    /// Only the oldest outstanding frame; the others may have arrived behind a hole.
    Base,
    /// Each frame whose timer expires.
    Each,
}
