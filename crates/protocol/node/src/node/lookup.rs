//! When to look up a peer's host name, and which of its addresses to try. Sans-IO: the resolver does the
//! lookup itself.
//!
//! A name is looked up at the start, and again while nothing is received from the peer, at intervals that
//! double from [`FIRST`] to [`LONGEST`]. Each answer moves on to the host's next address, so that one
//! unreachable address, or IP version, does not keep the link down. While datagrams arrive from the peer, its
//! name is not looked up: it may move, and is identified by its keys.

use std::net::SocketAddr;

use airlane_base::{Duration, Instant};

use crate::config::HostPort;

/// Time for which an address is tried at first: a few handshakes.
const FIRST: Duration = Duration::from_secs(3);
/// Longest time for which one is tried.
const LONGEST: Duration = Duration::from_secs(60);

/// The host name of a peer.
#[derive(Clone, Debug)]
pub(crate) struct Lookup {
    host: HostPort,
    due: Instant,
    /// Time until the next lookup.
    patience: Duration,
    /// Whether a lookup is in progress.
    asked: bool,
    /// Error of the last lookup.
    obstacle: Option<String>,
}

/// The result of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing new.
    Nothing,
    /// Seek the peer at this address.
    Seek(SocketAddr),
    /// There is no usable address, for a new reason.
    Obstacle(String),
}

impl Lookup {
    pub(crate) const fn new(now: Instant, host: HostPort) -> Self {
        Self {
            host,
            due: now,
            patience: FIRST,
            asked: false,
            obstacle: None,
        }
    }

    /// Why there is no address.
    pub(crate) fn obstacle(&self) -> Option<&str> {
        self.obstacle.as_deref()
    }

    pub(crate) const fn poll_timeout(&self) -> Instant {
        match self.asked {
            true => Instant::FAR_FUTURE,
            false => self.due,
        }
    }

    /// The name to look up, if a lookup is due. `heard`: datagrams arrive from the peer.
    pub(crate) fn handle_timeout(&mut self, now: Instant, heard: bool) -> Option<&HostPort> {
        if self.asked || now < self.due {
            return None;
        }
        if heard {
            (self.patience, self.due) = (FIRST, now + FIRST);
            return None;
        }
        self.asked = true;
        Some(&self.host)
    }

    /// Takes an answer. `usable`: whether this end can send to an address; `tried`: the address where the
    /// peer was sought last.
    pub(crate) fn handle_answer(
        &mut self,
        now: Instant,
        heard: bool,
        answer: Result<Vec<SocketAddr>, String>,
        usable: impl Fn(&SocketAddr) -> bool,
        tried: Option<SocketAddr>,
    ) -> Found {
        if !std::mem::take(&mut self.asked) {
            return Found::Nothing;
        }
        self.due = now + self.patience;
        self.patience = (self.patience * 2).min(LONGEST);
        let answer = answer.and_then(|mut all| {
            let named = all.len();
            all.retain(usable);
            match (all.is_empty(), named) {
                (false, _) => Ok(all),
                (true, 0) => Err("the host has no address".to_owned()),
                (true, _) => Err(
                    "the host has no address that can be reached from link.underlay.listen; \
                     \"[::]:PORT\" reaches those of both IP versions"
                        .to_owned(),
                ),
            }
        });
        match answer {
            Err(why) => {
                let known = self.obstacle.replace(why.clone()).is_some_and(|w| w == why);
                match known {
                    true => Found::Nothing,
                    false => Found::Obstacle(why),
                }
            }
            Ok(all) => {
                self.obstacle = None;
                let at = tried.and_then(|tried| all.iter().position(|address| *address == tried));
                let next = all[at.map_or(0, |at| at + 1) % all.len()];
                match heard || Some(next) == tried {
                    true => Found::Nothing,
                    false => Found::Seek(next),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    fn lookup() -> Lookup {
        Lookup::new(at(0), "gate.example.org:7007".parse().unwrap())
    }

    fn addresses(all: &[&str]) -> Vec<SocketAddr> {
        all.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// Times of lookups until `end`, if each answer takes `takes` ms.
    fn asked(lookup: &mut Lookup, takes: u64, end: u64, heard: impl Fn(u64) -> bool) -> Vec<u64> {
        let (mut all, mut now) = (Vec::new(), 0);
        loop {
            let due = lookup.poll_timeout().max(at(now));
            now = due.saturating_since(at(0)).as_nanos().div_ceil(1_000_000);
            if now > end {
                return all;
            }
            if lookup.handle_timeout(at(now), heard(now)).is_some() {
                all.push(now);
                now += takes;
                let answer = Err("nobody knows".to_owned());
                lookup.handle_answer(at(now), heard(now), answer, |_| true, None);
            }
        }
    }

    #[test]
    fn a_silent_peer_is_looked_up_with_backoff() {
        let all = asked(&mut lookup(), 0, 300_000, |_| false);
        assert_eq!(
            all,
            [
                0, 3_000, 9_000, 21_000, 45_000, 93_000, 153_000, 213_000, 273_000
            ]
        );
    }

    #[test]
    fn a_slow_resolver_gets_one_query_at_a_time() {
        let all = asked(&mut lookup(), 10_000, 60_000, |_| false);
        assert_eq!(all, [0, 13_000, 29_000, 51_000]);
    }

    #[test]
    fn a_peer_that_is_heard_is_not_looked_up_until_it_is_silent() {
        let all = asked(&mut lookup(), 0, 60_000, |ms| (2_000..30_500).contains(&ms));
        assert_eq!(all, [0, 33_000, 36_000, 42_000, 54_000]);
    }

    #[test]
    fn the_addresses_of_a_host_are_tried_in_turn() {
        let all = addresses(&["[2001:db8::7]:7007", "192.0.2.7:7007", "192.0.2.8:7007"]);
        let mut lookup = lookup();
        let mut ask = |usable: fn(&SocketAddr) -> bool, tried| {
            let due = lookup.poll_timeout();
            assert!(lookup.handle_timeout(due, false).is_some());
            lookup.handle_answer(due, false, Ok(all.clone()), usable, tried)
        };
        assert_eq!(ask(|_| true, None), Found::Seek(all[0]));
        assert_eq!(ask(|_| true, Some(all[0])), Found::Seek(all[1]));
        assert_eq!(ask(|_| true, Some(all[2])), Found::Seek(all[0]));
        assert_eq!(ask(SocketAddr::is_ipv4, Some(all[2])), Found::Seek(all[1]));
        assert_eq!(ask(SocketAddr::is_ipv6, Some(all[0])), Found::Nothing);
        let Found::Obstacle(why) = ask(|_| false, Some(all[0])) else {
            panic!("there is nowhere to seek it");
        };
        assert!(why.contains("[::]:PORT"), "{why}");
        assert_eq!(ask(|_| false, Some(all[0])), Found::Nothing, "said once");
        // The address that was tried is no longer listed, and none of these has been.
        let gone = addresses(&["192.0.2.9:7007"]);
        assert_eq!(ask(|_| true, Some(gone[0])), Found::Seek(all[0]));
    }

    #[test]
    fn an_unsolicited_answer_is_ignored() {
        let found = lookup().handle_answer(
            at(0),
            false,
            Ok(addresses(&["192.0.2.7:7007"])),
            |_| true,
            None,
        );
        assert_eq!(found, Found::Nothing);
    }

    proptest! {
        /// For any answers, and whether or not the peer is heard: lookups are at least the shortest interval
        /// apart, and a silent peer is looked up within the longest.
        #[test]
        fn lookups_are_bounded_both_ways(
            steps in prop::collection::vec((any::<bool>(), 0..5_000u64, any::<bool>()), 1..60),
        ) {
            let mut lookup = lookup();
            let (mut now, mut last, mut silent) = (0, None::<u64>, 0);
            for (heard, takes, known) in steps {
                let due = lookup.poll_timeout().saturating_since(at(0)).as_nanos() / 1_000_000;
                now = due.max(now);
                if lookup.handle_timeout(at(now), heard).is_none() {
                    silent = now;
                    continue;
                }
                prop_assert!(last.is_none_or(|last| now >= last + 3_000));
                prop_assert!(now - silent.max(last.unwrap_or(0)) <= 60_000);
                now += takes;
                last = Some(now);
                let answer = match known {
                    true => Ok(addresses(&["192.0.2.7:7007"])),
                    false => Err("unknown".to_owned()),
                };
                lookup.handle_answer(at(now), heard, answer, |_| true, None);
            }
        }
    }
}
