//! Airlane on Linux. Everything that touches sockets, devices and clocks is here; the protocols are
//! in the sans-IO crates.

pub mod air;
mod clock;
pub mod config;
pub mod control;
pub mod device;
pub mod netlink;
pub mod node;
pub mod packet;
pub mod signals;
pub mod status;
pub mod tun;
pub mod underlay;
