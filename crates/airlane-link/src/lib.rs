//! The multi service link layer of Xylomenos 1999 (chapters 6 to 8), sans-IO.
//!
//! A [`Port`] is one end of a link. Packets from IP go in with the time; the classifier puts each
//! on a service, the service makes frames, the scheduler says whose frame leaves next; at the other
//! end the demultiplexer gives each frame to its service, and the packets that come out go up.
//!
//! ```text
//! IP packets -> classify -> queue[i] -> service[i] -> schedule -> poll_transmit -> frames
//! IP packets <- poll_deliver <----------- service[i] <- demultiplex <- handle_frame <- frames
//! ```
//!
//! # The contract
//! One input ([`Port::handle_packet`], [`Port::handle_frame`], [`Port::handle_timeout`] or an
//! administrative call), then [`drain`] everything, then the next input; `now` never goes back. The
//! port reads no clock and starts no thread; two ports with the same inputs do the same.
//!
//! The port shapes to its rate: [`Port::poll_transmit`] gives nothing while the frame before is
//! still being serialised. So the queue stands here, where the scheduler decides, in the simulator
//! as on a real link. Several ports share one link through a [`Medium`].

#![forbid(unsafe_code)]

pub mod classify;
pub mod config;
mod context;
mod drain;
pub mod flow;
mod ledger;
mod measure;
mod mechanism;
mod medium;
pub mod mobility;
pub mod pack;
pub mod path;
mod port;
pub mod queue;
pub mod schedule;
mod service;
pub mod session;
pub mod wire;

pub use classify::{ClassConfig, ClassesConfig, Classifier};
pub use config::{PortConfig, ServiceConfig};
pub use drain::{Sink, drain};
pub use flow::{FlowKey, Packet, TcpView};
pub use ledger::ServiceLedger;
pub use measure::{ServiceMetrics, effective_goodput};
pub use medium::Medium;
pub use port::{AdminError, Port, ServiceStatus};
pub use queue::{DropReason, IngressQueue, QueueConfig};
pub use service::SnoopCounts;
pub use wire::{Bitmap, Codec, Frame, FrameError, FrameKind, Header, HeaderProfile, Layout};
