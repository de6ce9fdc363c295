//! 802.11 with contention: stations that share the air of one radio channel, without a clock, an engine
//! or a transport.
//!
//! * [`profile`]: how long frames, gaps and slots are: 802.11b with long and short preambles, 802.11g and n.
//! * `station` and [`contention`]: the distributed coordination function (DCF) of one station: whose
//!   turn it is by slotted backoff, how often a frame is tried, what waits.
//! * [`place`]: positions, and who hears whom how strongly.
//! * [`noise`]: frames that are lost without a collision, in phases; [`signal`] and [`errors`]: those that are too weak,
//!   by distance and as recorded.
//! * `auto_rate`: a rate for each neighbour.
//! * [`Radio`]: all stations of a channel as one component with one deadline.
//!
//! ```text
//!  enqueue ─► interface queue ─► current ─► backoff ─► [RTS ◄─► CTS] ─► DATA ◄─► ACK ─► done, or again, or drop
//!                                   ▲         │ frozen while something is heard, by NAV, EIFS after garbage
//!                                   └─────────┘
//! ```
//!
//! The driver's contract is that of the project: [`Radio::enqueue`] or [`Radio::handle_timeout`] goes in, then
//! [`Radio::poll_deliver`] and [`Radio::poll_done`] are drained, then [`Radio::poll_timeout`] says when the next
//! input is due. No frame is lost silently: a station is done with each packet that it took, acknowledged or given up, and one
//! that was given up has been delivered all the same if only its last acknowledgment was lost. The radio allocates nothing for a frame once its queues have grown.
//!
//! Left out, because no work that is modelled here has them: broadcast, fragments, beacons, association, power saving,
//! and the point coordination function.

#![forbid(unsafe_code)]

mod aired;
mod auto_rate;
pub mod contention;
pub mod errors;
pub mod noise;
pub mod place;
pub mod profile;
mod radio;
mod reception;
pub mod signal;
pub mod station;

pub use aired::{Aired, AiredKind};
pub use radio::{Delivery, Done, Full, Losses, Radio, RadioConfig, RadioStats};
