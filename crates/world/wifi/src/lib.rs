//! 802.11 with contention: stations that share one radio channel, without a clock, an event loop or a transport
//! protocol.
//!
//! * [`profile`]: the durations of frames, interframe spaces and slots: 802.11b with long and short preambles,
//!   802.11g and n.
//! * `station` and [`contention`]: the distributed coordination function (DCF) of one station: channel access by
//!   slotted backoff, retries, and the queue.
//! * [`place`]: positions, and the power at which stations receive each other.
//! * [`noise`]: frames lost without a collision, in phases; [`signal`] and [`errors`]: frames lost because the signal
//!   is weak, by distance or as recorded.
//! * `auto_rate`: a rate for each neighbour.
//! * [`Radio`]: all stations of a channel as one component with one deadline.
//!
//! ```text
//!  enqueue ─► interface queue ─► current ─► backoff ─► [RTS ◄─► CTS] ─► DATA ◄─► ACK ─► done, or again, or drop
//!                                   ▲         │ frozen while something is heard, by NAV, EIFS after garbage
//!                                   └─────────┘
//! ```
//!
//! The driver's contract is that of the project: give one input ([`Radio::enqueue`] or [`Radio::handle_timeout`]),
//! drain [`Radio::poll_deliver`] and [`Radio::poll_done`], then ask [`Radio::poll_timeout`] when the next input is
//! due. No packet is lost silently: a station reports each packet that it accepted as acknowledged or given up. A
//! packet that was given up has still been delivered if only its last acknowledgment was lost. The radio allocates
//! nothing per frame once its queues have grown.
//!
//! Left out, because no modelled work uses them: broadcast, fragmentation, beacons, association, power saving, and
//! the point coordination function.

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
