//! What becomes of the payloads that a service gives up: held against jitter, split or put together, their
//! headers made whole, counted, delivered. The slot runs it once the service is done with its input.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use super::reassembly::Reassembly;
use super::shorten::Expander;
use super::{Contents, Divisible};
use crate::context::{Given, earliest};
use crate::ledger::ServiceLedger;
use crate::mechanism::dejitter::Dejitter;

/// The way up from one service.
#[derive(Clone, Debug)]
pub(crate) struct Unpacker<P> {
    /// None: payloads go up at once.
    dejitter: Option<Dejitter<P>>,
    reassembly: Reassembly<P>,
    expander: Expander,
}

impl<P: Divisible> Unpacker<P> {
    /// `reliable`: the service gives every payload up some day.
    pub(crate) fn new(dejitter: Option<Dejitter<P>>, reliable: bool) -> Self {
        Self {
            dejitter,
            reassembly: Reassembly::new(reliable),
            expander: Expander::default(),
        }
    }

    /// A repair should take so long on the link as it is now.
    pub(crate) fn expect(&mut self, repair: Duration) {
        if let Some(buffer) = &mut self.dejitter {
            buffer.expect(repair);
        }
    }

    /// Takes what the service has given up; what is ready goes `up`.
    #[inline]
    pub(crate) fn run(
        &mut self,
        now: Instant,
        given: &mut VecDeque<Given<P>>,
        up: &mut VecDeque<P>,
        ledger: &mut ServiceLedger,
    ) {
        while let Some(next) = given.pop_front() {
            match &mut self.dejitter {
                None => self.open(now, next, true, up, ledger),
                Some(buffer) => {
                    buffer.push(now, next);
                    self.release(now, now, up, ledger);
                }
            }
        }
    }

    /// Gives up what need not be held any longer, and drops what has waited in vain.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        up: &mut VecDeque<P>,
        ledger: &mut ServiceLedger,
    ) {
        self.reassembly.handle_timeout(now, ledger);
        self.release(now, now, up, ledger);
    }

    /// When [`Unpacker::handle_timeout`] has something to do.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let held = self.dejitter.as_ref().and_then(Dejitter::deadline);
        if !P::DIVISIBLE {
            return held;
        }
        earliest(held, self.reassembly.poll_timeout())
    }

    /// A new epoch: what is held goes up, then the `given` that stood behind holes, of which headers that
    /// differ from what was in the hole say nothing; parts of packets are lost.
    pub(crate) fn reset(
        &mut self,
        now: Instant,
        given: &mut VecDeque<Given<P>>,
        up: &mut VecDeque<P>,
        ledger: &mut ServiceLedger,
    ) {
        self.release(now, Instant::FAR_FUTURE, up, ledger);
        if let Some(buffer) = &mut self.dejitter {
            buffer.forget();
        }
        while let Some(next) = given.pop_front() {
            self.open(now, next, false, up, ledger);
        }
        self.reassembly.reset(ledger);
        self.expander.reset();
    }

    /// Opens what is held and due by `due`.
    fn release(
        &mut self,
        now: Instant,
        due: Instant,
        up: &mut VecDeque<P>,
        ledger: &mut ServiceLedger,
    ) {
        while let Some(next) = self.dejitter.as_mut().and_then(|buffer| buffer.pop(due)) {
            self.open(now, next, true, up, ledger);
        }
    }

    /// The packet of a payload, its packets, or the one that it completes.
    #[inline]
    fn open(
        &mut self,
        now: Instant,
        given: Given<P>,
        expands: bool,
        up: &mut VecDeque<P>,
        ledger: &mut ServiceLedger,
    ) {
        let Given {
            payload,
            since,
            repaired,
        } = given;
        let expander = expands.then_some(&mut self.expander);
        let mut way = Way {
            now,
            since,
            repaired,
            expander,
            up,
            ledger,
        };
        match payload.contents() {
            Contents::Packet => way.deliver(payload),
            Contents::Short => way.expand(payload),
            Contents::Aggregate => {
                let before = way.ledger.packets_delivered;
                payload.packets(&mut |packet| way.expand(packet));
                let packets = ledger.packets_delivered - before;
                ledger.joined_delivered += packets.saturating_sub(1);
            }
            Contents::Fragment(which) => {
                way.ledger.fragments_received += 1;
                let whole = self.reassembly.take(now, which, payload, way.ledger);
                if let Some(packet) = whole {
                    let before = way.ledger.packets_delivered;
                    way.expand(packet);
                    ledger.packets_reassembled += ledger.packets_delivered - before;
                }
            }
            Contents::Malformed => ledger.malformed += 1,
        }
    }
}

/// Where packets of one payload go.
struct Way<'a, P> {
    now: Instant,
    since: Instant,
    repaired: bool,
    /// Without it short headers cannot be known.
    expander: Option<&'a mut Expander>,
    up: &'a mut VecDeque<P>,
    ledger: &'a mut ServiceLedger,
}

impl<P: Divisible> Way<'_, P> {
    fn expand(&mut self, packet: P) {
        let whole = match packet.contents() {
            Contents::Short => self.expander.as_mut().and_then(|e| e.expand(packet)),
            _ => Some(packet),
        };
        match whole {
            Some(packet) => self.deliver(packet),
            None => self.ledger.headers_unknown += 1,
        }
    }

    #[inline]
    fn deliver(&mut self, packet: P) {
        let len = packet.len() as u64;
        self.ledger.packets_delivered += 1;
        self.ledger.delivered_bytes += len;
        if self.repaired {
            self.ledger.packets_recovered += 1;
            self.ledger.recovered_bytes += len;
        }
        self.ledger.hold_ns += self.now.saturating_since(self.since).as_nanos();
        self.up.push_back(packet);
    }
}

#[cfg(test)]
mod tests {
    use airlane_base::Payload;

    use super::*;
    use crate::pack::Fragment;

    /// A fragment of a packet whose headers are short.
    #[derive(Clone, Debug)]
    struct Part(Contents);

    impl Payload for Part {
        fn len(&self) -> usize {
            100
        }
        fn image(&self) -> impl AsRef<[u8]> {
            []
        }
        fn coded(&self, _: &[u8], _: usize) -> Self {
            self.clone()
        }
        fn recovered(&self, _: &[u8], _: usize) -> Option<Self> {
            None
        }
    }

    impl Divisible for Part {
        fn contents(&self) -> Contents {
            self.0
        }
        fn reassembled(_: &[Option<Self>]) -> Option<Self> {
            Some(Self(Contents::Short))
        }
    }

    /// A peer may send in parts what opens no context: two frames came, and no packet.
    #[test]
    fn a_packet_that_nobody_can_expand_is_not_delivered_in_parts_either() {
        let mut unpacker = Unpacker::new(None, true);
        let (mut up, mut ledger) = (VecDeque::new(), ServiceLedger::default());
        for (index, last) in [(0, false), (1, true)] {
            let which = Fragment {
                packet: 7,
                index,
                last,
            };
            let mut given = VecDeque::from([Given {
                payload: Part(Contents::Fragment(which)),
                since: Instant::ORIGIN,
                repaired: false,
            }]);
            unpacker.run(Instant::ORIGIN, &mut given, &mut up, &mut ledger);
        }
        assert!(up.is_empty());
        assert_eq!(ledger.headers_unknown, 1);
        assert_eq!(ledger.packets_reassembled, 0);
        assert_eq!(ledger.originals_delivered(), 2);
    }
}
