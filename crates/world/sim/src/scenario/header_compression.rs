//! How links compress the headers of TCP/IP.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a link compresses headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HeaderCompression {
    /// Differences from the packet before, 4 bytes if only the number of a segment steps by its length. After a lost
    /// packet, the far end drops all of its connection, up to a whole header: that of a retransmission, or of a
    /// repeated acknowledgment. Headers with timestamps, SACK blocks or changed ECN bits are whole. Source: RFC 1144.
    Rfc1144,
}
