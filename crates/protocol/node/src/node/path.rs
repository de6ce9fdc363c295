//! The path to one peer: the longest datagram that it takes, and when to query its interface.
//!
//! Over UDP the path is probed ([`PathSearch`], RFC 8899). The kernel contributes the MTU of the interface,
//! which is an upper limit, and the path MTU in ICMP messages, which are not authenticated and give only a
//! hint to the search. On raw Ethernet the interface is the path.
//!
//! Invariant: the kernel is queried at most once in [`AT_MOST_EVERY`], whatever the peer does.

use airlane_base::{Duration, Instant};
use airlane_session::PathSearch;

use crate::PathFacts;

/// Interval of queries without a reason.
const EVERY: Duration = Duration::from_secs(10);
/// Least interval of queries with a reason.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);

/// State of the path to a peer.
#[derive(Debug)]
pub(crate) struct Path {
    /// `None` where the interface is the path.
    pub(crate) search: Option<PathSearch>,
    /// The MTU when [`Path::take_change`] was last called.
    noted: usize,
    /// MTU of the interface, and the longest datagram that the buffers hold.
    interface: usize,
    most: usize,
    asked: Option<Instant>,
    due: Instant,
}

impl Path {
    /// A path that is not probed; the buffers hold the interface's MTU.
    pub(crate) fn of_interface(now: Instant, facts: PathFacts) -> Self {
        Self {
            search: None,
            noted: facts.interface,
            interface: facts.interface,
            most: facts.interface,
            asked: None,
            due: now + EVERY,
        }
    }

    /// A path that is probed once there is a session. The buffers hold datagrams of `most` bytes.
    pub(crate) fn probed(now: Instant, facts: PathFacts, most: usize, seed: u64) -> Self {
        let interface = facts.interface.min(most);
        let mut search = PathSearch::new(interface, seed);
        search.hear(now, facts.said);
        Self {
            search: Some(search),
            noted: interface,
            interface,
            most,
            asked: None,
            due: now + EVERY,
        }
    }

    /// Longest datagram, IP header included.
    pub(crate) fn mtu(&self) -> usize {
        self.search.as_ref().map_or(self.interface, PathSearch::mtu)
    }

    /// Whether it takes less than [`LEAST`](airlane_session::LEAST).
    pub(crate) fn is_too_narrow(&self) -> bool {
        self.search.as_ref().is_some_and(PathSearch::is_too_narrow)
    }

    pub(crate) fn poll_timeout(&self) -> Instant {
        if self.mtu() != self.noted {
            return Instant::ORIGIN;
        }
        let search = self.search.as_ref().map(PathSearch::poll_timeout);
        self.due.min(search.unwrap_or(Instant::FAR_FUTURE))
    }

    /// Schedules a query of the kernel. Returns whether this brings the next query forward.
    pub(crate) fn ask(&mut self, now: Instant) -> bool {
        let earliest = self.asked.map_or(now, |asked| asked + AT_MOST_EVERY);
        let (due, was) = (self.due.min(earliest.max(now)), self.due);
        self.due = due;
        due != was
    }

    /// Whether a query is due; if so, the next one is scheduled.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let due = self.due <= now;
        if due {
            (self.asked, self.due) = (Some(now), now + EVERY);
        }
        due
    }

    /// Takes the kernel's answer.
    pub(crate) fn follow(&mut self, now: Instant, facts: PathFacts) {
        self.interface = facts.interface;
        if let Some(search) = &mut self.search {
            search.set_most(now, facts.interface.min(self.most));
            search.hear(now, facts.said);
        }
    }

    /// The previous MTU, if it has changed.
    pub(crate) fn take_change(&mut self) -> Option<usize> {
        let mtu = self.mtu();
        let was = std::mem::replace(&mut self.noted, mtu);
        (was != mtu).then_some(was)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    const fn facts(interface: usize, said: usize) -> PathFacts {
        PathFacts { interface, said }
    }

    #[test]
    fn the_path_of_a_moving_peer_is_queried_once_a_second() {
        let mut path = Path::of_interface(at(0), facts(1500, 1500));
        let mut asked = 0;
        for ms in 0..10_000 {
            path.ask(at(ms));
            asked += u32::from(path.is_due(at(ms)));
        }
        assert_eq!(asked, 10);
        // One query more for the last move, then one every ten seconds without a reason.
        let quiet = (10_000..50_000).filter(|&ms| path.is_due(at(ms)));
        assert_eq!(quiet.collect::<Vec<_>>(), [10_000, 20_000, 30_000, 40_000]);
    }

    #[test]
    fn an_interface_mtu_applies_and_a_reported_path_mtu_does_not() {
        let mut path = Path::probed(at(0), facts(1500, 1500), 1500, 7);
        path.follow(at(1), facts(1500, 552));
        assert_eq!((path.take_change(), path.mtu()), (None, 1500));
        path.follow(at(2), facts(1400, 552));
        assert_eq!((path.take_change(), path.mtu()), (Some(1500), 1400));
        assert_eq!(path.take_change(), None);
        // The buffers hold the MTU of the start.
        path.follow(at(3), facts(9000, 9000));
        assert_eq!((path.take_change(), path.mtu()), (Some(1400), 1500));
        let mut interface = Path::of_interface(at(0), facts(1500, 1500));
        interface.follow(at(1), facts(576, 576));
        assert_eq!(
            (interface.take_change(), interface.mtu()),
            (Some(1500), 576)
        );
    }
}
