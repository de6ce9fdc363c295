//! The test kit of Airlane. For development only: nothing that is shipped depends on it.
//!
//! * [`Pair`]: two ports connected by a channel under an [`Adversary`], in virtual time.
//! * [`drain`](mod@drain): takes all outputs of a port, as drivers do.
//! * [`machine`]: CPU time that other work took during a measurement.
//! * [`netns`]: network namespaces that clean up after themselves.
//! * [`program`]: programs that run during a measurement.
//! * [`traffic`]: bulk TCP, pings and floods, in addition to [`airlane_probe`].
//! * [`live`]: two hosts connected by an emulated lossy link, with and without Airlane.

#![forbid(unsafe_code)]

pub mod adversary;
pub mod bottleneck;
pub mod drain;
mod error;
pub mod live;
pub mod log;
pub mod machine;
pub mod netns;
pub mod packet;
pub mod pair;
pub mod program;
pub mod setup;
pub mod traffic;

pub use adversary::{Adversary, Fate, FrameDeparture, RandomAdversary, Scripted};
pub use bottleneck::Bottleneck;
pub use drain::{Sink, drain};
pub use log::Log;
pub use packet::{Tally, TestPacket};
pub use pair::{Pair, PairDelivery, Reordering};
pub use setup::Setup;
