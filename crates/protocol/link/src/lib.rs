//! The multi service link layer of Xylomenos 1999 (chapters 6 to 8), sans-IO.
//!
//! A link layer that repairs losses has to choose: a file needs every packet, however late; a call needs only
//! packets that are in time. This one does not choose for all traffic alike. It classifies packets, repairs
//! each class in its own way, and shares the link between the classes.
//!
//! # Terms
//! - A [`Port`] is one end of a link. Packets from IP go in and frames come out; at the other end, frames go
//!   in and packets for IP come out.
//! - A *service* is one way to repair losses on the link. It has a number, 0 to 15, a name, and a share of the
//!   link ([`ServiceConfig`]). Service 0 takes the traffic that no rule ([`ClassConfig`]) classifies.
//! - A *scheme* is the protocol of a service, such as selective repeat, RLP with a limited number of
//!   retransmissions, or an erasure code ([`SchemeConfig`](config::SchemeConfig)). The raw scheme repairs
//!   nothing.
//! - A *slot* is what a port keeps for one service: queue, scheme, and ledger. The header of each frame carries
//!   the service number, which selects the slot at the other end. So both ends need the same scheme under
//!   each number ([`Port::service_table`]).
//!
//! ```text
//! IP packets -> classify -> queue[i] -> pack ---> service[i] -> schedule -> frame ----> frames
//! IP packets <- deliver <-------------- unpack <- service[i] <- demultiplex <- frame <- frames
//! ```
//!
//! # The contract
//! A port reads no clock, opens no socket and starts no thread: two ports with the same calls do the same. Its
//! driver repeats three steps.
//!
//! 1. Give one input: [`Port::handle_packet`], [`Port::handle_frame`], [`Port::handle_timeout`],
//!    [`Port::frame_done`] or an administrative call. `now` never goes back.
//! 2. Take everything out: [`Port::poll_transmit`] and [`Port::poll_deliver`], until they return nothing.
//! 3. Ask [`Port::poll_timeout`] when to come back without another input.
//!
//! A driver may give several inputs of one instant before it takes everything out; their packets then wait
//! slightly longer for the scheduler.
//!
//! # Two ports over a lossy pipe
//! A packet is any type with a length and a flow. Two ports exchange a hundred of them; the pipe loses every fifth
//! frame, acknowledgments included, and the service delivers all packets in order.
//!
//! ```
//! use std::collections::VecDeque;
//! use std::net::{IpAddr, Ipv4Addr};
//!
//! use airlane_base::{Duration, Instant, Payload, Rate};
//! use airlane_link::config::{PortConfig, ServiceConfig};
//! use airlane_link::{FlowKey, HeaderProfile, Packet, Port};
//!
//! #[derive(Clone)]
//! struct Numbered(usize);
//!
//! impl Payload for Numbered {
//!     fn len(&self) -> usize {
//!         1_000
//!     }
//!     // These three serve erasure codes, which are not used here.
//!     fn image(&self) -> impl AsRef<[u8]> {
//!         []
//!     }
//!     fn coded(&self, _image: &[u8], _len: usize) -> Self {
//!         self.clone()
//!     }
//!     fn recovered(&self, _image: &[u8], _len: usize) -> Option<Self> {
//!         None
//!     }
//! }
//!
//! // It travels whole, in a frame of its own.
//! impl airlane_link::pack::Divisible for Numbered {}
//!
//! impl Packet for Numbered {
//!     fn flow(&self) -> FlowKey {
//!         FlowKey {
//!             dscp: 0,
//!             protocol: airlane_link::flow::TCP,
//!             src: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
//!             dst: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)),
//!             src_port: 40_000,
//!             dst_port: 80,
//!         }
//!     }
//! }
//!
//! let service: ServiceConfig = toml::from_str(
//!     r#"
//!     number = 0
//!     name = "files"
//!     rate = 1.0
//!     scheme = { kind = "sr-m2" }
//!     "#,
//! )?;
//! let rate: Rate = "10 Mbit/s".parse()?;
//! let delay = Duration::from_millis(20);
//! let port = || {
//!     Port::new(PortConfig {
//!         services: vec![service.clone()],
//!         ..PortConfig::new(HeaderProfile::Live, rate, delay, 1_500)
//!     })
//! };
//! let mut ends = [port().unwrap(), port().unwrap()];
//!
//! let mut now = Instant::ORIGIN;
//! (0..100).for_each(|n| _ = ends[0].handle_packet(now, Numbered(n)));
//! // Frames in flight to each end, with the time of their arrival.
//! let mut pipes = [VecDeque::new(), VecDeque::new()];
//! let (mut frames, mut delivered) = (0, vec![]);
//! while delivered.len() < 100 {
//!     for from in 0..2 {
//!         while let Some(frame) = ends[from].poll_transmit(now) {
//!             frames += 1;
//!             let arrives = now + rate.transmission_time(ends[from].frame_len(&frame)) + delay;
//!             if frames % 5 != 0 {
//!                 pipes[1 - from].push_back((arrives, frame));
//!             }
//!         }
//!     }
//!     while let Some(Numbered(n)) = ends[1].poll_deliver() {
//!         delivered.push(n);
//!     }
//!
//!     // The next event is the arrival of a frame, or a deadline of a port.
//!     let arrivals = pipes.iter().filter_map(|pipe| pipe.front()).map(|(at, _)| *at);
//!     let deadlines = ends.iter().filter_map(Port::poll_timeout);
//!     now = arrivals.chain(deadlines).min().expect("packets are outstanding");
//!     for (port, pipe) in ends.iter_mut().zip(&mut pipes) {
//!         while let Some((_, frame)) = pipe.pop_front_if(|(at, _)| *at <= now) {
//!             port.handle_frame(now, frame);
//!         }
//!         if port.poll_timeout().is_some_and(|due| due <= now) {
//!             port.handle_timeout(now);
//!         }
//!     }
//! }
//! assert!(delivered.iter().copied().eq(0..100));
//! assert!(ends[0].ledger(0).unwrap().repair_frames_sent >= 20);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/two_ports.rs` runs three services with different schemes next to each other.
//!
//! # Frames as bytes
//! A simulator passes [`Frame`]s as values. A real link sends a header ([`Port::encode_header`]) followed by the
//! bytes of the packet, and [`Port::decode`] parses them at the other end. Bytes that are not a frame are an
//! error, never a panic:
//!
//! ```
//! use airlane_link::{Codec, Frame, FrameError, FrameKind, Header, HeaderProfile, Layout};
//!
//! let codec = Codec::new(HeaderProfile::Live);
//! let frame = Frame::<()>::new(Header::new(FrameKind::Nak, 7), None);
//! let session = 0x1234;
//! let mut buf = [0; 64];
//! let len = codec.encode(&frame, &Layout::SEQ, session, &mut buf).expect("64 B suffice");
//!
//! let decoded = codec.decode(&buf[..len], |_service| Some(&Layout::SEQ)).unwrap();
//! assert_eq!((decoded.header, decoded.session), (frame.header, session));
//! let truncated = codec.decode(&buf[..3], |_service| Some(&Layout::SEQ));
//! assert!(matches!(truncated, Err(FrameError::Truncated { .. })));
//! ```
//!
//! # Who decides when frames leave
//! Usually the port does: it paces frames to its rate, and [`Port::poll_transmit`] returns nothing while the
//! previous frame is being serialised. So packets queue here, where the scheduler decides, both in the simulator
//! and on a real link. Several ports share one link through a [`SharedLink`], which determines the next port
//! and asks only that one.
//!
//! On a medium with time slots or contention, the medium does: it learns only later when a frame leaves and
//! whether it succeeds. [`Port::poll_frame`] gives it a frame with a [`Token`]; [`Port::frame_done`] starts
//! timers, and lets the service continue, when the outcome is known. Such a driver asks [`Port::has_frame`]
//! whether a frame waits, and comes back at [`Port::next_timer`].
//!
//! # The set of schemes
//! The schemes are a closed set, so that the packet path needs no dynamic dispatch, and every scheme that ships
//! is model-checked. Their trait is therefore private. A new scheme is a file in `src/service` that implements
//! it, a variant in `src/service/mod.rs`, and a row with its traits in `src/config/scheme.rs`; the compiler names
//! the remaining places.

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
