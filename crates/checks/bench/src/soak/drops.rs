//! Detects drops that no event explains.

use std::collections::BTreeMap;

use serde_json::Value;

/// Drops that a restart, new keys, a new address or an interface that is down for a moment may cause. Any other
/// reason means that an end received something that it cannot read.
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

/// Messages sent before the sender knew of a session, or after the receiver had lost it, belong to another session
/// and fail authentication (docs/security.md). A full link carries 167 frames in two round trips, all of which may be
/// in flight when an end is restarted; and after a lost hello the next one follows 250 ms later.
const OF_ANOTHER_SESSION: u64 = 200;

/// Packets that an end has dropped outside of its services, by reason: from its peers, and from unknown senders.
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

/// Returns the drops that must not occur. `restarted`: whether this process replaced another.
pub fn unexplained(status: &Value, restarted: bool) -> impl Iterator<Item = (String, u64)> {
    // Every session except the very first follows another one.
    let peers = status["peers"].as_array().into_iter().flatten();
    let sessions = peers.map(|peer| peer["session"]["sessions"].as_u64().unwrap_or_default());
    let changes = (sessions.sum::<u64>() + u64::from(restarted)).saturating_sub(1);
    let most = changes * OF_ANOTHER_SESSION;
    let drops = drops(status).into_iter();
    drops.filter(move |(reason, count)| match reason.as_str() {
        "secure-forged" => *count > most,
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
    fn frames_of_another_session_are_explained_by_a_session_change_and_bounded() {
        let most = OF_ANOTHER_SESSION;
        for (count, restarted, sessions, explained) in [
            (1, false, 0, false),
            (1, false, 1, false),
            (1, false, 2, true),
            (most, true, 1, true),
            (most + 1, true, 1, false),
            (2 * most, false, 3, true),
            (2 * most + 1, false, 3, false),
        ] {
            let status = serde_json::json!({
                "drops": { "secure-forged": count },
                "peers": [{ "session": { "sessions": sessions } }],
            });
            let found = unexplained(&status, restarted).count();
            assert_eq!(found == 0, explained, "{count} {restarted} {sessions}");
        }
    }
}
