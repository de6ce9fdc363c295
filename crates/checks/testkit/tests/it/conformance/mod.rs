//! One suite for every scheme, one for every scheduler: what is new must pass what is there.

#[macro_use]
pub(crate) mod scheduler;
#[macro_use]
pub(crate) mod scheme;
