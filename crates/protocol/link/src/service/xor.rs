//! XOR and XOR/Ad: one parity frame for each block of packets (sections 7.8 and 7.9 of docs/spec/multi-service.md,
//! after Xylomenos 1999, sections 5.2 and 5.3).
//!
//! A systematic code: packets are sent and delivered as they come, and every n of them are followed by their
//! XOR, which can replace any one that was lost. The adaptive variant also closes a block when the source has
//! been silent for a while, so that the repair of a loss before a pause does not wait for the next talkspurt.
//! There is no feedback, no window, and no other timer.
//!
//! ```text
//! XOR      frames DATA, PARITY (seq, packet)         seq counts all frames modulo a multiple of
//!                                                    n + 1; block = seq div (n + 1)
//!          study   | service:4 type:4 | seq:8 |                live   see `wire`, coded
//! XOR/Ad   frames DATA, PARITY (block, index, packet)     parity has the index after the last
//!          study   | service:4 block:3 parity:1 | index:8 |    live   see `wire`, block
//! ```
//!
//! Lengths are coded as well (docs/spec/multi-service.md, 7.8): a parity frame is as long as the longest
//! packet of its block.
//!
//! Invariants: a packet is delivered at most once; a packet is recovered exactly when it is the only one
//! missing from a block whose parity has arrived; one XOR is kept per remembered block, for any n.
//!
//! Left out: interleaving.

use airlane_base::{Duration, Instant, Payload};

use super::scheme::{Frames, Scheme};
use crate::context::{Context, Origin, PortFacts};
use crate::mechanism::blocks::{Blocks, Store};
use crate::mechanism::sum::{Sum, coded_len};
use crate::wire::{Frame, FrameKind, Header, Layout, STUDY_BLOCKS};

const KINDS: &[FrameKind] = &[FrameKind::Data, FrameKind::Parity];

/// How frames identify their block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbering {
    /// XOR: all blocks have the same length.
    Sequence,
    /// XOR/Ad: a block may end early.
    Block,
}

impl Numbering {
    const fn frames(self) -> Frames {
        match self {
            Self::Sequence => Frames::new(&Layout::CODED, KINDS),
            Self::Block => Frames::new(&Layout::BLOCK, KINDS),
        }
    }
}

/// XOR or XOR/Ad.
#[derive(Clone, Debug)]
pub(crate) struct Xor<P> {
    numbering: Numbering,
    /// n: packets in a full block.
    full: u32,
    /// Size of the block number space.
    numbers: u32,
    silence: Option<Duration>,
    on_its_way: Duration,

    /// The block being sent, its packets so far, and their XOR.
    number: u32,
    packets: u32,
    sum: Sum,
    /// One of its packets, which provides the allocation for the parity.
    last: Option<P>,
    /// When the last packet left; none while it waits to leave.
    quiet_since: Option<Instant>,
    parity_due: bool,

    received: Blocks<Sum>,
}

impl<P: Payload> Xor<P> {
    /// Blocks of `full` packets.
    pub(crate) fn new(full: u32, facts: &PortFacts) -> Self {
        let numbers = facts.space(&Layout::CODED).modulus() / u64::from(full + 1);
        let numbers = numbers.max(1) as u32;
        Self {
            numbering: Numbering::Sequence,
            full,
            numbers,
            silence: None,
            on_its_way: facts.on_its_way(&Layout::CODED),
            number: 0,
            packets: 0,
            sum: Sum::default(),
            last: None,
            quiet_since: None,
            parity_due: false,
            received: Blocks::new(numbers, Some(full), facts.is_live()),
        }
    }

    /// Blocks that also end when nothing has been sent for `silence`.
    pub(crate) fn adaptive(full: u32, silence: Duration, facts: &PortFacts) -> Self {
        let numbers = if facts.is_live() {
            (facts.space(&Layout::CODED).modulus() - 1) as u32
        } else {
            STUDY_BLOCKS
        };
        Self {
            numbering: Numbering::Block,
            numbers,
            silence: Some(silence),
            on_its_way: facts.on_its_way(&Layout::BLOCK),
            received: Blocks::new(numbers, None, facts.is_live()),
            ..Self::new(full, facts)
        }
    }

    // ---- sender

    /// The header of the next frame of the open block.
    fn header(&self, kind: FrameKind) -> Header {
        match self.numbering {
            Numbering::Sequence => Header::new(kind, self.number * (self.full + 1) + self.packets),
            Numbering::Block => Header {
                index: self.packets as u8,
                ..Header::new(kind, self.number)
            },
        }
    }

    fn close(&mut self) -> Option<Frame<P>> {
        let parity = self.sum.parity(&self.last.take()?);
        let header = Header {
            coded_len: self.sum.coded_len(),
            ..self.header(FrameKind::Parity)
        };
        self.number = (self.number + 1) % self.numbers;
        self.begin();
        Some(Frame::new(header, Some(parity)))
    }

    fn begin(&mut self) {
        self.packets = 0;
        self.sum.clear();
        (self.last, self.quiet_since, self.parity_due) = (None, None, false);
    }

    // ---- receiver

    /// Block and position of a frame; none if no correct sender would have sent it.
    fn place(&self, header: &Header) -> Option<(u32, u32)> {
        let parity = header.kind == FrameKind::Parity;
        let all = self.full + 1;
        let (number, place, possible) = match self.numbering {
            Numbering::Sequence => {
                let place = header.seq % all;
                (header.seq / all, place, parity == (place == self.full))
            }
            Numbering::Block => {
                let place = u32::from(header.index);
                // A block has at least one packet, and at most `full` of them before its parity.
                let possible = place.wrapping_sub(u32::from(parity)) < self.full;
                (header.seq, place, possible)
            }
        };
        (possible && number < self.numbers).then_some((number, place))
    }
}

impl<P: Payload> Scheme<P> for Xor<P> {
    fn frames(&self) -> Frames {
        self.numbering.frames()
    }

    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let header = frame.header;
        let Some(payload) = frame.into_packet() else {
            cx.ledger.malformed += 1;
            return;
        };
        let mut lost = 0;
        let block = match self.place(&header) {
            Some((number, place)) => {
                let block = self.received.find(number, place, &mut lost);
                block.map(|block| (block, place))
            }
            None => None,
        };
        cx.ledger.lose(lost, false);
        let Some((block, place)) = block else {
            cx.ledger.out_of_window += 1;
            return;
        };
        if block.has(place) {
            cx.ledger.duplicates += 1;
            return;
        }
        let parity = header.kind == FrameKind::Parity;
        let impossible = if parity {
            block.end() > place
        } else {
            block.packets.is_some_and(|packets| place >= packets)
        };
        if impossible {
            cx.ledger.out_of_window += 1;
            return;
        }
        block.mark(place, cx.now);
        if parity {
            block.packets = Some(place);
            block.store.add(&payload, header.coded_len);
        } else {
            block.here += 1;
            block.store.add(&payload, coded_len(&payload));
        }
        let missing = match block.packets {
            Some(packets) if block.has(packets) && block.here + 1 == packets => {
                Some(block.seen.trailing_ones())
            }
            _ => None,
        };
        let recovered = missing.map(|place| {
            let since = block.missing_since(cx.now);
            block.mark(place, cx.now);
            let packet = block.store.missing(&payload);
            block.here += u32::from(packet.is_some());
            (packet, since)
        });
        if !parity {
            cx.deliver(payload, cx.now, false);
        }
        match recovered {
            Some((Some(packet), since)) => cx.deliver(packet, since, true),
            Some((None, _)) => cx.ledger.undecodable += 1,
            None => {}
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        if Scheme::<P>::poll_timeout(self).is_some_and(|due| due <= cx.now) {
            self.quiet_since = None;
            self.parity_due = true;
        }
    }

    fn poll_frame(&mut self, _cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        self.parity_due.then(|| self.close()).flatten()
    }

    fn has_frames(&self) -> bool {
        self.parity_due
    }

    fn send(&mut self, _cx: &mut Context<'_, P>, packet: P, _from: Origin) -> Frame<P> {
        let header = self.header(FrameKind::Data);
        self.sum.add(&packet, coded_len(&packet));
        self.packets += 1;
        self.parity_due = self.packets == self.full;
        self.quiet_since = None;
        self.last = Some(packet.clone());
        Frame::new(header, Some(packet))
    }

    fn start_timers(&mut self, header: &Header, left: Instant) {
        // Silence begins only after the last packet of an open block.
        let last = Header {
            index: header.index.wrapping_add(1),
            ..*header
        };
        if self.silence.is_some()
            && self.packets > 0
            && !self.parity_due
            && header.kind == FrameKind::Data
            && (last.seq, u32::from(last.index)) == (self.number, self.packets)
        {
            self.quiet_since = Some(left);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.quiet_since? + self.silence?)
    }

    /// The silence is the source's, so sharing the link does not affect it.
    fn set_timer_factor(&mut self, _factor: f64) {}

    fn retime(&mut self, fresh: Self) {
        self.on_its_way = fresh.on_its_way;
    }

    fn reset(&mut self, cx: &mut Context<'_, P>) {
        let lost = self.received.restart();
        cx.ledger.lose(lost, false);
        self.number = 0;
        self.begin();
    }

    /// XOR's open block may stay open without limit, so it does not count.
    fn is_idle(&self) -> bool {
        !self.parity_due && (self.silence.is_none() || self.packets == 0)
    }

    fn linger(&self) -> Duration {
        self.on_its_way + self.silence.unwrap_or(Duration::ZERO)
    }
}
