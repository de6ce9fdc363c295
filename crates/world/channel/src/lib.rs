//! What a link does to frames, without a clock, a socket or a thread.
//!
//! # One direction of a link
//!
//! [`Channel`] is a bounded FIFO queue, serialisation at a rate, an error model and a propagation delay. The departure
//! of a frame is known when it is handed over, so a driver needs no event for it: it calls [`Channel::send`], and
//! [`Channel::poll_deliver`] at the time that [`Channel::poll_timeout`] gives.
//!
//! ```
//! use airlane_base::{Instant, Streams};
//! use airlane_channel::{Channel, ChannelConfig, ErrorModel, ErrorModelConfig};
//!
//! let config = ChannelConfig {
//!     rate: "8 kbit/s".parse()?,
//!     delay: "100 ms".parse()?,
//!     queue: "1 packets".parse()?,
//! };
//! let errors = ErrorModel::new(&ErrorModelConfig::None, config.rate, Streams::new(1, 0), "link.down");
//! let mut channel = Channel::new(config, errors);
//!
//! // 10 B take 10 ms. The first frame is being sent, the second waits, and the queue has no room for the third.
//! assert!(channel.send(Instant::ORIGIN, 10, "first").is_ok());
//! assert!(channel.send(Instant::ORIGIN, 10, "second").is_ok());
//! assert_eq!(channel.send(Instant::ORIGIN, 10, "third"), Err("third"));
//!
//! let arrival = channel.poll_timeout().expect("a frame is in flight");
//! assert_eq!(arrival.as_nanos(), 110_000_000);
//! assert_eq!(channel.poll_deliver(arrival), Some("first"));
//! assert_eq!(channel.stats().dropped_queue.frames, 1);
//! # Ok::<(), airlane_base::UnitError>(())
//! ```
//!
//! A duplex link is two channels with independent error processes. A frame arrives whole or not at all, and the
//! receiver learns nothing about a lost one. Left out: media access, contention, collisions.
//!
//! # Which frames are lost
//!
//! [`ErrorModel`] decides it: the three models of Xylomenos 1999, section 3.2, with their exact rules for when the
//! state advances, the Gilbert-Elliott chain, recordings and radio blocks. [`ErrorModelConfig::loss_probability`] gives
//! the closed form of each; `examples/lossy.rs` measures them all.
//!
//! ```
//! use airlane_base::{Duration, Instant, Rate, Streams};
//! use airlane_channel::{ErrorModel, ErrorModelConfig};
//!
//! let config: ErrorModelConfig = serde_json::from_str(
//!     r#"{ "kind": "two-state", "good": "1 s", "bad": "50 ms", "ber_good": 1e-6, "ber_bad": 0.01 }"#,
//! )?;
//! let rate: Rate = "2 Mbit/s".parse()?;
//! let mut model = ErrorModel::new(&config, rate, Streams::new(1, 0), "link.down");
//!
//! let (frames, bytes) = (200_000, 1_000);
//! let mut start = Instant::ORIGIN;
//! let mut lost = 0;
//! for _ in 0..frames {
//!     let end = start + rate.transmission_time(bytes);
//!     lost += u32::from(model.loses(start, end, bytes));
//!     start = end;
//! }
//! let measured = f64::from(lost) / f64::from(frames);
//! assert!((measured - config.loss_probability(rate, bytes)).abs() < 0.01);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When frames leave and arrive
//!
//! - [`RateSteps`]: rates that follow each other; a queued frame is sent at the rate in force when it leaves.
//! - [`Opportunities`]: a link that sends at given times only, as in Mahimahi's traces.
//! - [`JitterConfig`]: delays that differ from frame to frame, so that frames overtake each other.
//! - [`OutageConfig`]: periods in which the link is down.
//! - [`PolicerConfig`]: a token bucket that drops what exceeds it.
//!
//! ```
//! use airlane_base::Size;
//! use airlane_channel::Opportunities;
//!
//! // Three times in 5 ms, at each of which 1504 B may leave: 7.2192 Mbit/s.
//! let trace = Opportunities::parse(b"1\n3\n5\n", Size::from_bytes(1_504))?;
//! assert_eq!(trace.mean_rate().as_bps(), 7_219_200);
//!
//! let error = Opportunities::parse(b"3\n1\n", Size::from_bytes(1_504)).unwrap_err();
//! assert_eq!(error.to_string(), "line 2: 1 ms comes after 3 ms; times never go back");
//! # Ok::<(), airlane_channel::OpportunitiesError>(())
//! ```
//!
//! # Radio blocks
//!
//! [`blocks`] has traces of erased radio blocks, models that generate them, and the goodput a link layer could reach on
//! them: with bursty errors, long frames waste less than with the same errors far apart.
//!
//! ```
//! use airlane_base::Streams;
//! use airlane_channel::blocks::{BlocksHeader, Generator, retrace::Overhead};
//!
//! let model: Generator = "gilbert 0.01 0.3".parse()?;
//! let mut random = Streams::new(1, 0).stream("blocks");
//! let bursty = model.generate(50_000, BlocksHeader::default(), &mut random);
//! assert!((bursty.erasure_rate() - model.erasure_rate()).abs() < 0.01);
//!
//! let best = |trace: &airlane_channel::blocks::Blocks| {
//!     trace.best_frame(1..=50, Overhead::Published).expect("frames fit").blocks
//! };
//! assert!(best(&bursty) > best(&bursty.even()));
//! # Ok::<(), airlane_channel::blocks::GeneratorError>(())
//! ```
//!
//! # Recordings
//!
//! [`trace`] has recordings of real links: the views of both ends, frame by frame, their file format, and a replay as
//! an error model.
//!
//! ```
//! use airlane_base::{Duration, Instant};
//! use airlane_channel::trace::{Encoder, FrameId, Trace, TraceEnd, TraceHeader, Way};
//!
//! // A receiver sees frames 0 to 99 without frame 50.
//! let mut encoder = Encoder::new(TraceEnd::Near);
//! for number in (0..100).filter(|number| *number != 50) {
//!     let now = Instant::ORIGIN + Duration::from_millis(number);
//!     encoder.received(Instant::ORIGIN, now, FrameId { key: 7, number }, 1_000);
//! }
//! let mut file = Vec::new();
//! TraceHeader::default().encode(&mut file);
//! encoder.finish_block(&mut file);
//!
//! let path = Trace::read(&file)?.path(Way::In).expect("the receiver was recorded");
//! assert_eq!((path.received, path.lost), (99, 1));
//! # Ok::<(), airlane_channel::trace::TraceError>(())
//! ```

#![forbid(unsafe_code)]

pub mod blocks;
mod channel;
mod columns;
mod config;
mod errors;
mod hazards;
mod jitter;
mod opportunities;
mod outage;
mod police;
mod rate;
mod steps;
pub mod trace;

pub use channel::{Channel, ChannelConfig, ChannelStats, Count};
pub use columns::ColumnsError;
pub use config::{ErrorModelConfig, ErrorsConfig, ModelError, load_traces};
pub use errors::{CustomErrors, ErrorModel};
pub use jitter::{Distribution, JitterConfig, LinkJitter};
pub use opportunities::{Opportunities, OpportunitiesError};
pub use outage::{OutageConfig, merged_windows};
pub use police::{PoliceConfig, PolicerConfig};
pub use rate::{LinkRate, LinkRates, OpportunitiesConfig};
pub use steps::RateSteps;
