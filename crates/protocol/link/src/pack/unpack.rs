//! Unpacks the payloads that a service delivers: splits or reassembles them, restores headers, holds packets
//! against jitter, counts and delivers. An aggregate is opened only when its next packet is requested, so
//! that a filled hole does not become a thousand buffers at once.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use super::Contents;
use super::reassembly::Reassembly;
use super::shorten::Expander;
use crate::context::{DeliveredPayload, earliest};
use crate::flow::Packet;
use crate::ledger::ServiceLedger;
use crate::mechanism::dejitter::{About, Dejitter};
use crate::mechanism::repeats::Repeats;

/// The delivery path of one service.
#[derive(Clone, Debug)]
pub(crate) struct Unpacker<P> {
    holds: Holds<Opened<P>>,
    reassembly: Reassembly<P>,
    expander: Expander,
}

/// The buffer that holds a service's packets before delivery.
#[derive(Clone, Debug)]
pub(crate) enum Holds<T> {
    /// None: packets are delivered at once.
    Nothing,
    /// A de-jitter buffer.
    Jitter(Dejitter<T>),
    /// A buffer for TCP's retransmissions.
    Repeats(Repeats<T>),
}

impl<T> Holds<T> {
    fn pop(&mut self, now: Instant) -> Option<T> {
        match self {
            Self::Nothing => None,
            Self::Jitter(buffer) => buffer.pop(now),
            Self::Repeats(repeats) => repeats.pop(now),
        }
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Nothing => None,
            Self::Jitter(buffer) => buffer.deadline(),
            Self::Repeats(repeats) => repeats.deadline(),
        }
    }
}

/// A packet from a payload.
#[derive(Clone, Debug)]
pub(crate) struct Opened<P> {
    packet: P,
    since: Instant,
    repaired: bool,
    /// Whether another packet of its frame has been counted.
    joined: bool,
    /// Whether it came in fragments.
    reassembled: bool,
}

impl<P: Packet> Opened<P> {
    /// Counts the packet as delivered now, and returns it.
    #[inline]
    fn counted(self, now: Instant, ledger: &mut ServiceLedger) -> P {
        let held = now.saturating_since(self.since);
        ledger.deliver(self.packet.len(), held, self.repaired);
        ledger.joined_delivered += u64::from(self.joined);
        ledger.packets_reassembled += u64::from(self.reassembled);
        self.packet
    }
}

impl<P: Packet> Unpacker<P> {
    /// `reliable`: the service delivers every payload eventually.
    pub(crate) fn new(holds: Holds<Opened<P>>, reliable: bool) -> Self {
        Self {
            holds,
            reassembly: Reassembly::new(reliable),
            expander: Expander::default(),
        }
    }

    /// Changes the expected duration of a repair on the link.
    pub(crate) fn expect(&mut self, repair: Duration) {
        if let Holds::Jitter(buffer) = &mut self.holds {
            buffer.expect(repair);
        }
    }

    /// Whether opened packets may have a deadline.
    #[inline]
    pub(crate) fn is_timed(&self) -> bool {
        P::DIVISIBLE || !matches!(self.holds, Holds::Nothing)
    }

    /// Delivers packets whose hold has ended, and drops those that have waited in vain.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        up: &mut VecDeque<P>,
        ledger: &mut ServiceLedger,
    ) {
        self.reassembly.handle_timeout(now, ledger);
        self.release(now, up, ledger);
    }

    /// When [`Unpacker::handle_timeout`] has something to do.
    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.holds.deadline(), self.reassembly.poll_timeout())
    }

    /// A new epoch: held packets are delivered, then the `delivered` ones after holes, whose headers cannot
    /// be restored if they differ from a packet in a hole; fragments are lost.
    pub(crate) fn reset(
        &mut self,
        now: Instant,
        delivered: &mut VecDeque<DeliveredPayload<P>>,
        up: &mut VecDeque<P>,
        ledger: &mut ServiceLedger,
    ) {
        self.release_all(now, up, ledger);
        while let Some(next) = delivered.pop_front() {
            let packet = self.open(now, next, false, up, ledger);
            up.extend(packet);
        }
        self.release_all(now, up, ledger);
        if let Holds::Jitter(buffer) = &mut self.holds {
            buffer.forget();
        }
        self.reassembly.reset(ledger);
        self.expander.reset();
    }

    /// Opens a payload: returns its packet, or the one that it completes; several packets go to `up`, and
    /// held ones later. `expands`: every earlier payload has been opened, so compressed headers can be
    /// restored.
    #[inline]
    pub(crate) fn open(
        &mut self,
        now: Instant,
        delivered: DeliveredPayload<P>,
        expands: bool,
        up: &mut VecDeque<P>,
        ledger: &mut ServiceLedger,
    ) -> Option<P> {
        let DeliveredPayload {
            service: _,
            payload,
            since,
            repaired,
        } = delivered;
        let mut opened = Opened {
            packet: payload,
            since,
            repaired,
            joined: false,
            reassembled: false,
        };
        match opened.packet.contents() {
            Contents::Packet => {}
            Contents::Short => opened = self.expand(opened, expands, ledger)?,
            Contents::Aggregate => {
                opened.packet.packets(&mut |packet| {
                    let one = Opened {
                        packet,
                        since,
                        repaired,
                        joined: std::mem::replace(&mut opened.joined, true),
                        reassembled: false,
                    };
                    let one = self.expand(one, expands, ledger);
                    let packet = one.and_then(|one| self.leave(now, one, up, ledger));
                    up.extend(packet);
                });
                return None;
            }
            Contents::Fragment(which) => {
                ledger.fragments_received += 1;
                opened.packet = self.reassembly.take(now, which, opened.packet, ledger)?;
                opened.reassembled = true;
                opened = self.expand(opened, expands, ledger)?;
            }
            Contents::Malformed => {
                ledger.malformed += 1;
                return None;
            }
        }
        self.leave(now, opened, up, ledger)
    }

    /// Restores headers that are compressed.
    fn expand(
        &mut self,
        opened: Opened<P>,
        expands: bool,
        ledger: &mut ServiceLedger,
    ) -> Option<Opened<P>> {
        if !matches!(opened.packet.contents(), Contents::Short) {
            return Some(opened);
        }
        let known = expands.then_some(&mut self.expander);
        let packet = known.and_then(|expander| expander.expand(opened.packet));
        ledger.headers_unknown += u64::from(packet.is_none());
        packet.map(|packet| Opened { packet, ..opened })
    }

    /// Delivers a packet, unless it is held; packets due then go to `up`.
    #[inline]
    fn leave(
        &mut self,
        now: Instant,
        opened: Opened<P>,
        up: &mut VecDeque<P>,
        ledger: &mut ServiceLedger,
    ) -> Option<P> {
        if let Holds::Nothing = self.holds {
            return Some(opened.counted(now, ledger));
        }
        self.hold(now, opened, up, ledger)
    }

    /// Holds a packet, and delivers those that are due.
    fn hold(
        &mut self,
        now: Instant,
        opened: Opened<P>,
        up: &mut VecDeque<P>,
        ledger: &mut ServiceLedger,
    ) -> Option<P> {
        let held = match &mut self.holds {
            Holds::Nothing => Some(opened),
            Holds::Jitter(buffer) => {
                let about = About {
                    flow: opened.packet.flow().hash(0),
                    since: opened.since,
                    repaired: opened.repaired,
                };
                buffer.push(now, about, opened);
                None
            }
            Holds::Repeats(repeats) if opened.repaired => {
                repeats.on_repair(now.saturating_since(opened.since));
                Some(opened)
            }
            Holds::Repeats(repeats) => {
                let flow = || opened.packet.flow().hash(0);
                let segment = opened.packet.tcp();
                match segment.is_some_and(|segment| repeats.is_repeat(flow(), &segment)) {
                    true => repeats.hold(now, opened),
                    false => Some(opened),
                }
            }
        };
        self.release(now, up, ledger);
        held.map(|opened| opened.counted(now, ledger))
    }

    /// Delivers the packets that are due.
    fn release(&mut self, now: Instant, up: &mut VecDeque<P>, ledger: &mut ServiceLedger) {
        while let Some(next) = self.holds.pop(now) {
            up.push_back(next.counted(now, ledger));
        }
    }

    fn release_all(&mut self, now: Instant, up: &mut VecDeque<P>, ledger: &mut ServiceLedger) {
        while let Some(next) = self.holds.pop(Instant::FAR_FUTURE) {
            up.push_back(next.counted(now, ledger));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FlowKey;
    use crate::pack::{Divisible, Fragment};
    use crate::sample;

    /// A fragment of a packet with compressed headers.
    #[derive(Clone, Debug)]
    struct Part(Contents);

    sample::payload!(Part, _part => 100);

    impl Divisible for Part {
        fn contents(&self) -> Contents {
            self.0
        }
        fn reassembled(_: &[Option<Self>]) -> Option<Self> {
            Some(Self(Contents::Short))
        }
    }

    impl Packet for Part {
        fn flow(&self) -> FlowKey {
            sample::flow(0, 0, 0)
        }
    }

    /// A peer may fragment a packet whose context does not exist: two frames arrived, and no packet.
    #[test]
    fn an_unexpandable_packet_is_not_delivered_in_fragments() {
        let mut unpacker = Unpacker::new(Holds::Nothing, true);
        let (mut up, mut ledger) = (VecDeque::new(), ServiceLedger::default());
        for (index, last) in [(0, false), (1, true)] {
            let which = Fragment {
                packet: 7,
                index,
                last,
            };
            let delivered = DeliveredPayload {
                service: 0,
                payload: Part(Contents::Fragment(which)),
                since: Instant::ORIGIN,
                repaired: false,
            };
            let packet = unpacker.open(Instant::ORIGIN, delivered, true, &mut up, &mut ledger);
            assert!(packet.is_none());
        }
        assert!(up.is_empty());
        assert_eq!(ledger.headers_unknown, 1);
        assert_eq!(ledger.packets_reassembled, 0);
        assert_eq!(ledger.originals_delivered(), 2);
    }
}
