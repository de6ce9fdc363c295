//! Two nodes in simulated time, with control over their datagrams.

mod attacks;
mod losses;
mod preshared;
mod sessions;
mod world;
