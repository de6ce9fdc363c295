//! The fate of a flow's datagrams, which are not retransmitted.
//!
//! A datagram sent before the stop arrived by then, arrives later, or never arrives. Only time tells the last two
//! apart, so the world runs on after the stop until all datagrams have arrived, or none has for [`PATIENCE`]. The
//! length of the drain (`drain`) does not change that.

use airlane_base::{Duration, Instant};

use crate::packet::Packet;
use crate::probe::{DelayProbe, JitterProbe};

/// A datagram that arrives later than this after the previous one, or after the stop, counts as lost.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The datagrams of one flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Datagrams {
    pub(crate) sent: u64,
    /// Arrived by the stop.
    pub(crate) received: u64,
    /// Bytes of the received datagrams.
    pub(crate) bytes: u64,
    /// Of all that arrived, before or after the stop.
    pub(crate) delays: DelayProbe,
    /// Of all that arrived, before or after the stop.
    pub(crate) jitter: JitterProbe,
    /// Destination of the first datagram; any other destination is the opposite direction.
    first_to: Option<u16>,
    /// Since the stop: when the last datagram arrived, or the stop itself.
    silent: Option<Instant>,
}

impl Datagrams {
    /// A datagram has arrived.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, packet: &Packet) {
        match &mut self.silent {
            None => {
                self.received += 1;
                self.bytes += u64::from(packet.len);
            }
            Some(since) if now > *since + PATIENCE => return,
            Some(since) => *since = now,
        }
        let delay = now.saturating_since(packet.created);
        self.delays.record(delay);
        let first_to = *self.first_to.get_or_insert(packet.to);
        self.jitter
            .record(usize::from(packet.to != first_to), delay);
    }

    pub(crate) fn stop(&mut self, now: Instant) {
        self.silent = Some(now);
    }

    /// Datagrams that arrived after the stop.
    pub(crate) fn under_way(&self) -> u64 {
        self.came() - self.received
    }

    /// Datagrams that arrived, before or after the stop.
    pub(crate) fn came(&self) -> u64 {
        self.delays.count()
    }

    /// After the stop: until when to wait for the next datagram, if one is missing.
    pub(crate) fn awaited(&self) -> Option<Instant> {
        let since = self.silent.filter(|_| self.came() < self.sent)?;
        Some(since + PATIENCE)
    }
}
