//! One suite for every scheme, one for every scheduler: what is new must pass what is there.

pub mod scheduler;
pub mod scheme;
