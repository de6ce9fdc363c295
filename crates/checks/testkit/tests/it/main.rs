//! The link's ports and schemes over adversarial channels. All files are modules of one test program: linking a
//! program takes seconds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod bottlenecks;
#[macro_use]
mod conformance;
mod corpus;
mod emulator;
mod filling;
mod gsm_rlp;
mod lengths;
mod limiter;
mod moving;
mod order;
mod patience;
mod port;
mod reliable;
mod rlp;
mod rse;
mod rse_ad;
mod scheduler;
mod schemes;
mod shares;
mod strangers;
mod strategies;
mod thin;
mod waiting;
mod xor;
