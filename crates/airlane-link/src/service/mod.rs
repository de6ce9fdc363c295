//! The services: each believes that it is alone on the link.
//!
//! A service takes packets when it has room for them, frames when they arrive, and the time; it
//! gives frames when asked, in the order control, repairs, new packets, and tells its next
//! deadline. It never sees the scheduler, the other services or the kind of traffic
//! (Xylomenos 1999, section 6.2.2; XYL-R-1).

mod default;
mod gbn;
mod hybrid;
#[cfg(test)]
mod model;
mod rlp;
mod rse;
mod rse_ad;
mod selective;
mod snoop;
mod sr;
mod sr_bitmap;
mod sr_m1;
mod sr_m2;
pub(crate) mod xor;

use std::collections::VecDeque;

use airlane_base::{Contents, Damage, Duration, Instant, Payload, SeqSpace};

use crate::config::{BaseStation, Hybrid, SchemeConfig};
use crate::flow::Packet;
use crate::ledger::{EpochLoss, ServiceLedger};
use crate::mechanism::compaction::Expander;
use crate::mechanism::dejitter::Dejitter;
use crate::mechanism::reassembly::Reassembly;
use crate::mechanism::symbols::Shape;
use crate::mechanism::timers::{LinkTiming, TimerPolicy};
use crate::wire::{Bitmap, Codec, Frame, Header, Layout};

pub(crate) use default::DefaultService;
pub(crate) use gbn::GoBackN;
pub(crate) use rlp::Rlp;
use rse::Rse;
use rse_ad::RseAd;
use selective::SelectiveRepeat;
use snoop::Snoop;
pub use snoop::SnoopCounts;
use sr_bitmap::SrBitmap;
pub(crate) use xor::Xor;

/// A removed service answers for this many timeouts more, so that the peer can finish too.
const LINGER_TIMEOUTS: u64 = 8;

/// The earlier of two deadlines.
pub(crate) fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// What a service may touch while it works.
pub(crate) struct Context<'a, P> {
    pub(crate) now: Instant,
    /// Packets on their way up.
    pub(crate) up: &'a mut VecDeque<P>,
    pub(crate) ledger: &'a mut ServiceLedger,
    /// Through which they go up, where the service has one.
    pub(crate) dejitter: Option<&'a mut Dejitter<P>>,
    /// The queue of the link below grows: nothing goes that nobody has asked for.
    pub(crate) congested: bool,
    /// The round trip that a frame has just shown, the time in the peer left out.
    pub(crate) round_trip: Option<Duration>,
    /// Where packets in parts are put together; without it they are dropped.
    pub(crate) reassembly: Option<&'a mut Reassembly<P>>,
    /// Where short headers become long again; without it such packets are dropped.
    pub(crate) expander: Option<&'a mut Expander>,
}

impl<'a, P: Payload> Context<'a, P> {
    pub(crate) fn new(
        now: Instant,
        up: &'a mut VecDeque<P>,
        ledger: &'a mut ServiceLedger,
    ) -> Self {
        Self {
            now,
            up,
            ledger,
            dejitter: None,
            congested: false,
            round_trip: None,
            reassembly: None,
            expander: None,
        }
    }

    /// A frame may have shown how long a round trip takes.
    pub(crate) fn note_round_trip(&mut self, policy: &mut TimerPolicy, shown: Option<Duration>) {
        if let Some(round_trip) = shown {
            policy.sample(round_trip);
            self.round_trip = shown;
        }
    }

    /// Gives what a frame carried to the layer above. `since` is when the frame arrived, or when its loss
    /// was noticed.
    pub(crate) fn deliver(&mut self, payload: P, since: Instant, recovered: bool) {
        match &mut self.dejitter {
            Some(buffer) => {
                buffer.push(self.now, payload, since, recovered);
                self.release();
            }
            None => self.give(payload, since, recovered),
        }
    }

    /// Gives up what the de-jitter buffer need not hold any longer.
    pub(crate) fn release(&mut self) {
        while let Some(held) = self
            .dejitter
            .as_mut()
            .and_then(|buffer| buffer.pop(self.now))
        {
            self.give(held.packet, held.since, held.repaired);
        }
    }

    /// Gives up what the de-jitter buffer holds, and needs it no more.
    pub(crate) fn release_all(&mut self) {
        if let Some(buffer) = self.dejitter.take() {
            while let Some(held) = buffer.pop(Instant::FAR_FUTURE) {
                self.give(held.packet, held.since, held.repaired);
            }
            buffer.forget();
        }
    }

    /// Its packet, its packets, or the one that it completes.
    fn give(&mut self, payload: P, since: Instant, recovered: bool) {
        match payload.contents() {
            Contents::Packet | Contents::Short => self.deliver_packet(payload, since, recovered),
            Contents::Aggregate => {
                let before = self.ledger.packets_delivered;
                payload.packets(&mut |packet| self.deliver_packet(packet, since, recovered));
                let packets = self.ledger.packets_delivered - before;
                self.ledger.joined_delivered += packets.saturating_sub(1);
            }
            Contents::Fragment(which) => {
                self.ledger.fragments_received += 1;
                let (now, ledger) = (self.now, &mut *self.ledger);
                let whole = match &mut self.reassembly {
                    Some(reassembly) => reassembly.take(now, which, payload, ledger),
                    None => None,
                };
                if let Some(packet) = whole {
                    let before = self.ledger.packets_delivered;
                    self.deliver_packet(packet, since, recovered);
                    self.ledger.packets_reassembled += self.ledger.packets_delivered - before;
                }
            }
            Contents::Malformed => self.ledger.malformed += 1,
        }
    }

    fn deliver_packet(&mut self, packet: P, since: Instant, recovered: bool) {
        let Some(packet) = self.expanded(packet) else {
            self.ledger.headers_unknown += 1;
            return;
        };
        let len = packet.len() as u64;
        self.ledger.packets_delivered += 1;
        self.ledger.delivered_bytes += len;
        if recovered {
            self.ledger.packets_recovered += 1;
            self.ledger.recovered_bytes += len;
        }
        self.ledger.hold_ns += self.now.saturating_since(since).as_nanos();
        self.up.push_back(packet);
    }

    fn expanded(&mut self, packet: P) -> Option<P> {
        match packet.contents() {
            Contents::Short => self.expander.as_mut()?.expand(packet),
            _ => Some(packet),
        }
    }
}

/// What a scheme must do. See the module's description for the rules.
pub(crate) trait Scheme<P: Payload> {
    /// Takes a frame of this service from the peer.
    fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>);
    /// Takes a frame that the link has damaged: the header as it was read, its check held; the frame
    /// as it was sent, of which nothing may be used but what `damage` leaves. Whether it was of use.
    fn handle_damaged(
        &mut self,
        _cx: &mut Context<'_, P>,
        _header: &Header,
        _frame: &Frame<P>,
        _damage: &Damage,
    ) -> bool {
        false
    }
    /// Acts on timers that have run out by now; an early call does nothing.
    fn handle_timeout(&mut self, cx: &mut Context<'_, P>);
    /// The next frame to hand over. `source` gives the next packet that waits, and is asked only
    /// when there is room for it.
    fn poll_frame(
        &mut self,
        cx: &mut Context<'_, P>,
        source: &mut dyn FnMut() -> Option<P>,
    ) -> Option<Frame<P>>;
    /// Whether [`Scheme::poll_frame`] may give a frame when no packet waits. May be wrong by saying yes;
    /// a scheme that is asked after every input and mostly has nothing spares the port the question.
    fn has_frames(&self) -> bool {
        true
    }
    /// A frame has been handed over (`left` = now) or its last bit leaves at `left`, whichever
    /// event the timer origin of this service names.
    fn start_timers(&mut self, header: &Header, left: Instant);
    /// When the packet of a frame that is handed over came to the port; told only where there is a
    /// budget.
    fn note_age(&mut self, _header: &Header, _came: Instant) {}
    /// When `handle_timeout` has something to do.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Inflates fixed timers for sharing.
    fn set_timer_factor(&mut self, factor: f64);
    /// The link has another rate: takes over what `fresh`, made for it, was told by the port.
    fn retime(&mut self, fresh: Self)
    where
        Self: Sized;
    /// Forgets all numbers and frames: a new epoch. What is held behind a hole goes up; what was
    /// unacknowledged is lost.
    fn reset(&mut self, cx: &mut Context<'_, P>, lost: &mut EpochLoss);
    /// Nothing outstanding, nothing missing, nothing to send.
    fn is_idle(&self) -> bool;
    /// How long the peer may still need answers after this end has become idle.
    fn linger(&self) -> Duration {
        Duration::ZERO
    }
    /// Smoothed round trip, where this scheme measures it.
    fn srtt(&self) -> Option<Duration> {
        None
    }
}

/// What every scheme is told about the port it lives in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortFacts {
    pub(crate) codec: Codec,
    pub(crate) rate: airlane_base::Rate,
    pub(crate) delay: Duration,
    pub(crate) max_payload: usize,
    pub(crate) frame_overhead: usize,
}

impl PortFacts {
    pub(crate) fn space(&self, layout: Layout) -> SeqSpace {
        self.codec.space(layout)
    }

    pub(crate) fn is_live(&self) -> bool {
        self.codec.profile().is_live()
    }

    /// How long a full frame of the peer may be on its way: through the frame before it, and its
    /// own time.
    pub(crate) fn on_its_way(&self, layout: Layout) -> Duration {
        let len = self.max_payload + self.codec.header_len(layout) + self.frame_overhead;
        self.delay + self.rate.transmission_time(len) * 2
    }

    /// The same for frames cut into symbols.
    fn timing_of(&self, shape: Shape) -> LinkTiming {
        let timing = self.timing(Layout::Symbols);
        LinkTiming {
            data_overhead: timing.data_overhead + shape.overhead(self.max_payload),
            ..timing
        }
    }

    fn timing(&self, layout: Layout) -> LinkTiming {
        let header = |layout| self.codec.header_len(layout) + self.frame_overhead;
        LinkTiming {
            rate: self.rate,
            delay: self.delay,
            max_payload: self.max_payload,
            data_overhead: header(layout),
            control_len: match layout {
                // The longest: it is the one that comes after a loss.
                Layout::Bitmap => header(layout) + Bitmap::MAX_LEN,
                _ => header(layout),
            },
            rlp_overhead: header(Layout::Seq),
        }
    }
}

/// The closed set of services.
#[derive(Clone, Debug)]
pub(crate) enum Service<P> {
    Default(DefaultService),
    Gbn(GoBackN<P>),
    Sr(SelectiveRepeat<P, sr::OneNak>),
    SrM1(SelectiveRepeat<P, sr_m1::NakForEach>),
    SrM2(SelectiveRepeat<P, sr_m2::NaksForEach>),
    SrBitmap(SrBitmap<P>),
    Rlp(Rlp<P>),
    Hybrid1(Rlp<P, hybrid::Inside>),
    Hybrid2(Rlp<P, hybrid::Increments>),
    Xor(Xor<P>),
    Rse(Rse<P>),
    RseAd(RseAd<P>),
    Snoop(Snoop<P>),
}

macro_rules! each {
    ($self:expr, $s:ident => $body:expr) => {
        match $self {
            Service::Default($s) => $body,
            Service::Gbn($s) => $body,
            Service::Sr($s) => $body,
            Service::SrM1($s) => $body,
            Service::SrM2($s) => $body,
            Service::SrBitmap($s) => $body,
            Service::Rlp($s) => $body,
            Service::Hybrid1($s) => $body,
            Service::Hybrid2($s) => $body,
            Service::Xor($s) => $body,
            Service::Rse($s) => $body,
            Service::RseAd($s) => $body,
            Service::Snoop($s) => $body,
        }
    };
}

impl<P: Packet> Service<P> {
    /// `scheme` must be resolved: no option left out.
    pub(crate) fn new(scheme: &SchemeConfig, budget: Option<Duration>, facts: &PortFacts) -> Self {
        let timing = &facts.timing(Self::layout(scheme));
        match scheme {
            SchemeConfig::Default(_) => Self::Default(DefaultService::new(facts)),
            SchemeConfig::Gbn(c) => Self::Gbn(GoBackN::new(c, facts, timing)),
            SchemeConfig::Sr(c) => Self::Sr(SelectiveRepeat::new(c, facts, timing)),
            SchemeConfig::SrM1(c) => Self::SrM1(SelectiveRepeat::new(c, facts, timing)),
            SchemeConfig::SrM2(c) => Self::SrM2(SelectiveRepeat::new(c, facts, timing)),
            SchemeConfig::SrBitmap(c) => Self::SrBitmap(SrBitmap::new(c, facts, timing)),
            SchemeConfig::Rlp(c) => {
                Self::Rlp(Rlp::new(c, budget, rlp::Order::InOrder, facts, timing))
            }
            SchemeConfig::RlpOos(c) => {
                Self::Rlp(Rlp::new(c, budget, rlp::Order::AsReceived, facts, timing))
            }
            SchemeConfig::Hybrid1(c) => {
                let shape = c.shape(Hybrid::Inside);
                let inside = hybrid::Inside::new(shape, facts);
                let timing = &facts.timing_of(shape);
                let order = rlp::Order::InOrder;
                Self::Hybrid1(Rlp::combining(
                    &c.rlp(),
                    budget,
                    inside,
                    order,
                    facts,
                    timing,
                ))
            }
            SchemeConfig::Hybrid2(c) => {
                let (shape, rlp) = (c.shape(Hybrid::Increments), c.rlp());
                let window = rlp.window.unwrap_or(127);
                let increments = hybrid::Increments::new(shape, window, facts);
                let timing = &facts.timing_of(shape);
                let order = rlp::Order::InOrder;
                Self::Hybrid2(Rlp::combining(
                    &rlp, budget, increments, order, facts, timing,
                ))
            }
            SchemeConfig::Snoop(c) => {
                let here = c.base_station == BaseStation::Here;
                Self::Snoop(Snoop::new(here, c.variant, facts))
            }
            SchemeConfig::Xor(c) => Self::Xor(Xor::new(c.block(), facts)),
            SchemeConfig::Rse(c) => Self::Rse(Rse::new(c.block(), c.parity(), facts)),
            SchemeConfig::RseAd(c) => Self::RseAd(RseAd::new(c, facts, timing)),
            SchemeConfig::XorAd(c) => Self::Xor(Xor::adaptive(c.block(), c.silence, facts)),
        }
    }

    /// The header layout of a scheme's frames.
    pub(crate) const fn layout(scheme: &SchemeConfig) -> Layout {
        match scheme {
            SchemeConfig::Default(_) | SchemeConfig::Snoop(_) => Layout::Bare,
            SchemeConfig::Gbn(_)
            | SchemeConfig::Sr(_)
            | SchemeConfig::SrM1(_)
            | SchemeConfig::SrM2(_) => Layout::SeqAck,
            SchemeConfig::SrBitmap(_) => Layout::Bitmap,
            SchemeConfig::Rlp(_) | SchemeConfig::RlpOos(_) => Layout::Seq,
            SchemeConfig::Xor(_) | SchemeConfig::Rse(_) | SchemeConfig::RseAd(_) => Layout::Coded,
            SchemeConfig::XorAd(_) => Layout::Block,
            SchemeConfig::Hybrid1(_) | SchemeConfig::Hybrid2(_) => Layout::Symbols,
        }
    }

    pub(crate) fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        each!(self, s => s.handle_frame(cx, frame));
    }

    pub(crate) fn handle_damaged(
        &mut self,
        cx: &mut Context<'_, P>,
        header: &Header,
        frame: &Frame<P>,
        damage: &Damage,
    ) -> bool {
        each!(self, s => s.handle_damaged(cx, header, frame, damage))
    }

    pub(crate) fn handle_timeout(&mut self, cx: &mut Context<'_, P>) {
        each!(self, s => s.handle_timeout(cx));
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_, P>,
        source: &mut dyn FnMut() -> Option<P>,
    ) -> Option<Frame<P>> {
        each!(self, s => s.poll_frame(cx, source))
    }

    pub(crate) fn has_frames(&self) -> bool {
        each!(self, s => Scheme::<P>::has_frames(s))
    }

    pub(crate) fn start_timers(&mut self, header: &Header, left: Instant) {
        each!(self, s => Scheme::<P>::start_timers(s, header, left));
    }

    pub(crate) fn note_age(&mut self, header: &Header, came: Instant) {
        each!(self, s => Scheme::<P>::note_age(s, header, came));
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        each!(self, s => Scheme::<P>::poll_timeout(s))
    }

    pub(crate) fn set_timer_factor(&mut self, factor: f64) {
        each!(self, s => Scheme::<P>::set_timer_factor(s, factor));
    }

    /// Goes on with everything it knows on a link of another rate. `fresh` is the same service made for it.
    pub(crate) fn retime(&mut self, fresh: Self) {
        macro_rules! same {
            ($($variant:ident),+) => {
                match (self, fresh) {
                    $((Self::$variant(s), Self::$variant(f)) => Scheme::<P>::retime(s, f),)+
                    _ => debug_assert!(false, "a service stays of its kind"),
                }
            };
        }
        same!(
            Default, Gbn, Sr, SrM1, SrM2, SrBitmap, Rlp, Hybrid1, Hybrid2, Xor, Rse, RseAd, Snoop
        );
    }

    pub(crate) fn reset(&mut self, cx: &mut Context<'_, P>, lost: &mut EpochLoss) {
        each!(self, s => s.reset(cx, lost));
    }

    pub(crate) fn is_idle(&self) -> bool {
        each!(self, s => Scheme::<P>::is_idle(s))
    }

    pub(crate) fn linger(&self) -> Duration {
        each!(self, s => Scheme::<P>::linger(s))
    }

    /// What a Snoop agent here did, by application.
    pub(crate) fn snoop(&self) -> &[SnoopCounts] {
        match self {
            Self::Snoop(snoop) => snoop.counts(),
            _ => &[],
        }
    }

    pub(crate) fn srtt(&self) -> Option<Duration> {
        each!(self, s => Scheme::<P>::srtt(s))
    }
}

#[cfg(test)]
mod tests {
    use airlane_base::Fragment;

    use super::*;

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
        let (mut up, mut ledger) = (VecDeque::new(), ServiceLedger::default());
        let mut reassembly = Reassembly::new(true);
        let mut expander = Expander::default();
        let mut cx = Context::new(Instant::ORIGIN, &mut up, &mut ledger);
        (cx.reassembly, cx.expander) = (Some(&mut reassembly), Some(&mut expander));
        for (index, last) in [(0, false), (1, true)] {
            let packet = 7;
            let which = Fragment {
                packet,
                index,
                last,
            };
            cx.deliver(Part(Contents::Fragment(which)), Instant::ORIGIN, false);
        }
        assert!(up.is_empty());
        assert_eq!(ledger.headers_unknown, 1);
        assert_eq!(ledger.packets_reassembled, 0);
        assert_eq!(ledger.originals_delivered(), 2);
    }
}
