//! TCP from outside: scripts of single behaviours, and transfers over any path.

#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

mod scripts;
mod transfers;
