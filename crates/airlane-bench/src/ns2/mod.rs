//! ns-2 beside Airlane: one bulk transfer of TCP without link repair, in both simulators; and chains of radio stations.
//!
//! A [`Setting`] is one such transfer. It becomes a scenario for Airlane and arguments for our
//! script `ns2/bulk.tcl`, which Debian's package `ns2` runs. [`grid`] has the settings whose
//! results are known, with ns-2's figures from when they were taken.

mod chain;
mod compare;
mod grid;
mod run;
mod setting;

pub use chain::{MOST_HOPS, chain_label, compare_chain};
pub use compare::{BesideNs2, LIMIT, compare, markdown};
pub use grid::{KnownFigures, KnownSetting, beyond, grid};
pub use run::{Ns2, Ns2Error, TransferFigures};
pub use setting::{Errors, Setting, Topology, Variant, WirelessLink};
