//! What is known of the way to one peer: how long a datagram it takes, and when to ask for its interface.
//!
//! Over UDP the path is probed ([`PathSearch`], RFC 8899). What the kernel knows of it is its interface's
//! MTU, which no datagram can be longer than, and what ICMP messages say, which nobody authenticates and
//! which is a hint to the search. On raw Ethernet the interface is the path.
//!
//! Invariant: the kernel is asked at most once in [`AT_MOST_EVERY`], whatever the peer does.

use airlane_base::{Duration, Instant};
use airlane_session::PathSearch;

use crate::PathFacts;

/// How often the kernel is asked without a reason.
const EVERY: Duration = Duration::from_secs(10);
/// How often it is asked with a reason, at most.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);

/// What is known of the path to a peer.
#[derive(Debug)]
pub(crate) struct Path {
    /// None where the interface is the path.
    pub(crate) search: Option<PathSearch>,
    /// What was in force when somebody last took note.
    noted: usize,
    /// What the interface takes, and the most that there are buffers for.
    interface: usize,
    most: usize,
    asked: Option<Instant>,
    due: Instant,
}

impl Path {
    /// One that is not probed, to whose interface there are buffers for so much.
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

    /// One that is probed once there is somebody to answer. There are buffers for datagrams of `most`.
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

    /// The longest datagram with its IP header.
    pub(crate) fn mtu(&self) -> usize {
        self.search.as_ref().map_or(self.interface, PathSearch::mtu)
    }

    /// Whether it takes next to nothing: see [`LEAST`](airlane_session::LEAST).
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

    /// There is a reason to ask the kernel. Whether that was not known yet.
    pub(crate) fn ask(&mut self, now: Instant) -> bool {
        let earliest = self.asked.map_or(now, |asked| asked + AT_MOST_EVERY);
        let (due, was) = (self.due.min(earliest.max(now)), self.due);
        self.due = due;
        due != was
    }

    /// Whether to ask the kernel now. Then it was.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let due = self.due <= now;
        if due {
            (self.asked, self.due) = (Some(now), now + EVERY);
        }
        due
    }

    /// Takes what the kernel knows.
    pub(crate) fn follow(&mut self, now: Instant, facts: PathFacts) {
        self.interface = facts.interface;
        if let Some(search) = &mut self.search {
            search.set_most(now, facts.interface.min(self.most));
            search.hear(now, facts.said);
        }
    }

    /// What was in force before, if it is something else by now.
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
    fn a_peer_that_moves_all_the_time_is_asked_for_once_a_second() {
        let mut path = Path::of_interface(at(0), facts(1500, 1500));
        let mut asked = 0;
        for ms in 0..10_000 {
            path.ask(at(ms));
            asked += u32::from(path.is_due(at(ms)));
        }
        assert_eq!(asked, 10);
        // Once more for the last time that it moved, then every ten seconds without a reason.
        let quiet = (10_000..50_000).filter(|&ms| path.is_due(at(ms)));
        assert_eq!(quiet.collect::<Vec<_>>(), [10_000, 20_000, 30_000, 40_000]);
    }

    #[test]
    fn an_interface_is_believed_and_hearsay_is_not() {
        let mut path = Path::probed(at(0), facts(1500, 1500), 1500, 7);
        path.follow(at(1), facts(1500, 552));
        assert_eq!((path.take_change(), path.mtu()), (None, 1500));
        path.follow(at(2), facts(1400, 552));
        assert_eq!((path.take_change(), path.mtu()), (Some(1500), 1400));
        assert_eq!(path.take_change(), None);
        // There are buffers for what there was at the start.
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
