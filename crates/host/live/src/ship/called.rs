//! Where a sender sends: to the address that it called, until the other end has answered a handshake at another.
//!
//! Who copies a datagram and is first makes it seem to come from any host, and must not lead a flood there. So an address
//! counts once an initiation that went there was answered from there, as a path does in QUIC (RFC 9000, section 8.2); and
//! one is asked only while nothing comes from the address that was called.

use std::net::SocketAddr;

use airlane_base::{Duration, Instant};

/// Nothing came from the address that was called for so long: what comes from elsewhere may be the other end. And how
/// often it is asked.
const MOVED: Duration = Duration::from_secs(3);

/// The address of the other end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called {
    at: SocketAddr,
    heard: Instant,
    /// Where it seems to be by now, and since when it is asked there.
    elsewhere: Option<(SocketAddr, Instant)>,
    /// Where the last initiation went.
    asked: SocketAddr,
}

impl Called {
    pub(super) const fn new(now: Instant, at: SocketAddr) -> Self {
        Self {
            at,
            heard: now,
            elsewhere: None,
            asked: at,
        }
    }

    /// Where everything goes but initiations.
    pub(super) const fn at(&self) -> SocketAddr {
        self.at
    }

    /// Where an initiation goes that leaves now.
    pub(super) fn ask(&mut self) -> SocketAddr {
        self.asked = self.elsewhere.map_or(self.at, |(elsewhere, _)| elsewhere);
        self.asked
    }

    /// Something authentic came: whether an initiation is to ask for who it seems to come from.
    pub(super) fn on_heard(&mut self, now: Instant, from: SocketAddr) -> bool {
        if from == self.at {
            (self.heard, self.elsewhere) = (now, None);
            return false;
        }
        let last = self.elsewhere.map_or(self.heard, |(_, since)| since);
        let asks = now >= last + MOVED;
        if asks {
            self.elsewhere = Some((from, now));
        }
        asks
    }

    /// An initiation was answered from there.
    pub(super) fn on_answer(&mut self, now: Instant, from: SocketAddr) {
        if from == self.asked {
            *self = Self::new(now, from);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u8) -> SocketAddr {
        ([192, 0, 2, n], 7008).into()
    }

    #[test]
    fn an_address_counts_once_it_has_answered_what_went_there() {
        let at = |seconds| Instant::ORIGIN + Duration::from_secs(seconds);
        let mut called = Called::new(at(0), address(1));
        // As long as the one that was called is heard, nothing comes of others.
        for seconds in 1..10 {
            assert!(!called.on_heard(at(seconds), address(1)));
            assert!(!called.on_heard(at(seconds), address(2)));
            assert_eq!((called.at(), called.ask()), (address(1), address(1)));
        }
        assert!(!called.on_heard(at(11), address(2)));
        // What was asked here is no answer from there.
        called.on_answer(at(11), address(2));
        assert_eq!(called.at(), address(1));
        assert!(called.on_heard(at(12), address(2)));
        called.on_answer(at(12), address(2));
        assert_eq!((called.at(), called.ask()), (address(1), address(2)));
        // It is not asked again with each datagram, and another may be it as well.
        assert!(!called.on_heard(at(14), address(3)));
        assert!(called.on_heard(at(15), address(3)));
        called.on_answer(at(15), address(3));
        assert_eq!((called.at(), called.ask()), (address(1), address(3)));
        called.on_answer(at(15), address(3));
        assert_eq!((called.at(), called.ask()), (address(3), address(3)));
        // One that was asked is forgotten when the other end is heard where it was.
        assert!(called.on_heard(at(20), address(4)));
        assert!(!called.on_heard(at(20), address(3)));
        assert_eq!(called.ask(), address(3));
    }
}
