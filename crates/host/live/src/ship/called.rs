//! The address that a sender uses: the one it called, until the other end has answered a handshake at another
//! address.
//!
//! An attacker who copies a datagram and delivers it first can fake any source address, and must not be able to
//! direct a flood there. So a new address is used only after it has answered an initiation that was sent to it, as
//! QUIC validates a path (RFC 9000, section 8.2); and it gets an initiation only while the called address is silent.

use std::net::SocketAddr;

use airlane_base::{Duration, Instant};

/// Silence of the called address after which another source address may be the other end, and the interval of
/// initiations to it.
const MOVED: Duration = Duration::from_secs(3);

/// The address of the other end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Called {
    at: SocketAddr,
    heard: Instant,
    /// Its presumed new address, and since when initiations go there.
    elsewhere: Option<(SocketAddr, Instant)>,
    /// Destination of the last initiation.
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

    /// Destination of everything but initiations.
    pub(super) const fn at(&self) -> SocketAddr {
        self.at
    }

    /// Destination of an initiation sent now.
    pub(super) fn ask(&mut self) -> SocketAddr {
        self.asked = self.elsewhere.map_or(self.at, |(elsewhere, _)| elsewhere);
        self.asked
    }

    /// Handles an authentic datagram. Returns whether to send an initiation to its source address.
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

    /// Handles an answer to an initiation.
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
    fn an_address_is_used_once_it_has_answered() {
        let at = |seconds| Instant::ORIGIN + Duration::from_secs(seconds);
        let mut called = Called::new(at(0), address(1));
        // Other source addresses have no effect while the called address is heard.
        for seconds in 1..10 {
            assert!(!called.on_heard(at(seconds), address(1)));
            assert!(!called.on_heard(at(seconds), address(2)));
            assert_eq!((called.at(), called.ask()), (address(1), address(1)));
        }
        assert!(!called.on_heard(at(11), address(2)));
        // An answer from an address that got no initiation has no effect.
        called.on_answer(at(11), address(2));
        assert_eq!(called.at(), address(1));
        assert!(called.on_heard(at(12), address(2)));
        called.on_answer(at(12), address(2));
        assert_eq!((called.at(), called.ask()), (address(1), address(2)));
        // It gets no initiation for each datagram, and another address may turn out to be the right one.
        assert!(!called.on_heard(at(14), address(3)));
        assert!(called.on_heard(at(15), address(3)));
        called.on_answer(at(15), address(3));
        assert_eq!((called.at(), called.ask()), (address(1), address(3)));
        called.on_answer(at(15), address(3));
        assert_eq!((called.at(), called.ask()), (address(3), address(3)));
        // A presumed address is forgotten when the old one is heard again.
        assert!(called.on_heard(at(20), address(4)));
        assert!(!called.on_heard(at(20), address(3)));
        assert_eq!(called.ask(), address(3));
    }
}
