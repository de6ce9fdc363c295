//! Airlane on Linux. Everything that touches sockets, devices and clocks is here; the protocols are in the
//! sans-IO crates.
//!
//! * [`daemon`]: `airlane up`, a [`Node`](airlane_node::Node) between a TUN device and a UDP or Ethernet
//!   underlay.
//! * [`air`]: `airlane air`, a lossy link between two interfaces.
//! * [`doctor`]: `airlane doctor`, checks whether a link can come up.
//! * [`import`]: `airlane import`, live files from the configurations of other tunnels.
//! * [`journal`]: `airlane up --journal`, a record of a port's inputs that can be replayed.
//! * [`record`]: `airlane record`, the fate of each frame.
//! * [`relay`]: `airlane relay`, split TCP connections.
//! * [`setup`]: `airlane setup`, the files of both ends of a new link.
//! * [`ship`]: `airlane send` and `airlane recv`, files from one host to another.
//! * [`signals`] and [`privileges`]: signal handling, and dropping privileges.
//! * [`control`] and [`status`]: `airlane status`; [`metrics`]: the same for Prometheus.
//!
//! Unsafe code stays in small modules, each of which makes one kind of system call.

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
