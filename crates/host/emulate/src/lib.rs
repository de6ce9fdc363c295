//! Two hosts in network namespaces, an emulated link between them, and real applications on both.
//!
//! * [`netns`]: network namespaces and processes that clean up after themselves.
//! * [`program`]: programs that run during a measurement.
//! * [`link`]: the two hosts, `airlane air` between them, and `airlane up` on both.
//! * [`flow`]: applications whose ends are both in this process, and so have one clock.
//! * [`machine`]: CPU time that other work took during a measurement.

#![forbid(unsafe_code)]

mod error;
pub mod flow;
pub mod link;
pub mod machine;
pub mod netns;
pub mod program;

pub use error::LiveError;
