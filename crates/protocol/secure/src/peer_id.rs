//! The identifier of a peer in calls.

use serde::Serialize;

/// Identifies a peer in calls. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct PeerId(pub(crate) u32);
