//! Nodes in network namespaces, and what reaches them from outside. All files are modules of one program,
//! because linking a program for each would take seconds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(
    clippy::print_stdout,
    reason = "figures, for whoever asks for the output"
)]

mod base_station;
mod common;
mod doctor;
mod ethernet;
mod faults;
mod filling;
mod hostile;
mod idle;
mod lossy_link;
mod many;
mod mtu;
mod names;
mod operate;
mod relay;
mod secured;
mod ship;
mod status_forged;
mod status_plane;
mod two_nodes;
mod ways;
