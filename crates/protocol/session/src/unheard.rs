//! Detects whether the peer hears this end: its hellos say which of ours it heard last.

use airlane_base::{Duration, Instant};

/// Consecutive hellos of the peer that echo an old one of ours before it counts as deaf: a single one may be lost.
const STALE: u32 = 3;

/// Tracks how long the peer has missed our hellos.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unheard {
    /// When the hello left that the peer heard last, by our clock; 0 if none.
    echoed_ns: u64,
    /// When the first hello after that left, or shortly afterwards.
    missed: Option<Instant>,
    /// Hellos of the peer since then without a newer echo.
    stale: u32,
    since: Option<Instant>,
}

impl Unheard {
    /// Notes that we send a hello.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        self.missed.get_or_insert(now);
    }

    /// Notes that the peer has proved to hear us other than by an echo.
    pub(crate) fn on_heard(&mut self, now: Instant) {
        *self = Self {
            echoed_ns: self.echoed_ns,
            missed: self.missed.map(|_| now),
            ..Self::default()
        };
    }

    /// Takes the peer's echo of our hellos; our newest left at `last`. The peer counts as deaf if several of its hellos
    /// echo one that was followed by another more than `patience` ago.
    pub(crate) fn on_echo(
        &mut self,
        now: Instant,
        echoed_ns: u64,
        last: Option<Instant>,
        patience: Duration,
    ) {
        if echoed_ns != self.echoed_ns {
            self.echoed_ns = echoed_ns;
            self.on_heard(now);
            if last.is_none_or(|last| last.as_nanos() == echoed_ns) {
                self.missed = None;
            }
            return;
        }
        let Some(missed) = self.missed else { return };
        self.stale = self.stale.saturating_add(1);
        if self.stale >= STALE && now.saturating_since(missed) >= patience {
            self.since.get_or_insert(missed);
        }
    }

    /// Since when the peer has not heard this end, according to its hellos.
    pub(crate) const fn since(&self) -> Option<Instant> {
        self.since
    }
}
