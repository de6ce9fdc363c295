//! Nodes in hostile networks. A seed draws a world: two ends or a base with stations, their files, the paths between
//! them, traffic, and faults; then laws are checked that must hold in every world.
//!
//! ```text
//! traffic ─► node ─► pipe: rate, queue, loss, overtaking, copies, damage, MTU, outages ─► node ─► what arrived
//!              ▲       translation of addresses, replays, datagrams of strangers           ▲
//!              └── restarts, sleep, reloads, another address, a clock of its own ──────────┘
//! ```
//!
//! Everything happens in virtual time and in one order, so a seed gives the same datagrams again, and a broken law is
//! one command: `airlane-hostile --seed N`.
//!
//! Laws:
//! * *Integrity*: a packet that an application gets is one that was sent to it, and it gets it once.
//! * *Liveness*: ten seconds after the last fault every flow moves within three, or as many times longer as more is offered
//!   than its path carries.
//! * *Thrift*: what leaves is in proportion to what applications send, and to time.
//! * *Time*: what is due is done by the one call that it asked for.
//! * *Memory*: the packets of a node stay within what it may have.
//! * *Sameness*: the same seed gives the same datagrams, to the byte.
//!
//! Left out: congestion control of applications; what the kernel does (`airlane-live` has its own tests).

mod act;
mod draw;
mod end;
mod fault;
mod files;
mod network;
mod traffic;
mod world;

pub use world::{Broken, Outcome, run};
