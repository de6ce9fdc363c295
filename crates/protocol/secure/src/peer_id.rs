//! How calls name a peer.

use serde::Serialize;

/// Names a peer in calls. Never used again for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct PeerId(pub(crate) u32);
