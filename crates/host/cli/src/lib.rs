//! The command line of Airlane: arguments in, text out, exit codes.
//!
//! Everything that computes lives in the libraries; this crate selects, prints and refuses. It is a
//! library too, so that the demo prints with the same tables and bars. The crate's features decide
//! which verbs it has.

// The demo uses only part of the tables.
#![cfg_attr(not(feature = "program"), allow(dead_code))]

#[cfg(feature = "lab")]
mod advise;
#[cfg(feature = "program")]
pub mod args;
#[cfg(feature = "lab")]
mod capture;
#[cfg(feature = "compare")]
mod carried;
pub mod chart;
#[cfg(feature = "compare")]
pub mod compare;
#[cfg(feature = "live")]
mod doctor;
#[cfg(feature = "emulate")]
mod emulate;
#[cfg(feature = "lab")]
mod events;
#[cfg(feature = "program")]
mod explain;
mod fault;
#[cfg(feature = "program")]
mod features;
#[cfg(feature = "live")]
mod flows;
#[cfg(feature = "live")]
mod import;
#[cfg(feature = "program")]
mod input;
#[cfg(feature = "live")]
mod journal;
#[cfg(feature = "live")]
mod keys;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "live")]
mod live;
#[cfg(feature = "live")]
mod log;
#[cfg(feature = "lab")]
mod media;
#[cfg(feature = "compare")]
pub mod metric;
pub mod output;
#[cfg(feature = "lab")]
mod over_time;
#[cfg(feature = "lab")]
mod page;
#[cfg(feature = "program")]
mod program;
#[cfg(feature = "lab")]
mod progress;
#[cfg(feature = "live")]
mod pull;
pub mod quantity;
#[cfg(feature = "live")]
mod record;
#[cfg(feature = "recorded")]
pub mod recorded;
#[cfg(feature = "program")]
mod recording;
#[cfg(feature = "program")]
mod reference;
#[cfg(feature = "live")]
mod relay;
#[cfg(all(test, feature = "live"))]
mod sample;
#[cfg(feature = "lab")]
mod scenario;
#[cfg(feature = "program")]
mod schema;
#[cfg(feature = "live")]
mod service;
#[cfg(feature = "live")]
mod setup;
#[cfg(feature = "live")]
mod ship;
#[cfg(feature = "lab")]
mod sim;
#[cfg(feature = "live")]
mod status;
#[cfg(feature = "lab")]
mod study;
pub mod svg;
pub mod table;
#[cfg(feature = "live")]
mod test;
#[cfg(feature = "screen")]
mod top;
#[cfg(feature = "lab")]
mod trace;
#[cfg(feature = "compare")]
mod vary;
#[cfg(feature = "lab")]
mod world;

#[cfg(feature = "program")]
pub use program::main;
