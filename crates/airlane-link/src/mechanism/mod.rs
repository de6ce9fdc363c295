//! The parts that ARQ schemes are made of: numbered storage, timers started in order, and the
//! policy that says how long they run. A scheme is a short file that puts them together.

pub(crate) mod ring;
pub(crate) mod started;
pub(crate) mod timers;
