//! Tests of the program as users and service managers meet it. All files are modules of one
//! program, because linking each separately would take seconds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod advise;
mod cli;
mod daemon;
mod emulate;
mod excerpts;
mod manager;
mod operator;
mod record;
mod relay;
mod scenario;
mod setup;
mod ship;
mod study;
