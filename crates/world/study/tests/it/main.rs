//! Tests of published figures: what their files say and what becomes of their results. All files
//! are modules of one program, because linking each separately would take seconds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod over_time;
mod results;
mod shipped;
