//! Nominal-time pacing (Xylomenos 1999, section 6.2.1; section 9.2 of docs/spec/multi-service.md).
//!
//! After a packet, IP may hand over the next only when the first would have left, sent bare or with the
//! overhead that every frame has. So the queue of a congested link stands at IP, before the classifier, and
//! the services hold only what they add themselves: headers, repairs and control frames.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant, Payload, QueueLimit, Rate};

/// The IP queue before the classifier.
#[derive(Clone, Debug)]
pub(crate) struct Pacer<P> {
    rate: Rate,
    limit: QueueLimit,
    /// Overhead per packet that counts, bytes.
    overhead: usize,
    /// When the next packet may be handed over.
    open_at: Instant,
    /// Queued packets with service and arrival time.
    queue: VecDeque<(usize, P, Instant)>,
    bytes: usize,
}

impl<P: Payload> Pacer<P> {
    pub(crate) fn new(rate: Rate, limit: QueueLimit, overhead: usize) -> Self {
        Self {
            rate,
            limit,
            overhead,
            open_at: Instant::ORIGIN,
            queue: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Changes the rate for later packets.
    pub(crate) fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Whether a packet that arrives now passes without waiting.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        self.queue.is_empty() && now >= self.open_at
    }

    /// Records that a packet of `len` bytes passes.
    pub(crate) fn pass(&mut self, now: Instant, len: usize) {
        self.open_at = now + self.nominal(len);
    }

    /// Queues a packet, or returns it if it does not fit.
    pub(crate) fn push(&mut self, now: Instant, service: usize, packet: P) -> Result<(), P> {
        let len = packet.len();
        if !self.limit.admits(self.queue.len(), self.bytes, len) {
            return Err(packet);
        }
        self.bytes += len;
        self.queue.push_back((service, packet, now));
        Ok(())
    }

    /// The next packet that may pass by now, with its service and arrival time.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(usize, P, Instant)> {
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
    pub(crate) fn take(&mut self) -> VecDeque<(usize, P, Instant)> {
        self.bytes = 0;
        std::mem::take(&mut self.queue)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        (!self.queue.is_empty()).then_some(self.open_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_overhead_may_count() {
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
            // The next one counts from then, however late the call.
            assert!(!pacer.is_open(at(2 * next - 1)));
            assert!(pacer.is_open(at(2 * next)));
        }
    }
}
