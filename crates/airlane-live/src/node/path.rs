//! What is known of the way to one peer: how long a datagram it takes, and when to ask again.
//!
//! What the kernel knows of a path is its interface's MTU, or less where an ICMP message says so, which
//! nobody authenticates. So after the start a path is believed to have become narrower down to
//! [`LEAST_BELIEVED`] only, which IPv6 demands of every path; datagrams that a path still does not take travel in
//! fragments of IP (`transmit.rs`). And it concerns the one peer alone.
//!
//! Invariant: a path is asked for at most once in [`AT_MOST_EVERY`], whatever its peer does.

use airlane_base::{Duration, Instant};

/// How often a path is asked for without a reason.
const EVERY: Duration = Duration::from_secs(10);
/// How often a path is asked for with a reason, at most.
const AT_MOST_EVERY: Duration = Duration::from_secs(1);
/// RFC 8200, section 5.
const LEAST_BELIEVED: usize = 1280;

/// What is known of the path to a peer.
#[derive(Debug)]
pub(super) struct PathMtu {
    mtu: usize,
    /// Nothing less is believed.
    least: usize,
    asked: Option<Instant>,
    due: Instant,
}

impl PathMtu {
    /// One that took so much at the start. `hearsay`: what is said of it later may be anybody's word.
    pub(super) fn new(now: Instant, mtu: usize, hearsay: bool) -> Self {
        Self {
            mtu,
            least: if hearsay { mtu.min(LEAST_BELIEVED) } else { 0 },
            asked: None,
            due: now + EVERY,
        }
    }

    /// The longest datagram with its IP header.
    pub(super) const fn mtu(&self) -> usize {
        self.mtu
    }

    pub(super) const fn poll_timeout(&self) -> Instant {
        self.due
    }

    /// There is a reason to ask.
    pub(super) fn ask(&mut self, now: Instant) {
        let earliest = self.asked.map_or(now, |asked| asked + AT_MOST_EVERY);
        self.due = self.due.min(earliest.max(now));
    }

    /// Whether to ask now. Then it was.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let due = self.due <= now;
        if due {
            (self.asked, self.due) = (Some(now), now + EVERY);
        }
        due
    }

    /// Takes over what the kernel says; what it was before, if that is something else.
    pub(super) fn follow(&mut self, said: usize) -> Option<usize> {
        let mtu = said.max(self.least);
        let was = std::mem::replace(&mut self.mtu, mtu);
        (was != mtu).then_some(was)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ORIGIN + Duration::from_millis(ms)
    }

    #[test]
    fn a_peer_that_moves_all_the_time_is_asked_for_once_a_second() {
        let mut path = PathMtu::new(at(0), 1500, true);
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
    fn what_anybody_may_say_narrows_a_path_down_to_what_all_paths_take() {
        let mut path = PathMtu::new(at(0), 1500, true);
        assert_eq!((path.follow(1400), path.mtu()), (Some(1500), 1400));
        assert_eq!((path.follow(552), path.mtu()), (Some(1400), 1280));
        assert_eq!((path.follow(68), path.mtu()), (None, 1280));
        assert_eq!((path.follow(1500), path.mtu()), (Some(1280), 1500));
        // What it was at the start, and what its own interface says.
        let mut narrow = PathMtu::new(at(0), 600, true);
        assert_eq!((narrow.follow(552), narrow.mtu()), (None, 600));
        let mut interface = PathMtu::new(at(0), 1500, false);
        assert_eq!((interface.follow(576), interface.mtu()), (Some(1500), 576));
    }
}
