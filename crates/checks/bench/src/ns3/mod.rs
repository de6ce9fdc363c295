//! Compares ns-3's 802.11 with Airlane's over one hop, and ns-2's beside them: 1 to 20 stations that send to one
//! receiver, with and without RTS/CTS, a hidden pair, and pairs at unequal distances.
//!
//! A [`Setting`] is one such world. It becomes a scenario for Airlane and arguments for our programs `ns3/one_hop.cc`,
//! which [`Ns3`] compiles against Debian's libns3-dev, and `ns2/one_hop.tcl`.

mod compare;
mod compile;
mod report;
mod setting;

pub use compare::{Beside, BesideNs3, LIMIT, Reference, compare};
pub use compile::{Ns3, Ns3Error};
pub use report::markdown;
pub use setting::{Places, Reception, Setting, settings};
