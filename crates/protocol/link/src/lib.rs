//! The multi service link layer of Xylomenos 1999 (chapters 6 to 8), sans-IO.
//!
//! A [`Port`] is one end of a link. Packets from IP go in with the time; the classifier puts each
//! on a service, the service makes frames, the scheduler says whose frame leaves next; at the other
//! end the demultiplexer gives each frame to its service, and the packets that come out go up.
//!
//! ```text
//! IP packets -> classify -> queue[i] -> pack ---> service[i] -> schedule -> frame ----> frames
//! IP packets <- deliver <-------------- unpack <- service[i] <- demultiplex <- frame <- frames
//! ```
//!
//! # The contract
//! One input ([`Port::handle_packet`], [`Port::handle_frame`], [`Port::handle_timeout`],
//! [`Port::frame_done`] or an administrative call). Then everything out: [`Port::poll_transmit`] and
//! [`Port::poll_deliver`] until they give nothing. Then [`Port::poll_timeout`] says when to come back
//! without an input. A driver may give a batch of inputs of one instant before it takes everything out;
//! packets then wait a little longer in front of the scheduler. `now` never goes back. The port reads no
//! clock and starts no thread; two ports with the same calls do the same.
//!
//! # Who decides when frames leave
//! The port, as a rule: it shapes to its rate, and [`Port::poll_transmit`] gives nothing while the frame
//! before is still being serialised. So the queue stands here, where the scheduler decides, in the
//! simulator as on a real link. Several ports share one link through a [`SharedLink`], which says whose frame
//! goes, and asks that port alone.
//!
//! Or the medium, where it learns only later when a frame leaves and how it fares, as with time slots and
//! contention: [`Port::poll_frame`] gives it a frame with a [`Token`], and [`Port::frame_done`] starts
//! timers, and lets the service go on, when the medium knows. Such a driver asks
//! [`Port::has_frame`] whether something waits and comes back at [`Port::next_timer`].

#![forbid(unsafe_code)]

mod bottleneck;
pub mod classify;
pub mod config;
mod context;
mod departure;
pub mod flow;
mod ledger;
mod measure;
mod mechanism;
pub mod mobility;
pub mod pack;
pub mod path;
mod port;
pub mod queue;
mod rate;
#[cfg(test)]
mod sample;
pub mod schedule;
mod service;
mod shared_link;
pub mod wire;

pub use bottleneck::{Below, Bottlenecks, Seen};
pub use classify::{ClassConfig, ClassesConfig, Classifier};
pub use config::{PortConfig, ServiceConfig};
pub use context::ServiceEvent;
pub use departure::{Outcome, Token};
pub use flow::{FlowKey, IpFragment, Packet, TcpView};
pub use ledger::{EventCount, ServiceLedger};
pub use measure::{ServiceMetrics, effective_goodput};
pub use port::{AdminError, Interface, Port, ServiceStatus};
pub use queue::{DropReason, IngressQueue, QueueConfig};
pub use rate::{FoundRate, RateLimitCause};
pub use service::SnoopCounts;
pub use shared_link::SharedLink;
pub use wire::{Bitmap, Body, Codec, Frame, FrameError, FrameKind, Header, HeaderProfile, Layout};
