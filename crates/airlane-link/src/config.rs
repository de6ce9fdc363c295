//! What people write about services, classes and schedulers; shared by scenario and daemon files.
//!
//! Fields that may be left out are options here; [`ServiceConfig::resolve`] fills each with the
//! default of the header profile, and `airlane explain` prints the result.

mod aggregate;
mod check;
mod copies;
mod fec;
mod goal;
mod limit;
mod live;
mod scheme;
mod snoop;
mod timers;

use std::num::NonZeroU32;

use airlane_base::{Duration, QueueLimit, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::classify::ClassConfig;
use crate::queue::QueueConfig;
use crate::wire::HeaderProfile;

pub use aggregate::{AggregateConfig, AggregateOptions};
pub use check::{ConfigError, check};
pub use copies::CopiesConfig;
pub use fec::{RseAdConfig, RseConfig, XorAdConfig, XorConfig};
pub use goal::Goal;
pub use limit::RateLimit;
pub use live::{LiveFacts, check_live};
pub use snoop::{BaseStation, SnoopConfig, SnoopVariant, Viewpoint, at_end, check_ends};
pub use timers::{
    FixedTimers, Multiplier, MultiplierHeuristic, TimerOrigin, TimerProfile, TimerValue,
    TimersConfig,
};

/// One service on a link. Files may give a `goal` instead of scheme and rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "goal::Written", rename_all = "kebab-case")]
pub struct ServiceConfig {
    /// Service number, 0 to 15; 0 is where unrecognised traffic goes.
    pub number: u8,
    /// Classes and reports call it so.
    pub name: String,
    /// Share of the link, relative to the other services.
    pub rate: f64,
    /// How losses are repaired.
    pub scheme: SchemeConfig,
    /// How old a packet may become on its way. What waits longer is dropped, and what was lost is
    /// neither asked for nor sent again when it would be too late. Left out: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Duration>,
    /// Where packets wait that the service cannot take yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueConfig>,
    /// Whether small packets share frames. Left out: those up to 256 B that wait anyway; never where the
    /// scheme looks into packets. Live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate: Option<AggregateConfig>,
    /// Whether TCP/IP headers travel as what has changed since the packet before. Left out: false. Live
    /// only, of schemes that give up every packet in order.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compact_headers: bool,
}

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
    /// Frames are copied so while a flow is thin. Left out: none. Live only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<CopiesConfig>,
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

/// How many keepalives follow the last new frame (XYL-S-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "keepalives is a number or \"unlimited\"")]
pub enum Keepalives {
    /// This many.
    Limit(u32),
    /// `"unlimited"`.
    Word(UnlimitedWord),
}

/// The word `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum UnlimitedWord {
    /// No limit.
    Unlimited,
}

impl Keepalives {
    /// The limit; none if there is no limit.
    pub const fn limit(self) -> Option<u32> {
        match self {
            Self::Limit(n) => Some(n),
            Self::Word(UnlimitedWord::Unlimited) => None,
        }
    }
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

/// The frame scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SchedulerConfig {
    /// Self-clocked fair queueing over the services' rates.
    #[default]
    Scfq,
    /// First come, first served.
    Fifo,
}

/// How many stamped frames each service may have waiting in the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "handed-over is a number of frames above 0 or \"unlimited\""
)]
pub enum HandedOver {
    /// This many.
    Frames(NonZeroU32),
    /// `"unlimited"`: services hand everything over at once, as in the dissertation.
    Word(UnlimitedWord),
}

impl HandedOver {
    /// One frame live, where a frame that cannot be taken back only costs delay; two in the study
    /// profile, the hold-back of section 7.11.
    pub const fn usual(header: HeaderProfile) -> Self {
        const TWO: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);
        match header {
            HeaderProfile::Study => Self::Frames(TWO),
            HeaderProfile::Live | HeaderProfile::Sealed => Self::Frames(NonZeroU32::MIN),
        }
    }

    /// The limit.
    pub const fn limit(self) -> u32 {
        match self {
            Self::Frames(n) => n.get(),
            Self::Word(UnlimitedWord::Unlimited) => u32::MAX,
        }
    }
}

/// Where the services' shares come from (Xylomenos 1999, section 6.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rates {
    /// From the `rate` of each service.
    #[default]
    Fixed,
    /// From the traffic: each second a service's share is what part of the bytes the classifier
    /// gave to it, at least 0.01. Until then, `rate`.
    Measured,
}

/// Whether IP is held back to the nominal rate of the link (Xylomenos 1999, section 6.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// Packets go to their services at once; queues stand there.
    #[default]
    Off,
    /// A packet follows the one before after its nominal time; the queue stands at IP, one for all
    /// services.
    Nominal,
}

/// Everything that a port must know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PortConfig {
    /// Header profile.
    pub header: HeaderProfile,
    /// The rate that the port shapes to.
    pub rate: Rate,
    /// Whether the port slows down when the link cannot do that.
    pub rate_limit: RateLimit,
    /// One-way propagation delay, for fixed timers.
    pub delay: Duration,
    /// Largest packet, bytes.
    pub max_payload: usize,
    /// Longest payload of a frame, bytes: longer packets travel in parts. Left out: none is longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_frame_payload: Option<usize>,
    /// Bits of the traffic class that the packets of one frame have in common: those that its outer
    /// header takes from them.
    #[serde(default)]
    pub alike: u8,
    /// Bytes that the layers below add to each frame.
    pub frame_overhead: usize,
    /// How much lost time the shaper may make up for after a late wake-up.
    pub burst: Duration,
    /// Frames of a service that may wait in the scheduler.
    pub handed_over: HandedOver,
    /// Holds IP back to the nominal rate, with an IP queue of this limit; none: does not.
    pub pacing: Option<QueueLimit>,
    /// The scheduler.
    pub scheduler: SchedulerConfig,
    /// Where the services' shares come from.
    pub rates: Rates,
    /// The services; a raw one with number 0 is added if there is none.
    pub services: Vec<ServiceConfig>,
    /// First-match rules.
    pub classes: Vec<ClassConfig>,
    /// Decides which flows share a queue. Where senders may mean harm, a number that nobody can guess; 0
    /// where runs must repeat.
    #[serde(default)]
    pub flow_salt: u64,
}

impl PortConfig {
    /// Longest payload of a frame, bytes.
    pub fn frame_payload(&self) -> usize {
        let most = self.max_frame_payload.unwrap_or(usize::MAX);
        most.min(self.max_payload)
    }
}

/// The largest live window: echoes shorten numbers to 16 bits.
pub const MAX_LIVE_WINDOW: u32 = 16_384;

/// How often a receiver asks for a frame where nothing is said.
const USUAL_RETRIES: u32 = 3;

/// The name of the raw service that exists where none has number 0.
pub const IMPLICIT_NAME: &str = "default";

/// The services with every default filled in, and the raw service added where none has number 0.
pub fn resolve(header: HeaderProfile, services: &[ServiceConfig]) -> Vec<ServiceConfig> {
    let mut all: Vec<_> = services.iter().map(|s| s.resolve(header)).collect();
    if !all.iter().any(|s| s.number == 0) {
        // Unrecognised traffic gets the smallest share that anyone got, never nothing.
        let rate = all.iter().map(|s| s.rate).fold(1.0, f64::min);
        let implicit = ServiceConfig {
            number: 0,
            name: IMPLICIT_NAME.to_owned(),
            rate,
            scheme: SchemeConfig::Default(DefaultConfig {}),
            budget: None,
            queue: None,
            aggregate: None,
            compact_headers: false,
        };
        all.insert(0, implicit.resolve(header));
    }
    all
}

impl ServiceConfig {
    /// The same with every default of the header profile filled in.
    #[must_use]
    pub fn resolve(&self, header: HeaderProfile) -> Self {
        let live = header.is_live();
        let timers = || {
            Some(TimersConfig::Profile(if live {
                TimerProfile::Measured
            } else {
                TimerProfile::Relaxed
            }))
        };
        let keepalives = if live {
            Keepalives::Limit(8)
        } else {
            Keepalives::Word(UnlimitedWord::Unlimited)
        };
        let mut all = self.clone();
        let usual = if live {
            QueueConfig::fq_codel()
        } else {
            QueueConfig::DropTail {
                limit: QueueLimit::Packets(50),
            }
        };
        all.queue = Some(
            all.queue
                .unwrap_or(usual)
                .resolve(self.scheme.traits().holds),
        );
        if live && !self.scheme.looks_into_packets() {
            all.aggregate = all.aggregate.or(Some(AggregateConfig::default()));
        }
        match &mut all.scheme {
            SchemeConfig::Default(_) | SchemeConfig::Snoop(_) => {}
            SchemeConfig::Xor(c) => c.block = Some(c.block()),
            SchemeConfig::XorAd(c) => c.block = Some(c.block()),
            SchemeConfig::Rse(c) => {
                (c.block, c.parity) = (Some(c.block()), Some(c.parity()));
            }
            SchemeConfig::RseAd(c) => {
                (c.block, c.parity) = (Some(c.block()), Some(c.parity()));
                c.initial = Some(c.initial());
                c.retries = c.retries.or(Some(USUAL_RETRIES));
                c.window = c.window.or(Some(if live { 1024 } else { 127 }));
                c.timers = c.timers.take().or_else(timers);
                c.keepalives = c.keepalives.or(Some(keepalives));
            }
            SchemeConfig::Gbn(c) => {
                // What a timeout sends again: no more than a link needs to be kept busy.
                c.window = c.window.or(Some(127));
                c.timers = c.timers.take().or_else(timers);
            }
            SchemeConfig::SrBitmap(c) => {
                c.window = c.window.or(Some(if live { 4096 } else { 127 }));
                c.timers = c.timers.take().or_else(timers);
            }
            SchemeConfig::Sr(c) | SchemeConfig::SrM1(c) | SchemeConfig::SrM2(c) => {
                c.window = c.window.or(Some(if live { 4096 } else { 127 }));
                c.timers = c.timers.take().or_else(timers);
                c.timeout_resends = c.timeout_resends.or(Some(if live {
                    TimeoutResends::Base
                } else {
                    TimeoutResends::Each
                }));
            }
            SchemeConfig::Rlp(c) | SchemeConfig::RlpOos(c) => {
                c.retries = c.retries.or(Some(USUAL_RETRIES));
                c.window = c.window.or(Some(if live { 1024 } else { 127 }));
                c.timers = c.timers.take().or_else(timers);
                c.keepalives = c.keepalives.or(Some(keepalives));
            }
        }
        all
    }
}
