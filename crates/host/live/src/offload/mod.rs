//! Software implementation of device offloads: completes partial checksums, segments super-packets, and joins
//! packets of one flow into super-packets.
//!
//! The live node uses it between its TUN device and its port (docs/lab/offloads.md), and the emulator between
//! two veth pairs.

pub(crate) mod checksum;
pub(crate) mod join;
pub(crate) mod layout;
pub(crate) mod segment;
pub(crate) mod vnet;

/// Offloads that the kernel leaves to us above the port, and accepts from us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offloads {
    /// None: packets have no offload headers.
    None,
    /// Super-packets of TCP.
    Tcp,
    /// Super-packets of TCP and of UDP: Linux 6.2 and later.
    TcpAndUdp,
}
