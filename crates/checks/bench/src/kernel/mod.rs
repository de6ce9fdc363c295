//! Compares the kernel's TCP with the profile `modern`: the same path, the same lost frames.
//!
//! ```text
//! kernel:     left ── airlane air (rate, delay, queue, losses by seed) ── right      real time
//! simulator:  left ── link of the same rate, delay, queue, name and seed ── right    virtual time
//! ```
//!
//! A [`Point`] is one application, congestion control and loss rate. [`Site::run`] and [`run_simulator`] measure it
//! for one seed; [`markdown`] is the report.

mod compare;
mod point;
mod site;

pub use compare::{BesideKernel, limit, markdown};
pub use point::{Application, Congestion, Point, run_simulator};
pub use site::{Site, missing};
