//! The transports from outside: scripts of single behaviours of TCP, and transfers over any path.

#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

mod clap;
mod repaired;
mod scripts;
mod transfers;
