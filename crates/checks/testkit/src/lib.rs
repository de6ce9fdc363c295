//! The test kit of Airlane. For development only: nothing that is shipped depends on it.
//!
//! * [`Pair`]: two ports connected by a channel under an [`Adversary`], in virtual time.
//! * [`drain`](mod@drain): takes all outputs of a port, as drivers do.
//! * [`traffic`]: bulk TCP, pings and floods, in addition to [`airlane_probe`].
//! * [`live`]: experiments on two hosts connected by an emulated lossy link, with and without Airlane.
//! * [`machine`], [`netns`] and [`program`] of [`airlane_emulate`].

#![forbid(unsafe_code)]

pub mod adversary;
pub mod bottleneck;
pub mod drain;
pub mod live;
pub mod log;
pub mod packet;
pub mod pair;
pub mod setup;
pub mod traffic;

pub use airlane_emulate::{machine, netns, program};

pub use adversary::{Adversary, Fate, FrameDeparture, RandomAdversary, Scripted};
pub use bottleneck::Bottleneck;
pub use drain::{Sink, drain};
pub use log::Log;
pub use packet::{Tally, TestPacket};
pub use pair::{Pair, PairDelivery, Reordering};
pub use setup::Setup;
