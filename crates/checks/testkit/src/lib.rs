//! What Airlane is tested with. Development only: nothing that is shipped depends on it.
//!
//! * [`Pair`]: two ports joined by a channel that an [`Adversary`] rules, in virtual time.
//! * [`drain`](mod@drain): everything out of a port, as drivers do it.
//! * [`machine`]: how much of its time was not there for a measurement.
//! * [`netns`]: network namespaces that clean up after themselves.
//! * [`program`]: programs that run beside a measurement.
//! * [`traffic`]: bulk TCP, pings and floods, besides what [`airlane_probe`] carries.
//! * [`live`]: two hosts joined by an emulated lossy link, with and without Airlane.

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
