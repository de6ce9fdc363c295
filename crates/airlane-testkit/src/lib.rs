//! What Airlane is tested with. Development only: nothing that is shipped depends on it.
//!
//! * [`Pair`]: two ports joined by a channel that an [`Adversary`] rules, in virtual time.
//! * [`conformance`]: one suite for every scheme, one for every scheduler.
//! * [`drain`](mod@drain): everything out of a port, as drivers do it.
//! * [`strategies`]: the traffic and the fates that property tests draw.
//! * [`machine`]: how much of its time was not there for a measurement.
//! * [`netns`]: network namespaces that clean up after themselves.
//! * [`traffic`]: bulk TCP, pings and floods, besides what [`airlane_probe`] carries.
//! * [`ns2`]: bulk transfers in ns-2 beside ours.
//! * [`live`]: two hosts joined by an emulated lossy link, with and without Airlane.
//! * [`soak`]: a link for a long time under everything that happens to links.
//! * [`bench_live`]: Airlane beside other tunnels, on a clean and on an impaired link.

#![forbid(unsafe_code)]

pub mod adversary;
pub mod bench_live;
pub mod bottleneck;
pub mod conformance;
pub mod drain;
pub mod live;
pub mod machine;
pub mod netns;
pub mod ns2;
pub mod packet;
pub mod pair;
mod program;
pub mod setup;
pub mod soak;
pub mod strategies;
pub mod traffic;

pub use adversary::{Adversary, Departure, Fate, Random, Scripted};
pub use bottleneck::Bottleneck;
pub use drain::{Sink, drain};
pub use packet::{Tally, TestPacket};
pub use pair::{Delivery, Pair, Reordering};
pub use setup::Setup;
