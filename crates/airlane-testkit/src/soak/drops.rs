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

/// How many packets an end has dropped outside of its services, by reason.
pub fn drops(status: &Value) -> BTreeMap<String, u64> {
    let drops = status["drops"].as_object().into_iter().flatten();
    drops
        .filter_map(|(reason, count)| Some((reason.clone(), count.as_u64()?)))
        .collect()
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
        let status = serde_json::json!({ "drops": { "no-keys": 3, "bad-number": 1 } });
        let found: Vec<_> = unexplained(&status).collect();
        assert_eq!(found, [("bad-number".to_owned(), 1)]);
    }
}
