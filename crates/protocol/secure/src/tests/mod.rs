//! Two nodes in simulated time, and what may happen to their datagrams.

mod attacks;
mod losses;
mod preshared;
mod sessions;
mod world;
