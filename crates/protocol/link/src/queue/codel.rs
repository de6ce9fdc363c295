//! Controlled delay (CoDel), RFC 8289: drops at the head of a queue once its packets have waited longer than
//! `target` for a whole `interval`, then at intervals that shrink as `interval / sqrt(count)` until the wait
//! is below the target again.
//!
//! The names are those of the RFC's pseudo-code (section 5). Left out: ECN marking, since the link layer does
//! not write into IP headers.

use airlane_base::{Duration, Instant};

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    /// Acceptable standing delay.
    pub(super) target: Duration,
    /// How long the delay must exceed the target.
    pub(super) interval: Duration,
    /// Bytes; a queue with at most this much after its head is never a standing queue.
    pub(super) mtu: usize,
}

/// The state of CoDel for one queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Codel {
    /// When the delay will have exceeded the target for an interval; none while below it.
    first_above_time: Option<Instant>,
    /// When the next packet is to be dropped, while dropping.
    drop_next: Instant,
    /// Drops since dropping began.
    count: u32,
    /// `count` when dropping last began.
    last_count: u32,
    dropping: bool,
}

/// The head of a queue, removed from it.
pub(super) struct Head<P> {
    pub(super) packet: P,
    pub(super) enqueued: Instant,
    /// Bytes that remain in the queue.
    pub(super) backlog: usize,
}

impl Codel {
    /// The initial state.
    pub(super) const IDLE: Self = Self {
        first_above_time: None,
        drop_next: Instant::ORIGIN,
        count: 0,
        last_count: 0,
        dropping: false,
    };

    /// The packet to send. `take` removes the head of the queue; dropped packets go to `dropped`. Unless the
    /// queue is empty, there is a packet, because the last one leaves no backlog.
    pub(super) fn dequeue<P>(
        &mut self,
        parameters: &Parameters,
        now: Instant,
        mut take: impl FnMut() -> Option<Head<P>>,
        mut dropped: impl FnMut(P),
    ) -> Option<(P, Instant)> {
        let mut head = take();
        let ok_to_drop = self.ok_to_drop(parameters, now, head.as_ref());
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                head.into_iter().for_each(|head| dropped(head.packet));
                self.count = self.count.saturating_add(1);
                head = take();
                self.dropping = self.ok_to_drop(parameters, now, head.as_ref());
                if self.dropping {
                    self.drop_next = control_law(self.drop_next, parameters, self.count);
                }
            }
        } else if ok_to_drop {
            head.into_iter().for_each(|head| dropped(head.packet));
            head = take();
            self.ok_to_drop(parameters, now, head.as_ref());
            self.dropping = true;
            // Dropping that resumes soon continues near the rate that last controlled the queue.
            let delta = self.count.saturating_sub(self.last_count);
            let recently = now.saturating_since(self.drop_next) < parameters.interval * 16;
            self.count = if delta > 1 && recently { delta } else { 1 };
            self.drop_next = control_law(now, parameters, self.count);
            self.last_count = self.count;
        }
        head.map(|head| (head.packet, head.enqueued))
    }

    /// Records the delay of the head; returns whether it has exceeded the target for a whole interval.
    fn ok_to_drop<P>(
        &mut self,
        parameters: &Parameters,
        now: Instant,
        head: Option<&Head<P>>,
    ) -> bool {
        let below = head.is_none_or(|head| {
            now.saturating_since(head.enqueued) < parameters.target
                || head.backlog <= parameters.mtu
        });
        if below {
            self.first_above_time = None;
            return false;
        }
        let first_above_time = *self
            .first_above_time
            .get_or_insert(now + parameters.interval);
        now >= first_above_time
    }
}

/// `t + interval / sqrt(count)`. The square root is exact in IEEE arithmetic, so the result is the same on
/// every machine.
fn control_law(t: Instant, parameters: &Parameters, count: u32) -> Instant {
    let interval = parameters.interval.as_nanos() as f64;
    t + Duration::from_nanos((interval / f64::from(count.max(1)).sqrt()) as u64)
}
