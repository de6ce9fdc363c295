//! One direction of a circuit of GSM's data service: packets become a stream of octets, and the stream becomes
//! frames.
//!
//! ```text
//! IP ─► queue ─► PPP ─► octets ─► station ─► frames, on the grid of blocks ─► far station ─► octets ─► packets
//! ```
//!
//! UDP may have a stream of its own, whose frames have no sequence number and are sent once.
//!
//! The stream holds offsets in place of octets: which offsets a frame carries, and which are lost when both stations
//! reset, decides which packets arrive.

use std::collections::VecDeque;

use airlane_base::{Duration, FrameLength, Instant, QueueLimit};
use airlane_channel::blocks::adaptive::LENGTHS;
use airlane_channel::{Channel, Count};
use airlane_gsm::{BLOCK, Body, Counts, Frame, Header, Lengths, Station, Unnumbered, ppp};

use crate::packet::Packet;
use crate::result::{CircuitResult, HeadersResult};
use crate::rfc1144::{Compression, Shrunk};
use crate::scenario::{GsmConfig, GsmFrame};

/// Octets of a stream, from one offset to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    from: u64,
    to: u64,
}

/// The header of a frame that is sent once, without repair.
const ONCE: Header = Header {
    command: true,
    poll: false,
    body: Body::Unnumbered(Unnumbered::Ui),
};
/// IP protocol number of UDP.
const UDP: u8 = 17;

/// A packet in a stream.
#[derive(Debug)]
struct Framed<P> {
    from: u64,
    to: u64,
    packet: P,
}

impl<P> Framed<P> {
    /// Length of the packet on the link.
    const fn len(&self) -> usize {
        (self.to - self.from) as usize - ppp::OVERHEAD
    }
}

/// Packets as octets, at both ends of a direction.
#[derive(Debug)]
struct Stream<P> {
    limit: QueueLimit,
    /// Packets whose last octet has not arrived.
    packets: VecDeque<Framed<P>>,
    /// How many of these have not begun to leave, and their bytes.
    waiting: usize,
    waiting_bytes: usize,
    written: u64,
    cut: u64,
    read: u64,
    /// From this offset on, nothing is missing.
    whole_from: u64,
    spoiled: Count,
}

impl<P> Stream<P> {
    fn new(limit: QueueLimit) -> Self {
        Self {
            limit,
            packets: VecDeque::new(),
            waiting: 0,
            waiting_bytes: 0,
            written: 0,
            cut: 0,
            read: 0,
            whole_from: 0,
            spoiled: Count::default(),
        }
    }

    fn has_room(&self, len: usize, limit: QueueLimit) -> bool {
        limit.admits(self.waiting, self.waiting_bytes, len)
    }

    /// Octets not yet sent.
    fn rest(&self) -> u64 {
        self.written - self.cut
    }

    fn push(&mut self, packet: P, len: usize) -> bool {
        if !self.has_room(len, self.limit) {
            return false;
        }
        let from = self.written;
        self.written += (len + ppp::OVERHEAD) as u64;
        self.packets.push_back(Framed {
            from,
            to: self.written,
            packet,
        });
        self.waiting += 1;
        self.waiting_bytes += len;
        true
    }

    /// The next octets, up to `most`; `ends` gets each packet whose last octet is among them.
    fn cut(&mut self, most: usize, mut ends: impl FnMut(&P)) -> Option<Piece> {
        let from = self.cut;
        let to = self.written.min(from + most as u64);
        if from == to {
            return None;
        }
        self.cut = to;
        // The waiting packets are at the back of the queue.
        while self.waiting > 0
            && let first = &self.packets[self.packets.len() - self.waiting]
            && first.from < to
        {
            self.waiting -= 1;
            self.waiting_bytes -= first.len();
        }
        let begun = self.packets.iter().rev().skip(self.waiting);
        let ended = begun.take_while(|framed| framed.to > from);
        ended
            .filter(|framed| framed.to <= to)
            .for_each(|framed| ends(&framed.packet));
        Some(Piece { from, to })
    }

    /// Everything in flight is lost.
    fn lose(&mut self) {
        for framed in self.packets.drain(..) {
            self.spoiled.add(framed.len());
        }
        (self.waiting, self.waiting_bytes) = (0, 0);
        (self.cut, self.read, self.whole_from) = (self.written, self.written, self.written);
    }

    /// Octets have arrived: delivers the packets that they complete.
    fn read(&mut self, piece: Piece, mut give: impl FnMut(P)) {
        if piece.from > self.read {
            self.whole_from = piece.from;
        }
        self.read = piece.to;
        while let Some(framed) = self.packets.pop_front_if(|framed| framed.to <= piece.to) {
            // The flag before a packet is the last octet of the previous one.
            if framed.from.saturating_sub(1) >= self.whole_from {
                give(framed.packet);
            } else {
                self.spoiled.add(framed.len());
            }
        }
    }
}

/// One direction of a circuit, and the station at its near end.
#[derive(Debug)]
pub(crate) struct Circuit {
    pub(super) channel: Channel<Frame<Piece>>,
    /// Duration of a block.
    block: Duration,
    state: State,
    /// When to poll the station next.
    next: Option<Instant>,
}

/// What a circuit has in flight, and everything else that another circuit may take over.
#[derive(Debug)]
struct State {
    station: Station<Piece>,
    stream: Stream<Shrunk>,
    /// The stream that is sent once, if there is one.
    once: Option<Stream<Shrunk>>,
    /// Shrinks headers, if the link does.
    headers: Option<Compression>,
    /// Whether the next frame comes from that stream.
    once_next: bool,
    fixed: u8,
    /// Chooses the frame length, unless it is fixed.
    length: Option<FrameLength>,
}

impl Circuit {
    pub(crate) fn new(
        config: &GsmConfig,
        channel: Channel<Frame<Piece>>,
        limit: QueueLimit,
        headers: Option<Compression>,
    ) -> Self {
        let block = channel.config().rate.transmission_time(BLOCK);
        let length = FrameLength::new(LENGTHS, 6.0, BLOCK as f64 - 1.0, 1.0);
        let (fixed, length) = match config.frame {
            GsmFrame::Blocks(blocks) => (blocks, None),
            GsmFrame::Adaptive => (1, Some(length)),
        };
        Self {
            channel,
            block,
            state: State {
                station: Station::new(config.parameters()),
                stream: Stream::new(limit),
                once: config.bypass.then(|| Stream::new(limit)),
                once_next: false,
                headers,
                fixed,
                length,
            },
            next: None,
        }
    }

    /// Queues a packet; a full queue drops and counts it.
    pub(super) fn push(&mut self, now: Instant, packet: Packet) -> bool {
        let stream = match &mut self.state.once {
            Some(once) if packet.header.protocol == UDP => once,
            _ => &mut self.state.stream,
        };
        let headers = &mut self.state.headers;
        let shrunk = headers
            .as_ref()
            .map_or_else(|| Shrunk::plain(packet), |ends| ends.shrink(&packet));
        let taken = stream.push(shrunk, shrunk.len());
        if !taken {
            self.channel.refuse(shrunk.len());
        } else if let Some(ends) = headers {
            ends.took(&shrunk);
        }
        self.wake(now);
        taken
    }

    pub(super) fn has_room(&self, packet: &Packet, limit: QueueLimit) -> bool {
        let once = self.state.once.as_ref();
        let once = once.filter(|_| packet.header.protocol == UDP);
        once.unwrap_or(&self.state.stream)
            .has_room(packet.len as usize, limit)
    }

    /// Octets that a frame of `blocks` blocks carries. Check sequence, header and the L2R octet take 6; in addition,
    /// one octet marks each block if frames have several blocks, or may have.
    fn payload(&self, blocks: u8) -> usize {
        let marks = if self.state.length.is_some() || blocks > 1 {
            blocks
        } else {
            0
        };
        (usize::from(blocks) * BLOCK).saturating_sub(6 + usize::from(marks))
    }

    /// Length of the next frame with `waiting` octets to carry. If lengths vary, a frame is no longer than its octets
    /// need.
    fn lengths(&self, waiting: u64) -> Lengths {
        let Some(length) = &self.state.length else {
            return Lengths {
                full: self.state.fixed,
                bare: self.state.fixed,
            };
        };
        let carries = |blocks: &u8| self.payload(*blocks) as u64 >= waiting;
        let longest = length.length() as u8;
        Lengths {
            full: (1..longest).find(carries).unwrap_or(longest),
            bare: 1,
        }
    }

    /// Lets the station send if it is due. Returns when the frame will have left, if there is one; `ends` gets each
    /// packet whose last octet is in it.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        mut ends: impl FnMut(&Packet),
    ) -> Option<Instant> {
        if self.next.is_none_or(|next| next > now) {
            return None;
        }
        self.state.station.handle_timeout(now);
        // The far end sees by the gap which octets were abandoned.
        while self.state.station.poll_abandoned().is_some() {}
        for (blocks, lost) in self.state.station.fates() {
            if let Some(length) = &mut self.state.length {
                length.outcome(blocks.into(), lost);
            }
        }
        let frame = match self.state.once_next {
            true => self.once(&mut ends).or_else(|| self.repaired(now, ends)),
            false => self.repaired(now, &mut ends).or_else(|| self.once(ends)),
        };
        // The two kinds of frames alternate.
        self.state.once_next = frame.as_ref().is_some_and(|frame| frame.header != ONCE);
        let departs = frame.map(|frame| self.channel.send_at(now, frame.len(), frame));
        self.wake(now);
        departs
    }

    /// The station's next frame.
    fn repaired(&mut self, now: Instant, mut ends: impl FnMut(&Packet)) -> Option<Frame<Piece>> {
        let blocks = self.lengths(self.state.stream.rest());
        let most = self.payload(blocks.full);
        let stream = &mut self.state.stream;
        self.state.station.transmit(now, blocks, || {
            stream.cut(most, |shrunk| ends(&shrunk.packet))
        })
    }

    /// The next frame of the stream that is sent once.
    fn once(&mut self, mut ends: impl FnMut(&Packet)) -> Option<Frame<Piece>> {
        let blocks = self.lengths(self.state.once.as_ref()?.rest()).full;
        let most = self.payload(blocks);
        let once = self.state.once.as_mut()?;
        let information = once.cut(most, |shrunk| ends(&shrunk.packet))?;
        Some(Frame {
            blocks,
            header: ONCE,
            information: Some(information),
        })
    }

    /// A frame has arrived at the far station, which is the station of the other direction. `give` gets each packet
    /// that it completes, and whether its headers could be restored.
    pub(super) fn read(
        &mut self,
        now: Instant,
        far: &mut Self,
        frame: Frame<Piece>,
        mut give: impl FnMut(Packet, bool),
    ) {
        let headers = &mut self.state.headers;
        let mut give = |shrunk: Shrunk| {
            let expands = |ends: &mut Compression| ends.expand(&shrunk);
            give(shrunk.packet, headers.as_mut().is_none_or(expands));
        };
        if let Some((once, piece)) = self.state.once.as_mut().zip(frame.information)
            && frame.header == ONCE
        {
            once.read(piece, give);
            return;
        }
        let stream = &mut self.state.stream;
        far.state
            .station
            .handle_frame(now, frame, |piece| stream.read(piece, &mut give));
        far.wake(now);
    }

    /// The station has had an input: updates when to poll it.
    pub(super) fn wake(&mut self, now: Instant) {
        let fresh = self.state.station.has_room() && self.state.stream.rest() > 0;
        let once = self.state.once.as_ref().is_some_and(|once| once.rest() > 0);
        let wants = if fresh || once || self.state.station.has_frames(now) {
            Some(now)
        } else {
            self.state.station.poll_timeout()
        };
        self.next = wants.map(|at| {
            let at = at.max(now).max(self.channel.free_at());
            let blocks = at
                .saturating_since(Instant::ORIGIN)
                .as_nanos()
                .div_ceil(self.block.as_nanos());
            Instant::ORIGIN + self.block * blocks
        });
    }

    /// Takes over what another circuit had in flight.
    pub(super) fn take_over(&mut self, now: Instant, from: &mut Self) {
        std::mem::swap(&mut self.state, &mut from.state);
        from.wake(now);
        self.wake(now);
    }

    /// The far end is gone, and everything in flight to it is lost.
    pub(super) fn leave(&mut self, now: Instant) {
        self.state.station.leave();
        while self.state.station.poll_abandoned().is_some() {}
        self.state.stream.lose();
        if let Some(once) = &mut self.state.once {
            once.lose();
        }
        if let Some(ends) = &mut self.state.headers {
            ends.forget();
        }
        self.wake(now);
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.next
            .into_iter()
            .chain(self.channel.poll_timeout())
            .min()
    }

    pub(crate) fn headers(&self) -> Option<HeadersResult> {
        self.state.headers.as_ref().map(Compression::result)
    }

    pub(crate) fn result(&self) -> CircuitResult {
        let Counts {
            information: frames,
            repeated,
            polls,
            resets,
            abandoned,
            ..
        } = self.state.station.counts();
        CircuitResult {
            frames,
            repeated,
            polls,
            resets,
            abandoned,
            spoiled: self.state.stream.spoiled,
            missed: self
                .state
                .once
                .as_ref()
                .map_or_else(Count::default, |once| once.spoiled),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_packet_arrives_unless_one_of_its_octets_does_not(
            lens in prop::collection::vec(1_usize..400, 1..20),
            pieces in prop::collection::vec((1_usize..120, prop::bool::weighted(0.9)), 40..200),
        ) {
            let limit = QueueLimit::Packets(20);
            let mut stream = Stream::new(limit);
            for (seq, len) in lens.iter().enumerate() {
                prop_assert!(stream.push(vec![seq as u8; *len], *len));
            }
            let (mut came, mut all, mut left) = (Vec::new(), Vec::new(), Vec::new());
            for (most, arrives) in pieces {
                let Some(piece) = stream.cut(most, |packet| left.push(packet[0])) else { break };
                all.push((piece, arrives));
                if arrives {
                    stream.read(piece, |packet| came.push(packet[0]));
                }
            }
            let mut from = 0;
            let cut = stream.cut;
            for (seq, len) in lens.iter().enumerate() {
                let to = from + (*len + 7) as u64;
                let flagged = from.saturating_sub(1);
                let hit = |(piece, arrives): &(Piece, bool)| !arrives && piece.from < to && piece.to > flagged;
                let whole = to <= cut && !all.iter().any(hit);
                prop_assert_eq!(came.contains(&(seq as u8)), whole, "packet {}", seq);
                prop_assert_eq!(left.contains(&(seq as u8)), to <= cut);
                from = to;
            }
            prop_assert!(came.is_sorted());
        }
    }
}
