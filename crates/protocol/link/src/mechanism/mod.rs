//! The building blocks of schemes. For ARQ: storage by sequence number, windows, order within flows,
//! acknowledgments, keepalives, copies and their cost, a de-jitter buffer, TCP's retransmissions, reordering,
//! timers in order of their start, and the policy for their durations. For FEC: open blocks and what is kept
//! of them, the XOR of packets, and Reed-Solomon rows. A scheme is a short file that combines them.

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
