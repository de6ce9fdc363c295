//! One suite for every scheme and one for every scheduler: a new one must pass the existing suite.

#[macro_use]
pub(crate) mod scheduler;
#[macro_use]
pub(crate) mod scheme;
