//! The configuration of services, classes and schedulers, shared by scenario and daemon files.
//!
//! Fields that may be left out are options; [`ServiceConfig::resolve`] fills each with the default of the
//! header profile, and `airlane explain` prints the result.

mod aggregate;
mod arq;
mod check;
mod copies;
mod ends;
mod fec;
mod goal;
mod gsm;
mod limit;
mod live;
mod port;
mod problem;
mod scheme;
mod service;
mod snoop;
mod timers;
mod traits;

pub use aggregate::{AggregateConfig, AggregateOptions};
pub(crate) use arq::USUAL_RETRIES;
pub use arq::{DefaultConfig, Order, RlpConfig, SrConfig, TimeoutResends, WindowConfig};
pub use check::check;
pub use copies::CopiesConfig;
pub use ends::{Viewpoint, at_end, check_ends};
pub use fec::{RseAdConfig, RseConfig, XorAdConfig, XorConfig};
pub use goal::Goal;
pub use gsm::GsmRlpConfig;
pub use limit::RateLimit;
pub use live::{LiveFacts, check_live};
pub use port::{HandedOver, Pacing, PortConfig, Rates, SchedulerConfig};
pub use problem::ConfigError;
pub use scheme::SchemeConfig;
pub use service::{IMPLICIT_NAME, ServiceConfig, by_goal, resolve};
pub use snoop::{BaseStation, RepairOrder, SnoopConfig, SnoopDetection, SnoopVariant};
pub use timers::{
    FixedTimers, Keepalives, Multiplier, MultiplierHeuristic, TimerOrigin, TimerProfile,
    TimerValue, TimersConfig, UnlimitedWord,
};
pub(crate) use traits::MAX_LIVE_WINDOW;
