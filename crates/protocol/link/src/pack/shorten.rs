//! Header compression for reliable services: a service keeps the headers of its connections, sends the
//! differences, and restores them.
//!
//! Invariants: what a [`Shortener`] sends, delivered once, in order and completely to an [`Expander`] that
//! started with it, is restored bit for bit. Neither keeps more than [`CONTEXTS`] headers. The expander
//! refuses a packet without a context; the next opening packet restores the context.
//!
//! Left out: negotiation. Every end can expand; the sender decides which services compress.

use super::Divisible;
use super::headers::{self, CONTEXTS, Form, Headers, LONGEST_SHORT, OPENING_HEAD};

/// A context is opened again after this many packets, which ends any error, for 0.1 B per packet.
const OPENED_AGAIN_BEHIND: u16 = 512;

/// The sending end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shortener {
    contexts: Vec<Sent>,
    /// Index of the last packet's context.
    last: usize,
    clock: u64,
}

/// What the other end knows of a connection.
#[derive(Clone, Debug)]
struct Sent {
    headers: Headers,
    since_opened: u16,
    used_at: u64,
}

impl Shortener {
    /// The packet to send in place of this one; it is never longer. Also whether it takes over the context of
    /// another connection, whose packets must all have been restored before.
    pub(crate) fn shorten<P: Divisible>(&mut self, packet: P) -> (P, bool) {
        let Some(now) = packet.visible().and_then(Headers::of) else {
            return (packet, false);
        };
        self.clock += 1;
        let mut short = [0; LONGEST_SHORT];
        let known = self.find(&now);
        let changed = known.and_then(|at| {
            let sent = &self.contexts[at];
            let fresh = sent.since_opened < OPENED_AGAIN_BEHIND;
            let len = sent.headers.shortened(&now, at, Form::Short, &mut short)?;
            (fresh && len < now.bytes().len()).then_some((at, len))
        });
        let before = self.contexts.len();
        let (at, sent) = match changed {
            Some((at, len)) => (at, packet.with_head(now.bytes().len(), &short[..len])),
            None => {
                let at = known.unwrap_or_else(|| self.vacant(now));
                (at, packet.with_head(OPENING_HEAD, &now.opening(at)))
            }
        };
        let takes_over = known.is_none() && self.contexts.len() == before;
        let Some(sent) = sent else {
            return (packet, false);
        };
        let context = &mut self.contexts[at];
        context.since_opened = changed.map_or(0, |_| context.since_opened + 1);
        (context.headers, context.used_at, self.last) = (now, self.clock, at);
        (sent, takes_over)
    }

    fn find(&self, now: &Headers) -> Option<usize> {
        let is = |at: &usize| {
            let sent = self.contexts.get(*at);
            sent.is_some_and(|sent| sent.headers.same_connection(now))
        };
        Some(self.last)
            .filter(is)
            .or_else(|| (0..self.contexts.len()).find(is))
    }

    /// A context for a new connection: a free one, or the least recently used.
    fn vacant(&mut self, now: Headers) -> usize {
        if self.contexts.len() < CONTEXTS {
            self.contexts.push(Sent {
                headers: now,
                since_opened: 0,
                used_at: 0,
            });
            return self.contexts.len() - 1;
        }
        let ages = self.contexts.iter().enumerate();
        ages.min_by_key(|(_, sent)| sent.used_at)
            .map_or(0, |(at, _)| at)
    }

    /// The other end has reset.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }
}

/// The receiving end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Expander {
    contexts: Vec<Option<Headers>>,
}

impl Expander {
    /// The original packet. None if it cannot be restored.
    pub(crate) fn expand<P: Divisible>(&mut self, payload: P) -> Option<P> {
        let bytes = payload.visible()?;
        match headers::form(bytes)? {
            Form::Whole => Some(payload),
            Form::Opening => {
                let (context, headers) = Headers::opened(bytes)?;
                if self.contexts.len() <= context {
                    self.contexts.resize(context + 1, None);
                }
                self.contexts[context] = Some(headers);
                payload.with_head(OPENING_HEAD, &headers.bytes()[..OPENING_HEAD])
            }
            Form::Short => {
                let context = Headers::context_of(bytes)?;
                let before = self.contexts.get_mut(context)?;
                // A packet that no correct sender would have written invalidates the context.
                let expanded = before.take().and_then(|headers| headers.expanded(bytes));
                let (headers, cut) = expanded?;
                *before = Some(headers);
                payload.with_head(cut, headers.bytes())
            }
            Form::Anchored => {
                let opened = self.contexts.get(Headers::context_of(bytes)?)?.as_ref()?;
                let (headers, cut) = opened.expanded(bytes)?;
                payload.with_head(cut, headers.bytes())
            }
        }
    }

    /// The other end has reset.
    pub(crate) fn reset(&mut self) {
        self.contexts.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::Payload;
    use proptest::prelude::*;

    use crate::pack::Contents;
    use crate::pack::contents::contents;
    use crate::pack::sample::{Bytes, Segment, stamps};

    #[derive(Default)]
    struct Link {
        shortener: Shortener,
        expander: Expander,
    }

    impl Link {
        /// Passes a packet, which must be restored exactly, and returns the bytes sent in its place.
        fn pass(&mut self, packet: &Bytes) -> usize {
            let (sent, _) = self.shortener.shorten(packet.clone());
            let expected = if sent == *packet {
                Contents::Packet
            } else {
                Contents::Short
            };
            assert_eq!(contents(&sent.0), expected);
            assert!(sent.len() <= packet.len());
            let len = sent.len();
            assert_eq!(self.expander.expand(sent).as_ref(), Some(packet));
            len
        }
    }

    #[test]
    fn a_file_segment_costs_seven_header_bytes() {
        for v6 in [false, true] {
            let mut link = Link::default();
            let mut segment = Segment {
                v6,
                ..Segment::new(1)
            };
            let whole = segment.packet().len();
            assert_eq!(link.pass(&segment.packet()), whole, "opens");
            segment.seq += 1_000;
            segment.number += 1;
            segment.options = stamps(104, 200);
            segment.checksum = 0x1234;
            let short = link.pass(&segment.packet());
            assert_eq!(short, 1_000 + 7, "the head, and how much later it is");
        }
    }

    #[test]
    fn an_acknowledgment_costs_ten_bytes() {
        let mut link = Link::default();
        let mut ack = Segment {
            data: 0,
            ..Segment::new(1)
        };
        link.pass(&ack.packet());
        (ack.ack, ack.number, ack.options) = (2_905, 8, stamps(150, 250));
        assert_eq!(link.pass(&ack.packet()), 6 + 2 + 1 + 1);
    }

    #[test]
    fn a_retransmission_opens_the_context_anew() {
        let mut link = Link::default();
        let first = Segment::new(1);
        link.pass(&first.packet());
        let whole = first.packet().len();
        assert_eq!(link.pass(&first.packet()), whole);
        let reset = Segment {
            flags: 0x14,
            seq: 2_000,
            ..first.clone()
        };
        assert_eq!(link.pass(&reset.packet()), reset.packet().len());
        // The segment after a FIN.
        let last = Segment {
            flags: 0x11,
            data: 0,
            seq: 2_000,
            ..first
        };
        link.pass(&last.packet());
        let next = Segment {
            flags: 0x10,
            seq: 2_001,
            ..last
        };
        assert!(link.pass(&next.packet()) < 20);
    }

    #[test]
    fn other_packets_are_left_whole() {
        let mut link = Link::default();
        let tcp = Segment::new(1).packet();
        let changed = |at: usize, to: u8| {
            let mut bytes = tcp.0.clone();
            bytes[at] = to;
            Bytes(bytes)
        };
        let truncated = Bytes(tcp.0[..tcp.len() - 1].to_vec());
        // In turn: UDP, IP options, a fragment, a wrong checksum, urgent data, and not IP.
        let odd = [(9, 17), (0, 0x46), (6, 0x20), (10, 0), (33, 0x30), (0, 0)]
            .map(|(at, to)| changed(at, to));
        for packet in odd.into_iter().chain([truncated, Bytes(vec![])]) {
            let (sent, _) = link.shortener.shorten(packet.clone());
            assert_eq!(sent, packet);
        }
    }

    #[test]
    fn more_connections_than_contexts_take_turns() {
        let mut link = Link::default();
        for round in 0..3u32 {
            for port in 0..CONTEXTS as u16 + 1 {
                let seq = 1_000 * (round + 1);
                let packet = Segment {
                    seq,
                    ..Segment::new(port)
                }
                .packet();
                assert_eq!(link.pass(&packet), packet.len());
            }
        }
        assert_eq!(link.expander.contexts.len(), CONTEXTS);
    }

    /// Packets of several connections may be restored in any order, except one that takes over a context.
    #[test]
    fn taking_over_a_context_is_signalled() {
        let mut shortener = Shortener::default();
        let mut takes_over = |port| shortener.shorten(Segment::new(port).packet()).1;
        for port in 0..CONTEXTS as u16 {
            assert!(!takes_over(port));
        }
        assert!(!takes_over(3), "it has one");
        assert!(takes_over(CONTEXTS as u16));
    }

    #[test]
    fn a_missed_header_spoils_few_packets() {
        let mut link = Link::default();
        let mut segment = Segment::new(1);
        link.pass(&segment.packet());
        segment.seq += 1_000;
        _ = link.shortener.shorten(segment.packet());
        link.expander.reset();
        let mut refused = 0;
        for _ in 0..2 * OPENED_AGAIN_BEHIND {
            segment.seq += 1_000;
            let (sent, _) = link.shortener.shorten(segment.packet());
            match link.expander.expand(sent) {
                Some(packet) => assert_eq!(packet, segment.packet()),
                None => refused += 1,
            }
        }
        assert!(refused < OPENED_AGAIN_BEHIND);
    }

    fn flow() -> impl Strategy<Value = Segment> {
        let options = prop_oneof![
            4 => (any::<u32>(), any::<u32>()).prop_map(|(value, echo)| stamps(value, echo)),
            1 => (0usize..=10).prop_map(|words| vec![1; words * 4]),
            1 => Just([&[1, 1, 5, 10][..], &[9; 8], &stamps(1, 2)].concat()),
        ];
        let flags = prop_oneof![6 => Just(0x10u8), 2 => Just(0x18), 1 => any::<u8>()];
        let class = prop_oneof![Just(0u8), any::<u8>()];
        (
            any::<bool>(),
            0u16..3,
            class,
            flags,
            0u32..4,
            options,
            0usize..60,
            any::<[u16; 3]>(),
        )
            .prop_map(
                |(v6, port, class, flags, ack, options, data, [number, window, checksum])| {
                    Segment {
                        v6,
                        port,
                        class,
                        flags,
                        ack,
                        options,
                        data,
                        number,
                        window,
                        checksum,
                        seq: 0,
                    }
                },
            )
    }

    proptest! {
        /// Arbitrary traffic from hosts: consecutive segments, jumps, truncated packets.
        #[test]
        fn any_packets_round_trip(
            flows in prop::collection::vec((flow(), 0u8..8, any::<u32>()), 1..80), marks in any::<bool>(),
        ) {
            let mut link = Link::default();
            let mut next = std::collections::BTreeMap::new();
            for (mut segment, jump, seq) in flows {
                let expected = next.entry((segment.v6, segment.port)).or_insert(seq);
                segment.seq = if jump == 0 { seq } else { *expected };
                segment.ack = segment.ack.wrapping_mul(seq);
                if marks {
                    segment.number = (segment.seq / 7) as u16;
                }
                let ends = u32::from(segment.flags & 1 != 0) + u32::from(segment.flags & 2 != 0);
                *expected = segment.seq.wrapping_add(segment.data as u32).wrapping_add(ends);
                link.pass(&segment.packet());
            }
        }

        #[test]
        fn any_bytes_are_survived(
            opening in flow(),
            bytes in prop::collection::vec(prop_oneof![2 => 0u8..5, 1 => Just(0x30), 1 => any::<u8>()], 0..60),
        ) {
            let mut link = Link::default();
            link.pass(&opening.packet());
            for first in [0x30, 0x31, 0x55, 0x65, 0x75] {
                let mut bytes = bytes.clone();
                if let Some(byte) = bytes.first_mut() {
                    *byte = first;
                }
                if let Some(packet) = link.expander.expand(Bytes(bytes)) {
                    prop_assert!(matches!(packet.0[0] >> 4, 4 | 6));
                }
            }
        }
    }
}
