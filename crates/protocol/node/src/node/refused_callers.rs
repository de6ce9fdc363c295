//! Callers that were refused for a key or an address: what an operator needs to find a mistyped one.
//!
//! Callers are not authenticated, and anybody may call from anywhere. So only [`MOST`] are remembered, and
//! callers from a peer's expected address are kept longest. The log mentions a caller once a minute, and at
//! most [`MOST`] callers in a minute.

use airlane_base::{Duration, Instant};
use airlane_secure::{PeerAddress, PublicKey};

use super::drops::Reason;
use crate::status::{CallFault, CallerReport};

/// Limit of remembered callers.
const MOST: usize = 8;
/// Log interval for one caller.
const QUIET: Duration = Duration::from_secs(60);
/// Time after which a caller that has stopped calling is forgotten.
const RECENT: Duration = Duration::from_secs(600);
/// Characters of a key that are shown.
const FIRST: usize = 8;

#[derive(Debug)]
struct Caller {
    report: CallerReport,
    /// Whether it called from the address of an expected peer that is absent.
    expected: bool,
    last: Instant,
    reported: Option<Instant>,
}

/// Recent callers that were refused.
#[derive(Debug, Default)]
pub struct RefusedCallers {
    all: Vec<Caller>,
    /// Start of the log's present minute, and callers mentioned in it.
    minute: (Instant, usize),
}

impl RefusedCallers {
    /// Records that a datagram from `address` was refused for `reason`, with its key if that was unknown.
    /// Returns the caller if the log should mention it.
    pub fn note(
        &mut self,
        now: Instant,
        address: PeerAddress,
        (reason, key): (Reason, Option<&PublicKey>),
        expected: bool,
    ) -> Option<&CallerReport> {
        let (why, key) = match reason {
            Reason::SecureUnknownKey => (CallFault::UnknownKey, key),
            Reason::SecureMac => (CallFault::OtherKey, None),
            Reason::SecureOwn | Reason::HelloReflected => (CallFault::Ourselves, None),
            Reason::SecurePreshared => (CallFault::OtherPreshared, None),
            Reason::OtherAddress => (CallFault::OtherAddress, None),
            Reason::PeerWithoutKeys => (CallFault::WithoutKeys, None),
            Reason::PeerWithKeys => (CallFault::WithKeys, None),
            _ => return None,
        };
        let same = |c: &Caller| c.report.address == address && c.report.why == why;
        let at = match self.all.iter().position(same) {
            Some(at) => at,
            None => {
                if self.all.len() == MOST {
                    let least = self.all.iter().enumerate();
                    let least = least.min_by_key(|(_, c)| (c.expected, c.last));
                    // The least important caller is evicted, possibly the new one.
                    match least {
                        Some((_, c)) if c.expected && !expected => return None,
                        Some((at, _)) => drop(self.all.swap_remove(at)),
                        None => {}
                    }
                }
                self.all.push(Caller {
                    report: CallerReport {
                        address,
                        why,
                        key: None,
                        calls: 0,
                        ago_ns: 0,
                    },
                    expected,
                    last: now,
                    reported: None,
                });
                self.all.len() - 1
            }
        };
        let caller = &mut self.all[at];
        caller.report.calls += 1;
        caller.report.key = key.map(|key| key.to_string().chars().take(FIRST).collect());
        (caller.last, caller.expected) = (now, expected);
        if now >= self.minute.0 + QUIET {
            self.minute = (now, 0);
        }
        let due = caller.reported.is_none_or(|last| now >= last + QUIET);
        if !due || self.minute.1 == MOST {
            return None;
        }
        self.minute.1 += 1;
        caller.reported = Some(now);
        Some(&caller.report)
    }

    /// Lists recent callers, the last first.
    pub fn report(&self, now: Instant) -> Vec<CallerReport> {
        let mut all: Vec<_> = self
            .all
            .iter()
            .filter(|caller| now < caller.last + RECENT)
            .map(|caller| CallerReport {
                ago_ns: now.saturating_since(caller.last).as_nanos(),
                ..caller.report.clone()
            })
            .collect();
        all.sort_by_key(|caller| caller.ago_ns);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ORIGIN + Duration::from_secs(100 + seconds)
    }

    fn address(last: u8) -> PeerAddress {
        format!("192.0.2.{last}:7007").parse().unwrap()
    }

    const MAC: (Reason, Option<&PublicKey>) = (Reason::SecureMac, None);

    #[test]
    fn a_caller_is_logged_once_a_minute() {
        let mut callers = RefusedCallers::default();
        let reports = (0..180).filter(|&s| callers.note(at(s), address(2), MAC, true).is_some());
        assert_eq!(reports.collect::<Vec<_>>(), [0, 60, 120]);
        let report = callers.report(at(180));
        assert_eq!((report.len(), report[0].calls), (1, 180));
        assert_eq!(report[0].ago_ns, 1_000_000_000);
        assert!(callers.report(at(900)).is_empty());
        // A refusal for another reason is not recorded as a caller.
        let forged = callers.note(at(180), address(3), (Reason::SecureForged, None), false);
        assert!(forged.is_none() && callers.report(at(180)).len() == 1);
    }

    #[test]
    fn a_flood_from_many_addresses_is_bounded_and_hides_no_peer() {
        let mut callers = RefusedCallers::default();
        let key = "TjgqYkZ2rXp0wKc5nB1hLmQ8sVdE3uJfGyA7iWoR9CM=";
        let key = key.parse().unwrap();
        let unknown = (Reason::SecureUnknownKey, Some(&key));
        assert!(callers.note(at(0), address(1), unknown, true).is_some());
        let reports = (2..=255).filter(|&n| callers.note(at(1), address(n), MAC, false).is_some());
        assert_eq!(reports.count(), MOST - 1);
        let report = callers.report(at(2));
        assert_eq!(report.len(), MOST);
        let peer = report.iter().find(|caller| caller.address == address(1));
        assert_eq!(
            peer.unwrap().says(true),
            "the peer key here is not that of the host at 192.0.2.1:7007, whose key begins with TjgqYkZ2"
        );
    }
}
