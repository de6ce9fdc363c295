//! The foundation of every other crate of Airlane: time, units, sequence arithmetic, named random streams, the payload
//! trait, reading of configuration files, and the rule for frame lengths. Nothing here knows a protocol, a clock or an
//! operating system.

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
