//! What a service is lent while it works, and what it is told of its port.

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

/// A time that decides nothing once it has passed: it is there for the books, and for what is measured. States
/// that differ in such times alone go on alike, which is what model checking lives by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted(pub(crate) Instant);

/// Hashed as wide as no other number but an [`Instant`], and with a sign, which that has not.
impl Hash for Noted {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_i128(self.0.as_nanos().into());
    }
}

/// A payload that a service gives to what stands above it.
#[derive(Clone, Debug)]
pub(crate) struct Given<P> {
    /// Number of the service.
    pub(crate) service: u8,
    pub(crate) payload: P,
    /// When its frame arrived, or when its loss was noticed.
    pub(crate) since: Instant,
    /// A repair has brought it.
    pub(crate) repaired: bool,
}

/// Where a new packet comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// When it came to the port; none for what follows the first part of one.
    pub(crate) came: Option<Instant>,
    /// Which others it must not overtake, where packets may overtake others.
    pub(crate) lane: Lane,
    /// Whether somebody wants some of it however old it is.
    pub(crate) endures: bool,
}

/// How old packets may get; none: as old as they like.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct Ages {
    /// Those that endure, by the budget alone.
    pub(crate) enduring: Option<Duration>,
    /// The others.
    other: Option<Duration>,
}

impl Ages {
    pub(crate) fn new(budget: Option<Duration>, patience: Option<Duration>) -> Self {
        Self {
            enduring: budget,
            other: budget.into_iter().chain(patience).min(),
        }
    }

    /// When it is too late for what comes from there; none: never.
    #[inline]
    pub(crate) fn end(&self, from: &Origin) -> Option<Instant> {
        let most = match from.endures {
            true => self.enduring,
            false => self.other,
        };
        Some(from.came? + most?)
    }
}

/// Something out of the ordinary that a service did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceEvent {
    /// Number of the service.
    pub service: u8,
    /// What its scheme calls it: `gave-up`.
    pub name: &'static str,
    /// The service has begun anew by it.
    pub reset: bool,
}

/// What a scheme tells its port while it works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) event: &'static str,
    /// It demands that the service begins anew.
    pub(crate) reset: bool,
}

/// What a service gives out beside frames.
#[derive(Clone, Debug)]
pub(crate) struct Output<P> {
    /// Packets for IP; before those that are still in `given`.
    pub(crate) up: VecDeque<P>,
    /// In the order in which they go up.
    pub(crate) given: VecDeque<Given<P>>,
    /// Number of the service that works now.
    pub(crate) service: u8,
    /// What was unacknowledged when the service forgot all frames.
    pub(crate) lost: Vec<P>,
    /// What the port has not heard yet.
    pub(crate) told: Vec<Told>,
}

impl<P> Default for Output<P> {
    fn default() -> Self {
        Self {
            up: VecDeque::new(),
            given: VecDeque::new(),
            service: 0,
            lost: Vec::new(),
            told: Vec::new(),
        }
    }
}

/// What a service may touch while it works.
pub(crate) struct Context<'a, P> {
    pub(crate) now: Instant,
    pub(crate) out: &'a mut Output<P>,
    pub(crate) ledger: &'a mut ServiceLedger,
    /// What is given is a packet that goes up as it is, at once.
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

    /// The same of a service whose packets go up as they are, if they are `plain`.
    #[inline]
    pub(crate) fn plain(self, plain: bool) -> Self {
        Self { plain, ..self }
    }

    /// Gives what a frame carried to the layer above. `since` is when the frame arrived, or when its loss
    /// was noticed.
    #[inline]
    pub(crate) fn deliver(&mut self, payload: P, since: Instant, repaired: bool)
    where
        P: Payload,
    {
        if self.plain && self.out.given.is_empty() {
            self.out.up.push_back(payload);
            // It is looked into where it lies: else it would be moved in pieces.
            let len = self.out.up.back().map_or(0, Payload::len);
            let held = self.now.saturating_since(since);
            self.ledger.deliver(len, held, repaired);
        } else {
            self.give(payload, since, repaired);
        }
    }

    fn give(&mut self, payload: P, since: Instant, repaired: bool) {
        self.out.given.push_back(Given {
            service: self.out.service,
            payload,
            since,
            repaired,
        });
    }

    /// Tells whoever watches of something out of the ordinary, by a name of the scheme's own: `gave-up`. The port
    /// counts it by this name.
    #[cold]
    pub(crate) fn tell(&mut self, event: &'static str) {
        let reset = false;
        self.out.told.push(Told { event, reset });
    }

    /// Tells of an event by which the service must begin anew. Once the present call has returned, the port does
    /// what it does at a new epoch, for this service alone: frames that have not left are thrown out, what was
    /// given goes up, the scheme's `reset` forgets all numbers, what was unacknowledged
    /// is counted as lost, and packets that wait stay. That is one end: the scheme has the other do so by a frame of its
    /// own, which no old frame may be taken for.
    #[cold]
    pub(crate) fn demand_reset(&mut self, event: &'static str) {
        let reset = true;
        self.out.told.push(Told { event, reset });
    }
}

/// What every scheme is told about the port it lives in.
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

    /// How long a full frame of the peer may be on its way: through the frame before it, and its
    /// own time.
    pub(crate) fn on_its_way(&self, layout: &Layout) -> Duration {
        let len = self.max_payload + self.codec.header_len(layout) + self.frame_overhead;
        self.delay + self.rate.transmission_time(len) * 2
    }
}
