//! What becomes of the payloads that a service gives up: held against jitter, split or put together, their
//! headers made whole, counted, delivered. What may be many packets is opened when somebody asks for the
//! next of them, so that a filled hole does not become a thousand buffers at once.

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
    /// Without it, payloads go up at once.
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

    /// Holds what the service has just given, all behind the first `before`, for as long as its neighbours
    /// may need.
    #[inline]
    pub(crate) fn hold(&mut self, now: Instant, given: &mut VecDeque<Given<P>>, before: usize) {
        let Some(buffer) = &mut self.dejitter else {
            return;
        };
        for _ in before..given.len() {
            if let Some(next) = given.remove(before) {
                buffer.push(now, next);
                release(buffer, now, given);
            }
        }
    }

    /// Gives up what need not be held any longer, and drops what has waited in vain.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        given: &mut VecDeque<Given<P>>,
        ledger: &mut ServiceLedger,
    ) {
        self.reassembly.handle_timeout(now, ledger);
        if let Some(buffer) = &mut self.dejitter {
            release(buffer, now, given);
        }
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
        if let Some(mut buffer) = self.dejitter.take() {
            while let Some(next) = buffer.pop(Instant::FAR_FUTURE) {
                let packet = self.open(now, next, true, up, ledger);
                up.extend(packet);
            }
            buffer.forget();
            self.dejitter = Some(buffer);
        }
        while let Some(next) = given.pop_front() {
            let packet = self.open(now, next, false, up, ledger);
            up.extend(packet);
        }
        self.reassembly.reset(ledger);
        self.expander.reset();
    }

    /// Opens a payload: gives its packet, or the one that it completes; several go `up`. `expands`: what
    /// went before has been opened, too, so headers that differ from it can be known.
    #[inline]
    pub(crate) fn open(
        &mut self,
        now: Instant,
        given: Given<P>,
        expands: bool,
        up: &mut VecDeque<P>,
        ledger: &mut ServiceLedger,
    ) -> Option<P> {
        let Given {
            service: _,
            payload,
            since,
            repaired,
        } = given;
        let mut way = Way {
            waited: now.saturating_since(since),
            repaired,
            expander: expands.then_some(&mut self.expander),
            ledger,
        };
        match payload.contents() {
            Contents::Packet => {
                way.count(&payload);
                Some(payload)
            }
            Contents::Short => way.expand(payload),
            Contents::Aggregate => {
                let before = way.ledger.packets_delivered;
                payload.packets(&mut |packet| up.extend(way.expand(packet)));
                let packets = ledger.packets_delivered - before;
                ledger.joined_delivered += packets.saturating_sub(1);
                None
            }
            Contents::Fragment(which) => {
                way.ledger.fragments_received += 1;
                let whole = self.reassembly.take(now, which, payload, way.ledger);
                let packet = whole.and_then(|whole| way.expand(whole));
                ledger.packets_reassembled += u64::from(packet.is_some());
                packet
            }
            Contents::Malformed => {
                ledger.malformed += 1;
                None
            }
        }
    }
}

/// Moves what is due to the end of what goes up.
fn release<P>(buffer: &mut Dejitter<P>, now: Instant, given: &mut VecDeque<Given<P>>) {
    while let Some(next) = buffer.pop(now) {
        given.push_back(next);
    }
}

/// How the packets of one payload are counted.
struct Way<'a> {
    waited: Duration,
    repaired: bool,
    /// Without it short headers cannot be known.
    expander: Option<&'a mut Expander>,
    ledger: &'a mut ServiceLedger,
}

impl Way<'_> {
    fn expand<P: Divisible>(&mut self, packet: P) -> Option<P> {
        let whole = match packet.contents() {
            Contents::Short => self.expander.as_mut().and_then(|e| e.expand(packet)),
            _ => Some(packet),
        };
        match &whole {
            Some(packet) => self.count(packet),
            None => self.ledger.headers_unknown += 1,
        }
        whole
    }

    #[inline]
    fn count<P: Divisible>(&mut self, packet: &P) {
        let len = packet.len() as u64;
        self.ledger.packets_delivered += 1;
        self.ledger.delivered_bytes += len;
        if self.repaired {
            self.ledger.packets_recovered += 1;
            self.ledger.recovered_bytes += len;
        }
        self.ledger.hold_ns += self.waited.as_nanos();
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
            let given = Given {
                service: 0,
                payload: Part(Contents::Fragment(which)),
                since: Instant::ORIGIN,
                repaired: false,
            };
            let packet = unpacker.open(Instant::ORIGIN, given, true, &mut up, &mut ledger);
            assert!(packet.is_none());
        }
        assert!(up.is_empty());
        assert_eq!(ledger.headers_unknown, 1);
        assert_eq!(ledger.packets_reassembled, 0);
        assert_eq!(ledger.originals_delivered(), 2);
    }
}
