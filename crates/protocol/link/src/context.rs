//! What a port lends a service for the length of a call, and the facts about the port that a service may use.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};

use airlane_base::{Duration, Instant, Payload, Rate, SeqSpace};

use crate::flow::Lane;
use crate::ledger::ServiceLedger;
use crate::wire::{Codec, Layout};

/// The earlier of two deadlines.
#[inline]
pub(crate) fn earliest(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// A time that is recorded for metrics and affects no decision. Model checking treats states that differ only
/// in such times as equal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted(pub(crate) Instant);

/// Written to the hasher as an `i128`: no other number has that width and sign, and an [`Instant`] has no
/// sign.
impl Hash for Noted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_i128(self.0.as_nanos().into());
    }
}

/// A payload that a service passes to the layer above.
#[derive(Clone, Debug)]
pub(crate) struct DeliveredPayload<P> {
    /// Number of the service.
    pub(crate) service: u8,
    pub(crate) payload: P,
    /// When its frame arrived, or when its loss was detected.
    pub(crate) since: Instant,
    /// Whether it arrived in a repair.
    pub(crate) repaired: bool,
}

/// Where a new payload comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// When its packet arrived at the port; none for every fragment but the first.
    pub(crate) came: Option<Instant>,
    /// Which other packets it must not overtake, on a service that delivers out of order.
    pub(crate) lane: Lane,
    /// Whether part of it is still useful at any age.
    pub(crate) endures: bool,
}

/// How old packets may become; none: no limit.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct Ages {
    /// The limit for enduring packets: the budget alone.
    pub(crate) enduring: Option<Duration>,
    /// The limit for all other packets.
    other: Option<Duration>,
}

impl Ages {
    pub(crate) fn new(budget: Option<Duration>, patience: Option<Duration>) -> Self {
        Self {
            enduring: budget,
            other: budget.into_iter().chain(patience).min(),
        }
    }

    /// The time after which this payload is of no more use; none: never.
    #[inline]
    pub(crate) fn end(&self, from: &Origin) -> Option<Instant> {
        let most = match from.endures {
            true => self.enduring,
            false => self.other,
        };
        Some(from.came? + most?)
    }
}

/// An exceptional event in a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceEvent {
    /// Number of the service.
    pub service: u8,
    /// The scheme's name for it, such as `gave-up`.
    pub name: &'static str,
    /// Whether it reset the service.
    pub reset: bool,
}

/// An event that a scheme reports to its port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SchemeEvent {
    pub(crate) event: &'static str,
    /// Whether the scheme demands a reset of the service.
    pub(crate) reset: bool,
}

/// The output of a service other than frames.
#[derive(Clone, Debug)]
pub(crate) struct Output<P> {
    /// Packets for IP; they precede those still in `payloads`.
    pub(crate) up: VecDeque<P>,
    /// Payloads to unpack, in delivery order.
    pub(crate) payloads: VecDeque<DeliveredPayload<P>>,
    /// Number of the service that produces the output.
    pub(crate) service: u8,
    /// Payloads that were unacknowledged when the service was reset.
    pub(crate) lost: Vec<P>,
    /// Events that the port has not processed yet.
    pub(crate) events: Vec<SchemeEvent>,
}

impl<P> Default for Output<P> {
    fn default() -> Self {
        Self {
            up: VecDeque::new(),
            payloads: VecDeque::new(),
            service: 0,
            lost: Vec::new(),
            events: Vec::new(),
        }
    }
}

/// What a service may use during a call.
pub(crate) struct Context<'a, P> {
    pub(crate) now: Instant,
    pub(crate) out: &'a mut Output<P>,
    pub(crate) ledger: &'a mut ServiceLedger,
    /// Whether each payload is a whole packet that goes up unchanged, at once.
    plain: bool,
}

impl<'a, P> Context<'a, P> {
    #[inline]
    pub(crate) fn new(now: Instant, out: &'a mut Output<P>, ledger: &'a mut ServiceLedger) -> Self {
        Self {
            now,
            out,
            ledger,
            plain: false,
        }
    }

    /// The same context; with `plain`, payloads go up unchanged.
    #[inline]
    pub(crate) fn plain(self, plain: bool) -> Self {
        Self { plain, ..self }
    }

    /// Passes a frame's payload to the layer above. `since` is when the frame arrived, or when its loss was
    /// detected.
    #[inline]
    pub(crate) fn deliver(&mut self, payload: P, since: Instant, repaired: bool)
    where
        P: Payload,
    {
        if self.plain && self.out.payloads.is_empty() {
            self.out.up.push_back(payload);
            // Its length is read in place: reading it first would move the packet in pieces.
            let len = self.out.up.back().map_or(0, Payload::len);
            let held = self.now.saturating_since(since);
            self.ledger.deliver(len, held, repaired);
        } else {
            self.give(payload, since, repaired);
        }
    }

    fn give(&mut self, payload: P, since: Instant, repaired: bool) {
        self.out.payloads.push_back(DeliveredPayload {
            service: self.out.service,
            payload,
            since,
            repaired,
        });
    }

    /// Reports an exceptional event by the scheme's name for it, such as `gave-up`. The port counts events by
    /// name.
    #[cold]
    pub(crate) fn tell(&mut self, event: &'static str) {
        let reset = false;
        self.out.events.push(SchemeEvent { event, reset });
    }

    /// Reports an event that requires a reset of the service. After the present call the port resets this
    /// service as a new epoch would: it discards frames that have not left, delivers what was passed up,
    /// calls the scheme's `reset` to forget all sequence numbers, and counts unacknowledged packets as lost;
    /// queued packets stay. This resets one end only: the scheme asks the other end to reset by a frame of
    /// its own, which must be distinguishable from any old frame.
    #[cold]
    pub(crate) fn demand_reset(&mut self, event: &'static str) {
        let reset = true;
        self.out.events.push(SchemeEvent { event, reset });
    }
}

/// The facts about its port that every scheme may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortFacts {
    pub(crate) codec: Codec,
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    pub(crate) max_payload: usize,
    pub(crate) frame_overhead: usize,
}

impl PortFacts {
    pub(crate) fn space(&self, layout: &Layout) -> SeqSpace {
        self.codec.space(layout)
    }

    pub(crate) fn is_live(&self) -> bool {
        self.codec.profile().is_live()
    }

    /// The longest transit time of a full frame from the peer: the propagation delay, the frame ahead of it,
    /// and its own serialisation.
    pub(crate) fn on_its_way(&self, layout: &Layout) -> Duration {
        let len = self.max_payload + self.codec.header_len(layout) + self.frame_overhead;
        self.delay + self.rate.transmission_time(len) * 2
    }
}
