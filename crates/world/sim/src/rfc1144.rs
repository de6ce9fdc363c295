//! Headers of TCP/IP as differences from the packet of the same connection that went before (RFC 1144).
//!
//! The near end keeps the last header of 16 connections. A header that is no small step forward leaves whole: the
//! first packet of a connection, a retransmission, a repeated acknowledgment, and changed options.
//! The far end adds differences to the header that it saw last. If a packet between the two was lost, the sum is
//! wrong, TCP's checksum shows it, and the packet is dropped here, as is all that follows, up to the next whole
//! header.
//!
//! Packets have no bytes here, so a difference is a length, and each packet carries its number on its connection,
//! by which the far end knows what real ends learn from the checksum.
//!
//! Invariants: the far end never delivers a packet whose predecessor it has not seen, unless its header is whole. A
//! packet that a full queue refuses changes nothing.
//! Left out: the identification of IP, which steps by one; the negotiation of PPP; packets without connection number,
//! and so the state in which a receiver waits for one; urgent data.

use airlane_channel::Count;

use crate::packet::{Header, Marks, Packet, Role};
use crate::result::HeadersResult;

/// Bytes of the headers of IPv4 and TCP.
pub(crate) const WHOLE: u32 = 40;
/// The mask of changes, the number of the connection, TCP's checksum.
const LEAST: u32 = 4;
/// Connections whose headers are kept. Source: RFC 1144, section 3.2.
const SLOTS: usize = 16;
/// IP protocol number of TCP.
const TCP: u8 = 6;

/// What the headers of a flow's packets depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowHeaders {
    /// User bytes of a full segment.
    pub(crate) segment: u32,
    /// Whether each packet carries a timestamp, which no difference can express.
    pub(crate) stamps: bool,
}

/// How the headers of a packet are on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As they are, unknown to both ends.
    Plain,
    /// As they are, to be kept at the far end.
    Whole,
    /// As differences.
    Differences,
}

/// A packet as it is on the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shrunk {
    pub(crate) packet: Packet,
    /// Length of the TCP/IP headers.
    headers: u32,
    form: Form,
    slot: u8,
    /// Its number among the packets of its slot.
    number: u32,
}

impl Shrunk {
    /// A packet that is on the link as it is.
    pub(crate) const fn plain(packet: Packet) -> Self {
        Self {
            packet,
            headers: WHOLE,
            form: Form::Plain,
            slot: 0,
            number: 0,
        }
    }

    /// Its length on the link.
    pub(crate) const fn len(&self) -> usize {
        (self.packet.len + self.headers).saturating_sub(WHOLE) as usize
    }
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Connection {
    header: Header,
    flow: u16,
    endpoints: u8,
    number: u32,
}

impl Connection {
    fn of(packet: &Packet) -> Self {
        Self {
            header: packet.header,
            flow: packet.flow,
            endpoints: packet.endpoints,
            number: packet.connection,
        }
    }
}

/// The fields of a header that change, in segments.
#[derive(Clone, Copy, Debug, Default)]
struct Fields {
    seq: u64,
    ack: u64,
    /// The closed part of the window.
    closed: u16,
    /// Whether user bytes follow.
    carries: bool,
    /// The number after the highest segment.
    high: u64,
    marks: Marks,
    /// Whether blocks of SACK follow it.
    blocks: bool,
}

impl Fields {
    /// The header of a packet after this one. What the packet does not say is as it was.
    fn next(&self, packet: &Packet) -> Self {
        let marks = packet.marks.without(Marks::AGAIN);
        let blocks = packet.news().iter().any(|[_, len]| *len > 0);
        if packet.role().is_data() {
            return Self {
                seq: packet.seq,
                carries: true,
                high: self.high.max(packet.seq + 1),
                marks,
                blocks,
                ..*self
            };
        }
        Self {
            seq: self.high,
            ack: packet.seq,
            closed: packet.closed,
            carries: false,
            marks,
            blocks,
            ..*self
        }
    }

    /// Bytes of the differences that lead to `now`; none if its header has to be whole.
    fn steps(&self, now: &Self, segment: u32) -> Option<u32> {
        // Options that differ cannot be said, nor can the byte of IP that has ECN's bits.
        if now.marks != self.marks || now.blocks || self.blocks {
            return None;
        }
        let step = |from: u64, to: u64| {
            let bytes = to.checked_sub(from)?.checked_mul(segment.into())?;
            match bytes {
                0 => Some(0),
                1..=255 => Some(1),
                256..=0xffff => Some(3),
                _ => None,
            }
        };
        let (seq, ack) = (step(self.seq, now.seq)?, step(self.ack, now.ack)?);
        let window = if now.closed == self.closed { 0 } else { 3 };
        match (seq, ack + window) {
            // The same again is sent whole, for it may be a repair: unless data follows an acknowledgment.
            (0, 0) => (now.carries && !self.carries).then_some(0),
            // The step of a file, which the mask alone can say.
            (_, 0) if self.carries && now.seq == self.seq + 1 => Some(0),
            (seq, rest) => Some(seq + rest),
        }
    }
}

#[derive(Clone, Debug)]
struct Slot {
    id: u8,
    connection: Connection,
    last: Fields,
    number: u32,
}

/// Both ends of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Compression {
    /// By flow; none of those whose headers are not counted or not TCP's.
    flows: Box<[Option<FlowHeaders>]>,
    /// What the near end keeps; the connection heard of last is the last.
    slots: Vec<Slot>,
    /// The number of the last packet that the far end could expand, by slot.
    seen: [Option<u32>; SLOTS],
    whole: u64,
    compressed: u64,
    header_bytes: u64,
    out_of_step: Count,
}

impl Compression {
    pub(crate) fn new(flows: Box<[Option<FlowHeaders>]>) -> Self {
        Self {
            flows,
            slots: Vec::with_capacity(SLOTS),
            seen: [None; SLOTS],
            whole: 0,
            compressed: 0,
            header_bytes: 0,
            out_of_step: Count::default(),
        }
    }

    /// What leaves if the link takes this packet.
    pub(crate) fn shrink(&self, packet: &Packet) -> Shrunk {
        let plain = Shrunk::plain(*packet);
        let flow = self.flows.get(usize::from(packet.flow)).copied().flatten();
        // A SYN neither has nor is a predecessor.
        let agrees = packet.role() != Role::Data && packet.role() != Role::Request;
        let opens = packet.asks().is_some() || agrees && packet.marks.has(Marks::AGREES);
        let Some(flow) = flow.filter(|_| packet.header.protocol == TCP && !opens) else {
            return plain;
        };
        let connection = Connection::of(packet);
        let Some(slot) = self.slots.iter().find(|slot| slot.connection == connection) else {
            // The connection that has been silent for longest makes room.
            let (slot, number) = match self.slots.first() {
                Some(oldest) if self.slots.len() == SLOTS => (oldest.id, oldest.number),
                _ => (self.slots.len() as u8, 0),
            };
            return Shrunk {
                form: Form::Whole,
                slot,
                number: number.wrapping_add(1),
                ..plain
            };
        };
        let steps = slot.last.steps(&slot.last.next(packet), flow.segment);
        let (headers, form) = match steps.filter(|_| !flow.stamps) {
            Some(steps) => (LEAST + steps, Form::Differences),
            None => (WHOLE, Form::Whole),
        };
        Shrunk {
            headers,
            form,
            slot: slot.id,
            number: slot.number.wrapping_add(1),
            ..plain
        }
    }

    /// The link has taken this packet.
    pub(crate) fn took(&mut self, shrunk: &Shrunk) {
        match shrunk.form {
            Form::Plain => return,
            Form::Whole => self.whole += 1,
            Form::Differences => self.compressed += 1,
        }
        self.header_bytes += u64::from(shrunk.headers);
        let connection = Connection::of(&shrunk.packet);
        let before = self.slots.iter().position(|slot| slot.id == shrunk.slot);
        let before = before.map(|place| self.slots.remove(place));
        let last = before.filter(|slot| slot.connection == connection);
        let last = last.map_or_else(Fields::default, |slot| slot.last);
        self.slots.push(Slot {
            id: shrunk.slot,
            connection,
            last: last.next(&shrunk.packet),
            number: shrunk.number,
        });
    }

    /// Whether the far end can restore the header of a packet that has come.
    pub(crate) fn expand(&mut self, shrunk: &Shrunk) -> bool {
        let seen = &mut self.seen[usize::from(shrunk.slot) % SLOTS];
        let follows = *seen == Some(shrunk.number.wrapping_sub(1));
        match shrunk.form {
            Form::Plain => return true,
            Form::Differences if !follows => {
                self.out_of_step.add(shrunk.packet.len as usize);
                return false;
            }
            Form::Whole | Form::Differences => *seen = Some(shrunk.number),
        }
        true
    }

    /// Both ends begin anew, as after a new call.
    pub(crate) fn forget(&mut self) {
        self.slots.clear();
        self.seen = [None; SLOTS];
    }

    pub(crate) fn result(&self) -> HeadersResult {
        HeadersResult {
            whole: self.whole,
            compressed: self.compressed,
            bytes: self.header_bytes,
            out_of_step: self.out_of_step,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn compression() -> Compression {
        let flow = FlowHeaders {
            segment: 536,
            stamps: false,
        };
        Compression::new(Box::new([Some(flow); 1]))
    }

    fn segment(connection: u32, seq: u64) -> Packet {
        let header = Header {
            protocol: TCP,
            ..Packet::BLANK.header
        };
        Packet {
            seq,
            len: 576,
            connection,
            role_code: Role::Data as u8,
            header,
            ..Packet::BLANK
        }
    }

    fn ack(seq: u64) -> Packet {
        Packet {
            len: 40,
            role_code: Role::Ack as u8,
            ..segment(0, seq)
        }
    }

    /// Sends a packet; returns the bytes of its header, and what leaves.
    fn send(ends: &mut Compression, packet: &Packet) -> (usize, Shrunk) {
        let shrunk = ends.shrink(packet);
        ends.took(&shrunk);
        (shrunk.len() + 40 - packet.len as usize, shrunk)
    }

    /// Ludwig et al. 1999, LUD-T1-r8: a queue before the compressor drops segment 3.
    #[test]
    fn a_cycle_of_tcp_has_one_whole_header_and_two_of_seven_bytes() {
        let mut ends = compression();
        let headers = [0, 1, 2, 4, 5, 6, 3, 7, 8].map(|seq| send(&mut ends, &segment(0, seq)).0);
        assert_eq!(headers, [40, 4, 4, 7, 4, 4, 40, 7, 4]);
    }

    #[test]
    fn an_acknowledgment_said_twice_is_whole() {
        let mut ends = compression();
        let headers = [1, 2, 4, 4, 5].map(|seq| send(&mut ends, &ack(seq)).0);
        assert_eq!(headers, [40, 7, 7, 40, 7]);
        let closed = Packet {
            closed: 2,
            ..ack(6)
        };
        assert_eq!(send(&mut ends, &closed).0, 10, "the window changes, too");
        // 123 segments are 65,928 bytes: no difference of 16 bits.
        assert_eq!(send(&mut ends, &ack(129)).0, 40);
    }

    #[test]
    fn data_after_an_acknowledgment_need_not_say_more() {
        let mut ends = compression();
        let headers = [segment(0, 0), ack(7), segment(0, 1)].map(|sent| send(&mut ends, &sent).0);
        assert_eq!(headers, [40, 10, 4]);
    }

    #[test]
    fn sixteen_connections_are_kept() {
        let mut ends = compression();
        for (connections, again) in [(16, 4), (17, 40)] {
            ends.forget();
            for number in 0..connections {
                send(&mut ends, &segment(number, 0));
            }
            assert_eq!(send(&mut ends, &segment(0, 1)).0, again, "{connections}");
        }
    }

    proptest! {
        /// What real ends compute: the far end adds differences to what it has, right or wrong.
        #[test]
        fn the_far_end_delivers_what_follows_on_what_it_has(
            sent in prop::collection::vec((0_u32..20, 0_u64..4, prop::bool::weighted(0.8)), 1..300),
        ) {
            let mut ends = compression();
            let mut next = [0_u64; 20];
            let mut there: [Option<Packet>; SLOTS] = [None; SLOTS];
            let mut last: [Option<Packet>; SLOTS] = [None; SLOTS];
            for (connection, step, arrives) in sent {
                let seq = &mut next[connection as usize];
                // Sent again, one after the other, or with a gap.
                *seq = (*seq + step).saturating_sub(1);
                let packet = segment(connection, *seq);
                let (headers, shrunk) = send(&mut ends, &packet);
                let slot = usize::from(shrunk.slot);
                let whole = headers == 40;
                let same = |a: Packet, b: Packet| (a.seq, a.connection) == (b.seq, b.connection);
                let right = whole || there[slot].zip(last[slot]).is_some_and(|(a, b)| same(a, b));
                last[slot] = Some(packet);
                if arrives {
                    let delivered = ends.expand(&shrunk);
                    // A header may have been said twice: then the one before last is as good, and is not used.
                    prop_assert!(!delivered || right);
                    prop_assert!(delivered || !whole);
                    if delivered {
                        there[slot] = Some(packet);
                    }
                }
            }
        }
    }
}
