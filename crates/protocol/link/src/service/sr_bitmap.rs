//! SR/bitmap: selective repeat by bitmaps and the true order of transmission (section 8.1 of
//! docs/spec/multi-service.md, after the RLP of IS-54 as Xylomenos 1999, section 4.4, describes it).
//!
//! The receiver reports what it has: the next number expected and a bitmap of the frames held after it. It
//! does so with every fourth frame that arrives, when a new hole appears, and when the delayed-acknowledgment
//! timer expires. The sender counts its transmissions: everything sent before a frame that has arrived, and
//! not arrived itself, is lost and retransmitted. So the loss of a repair is detected like that of an
//! original, by the next frame that arrives. One timer runs from the last bitmap, or from when the oldest
//! frame left; when it expires, that frame is retransmitted. There are no NAKs.
//!
//! ```text
//! sender     base .. next        outstanding, at most `window`; some of them may have arrived
//! receiver   expected .. high    held or missing
//! frames     DATA, RETRANSMISSION (seq, packet)   BITMAP (expected, bits)
//!            study   | service:4 type:4 | seq:8 |        | service:4 type:4 | expected:8 | bits |
//!            with ceil(span / 8) bytes of bits           live   see `wire`
//! ```
//!
//! A bitmap covers 128 frames. Where more are held (live only), bitmaps alternate between the next number
//! expected and the newest 128 numbers.
//!
//! Invariants: each accepted packet is delivered once and in order, whatever is lost; storage is bounded by
//! the window, `window <= modulus / 2`. A frame may arrive late by at most `modulus - 2 window` numbers
//! without being mistaken for a new one; a late frame is sent twice. Left out: RESET frames; acknowledgments
//! piggybacked on data frames.

use airlane_base::{Duration, Instant, Payload, SeqSpace};

use super::scheme::{Frames, LINGER_TIMEOUTS, Scheme};
use crate::config::WindowConfig;
use crate::context::{Context, Origin, PortFacts, earliest};
use crate::mechanism::delayed_ack::DelayedAck;
use crate::mechanism::oldest::OldestTimer;
use crate::mechanism::receive_window::{Arrival, ReceiveWindow};
use crate::mechanism::send_window::SendWindow;
use crate::mechanism::timers::{LinkTiming, TimerPolicy};
use crate::mechanism::transmissions::Transmissions;
use crate::wire::{Bitmap, Body, Frame, FrameKind, Header, Layout};

const FRAMES: Frames = Frames::new(
    &Layout::BITMAP,
    &[
        FrameKind::Data,
        FrameKind::Retransmission,
        FrameKind::Bitmap,
    ],
);
/// Arrivals per bitmap: k of docs/spec/multi-service.md, section 8.1.
const REPORT_EVERY: u32 = 4;

/// Selective repeat by bitmaps.
#[derive(Clone, Debug, Hash)]
pub(crate) struct SrBitmap<P> {
    space: SeqSpace,
    policy: TimerPolicy,
    measures: bool,

    pub(super) sent: SendWindow<P>,
    transmissions: Transmissions,
    timer: OldestTimer,

    pub(super) received: ReceiveWindow<P>,
    report: DelayedAck,
    /// Frames that have arrived since the last bitmap.
    unreported: u32,
    /// Whether a bitmap is due before anything else.
    report_due: bool,
    /// Whether the last bitmap began at the next number expected, and did not reach the newest.
    report_newest: bool,
}

impl<P: Payload> SrBitmap<P> {
    /// `config` must be resolved.
    pub(crate) fn new(config: &WindowConfig, facts: &PortFacts) -> Self {
        let space = facts.space(FRAMES.layout);
        // The window of a selective repeat scheme is at most half the sequence space.
        let window = config.window.unwrap_or(127).min(space.half());
        let timing = &LinkTiming::new(facts, FRAMES.layout);
        Self {
            space,
            policy: TimerPolicy::new(config.timers.as_ref(), timing),
            measures: facts.is_live(),
            sent: SendWindow::new(window, space),
            transmissions: Transmissions::new(window, space),
            timer: OldestTimer::new(),
            received: ReceiveWindow::new(window, space),
            report: DelayedAck::default(),
            unreported: 0,
            report_due: false,
            report_newest: false,
        }
    }

    // ---- sender

    fn on_bitmap(&mut self, header: &Header, bits: Bitmap, now: Instant) {
        let (sent, transmissions) = (&mut self.sent, &mut self.transmissions);
        let mut news = sent.acknowledge_each(header.ack, |seq| transmissions.note_arrived(seq));
        for at in bits.ones() {
            let seq = self.space.add(header.seq, at);
            if sent.acknowledge_one(seq) {
                transmissions.note_arrived(seq);
                news = true;
            }
        }
        if news {
            self.policy.on_progress();
        }
        while let Some(seq) = transmissions.next_overtaken() {
            sent.repeat(seq);
        }
        self.timer.restart(sent, now);
    }

    // ---- receiver

    fn receive(&mut self, cx: &mut Context<'_, P>, header: Header, packet: P) {
        let seq = header.seq;
        let original = header.kind == FrameKind::Data;
        if original && self.measures {
            self.report.note_original(seq, cx.now);
        }
        self.report.owe(cx.now, self.policy.ack());
        self.unreported += 1;
        self.report_due |= self.unreported >= REPORT_EVERY;
        match self.received.arrival(seq) {
            Arrival::Outside | Arrival::Held => cx.ledger.repeat(original, packet.len()),
            Arrival::Newest => {
                self.report_due |= seq != self.received.high();
                self.received.miss_up_to(seq, cx.now);
                self.received.store(seq, packet, original, cx.now);
            }
            Arrival::Missing { .. } => {
                cx.ledger.overtaken += u64::from(original);
                self.received.store(seq, packet, original, cx.now);
            }
        }
        self.received.release(cx);
    }

    fn next_report(&mut self, now: Instant) -> Option<Frame<P>> {
        if !self.report_due && !self.report.is_due() {
            return None;
        }
        let (expected, high) = (self.received.expected(), self.received.high());
        let beyond = self
            .space
            .distance(high, expected)
            .saturating_sub(Bitmap::SPAN);
        self.report_newest = beyond > 0 && !self.report_newest;
        let skipped = if self.report_newest { 0 } else { beyond };
        let from = self.space.add(expected, skipped);
        let mut header = Header::new(FrameKind::Bitmap, from);
        self.report.ride(&mut header, expected, now);
        (self.unreported, self.report_due) = (0, false);
        let body = Body::Bitmap(self.received.bitmap(from));
        Some(Frame { header, body })
    }
}

impl<P: Payload> Scheme<P> for SrBitmap<P> {
    fn frames(&self) -> Frames {
        FRAMES
    }

    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let header = frame.header;
        if let Some(round_trip) = self.sent.round_trip(&header, cx.now) {
            self.policy.sample(round_trip);
        }
        match (header.kind, frame.body) {
            (FrameKind::Data | FrameKind::Retransmission, Body::Packet(packet)) => {
                self.receive(cx, header, packet);
            }
            (FrameKind::Bitmap, Body::Bitmap(bits)) => self.on_bitmap(&header, bits, cx.now),
            _ => cx.ledger.malformed += 1,
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        self.report.handle_timeout(cx.now);
        if self.timer.expire(cx.now, self.policy.rto_now()) {
            cx.ledger.timeouts += 1;
            self.policy.on_timeout(cx.now, cx.now);
            self.sent.repeat(self.sent.base());
        }
    }

    /// A bitmap first, then repairs.
    fn poll_frame(&mut self, cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        if let Some(report) = self.next_report(cx.now) {
            return Some(report);
        }
        let repair = self.sent.next_repair();
        // Repairs may have turned out to be unnecessary.
        self.timer.follow(&self.sent, cx.now);
        self.transmissions.note_sent(repair.as_ref()?.header.seq);
        repair
    }

    fn has_room(&self) -> bool {
        self.sent.has_room()
    }

    fn send(&mut self, cx: &mut Context<'_, P>, packet: P, _from: Origin) -> Frame<P> {
        let frame = self.sent.send(packet);
        self.timer.follow(&self.sent, cx.now);
        self.transmissions.note_sent(frame.header.seq);
        frame
    }

    fn start_timers(&mut self, header: &Header, left: Instant) {
        if header.kind.carries_packet() {
            self.sent.started(header, left);
            self.timer.left(&self.sent, left);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let resend = self.timer.deadline(self.policy.rto_now());
        earliest(self.report.deadline(), resend)
    }

    fn set_timer_factor(&mut self, factor: f64) {
        self.policy.set_factor(factor);
    }

    fn retime(&mut self, fresh: Self) {
        self.policy.retime(&fresh.policy);
    }

    fn reset(&mut self, cx: &mut Context<'_, P>) {
        self.received.reset(cx);
        self.report = DelayedAck::default();
        (self.unreported, self.report_due, self.report_newest) = (0, false, false);
        self.timer = OldestTimer::new();
        self.transmissions.clear();
        self.policy.on_progress();
        self.sent.reset(&mut cx.out.lost);
    }

    fn is_idle(&self) -> bool {
        self.sent.is_empty()
            && self.received.is_empty()
            && self.report.is_idle()
            && !self.report_due
    }

    fn linger(&self) -> Duration {
        self.policy.rto() * LINGER_TIMEOUTS
    }

    fn srtt(&self) -> Option<Duration> {
        self.policy.srtt()
    }
}
