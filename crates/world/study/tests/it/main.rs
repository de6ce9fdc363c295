//! Published figures: what their files say and what becomes of their results.
//! All files are modules of one program: each program is linked on its own, which takes seconds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod results;
mod shipped;
