//! A deterministic simulator around Airlane's protocol library.
//!
//! A [`Scenario`] (a TOML file) names nodes, links and flows. [`run`] builds that world for one repetition and
//! simulates it: links are [`airlane_channel::Channel`]s, hosts run the endpoints of [`airlane_transport`]. The
//! measurements are returned as a [`RunResult`]; [`run_captured`] also writes captures for Wireshark.
//!
//! * The same scenario, seed and repetition give the same result, to the last bit, on every machine, in every build,
//!   on any number of threads.
//! * Error processes change with the repetition, traffic does not. Both depend only on the name of what they belong
//!   to, so schemes are compared over the same fades and the same conversations.
//! * No code here reads a clock or depends on an operating system.

#![forbid(unsafe_code)]

mod app;
mod capture;
mod choices;
mod compare;
pub mod custom;
mod empirical;
mod engine;
mod error;
mod estimate;
pub mod event;
mod graph;
mod headers;
mod hint;
pub mod import;
mod packet;
mod paths;
mod probe;
mod progress;
mod radio;
mod repeat;
mod report;
mod result;
mod retrace;
mod rfc1144;
mod route;
mod run;
pub mod scenario;
mod services;
mod shares;
mod summary;
mod world;

pub use capture::{CapturePoint, run_captured};
pub use compare::{
    Comparison, LinkComparison, MetricComparison, Row, Unpaired, comparable, compare,
};
pub use empirical::TableError;
pub use error::ScenarioError;
pub use estimate::Estimate;
pub use repeat::{repeat, repeat_all, repeat_prepared};
pub use report::{REPORT_SCHEMA, Report};
pub use result::{
    CircuitResult, DirectionResult, FlowResult, FlowService, GroupResult, HandoffResult,
    HeadersResult, LinkResult, Measured, NodeResult, OverTimeResult, PathResult, ProgressResult,
    RadioResult, RunResult, Scalar, ServiceResult, ServiceShare, StationResult, WindowResult,
};
pub use retrace::{
    Arrangement, InTurn, RetraceConfig, RetraceOverhead, RetraceResult, RetraceUnit,
};
pub use run::{Prepared, run, usual_interval};
pub use scenario::Scenario;
pub use summary::{
    DirectionSummary, FlowSummary, MetricSummary, RadioSummary, StationSummary, Summary, summary,
};
