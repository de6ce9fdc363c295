//! The parts that ARQ schemes are made of: numbered storage, windows, acknowledgments, timers
//! started in order, and the policy that says how long they run. A scheme is a short file that
//! puts them together.

pub(crate) mod delayed_ack;
pub(crate) mod oldest;
pub(crate) mod receive_window;
pub(crate) mod ring;
pub(crate) mod send_window;
pub(crate) mod started;
pub(crate) mod timers;
pub(crate) mod transmissions;
