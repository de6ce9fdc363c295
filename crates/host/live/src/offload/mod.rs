//! What kernels leave to network devices, done here: unfinished checksums completed, super-packets
//! cut into packets, and the reverse, packets of one flow joined into super-packets.
//!
//! The live node does it between its TUN device and its port (docs/lab/offloads.md), the emulator
//! between two virtual cables.

pub(crate) mod checksum;
pub(crate) mod join;
pub(crate) mod layout;
pub(crate) mod segment;
pub(crate) mod vnet;

/// What a kernel leaves to us above the port, and takes from us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offloads {
    /// Nothing: packets come without offload headers.
    None,
    /// Super-packets of TCP.
    Tcp,
    /// Super-packets of TCP and of UDP: Linux 6.2 and later.
    TcpAndUdp,
}
