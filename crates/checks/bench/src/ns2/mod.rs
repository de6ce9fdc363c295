//! Compares ns-2 with Airlane: bulk TCP transfers without link repair and with Snoop, pages, and chains of radio
//! stations.
//!
//! A [`Setting`] is one such transfer. It becomes a scenario for Airlane and arguments for our scripts `ns2/bulk.tcl`
//! and `ns2/web.tcl`, which Debian's package `ns2` runs. [`grid`] has the settings with known results: ns-2's
//! figures, recorded once.

mod air;
mod chain;
mod compare;
mod grid;
mod run;
mod setting;
mod studied;

pub use air::{AIR, AirSetting, AirTimes, compare_air, markdown_air};
pub use chain::{MOST_HOPS, chain_label, compare_chain};
pub use compare::{BesideNs2, LIMIT, compare, csv, markdown};
pub use grid::{KnownFigures, KnownSetting, beyond, grid};
pub use run::{Ns2, Ns2Error, TransferFigures};
pub use setting::{Errors, Load, Setting, Topology, Variant, WirelessLink};
pub use studied::{behind_snoop, pages};
