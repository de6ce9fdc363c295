//! The foundation of every other crate of Airlane. Nothing here knows a protocol, a clock or an operating system.
//!
//! # Time and quantities
//!
//! [`Instant`] and [`Duration`] count integer nanoseconds, so results are the same on every machine; the driver chooses
//! the origin. [`Rate`], [`Size`], [`QueueLimit`] and [`Probability`] are read from files with their units; a number
//! without its unit is refused, and the error says what to write.
//!
//! ```
//! use airlane_base::{Instant, Rate};
//!
//! let rate: Rate = "14.4 kbit/s".parse()?;
//! // 51 B take 28.333... ms, rounded up to a whole nanosecond.
//! let departs = Instant::ORIGIN + rate.transmission_time(51);
//! assert_eq!(departs.as_nanos(), 28_333_334);
//!
//! let error = "14.4".parse::<Rate>().unwrap_err();
//! assert!(error.to_string().starts_with("\"14.4\" needs a unit"));
//! # Ok::<(), airlane_base::UnitError>(())
//! ```
//!
//! # Random numbers
//!
//! [`Streams`] holds one seed and the number of a run. Each component draws from a stream of its own, chosen by name,
//! so a change to one model never disturbs the draws of another.
//!
//! ```
//! use airlane_base::Streams;
//!
//! let streams = Streams::new(1, 0);
//! let mut losses = streams.stream("link.down.errors");
//! let mut again = streams.stream("link.down.errors");
//! let mut other = streams.stream("link.up.errors");
//! let first = losses.next_u64();
//! assert_eq!(first, again.next_u64());
//! assert_ne!(first, other.next_u64());
//! ```
//!
//! # Sequence numbers
//!
//! [`SeqSpace`] is arithmetic modulo any number, since the headers that Airlane reproduces have many widths.
//!
//! ```
//! use airlane_base::SeqSpace;
//!
//! let ring = SeqSpace::new(8);
//! // Frame 1 is three ahead of frame 6, and frame 6 is five ahead of frame 1.
//! assert_eq!(ring.distance(1, 6), 3);
//! assert_eq!(ring.distance(6, 1), 5);
//!
//! // A header of 16 bits gives a number of 32 bits that is near the expected one.
//! let ring = SeqSpace::new(1 << 32);
//! assert_eq!(ring.widen(0x0003, 0x0001_fffe), 0x0002_0003);
//! ```
//!
//! # Rates
//!
//! [`Bucket`] is a token bucket without rounding errors. [`DecayedLoss`] tracks the recent loss rate, and
//! [`FrameLength`] chooses the frame length with the best goodput from the outcomes of frames.
//!
//! ```
//! use airlane_base::{Bucket, Duration, Instant};
//!
//! // 1 Mbit/s earn 125 B in a millisecond; the bucket holds what they earn in 8 ms.
//! let mut bucket = Bucket::new("1 Mbit/s".parse()?, Duration::from_millis(8), 0);
//! let now = Instant::ORIGIN;
//! assert!(bucket.take(now, 1_000));
//! assert!(!bucket.take(now, 1));
//! assert!(bucket.take(now + Duration::from_millis(1), 125));
//! # Ok::<(), airlane_base::UnitError>(())
//! ```
//!
//! # Packets
//!
//! [`Payload`] is a packet as link protocols see it. The simulator's packets stand for bytes and the daemon's are
//! bytes; the protocols cannot tell, even where erasure codes combine packets.
//!
//! ```
//! use airlane_base::Payload;
//!
//! let (a, b) = (b"hello".to_vec(), b"hi".to_vec());
//! // The parity of two packets is the XOR of their images, padded to the longer one.
//! let mut parity = a.image().as_ref().to_vec();
//! for (byte, other) in parity.iter_mut().zip(b.image().as_ref()) {
//!     *byte ^= other;
//! }
//! // With the parity and `a`, a receiver recovers `b`. Its length is coded separately.
//! for (byte, other) in parity.iter_mut().zip(a.image().as_ref()) {
//!     *byte ^= other;
//! }
//! assert_eq!(a.recovered(&parity, 2), Some(b));
//! ```
//!
//! # Files
//!
//! [`config`] reads TOML files into types that check themselves, with assignments from the command line on top. Every
//! refusal names the place, the fault and what would be right. [`schema`] generates JSON Schemas from the same types,
//! and [`varint`] packs integers for recordings.
//!
//! ```
//! use airlane_base::Rate;
//! use airlane_base::config::{Document, Validate};
//!
//! #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields)]
//! struct Link {
//!     rate: Rate,
//!     window: u32,
//! }
//! impl Validate for Link {}
//!
//! let mut file = Document::parse("rate = \"20 Mbit/s\"\nwindow = 8\n", "link.toml")?;
//! file.set("rate=2 Mbit/s")?;
//! let link: Link = file.read()?;
//! assert_eq!((link.rate.as_bps(), link.window), (2_000_000, 8));
//!
//! let error = Document::parse("rat = \"20 Mbit/s\"\nwindow = 8\n", "link.toml")?.read::<Link>().unwrap_err();
//! assert!(error.to_string().contains("did you mean `rate`?"));
//! # Ok::<(), airlane_base::config::RefusedFile>(())
//! ```

mod both_ways;
mod bucket;
pub mod config;
mod decayed_loss;
mod frame_length;
pub mod payload;
mod quantity;
pub mod random;
pub mod schema;
pub mod seq;
pub mod time;
pub mod units;
pub mod varint;

pub use both_ways::{BothWays, Directed};
pub use bucket::Bucket;
pub use decayed_loss::DecayedLoss;
pub use frame_length::FrameLength;
pub use payload::{Payload, unpadded};
pub use quantity::UnitError;
pub use random::{Rng, Streams};
pub use seq::{Seq, SeqSpace};
pub use time::{Duration, Instant};
pub use units::{Probability, QueueLimit, Rate, Serialised, Size};
