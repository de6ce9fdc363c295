//! Airlane on Linux. Everything that touches sockets, devices and clocks is here; the protocols are
//! in the sans-IO crates.
//!
//! * [`daemon`]: `airlane up`, a [`Node`](airlane_node::Node) between a TUN device and a UDP underlay.
//! * [`air`]: `airlane air`, a lossy link between two interfaces.
//! * [`doctor`]: `airlane doctor`, whether a link can come up.
//! * [`import`]: `airlane import`, live files of what other tunnels were told.
//! * [`journal`]: `airlane up --journal`, what goes into a port, to do it again.
//! * [`record`]: `airlane record`, what becomes of each frame.
//! * [`relay`]: `airlane relay`, split TCP connections.
//! * [`setup`]: `airlane setup`, both files of a new link.
//! * [`ship`]: `airlane send` and `airlane recv`, files from one host to another.
//! * [`signals`] and [`privileges`]: what the process is told, and what it gives up.
//! * [`control`] and [`status`]: `airlane status`; [`metrics`]: the same for Prometheus.
//!
//! Unsafe code stays in the small modules that make one kind of system call each.

#![deny(unsafe_code)]

mod af_packet;
pub mod air;
mod clock;
pub mod control;
pub mod daemon;
pub mod device;
pub mod doctor;
pub mod import;
mod journal_file;
pub mod metrics;
pub mod netlink;
mod offload;
pub mod privileges;
pub mod record;
pub mod relay;
pub mod resolver;
mod reverse_path;
pub mod security;
pub mod setup;
pub mod ship;
pub mod signals;
pub mod tun;
pub mod underlay;

pub use airlane_node::{config, journal, packet, status};
pub use journal_file::JournalFile;
