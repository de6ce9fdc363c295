//! What a channel does to frames, against closed forms and for any input. All files are modules of one program, because
//! linking a program takes seconds.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod closed_forms;
mod properties;
mod steps;
