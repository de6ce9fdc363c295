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

/// What was on its way when an end was restarted is bound to the session that ended by that, and fails the
/// authentication of the next (docs/security.md): so many frames, of which a full link carries 167 in two round
/// trips. In no other life any.
const OF_THE_LAST_SESSION: u64 = 200;

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

/// Gives the drops that must not occur. `restarted`: another process was the end before.
pub fn unexplained(status: &Value, restarted: bool) -> impl Iterator<Item = (String, u64)> {
    let late = if restarted { OF_THE_LAST_SESSION } else { 0 };
    let drops = drops(status).into_iter();
    drops.filter(move |(reason, count)| match reason.as_str() {
        "secure-forged" => *count > late,
        reason => !EXPLAINED.contains(&reason),
    })
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
        let found: Vec<_> = unexplained(&status, true).collect();
        let bad = ["bad-number", "not-ip"].map(|reason| (reason.to_owned(), 1));
        assert_eq!(found, bad);
    }

    #[test]
    fn frames_of_the_last_session_come_behind_a_restart_and_are_few() {
        for (count, restarted, explained) in [
            (84, true, true),
            (84, false, false),
            (OF_THE_LAST_SESSION + 1, true, false),
        ] {
            let status = serde_json::json!({ "drops": { "secure-forged": count } });
            let found = unexplained(&status, restarted).count();
            assert_eq!(found == 0, explained, "{count} {restarted}");
        }
    }
}
