//! Drops that no event explains.

use std::collections::BTreeMap;

use serde_json::Value;

/// What a restart, other keys, another address or an interface that is gone for a moment may cost. Any
/// other reason means that an end was sent something that it cannot read.
const EXPLAINED: [&str; 13] = [
    "secure-mac",
    "secure-unknown-key",
    "secure-old-handshake",
    "secure-unknown-session",
    "secure-expired",
    "no-keys",
    "stale-session",
    "frame-without-session",
    "packet-without-session",
    "hello-old",
    "send-no-buffer",
    "send-failed",
    "receive-failed",
];

/// How many packets an end has dropped outside of its services, by reason: of its peers, and of nobody
/// known.
pub fn drops(status: &Value) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    let peers = status["peers"].as_array().into_iter().flatten();
    for owner in peers.chain([status]) {
        for (reason, count) in owner["drops"].as_object().into_iter().flatten() {
            *all.entry(reason.clone()).or_default() += count.as_u64().unwrap_or_default();
        }
    }
    all
}

/// Those that must not occur.
pub fn unexplained(status: &Value) -> impl Iterator<Item = (String, u64)> {
    let drops = drops(status).into_iter();
    drops.filter(|(reason, _)| !EXPLAINED.contains(&reason.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_cannot_be_read_is_never_explained() {
        let status = serde_json::json!({
            "drops": { "not-ip": 1 },
            "peers": [{ "drops": { "no-keys": 3, "bad-number": 1 } }],
        });
        let found: Vec<_> = unexplained(&status).collect();
        let bad = ["bad-number", "not-ip"].map(|reason| (reason.to_owned(), 1));
        assert_eq!(found, bad);
    }
}
