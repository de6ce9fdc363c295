//! The parts that schemes are made of. For ARQ: numbered storage, windows, order within
//! flows, acknowledgments, keepalives, copies and what they may cost, a de-jitter buffer, what TCP sends again, how late frames are, timers started in order, and the policy
//! that says how long they run. For FEC: open blocks and what is kept of them, the sum of packets,
//! and Reed-Solomon rows. A scheme is a short file that puts them together.

pub(crate) mod blocks;
pub(crate) mod copies;
pub(crate) mod dejitter;
pub(crate) mod delayed_ack;
pub(crate) mod fades;
pub(crate) mod keepalive;
pub(crate) mod kept;
pub(crate) mod lanes;
pub(crate) mod oldest;
pub(crate) mod overtaken;
pub(crate) mod receive_window;
pub(crate) mod reed_solomon;
pub(crate) mod repeats;
pub(crate) mod ring;
pub(crate) mod send_window;
pub(crate) mod started;
pub(crate) mod sum;
pub(crate) mod timers;
pub(crate) mod transmissions;
