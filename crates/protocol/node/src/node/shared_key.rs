//! Detects two hosts with one private key: each takes the peer's sessions from the other whenever it calls.
//!
//! A host that moves keeps its epoch, and one that restarts stays where it was or moves for good. Two hosts
//! alternate, each with its own epoch. Each of the two sees its peer leave the session again and again for
//! another host's, which has no other cause.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};
use airlane_secure::PeerAddress;

use super::quiet::Quiet;
use crate::status::SharedKey;

/// Calls that prove it: from one address, from another, from the first again.
const TURNS: usize = 3;
/// Times that the peer must leave this end's epoch.
const LEFT: usize = 3;
/// Time within which these must happen. Two stations alternate every 14 s, and every 47 s while idle.
const WITHIN: Duration = Duration::from_secs(180);
/// A session that lasts longer than any of theirs shows that it is over.
const OVER: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub(crate) struct SharedKeyDetector {
    /// Addresses at which the peer's last epochs began.
    begun: VecDeque<(Instant, PeerAddress)>,
    /// Times at which the peer left this end's epochs.
    left: VecDeque<Instant>,
    quiet: Quiet,
}

impl SharedKeyDetector {
    pub(crate) const fn new() -> Self {
        Self {
            begun: VecDeque::new(),
            left: VecDeque::new(),
            quiet: Quiet::NEW,
        }
    }

    /// Records a session with a new epoch of the peer.
    pub(crate) fn on_session(&mut self, now: Instant, at: Option<PeerAddress>) {
        let Some(at) = at else { return };
        self.begun.push_front((now, at));
        self.begun.truncate(TURNS);
    }

    /// Records that the peer had left this end's epoch.
    pub(crate) fn on_left(&mut self, now: Instant) {
        self.left.push_front(now);
        self.left.truncate(LEFT);
    }

    /// The key that two hosts use, if there is one.
    pub(crate) fn found(&self, now: Instant) -> Option<SharedKey> {
        let recent = |then: Option<Instant>| then.is_some_and(|then| now < then + WITHIN);
        let lasts = |then: Option<Instant>| then.is_some_and(|then| now < then + OVER);
        let turns: Vec<_> = self.begun.iter().map(|(_, at)| *at).collect();
        if lasts(self.begun.front().map(|(then, _)| *then))
            && recent(self.begun.get(TURNS - 1).map(|(then, _)| *then))
            && let [a, b, c] = turns[..]
            && a == c
            && a != b
        {
            return Some(SharedKey::Peer([a, b]));
        }
        let own = lasts(self.left.front().copied()) && recent(self.left.get(LEFT - 1).copied());
        own.then_some(SharedKey::Own)
    }

    /// The finding to log, once a minute.
    pub(crate) fn speak(&mut self, now: Instant) -> Option<SharedKey> {
        let found = self.found(now)?;
        self.quiet.speak(now, || 0).map(|_| found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Instant {
        Instant::ORIGIN + Duration::from_secs(1_000 + seconds)
    }

    fn host(n: u8) -> PeerAddress {
        format!("192.0.2.{n}:7007").parse().unwrap()
    }

    #[test]
    fn two_hosts_that_take_turns_are_found_and_forgotten() {
        let mut shared_key = SharedKeyDetector::new();
        let mut said = Vec::new();
        for turn in 0..10 {
            shared_key.on_session(at(turn * 14), Some(host(1 + turn as u8 % 2)));
            said.extend(shared_key.speak(at(turn * 14)).map(|_| turn));
        }
        assert_eq!(said, [2, 7], "once a minute");
        let Some(SharedKey::Peer(hosts)) = shared_key.found(at(126)) else {
            panic!("not found");
        };
        assert!(hosts.contains(&host(1)) && hosts.contains(&host(2)));
        assert!(shared_key.found(at(126 + 59)).is_some(), "they may be idle");
        assert_eq!(shared_key.found(at(126 + 61)), None, "one of them is gone");
    }

    #[test]
    fn a_host_detects_that_its_own_key_is_shared() {
        let mut shared_key = SharedKeyDetector::new();
        for turn in 0..2 {
            shared_key.on_left(at(turn * 28));
            assert_eq!(shared_key.found(at(turn * 28)), None);
        }
        shared_key.on_left(at(56));
        assert_eq!(shared_key.found(at(56)), Some(SharedKey::Own));
    }

    proptest! {
        /// One host that restarts, at whatever address, never looks like two.
        #[test]
        fn one_restarting_host_never_looks_like_two(restarts in prop::collection::vec(any::<bool>(), 0..40)) {
            let (mut shared_key, mut place) = (SharedKeyDetector::new(), 0);
            for (n, moves) in restarts.iter().enumerate() {
                place += u8::from(*moves);
                shared_key.on_session(at(n as u64), Some(host(place)));
                prop_assert_eq!(shared_key.found(at(n as u64)), None);
            }
        }
    }
}
