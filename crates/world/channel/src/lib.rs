//! What a link does to frames, without a clock, a socket or a thread.
//!
//! * [`ErrorModel`]: decides which frames are lost on the air. The three models of Xylomenos 1999,
//!   section 3.2, with their exact rules for when the state advances, and the Gilbert-Elliott
//!   chain.
//! * [`blocks`]: traces of erased radio blocks, models that generate them, and the goodput a link
//!   layer could reach on them.
//! * [`trace`]: recordings of real links, as files and as an error model.
//! * [`Channel`]: one direction of a link: a bounded FIFO queue, serialisation at a rate, the error
//!   model, propagation delay. Departures are computed when a frame is handed over, never polled.
//! * [`JitterConfig`]: delays that differ from frame to frame, so that frames overtake each other.
//! * [`PolicerConfig`]: a token bucket that drops what exceeds it.
//! * [`OutageConfig`]: periods in which the link is down.
//! * [`RateSteps`]: rates that follow each other; a queued frame is sent at the rate in force when
//!   it leaves.
//! * [`Opportunities`]: a link that sends at given times only, as in Mahimahi's traces.
//!
//! A duplex link is two channels with independent error processes. A frame arrives whole or not at
//! all, and the receiver learns nothing about a lost one. Left out: media access, contention,
//! collisions.

#![forbid(unsafe_code)]

pub mod blocks;
mod channel;
mod columns;
mod config;
mod errors;
mod hazards;
mod jitter;
mod opportunities;
mod outage;
mod police;
mod rate;
mod steps;
pub mod trace;

pub use channel::{Channel, ChannelConfig, ChannelStats, Count};
pub use columns::ColumnsError;
pub use config::{ErrorModelConfig, ErrorsConfig, ModelError, load_traces};
pub use errors::{CustomErrors, ErrorModel};
pub use jitter::{Distribution, JitterConfig, LinkJitter};
pub use opportunities::{Opportunities, OpportunitiesError};
pub use outage::{OutageConfig, merged_windows};
pub use police::{PoliceConfig, PolicerConfig};
pub use rate::{LinkRate, LinkRates, OpportunitiesConfig};
pub use steps::RateSteps;
