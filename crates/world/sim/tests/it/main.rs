//! Whole worlds, run from scenario files. All files are modules of one test program: linking a program takes seconds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod applications;
mod capture;
mod cellular;
mod choices;
mod clap;
mod closed_forms;
mod common;
mod comparison;
mod custom;
mod delays;
mod determinism;
mod events;
mod figure_1;
mod found_rates;
mod gsm;
mod handoffs;
mod header_compression;
mod hidden;
mod imports;
mod interactive;
mod live;
mod measured;
mod media;
mod models;
mod ns2_reference;
mod outages;
mod overtaken;
mod pacing;
mod progress;
mod redundancy;
mod relay;
mod retraces;
mod shipped;
mod snoop;
mod storm;
mod tc_scripts;
mod tcp;
mod tcp_headers;
mod unlabelled;
mod web;
mod wifi;
