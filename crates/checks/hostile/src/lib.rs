//! Runs nodes in hostile networks. A seed draws a world: two ends or a base with stations, their files, the paths
//! between them, traffic, and faults. Laws are then checked that must hold in every world.
//!
//! ```text
//! traffic ─► node ─► pipe: rate, queue, loss, reordering, copies, damage, MTU, outages ─► node ─► deliveries
//!              ▲       NAT, replays, datagrams of unknown senders                          ▲
//!              └── restarts, suspends, reloads, new addresses, a clock of its own ─────────┘
//! ```
//!
//! Everything happens in virtual time and in one order, so a seed reproduces the same datagrams, and a broken law
//! takes one command to repeat: `airlane-hostile --seed N`.
//!
//! Laws:
//! * *Integrity*: a packet delivered to an application was sent to it, and is delivered once.
//! * *Liveness*: from ten seconds after the last fault, every flow progresses within three seconds, or within a
//!   multiple of that if more is offered than its path carries.
//! * *Thrift*: the number of datagrams is proportional to the applications' packets, and to time.
//! * *Time*: a node's deadline is handled by a single call.
//! * *Memory*: the packets of a node stay within its limit.
//! * *Sameness*: the same seed gives the same datagrams, to the byte.
//!
//! Left out: congestion control of applications, and the kernel (`airlane-live` has its own tests).

mod act;
mod draw;
mod end;
mod fault;
mod files;
mod network;
mod traffic;
mod world;

pub use world::{Broken, Outcome, run};
