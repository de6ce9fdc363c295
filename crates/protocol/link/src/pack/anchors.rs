//! Header compression for services that lose or reorder packets: each header is sent as its differences from
//! a packet that the receiving host has acknowledged, so it depends on nothing else.
//!
//! ```text
//! host A ── opening (seq 1000) ──► ... ──► host B
//! host A ◄── acknowledgment of 2000 ────── host B    passes here: the peer knows the headers of 1000
//! host A ── seq 9000: 7000 further ──────► host B    short
//! ```
//! An opening packet carries its full headers and the number of its context, so it can be read by itself. If
//! it is lost, the following headers are sent in full until another opening is acknowledged.
//!
//! - The acknowledgments are TCP's own, seen as they are delivered. Where they take another path, all headers
//!   are sent in full.
//! - TCP's retransmissions are sent in full, which ends any error; an acknowledgment of data that was
//!   retransmitted proves nothing about a context.
//! - A context is reused for another packet only when no frame that names it can arrive any more.
//!
//! Invariant: a short header differs from a packet that the peer has delivered, whatever happened to all
//! others.

use super::headers::{CONTEXTS, Form, Headers, LONGEST_SHORT, OPENING_HEAD};
use crate::flow::Packet;

/// Capacity in connections. Each needs two contexts, and retains its earlier ones until they are free.
const CONNECTIONS: usize = 16;
/// Openings of a connection per `reach` frames: enough to keep differences small, and few enough for the
/// contexts.
const OPENINGS_IN_REACH: u64 = 4;

/// The sending end; the receiving one is [`Expander`](super::shorten::Expander).
#[derive(Clone, Debug)]
pub(crate) struct Anchors {
    /// A frame can still arrive until this many later ones have left.
    reach: u64,
    /// Number of frames filled.
    frames: u64,
    /// For each context, the last frame that named it.
    named: [Option<u64>; CONTEXTS],
    connections: Vec<Connection>,
}

#[derive(Clone, Debug)]
struct Connection {
    flow: u64,
    /// The number after the last byte sent.
    high: u32,
    since_opened: u64,
    used_at: u64,
    /// The packet known to have arrived.
    anchor: Option<Anchor>,
    /// The opening that awaits its acknowledgment.
    opening: Option<Anchor>,
}

/// A packet that others can refer to.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    context: usize,
    headers: Headers,
}

/// Whether one sequence number precedes another.
const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Connection {
    const fn new(flow: u64, high: u32, now: u64) -> Self {
        Self {
            flow,
            high,
            since_opened: 0,
            used_at: now,
            anchor: None,
            opening: None,
        }
    }
}

impl Anchors {
    /// A frame can still arrive until `reach` later ones have left.
    pub(crate) const fn new(reach: u32) -> Self {
        Self {
            reach: reach as u64,
            frames: 0,
            named: [None; CONTEXTS],
            connections: Vec::new(),
        }
    }

    /// Counts the next frame.
    pub(crate) const fn begin_frame(&mut self) {
        self.frames += 1;
    }

    /// The packet to send in place of this one; it is never longer.
    pub(crate) fn shorten<P: Packet>(&mut self, packet: P) -> P {
        self.shortened(&packet).unwrap_or(packet)
    }

    fn shortened<P: Packet>(&mut self, packet: &P) -> Option<P> {
        let now = Headers::of(packet.visible()?)?;
        let (seq, next) = (now.seq(), now.next());
        let at = self.find(packet.flow().hash(0), seq)?;
        let connection = &mut self.connections[at];
        connection.used_at = self.frames;
        if now.begins() {
            *connection = Connection::new(connection.flow, next, self.frames);
            return None;
        }
        if seq != next {
            if is_before(seq, connection.high) {
                let covers = |opening: &mut Anchor| is_before(opening.headers.seq(), next);
                connection.opening.take_if(covers);
                return None;
            }
            connection.high = next;
        }
        connection.since_opened += 1;
        let again = self.reach / OPENINGS_IN_REACH;
        let fresh = connection.anchor.is_some() && connection.since_opened < again;
        if seq != next
            && !fresh
            && connection.opening.is_none()
            && let Some(context) = self.vacant()
        {
            let connection = &mut self.connections[at];
            connection.opening = Some(Anchor {
                context,
                headers: now,
            });
            connection.since_opened = 0;
            self.named[context] = Some(self.frames);
            return packet.with_head(OPENING_HEAD, &now.opening(context));
        }
        let Anchor { context, headers } = self.connections[at].anchor?;
        let mut short = [0; LONGEST_SHORT];
        let len = headers.shortened(&now, context, Form::Anchored, &mut short)?;
        if len >= now.bytes().len() {
            return None;
        }
        self.named[context] = Some(self.frames);
        packet.with_head(now.bytes().len(), &short[..len])
    }

    /// The receiving host of a flow has everything before this number.
    pub(crate) fn on_acknowledged(&mut self, flow: u64, ack: u32) {
        let mut connections = self.connections.iter_mut();
        if let Some(connection) = connections.find(|connection| connection.flow == flow)
            && let Some(opening) = connection
                .opening
                .take_if(|opening| !is_before(ack, opening.headers.next()))
        {
            connection.anchor = Some(opening);
        }
    }

    /// The entry of a connection: its own, a free one, or that of a connection with nothing in flight.
    fn find(&mut self, flow: u64, seq: u32) -> Option<usize> {
        let known = self.connections.iter().position(|c| c.flow == flow);
        if known.is_some() {
            return known;
        }
        let fresh = Connection::new(flow, seq, self.frames);
        if self.connections.len() < CONNECTIONS {
            self.connections.push(fresh);
            return Some(self.connections.len() - 1);
        }
        let at = (0..CONNECTIONS).min_by_key(|at| self.connections[*at].used_at)?;
        let over = self.frames - self.connections[at].used_at > self.reach;
        over.then(|| self.connections[at] = fresh)?;
        Some(at)
    }

    /// A context that no frame in flight names, and no connection needs.
    fn vacant(&self) -> Option<usize> {
        let mut needed = [false; CONTEXTS];
        for connection in &self.connections {
            let anchors = connection.anchor.iter().chain(&connection.opening);
            anchors.for_each(|anchor| needed[anchor.context] = true);
        }
        (0..CONTEXTS).find(|&context| {
            let named = self.named[context];
            !needed[context] && named.is_none_or(|at| self.frames - at > self.reach)
        })
    }

    /// The other end has reset.
    pub(crate) fn reset(&mut self) {
        self.connections.clear();
        self.named = [None; CONTEXTS];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use airlane_base::Payload;
    use proptest::prelude::*;

    use super::*;
    use crate::pack::sample::{Bytes, Segment, stamps};
    use crate::pack::shorten::Expander;

    const REACH: u32 = 32;

    fn acknowledge(anchors: &mut Anchors, segment: &Segment) {
        let flow = segment.packet().flow().hash(0);
        anchors.on_acknowledged(flow, segment.seq + segment.data as u32);
    }

    #[test]
    fn file_headers_are_short_once_acknowledged() {
        let (mut anchors, mut expander) = (Anchors::new(REACH), Expander::default());
        let mut segment = Segment::new(1);
        let mut pass = |segment: &Segment, anchors: &mut Anchors| {
            anchors.begin_frame();
            let sent = anchors.shorten(segment.packet());
            let len = sent.len();
            (expander.expand(sent) == Some(segment.packet())).then_some(len)
        };
        let whole = segment.packet().len();
        let first = segment.clone();
        assert_eq!(pass(&segment, &mut anchors), Some(whole), "opens");
        for n in 1..u32::from(REACH as u16 / 4) {
            segment.seq += 1_000;
            segment.number += 1;
            segment.options = stamps(100 + n, 200);
            assert_eq!(pass(&segment, &mut anchors), Some(whole), "nobody knows");
        }
        acknowledge(&mut anchors, &first);
        segment.seq += 1_000;
        segment.number += 1;
        let head = 6 + 2 + 1 + 2;
        assert_eq!(pass(&segment, &mut anchors), Some(whole), "another opens");
        segment.seq += 1_000;
        segment.number += 1;
        assert_eq!(pass(&segment, &mut anchors), Some(1_000 + head));
        assert_eq!(
            pass(&segment, &mut anchors),
            Some(whole),
            "it is sent again"
        );
    }

    #[test]
    fn only_acknowledged_unrepeated_segments_become_anchors() {
        let mut anchors = Anchors::new(REACH);
        let first = Segment::new(1);
        let whole = anchors.shorten(first.packet()).len();
        assert_eq!(anchors.shorten(first.packet()).len(), whole);
        acknowledge(&mut anchors, &first);
        let next = Segment {
            seq: first.seq + 1_000,
            ..first.clone()
        };
        assert_eq!(anchors.shorten(next.packet()).len(), whole, "opens anew");
        acknowledge(&mut anchors, &next);
        let third = Segment {
            seq: next.seq + 1_000,
            ..first
        };
        assert!(anchors.shorten(third.packet()).len() < whole - 30);
    }

    #[test]
    fn unreferenced_contexts_are_reused() {
        let mut anchors = Anchors::new(REACH);
        let mut opened = 0;
        for port in 0..200u16 {
            anchors.begin_frame();
            let sent = anchors.shorten(Segment::new(port).packet());
            opened += usize::from(sent != Segment::new(port).packet());
        }
        // Sixteen connections at first, and another whenever one has been quiet long enough.
        assert!(opened > 2 * CONNECTIONS, "{opened}");
        assert!(anchors.connections.len() == CONNECTIONS);
    }

    /// A host that has received some of the data, and acknowledges up to the first hole.
    #[derive(Default)]
    struct Host {
        ranges: BTreeMap<u32, u32>,
    }

    impl Host {
        fn take(&mut self, seq: u32, next: u32) {
            let known = self.ranges.entry(seq).or_insert(next);
            *known = next.max(*known);
        }

        fn acknowledges(&self, from: u32) -> u32 {
            self.ranges.iter().fold(
                from,
                |ack, (seq, next)| if *seq <= ack { ack.max(*next) } else { ack },
            )
        }
    }

    proptest! {
        /// Frames are lost, reordered and delayed; hosts retransmit data that arrived and data that did not.
        #[test]
        fn any_packets_are_expanded_unchanged(
            steps in prop::collection::vec(
                (0u16..20, any::<bool>(), 0u8..10, 0u64..u64::from(REACH), 0u32..400, any::<u16>()), 1..600,
            ),
        ) {
            let (mut anchors, mut expander) = (Anchors::new(REACH), Expander::default());
            let mut hosts: Vec<(u32, Vec<Segment>, Host)> = Vec::new();
            hosts.resize_with(20, || (1_000, Vec::new(), Host::default()));
            let mut under_way: BTreeMap<(u64, usize), (Bytes, Segment)> = BTreeMap::new();
            for (n, (port, again, fate, late, data, other)) in steps.into_iter().enumerate() {
                // A few connections carry most packets.
                let port = if port < 16 { port % 3 } else { port };
                let (next, sent, host) = &mut hosts[usize::from(port)];
                let segment = match sent.get(usize::from(other) % sent.len().max(1)) {
                    Some(old) if again => Segment { options: stamps(n as u32, 7), ..old.clone() },
                    _ => Segment {
                        seq: *next,
                        data: data as usize,
                        checksum: other,
                        options: stamps(n as u32, u32::from(other)),
                        ..Segment::new(port)
                    },
                };
                *next = (*next).max(segment.seq + segment.data as u32);
                sent.push(segment.clone());
                let ack = host.acknowledges(1_000);
                let flow = segment.packet().flow().hash(0);
                if fate % 2 == 0 {
                    anchors.on_acknowledged(flow, ack);
                }
                anchors.begin_frame();
                let payload = anchors.shorten(segment.packet());
                prop_assert!(payload.len() <= segment.packet().len());
                if fate > 1 {
                    under_way.insert((n as u64 + late, n), (payload, segment));
                }
                while let Some(first) = under_way.first_entry().filter(|first| first.key().0 <= n as u64) {
                    let (payload, segment) = first.remove();
                    prop_assert_eq!(expander.expand(payload), Some(segment.packet()));
                    let host = &mut hosts[usize::from(segment.port)].2;
                    host.take(segment.seq, segment.seq + segment.data as u32);
                }
            }
        }
    }
}
