//! The configuration of a port: its link, its services, and how they share the link.

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
    /// FIFO.
    Fifo,
}

/// How many stamped frames of each service may wait in the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "handed-over is a number of frames above 0 or \"unlimited\""
)]
pub enum HandedOver {
    /// A number of frames.
    Frames(NonZeroU32),
    /// `"unlimited"`: services hand over all frames at once, as in the dissertation.
    Word(UnlimitedWord),
}

impl HandedOver {
    /// One frame live, where a frame that cannot be withdrawn only adds delay; two in the study profile, the
    /// hold-back of section 7.11.
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

/// How the services' shares are determined (Xylomenos 1999, section 6.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rates {
    /// From the `rate` of each service.
    #[default]
    Fixed,
    /// From the traffic: a service's share is its part of the bytes that the classifier assigned in the last
    /// second, at least 0.01. The first second uses `rate`.
    Measured,
}

/// Whether packets from IP are paced to the nominal rate of the link (Xylomenos 1999, section 6.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// Packets go to their services at once and wait there.
    #[default]
    Off,
    /// A packet goes to its service when the previous one would have left at the link's rate; until then it
    /// waits at IP, in one queue for all services.
    Nominal,
    /// As `nominal`, where the time of a packet includes the byte that names its service, which every frame
    /// has.
    Framed,
}

/// The configuration of a port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PortConfig {
    /// Header profile.
    pub header: HeaderProfile,
    /// The rate that the port paces itself to.
    pub rate: Rate,
    /// Whether the port estimates a lower rate when the link cannot carry that.
    pub rate_limit: RateLimit,
    /// One-way propagation delay, for fixed timers.
    pub delay: Duration,
    /// Largest packet, bytes.
    pub max_payload: usize,
    /// Longest frame payload, bytes: longer packets are fragmented. Left out: no packet is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_frame_payload: Option<usize>,
    /// Whether services adapt the frame payload to the observed losses, up to that maximum.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adaptive_frames: bool,
    /// Bits of the traffic class that all packets of one frame must share, because the outer header copies
    /// them.
    #[serde(default)]
    pub alike: u8,
    /// Bytes that the layers below add to each frame.
    pub frame_overhead: usize,
    /// How far back the departure of a frame may be dated if the link was idle: this allows a burst of a few
    /// frames.
    pub burst: Duration,
    /// How much time a port makes up for if its driver wakes up late while frames wait: these leave as a burst. Zero: a
    /// port is never late. Otherwise it makes up for the time of one frame at least.
    pub late: Duration,
    /// Frames of a service that may wait in the scheduler.
    pub handed_over: HandedOver,
    /// Limit of the IP queue where packets from IP are paced to the nominal rate; none: no pacing.
    pub pacing: Option<QueueLimit>,
    /// Overhead per packet that its nominal time includes, bytes.
    #[serde(default)]
    pub pacing_overhead: usize,
    /// The scheduler.
    pub scheduler: SchedulerConfig,
    /// How the services' shares are determined.
    pub rates: Rates,
    /// The services; a raw one with number 0 is added if there is none.
    pub services: Vec<ServiceConfig>,
    /// Classification rules; the first match decides.
    pub classes: Vec<ClassConfig>,
    /// Determines which flows share a queue. A secret random number where senders may be malicious; 0 where
    /// runs must be reproducible.
    #[serde(default)]
    pub flow_salt: u64,
}

impl PortConfig {
    /// The defaults for a port with this rate, delay and largest packet: no fragmentation, SCFQ with fixed
    /// rates, and only the raw service.
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

    /// Longest frame payload, bytes.
    pub fn frame_payload(&self) -> usize {
        let most = self.max_frame_payload.unwrap_or(usize::MAX);
        most.min(self.max_payload)
    }
}
