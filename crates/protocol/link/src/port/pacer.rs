//! Nominal-time pacing (Xylomenos 1999, section 6.2.1; section 9.2 of docs/spec/multi-service.md).
//!
//! After a packet, IP may hand in the next only when the packet would have left if it were sent
//! bare, or with the overhead that every frame has. So the queue of a congested link stands at IP, in front of the classifier, and the
//! services hold only what they add themselves: headers, repairs and control frames.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Payload, QueueLimit, Rate};

/// The IP queue in front of the classifier.
#[derive(Clone, Debug)]
pub(super) struct Pacer<P> {
    rate: Rate,
    limit: QueueLimit,
    /// Bytes beside each packet that count.
    overhead: usize,
    /// When the next packet may be handed in.
    open_at: Instant,
    /// Packets that wait, with their service and when they came.
    queue: VecDeque<(usize, P, Instant)>,
    bytes: usize,
}

impl<P: Payload> Pacer<P> {
    pub(super) fn new(rate: Rate, limit: QueueLimit, overhead: usize) -> Self {
        Self {
            rate,
            limit,
            overhead,
            open_at: Instant::ORIGIN,
            queue: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Paces at another rate, from the next packet on.
    pub(super) fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Whether a packet that comes now goes straight through.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.queue.is_empty() && now >= self.open_at
    }

    /// A packet of `len` bytes is handed in.
    pub(super) fn pass(&mut self, now: Instant, len: usize) {
        self.open_at = now + self.nominal(len);
    }

    /// Queues a packet, or gives back what does not fit.
    pub(super) fn push(&mut self, now: Instant, service: usize, packet: P) -> Result<(), P> {
        let len = packet.len();
        if !self.limit.admits(self.queue.len(), self.bytes, len) {
            return Err(packet);
        }
        self.bytes += len;
        self.queue.push_back((service, packet, now));
        Ok(())
    }

    /// The next packet that may be handed in by now, with its service and when it came.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(usize, P, Instant)> {
        if now < self.open_at {
            return None;
        }
        let (service, packet, since) = self.queue.pop_front()?;
        self.bytes -= packet.len();
        // The queue did not run dry: the next time counts from this one, however late the call.
        self.open_at += self.nominal(packet.len());
        Some((service, packet, since))
    }

    fn nominal(&self, len: usize) -> Duration {
        self.rate.transmission_time(len + self.overhead)
    }

    /// Empties the queue.
    pub(super) fn take(&mut self) -> VecDeque<(usize, P, Instant)> {
        self.bytes = 0;
        std::mem::take(&mut self.queue)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (!self.queue.is_empty()).then_some(self.open_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_frame_has_may_count() {
        // At 8 kbit/s a byte takes a millisecond.
        let rate: Rate = "8 kbit/s".parse().unwrap();
        let limit = QueueLimit::Packets(2);
        for (overhead, next) in [(0, 50), (1, 51)] {
            let mut pacer: Pacer<Vec<u8>> = Pacer::new(rate, limit, overhead);
            let at = |ms| Instant::ORIGIN + Duration::from_millis(ms);
            assert!(pacer.is_open(at(0)));
            pacer.pass(at(0), 50);
            pacer.push(at(1), 0, vec![0; 50]).unwrap();
            assert_eq!(pacer.poll_timeout(), Some(at(next)));
            assert!(pacer.pop(at(next - 1)).is_none());
            assert!(pacer.pop(at(next)).is_some());
            // The next one counts from then, however late it was asked for.
            assert!(!pacer.is_open(at(2 * next - 1)));
            assert!(pacer.is_open(at(2 * next)));
        }
    }
}
