//! GSM RLP: the radio link protocol of GSM's data service (GSM 04.22) with frames of variable length. The
//! stations are those of `airlane_gsm`; this file runs them on a link where frames are queued, reordered and
//! duplicated.
//!
//! Full duplex, reliable, in order. Every frame carries the state of its sender; missing frames are requested
//! one by one (SREJ) or from the first on (REJ), repeatedly after T1. A sender that hears nothing for T1
//! polls, and the answer says what to retransmit. After N2 polls in vain it gives up: both ends reset (SABM,
//! UA), and the frames in flight are lost. This is the only loss, and each end reports it: `gave-up`,
//! `begun-anew`.
//!
//! ```text
//! sender     V(A) .. V(S)     outstanding, at most k; numbers modulo 62
//! receiver   V(R) ..          held, missing or requested; V(R) + k and beyond are old
//! frames     DATA, RETRANSMISSION (octets, packet)   ACK: RR, REJ, SREJ (octets)   LINK: SABM, UA (octets)
//!            study   | service:4 type:4 | C/R S N(S) P/F N(R):16 |    live   see `wire`, after a number of the frame
//! ```
//!
//! Invariants: each packet is delivered once and in order; storage is bounded by the window. The protocol
//! requires that no frame overtakes another or is duplicated. A radio ensures this; on a live link each frame
//! has a number by which late ones are dropped and counted as lost. With SREJ and k = 61 a frame must not be
//! retransmitted while it is in flight either, or it is mistaken for a later one: on a radio T1 ensures this.
//! On a live link k <= 31, and resets are numbered, too (`Station::cautious`), because an answer may take
//! longer than T1.
//!
//! T1 is the scheme's retransmission timer, and runs from when a frame has left; where it is measured it
//! backs off, because a longer path needs more time than a radio. An acknowledgment waits to be piggybacked,
//! but where T1 is measured only a quarter of the time that other schemes wait: T1 also times requests, and
//! the small number space is soon exhausted. Left out: XID, because hellos announce the options of both ends;
//! DISC, REMAP, UI, TEST and NULL, because the port has sessions and other services; RNR, because packets are
//! delivered at once; L2R and PPP, because a frame carries a whole packet.

use airlane_base::{Duration, Instant, Payload, Seq, SeqSpace};
use airlane_gsm::{Body, Frame as GsmFrame, Header as Octets, Lengths, Parameters, Station};

use super::scheme::{Frames, LINGER_TIMEOUTS, Scheme};
use crate::config::{GsmRlpConfig, TimerProfile, TimersConfig};
use crate::context::{Context, Noted, Origin, PortFacts, earliest};
use crate::mechanism::delayed_ack::DelayedAck;
use crate::mechanism::timers::{LinkTiming, TimerPolicy};
use crate::wire::{Frame, FrameKind, Header, Layout};

const FRAMES: Frames = Frames::new(
    &Layout::GSM,
    &[
        FrameKind::Data,
        FrameKind::Retransmission,
        FrameKind::Ack,
        FrameKind::Link,
    ],
);
/// A frame is one block, as long as its contents.
const BLOCKS: Lengths = Lengths { full: 1, bare: 1 };

/// A packet at either end.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
struct Carried<P> {
    packet: P,
    came: Noted,
    repaired: bool,
}

/// Numbers the frames in order of departure, to detect reordering and duplicates.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(test, derive(Hash))]
struct Passing {
    space: SeqSpace,
    next: Seq,
    newest: Option<Seq>,
}

impl Passing {
    /// Whether a frame is newer than all before it.
    fn admit(&mut self, seq: Seq) -> bool {
        let ahead = |newest| (1..self.space.half()).contains(&self.space.distance(seq, newest));
        let new = self.newest.is_none_or(ahead);
        if new {
            self.newest = Some(seq);
        }
        new
    }
}

/// GSM's radio link protocol.
#[derive(Clone, Debug)]
#[cfg_attr(test, derive(Hash))]
pub(crate) struct GsmRlp<P> {
    policy: TimerPolicy,
    station: Station<Carried<P>>,
    ack: DelayedAck,
    /// Divisor of the scheme's time for which an acknowledgment is delayed.
    hurry: u64,
    /// Present where frames may be reordered.
    passing: Option<Passing>,
    /// Whether a reset has been demanded from the port.
    begins: bool,
}

impl<P: Payload> GsmRlp<P> {
    /// `config` must be resolved.
    pub(crate) fn new(config: &GsmRlpConfig, facts: &PortFacts) -> Self {
        let timing = &LinkTiming::new(facts, FRAMES.layout);
        let space = facts.space(FRAMES.layout);
        let defaults = Parameters::default();
        let numbers = space.modulus().min(defaults.numbers.into()) as u8;
        let window = config.window.unwrap_or(u32::MAX);
        let policy = TimerPolicy::new(config.timers.as_ref(), timing);
        let parameters = Parameters {
            window: window.min(u32::from(numbers) - 1) as u8,
            t1: policy.rto_now(),
            persistence: config.persistence,
            repair: config.repair,
            numbers,
            ..defaults
        };
        Self {
            policy,
            station: Station::new(parameters).cautious(),
            ack: DelayedAck::default(),
            hurry: match config.timers {
                Some(TimersConfig::Profile(TimerProfile::Measured)) => 4,
                _ => 1,
            },
            passing: facts.is_live().then_some(Passing {
                space,
                next: 0,
                newest: None,
            }),
            begins: false,
        }
    }

    /// The station's next frame, which carries this packet if there is room.
    fn next(&mut self, now: Instant, mut packet: Option<P>) -> Option<Frame<P>> {
        let fresh = packet.is_some();
        let frame = self.station.transmit(now, BLOCKS, || {
            let came = Noted(now);
            packet.take().map(|packet| Carried {
                packet,
                came,
                repaired: false,
            })
        })?;
        let kind = match (frame.header.body, &frame.information) {
            (Body::Numbered { .. }, None) => FrameKind::Ack,
            (Body::Numbered { .. }, Some(_)) if fresh && packet.is_none() => FrameKind::Data,
            (Body::Numbered { .. }, Some(_)) => FrameKind::Retransmission,
            _ => FrameKind::Link,
        };
        let mut header = Header::new(kind, 0);
        header.octets = frame.header.encode();
        if let Some(passing) = &mut self.passing {
            header.seq = passing.next;
            passing.next = passing.space.next(passing.next);
        }
        if !self.station.has_news() {
            self.ack.settle();
        }
        Some(Frame::new(header, frame.information.map(|it| it.packet)))
    }

    /// Reports what the station has done since its counts were `before`.
    fn settle(&mut self, cx: &mut Context<'_, P>, before: airlane_gsm::Counts) {
        let counts = self.station.counts();
        self.station.fates().for_each(drop);
        if let Some(round_trip) = self.station.take_round_trip() {
            self.policy.sample(round_trip);
            self.policy.on_progress();
        }
        let timeouts = counts.timeouts - before.timeouts;
        cx.ledger.timeouts += timeouts;
        if timeouts > 0 {
            self.policy.on_timeout(cx.now, cx.now);
        }
        self.keep_time();
        if self.station.has_news() {
            self.ack.owe(cx.now, self.policy.ack() / self.hurry);
        }
        if counts.anew > before.anew {
            self.begins = true;
            let event = match counts.resets > before.resets {
                true => "gave-up",
                false => "begun-anew",
            };
            cx.demand_reset(event);
        }
    }

    /// Unacknowledged packets, oldest first.
    #[cfg(test)]
    pub(super) fn kept(&self) -> impl Iterator<Item = &P> {
        self.station.unacknowledged().map(|kept| &kept.packet)
    }

    /// Sets T1 from the scheme's timers.
    fn keep_time(&mut self) {
        let parameters = self.station.parameters();
        let ack = self.policy.ack();
        let t1 = (self.policy.rto_now() + ack / self.hurry).saturating_sub(ack);
        self.station.set_parameters(Parameters { t1, ..parameters });
    }
}

impl<P: Payload> Scheme<P> for GsmRlp<P> {
    fn frames(&self) -> Frames {
        FRAMES
    }

    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        let Header {
            kind, seq, octets, ..
        } = frame.header;
        let header = Octets::decode(octets).filter(|header| match header.body {
            Body::Numbered { carries, .. } => match carries {
                Some(_) => kind.is_packet(),
                None => kind == FrameKind::Ack,
            },
            Body::Beginning { .. } => kind == FrameKind::Link,
            Body::Unnumbered(_) => false,
        });
        let Some(header) = header else {
            cx.ledger.malformed += 1;
            return;
        };
        if self.passing.as_mut().is_some_and(|it| !it.admit(seq)) {
            cx.ledger.out_of_window += 1;
            return;
        }
        let before = self.station.counts();
        let len = frame.payload_len();
        let information = frame.into_packet().map(|packet| Carried {
            packet,
            came: Noted(cx.now),
            repaired: kind == FrameKind::Retransmission,
        });
        let frame = GsmFrame {
            blocks: BLOCKS.full,
            header,
            information,
        };
        self.station.handle_frame(cx.now, frame, |up: Carried<P>| {
            cx.deliver(up.packet, up.came.0, up.repaired);
        });
        // What the frame has made due does not wait for another input.
        self.station.handle_timeout(cx.now);
        let counts = self.station.counts();
        if counts.duplicates > before.duplicates {
            cx.ledger.repeat(kind == FrameKind::Data, len);
        }
        cx.ledger.out_of_window += counts.refused - before.refused;
        self.settle(cx, before);
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        let before = self.station.counts();
        self.ack.handle_timeout(cx.now);
        self.station.handle_timeout(cx.now);
        self.settle(cx, before);
    }

    /// Resets, requests, answers, polls and repairs.
    fn poll_frame(&mut self, cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        self.station.owes().then(|| self.next(cx.now, None))?
    }

    fn has_room(&self) -> bool {
        self.station.has_room()
    }

    fn send(&mut self, cx: &mut Context<'_, P>, packet: P, _from: Origin) -> Frame<P> {
        let frame = self.next(cx.now, Some(packet));
        frame.expect("there is room, and nothing goes before new packets")
    }

    /// An acknowledgment without a packet.
    fn poll_spare(&mut self, cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        let due = self.ack.is_due() && self.station.has_news();
        due.then(|| self.next(cx.now, None))?
    }

    fn has_frames(&self) -> bool {
        self.station.owes() || self.ack.is_due()
    }

    fn start_timers(&mut self, header: &Header, left: Instant) {
        if let Some(header) = Octets::decode(header.octets) {
            self.station.left(header, left);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earliest(self.station.poll_timeout(), self.ack.deadline())
    }

    fn packet_number(&self, header: &Header) -> Seq {
        let octets = Octets::decode(header.octets);
        match octets.map(|octets| octets.body) {
            Some(Body::Numbered { carries, .. }) => carries.map_or(Seq::MAX, Seq::from),
            _ => Seq::MAX,
        }
    }

    fn set_timer_factor(&mut self, factor: f64) {
        self.policy.set_factor(factor);
        self.keep_time();
    }

    fn retime(&mut self, fresh: Self) {
        self.policy.retime(&fresh.policy);
        self.keep_time();
    }

    /// At the end that has given up, the station's own reset is still to come.
    fn reset(&mut self, cx: &mut Context<'_, P>) {
        if !std::mem::take(&mut self.begins) {
            self.station.leave();
            if let Some(passing) = &mut self.passing {
                (passing.next, passing.newest) = (0, None);
            }
            self.policy.on_progress();
            self.keep_time();
        }
        self.ack = DelayedAck::default();
        while let Some(lost) = self.station.poll_abandoned() {
            cx.out.lost.push(lost.packet);
        }
    }

    fn is_idle(&self) -> bool {
        self.station.is_settled() && self.ack.is_idle()
    }

    fn linger(&self) -> Duration {
        self.policy.rto() * LINGER_TIMEOUTS
    }

    fn srtt(&self) -> Option<Duration> {
        self.policy.srtt()
    }
}
