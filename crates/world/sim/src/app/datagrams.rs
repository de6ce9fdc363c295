//! What becomes of the datagrams of a flow, which nobody sends again.
//!
//! A datagram that was sent by the stop came by then, is under way and comes later, or never comes. Only time tells the
//! last two apart, so the world goes on after the stop for as long as a datagram may still come: until all have, or
//! none has for [`PATIENCE`]. How long somebody watches the world after the stop (`drain`) changes nothing of that.

use airlane_base::{Duration, Instant};

use crate::packet::Packet;
use crate::probe::{DelayProbe, JitterProbe};

/// A datagram that has not come this long after the one before it, or the stop, never comes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The datagrams of one flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Datagrams {
    pub(crate) sent: u64,
    /// Those that came by the stop.
    pub(crate) received: u64,
    /// Bytes of these.
    pub(crate) bytes: u64,
    /// Of all that came, then or later.
    pub(crate) delays: DelayProbe,
    /// Of the same.
    pub(crate) jitter: JitterProbe,
    /// Where the first one went: what goes elsewhere goes the other way.
    first_to: Option<u16>,
    /// Once the applications have stopped: since when none has come.
    silent: Option<Instant>,
}

impl Datagrams {
    /// One has come.
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

    /// The applications stop.
    pub(crate) fn stop(&mut self, now: Instant) {
        self.silent = Some(now);
    }

    /// Those that came after the stop.
    pub(crate) fn under_way(&self) -> u64 {
        self.came() - self.received
    }

    /// Those that came, then or later.
    pub(crate) fn came(&self) -> u64 {
        self.delays.count()
    }

    /// After the stop: until when the next one is waited for, if one is.
    pub(crate) fn awaited(&self) -> Option<Instant> {
        let since = self.silent.filter(|_| self.came() < self.sent)?;
        Some(since + PATIENCE)
    }
}
