//! What a port is told: its link, its services, and how they share.

use std::num::NonZeroU32;

use airlane_base::{Duration, QueueLimit, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limit::RateLimit;
use super::service::ServiceConfig;
use super::timers::UnlimitedWord;
use crate::classify::ClassConfig;
use crate::wire::HeaderProfile;

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
    /// Packets go to their services at once and wait there.
    #[default]
    Off,
    /// A packet goes to its service when the one before would have left at the link's rate; until then it waits at
    /// IP, in one queue for all services.
    Nominal,
    /// As `nominal`, where the time of a packet counts the byte that names its service, which every frame has.
    Framed,
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
    /// Whether services choose how much a frame carries, up to that, as what becomes of frames tells.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adaptive_frames: bool,
    /// Bits of the traffic class that the packets of one frame have in common: those that its outer
    /// header takes from them.
    #[serde(default)]
    pub alike: u8,
    /// Bytes that the layers below add to each frame.
    pub frame_overhead: usize,
    /// So much earlier than it comes a frame may count that finds the link free, so that a few leave in a row.
    pub burst: Duration,
    /// So much of the time in which the link stood free while frames waited, because the driver woke up late, is made
    /// up for: they leave in a row.
    pub late: Duration,
    /// Frames of a service that may wait in the scheduler.
    pub handed_over: HandedOver,
    /// Holds IP back to the nominal rate, with an IP queue of this limit; none: does not.
    pub pacing: Option<QueueLimit>,
    /// Bytes beside a packet that its nominal time counts.
    #[serde(default)]
    pub pacing_overhead: usize,
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
    /// What a port of a link is told beside this link's rate, delay and largest packet where nobody says
    /// anything else: packets travel whole, SCFQ over fixed rates, and no services but the raw one.
    pub fn new(header: HeaderProfile, rate: Rate, delay: Duration, max_payload: usize) -> Self {
        Self {
            header,
            rate,
            rate_limit: RateLimit::default(),
            delay,
            max_payload,
            max_frame_payload: None,
            adaptive_frames: false,
            alike: 0,
            frame_overhead: 0,
            burst: Duration::ZERO,
            late: Duration::ZERO,
            handed_over: HandedOver::usual(header),
            pacing: None,
            pacing_overhead: 0,
            scheduler: SchedulerConfig::default(),
            rates: Rates::default(),
            services: Vec::new(),
            classes: Vec::new(),
            flow_salt: 0,
        }
    }

    /// Longest payload of a frame, bytes.
    pub fn frame_payload(&self) -> usize {
        let most = self.max_frame_payload.unwrap_or(usize::MAX);
        most.min(self.max_payload)
    }
}
