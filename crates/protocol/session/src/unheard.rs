//! Whether the peer hears this end: its hellos say which of ours it heard last.

use airlane_base::{Duration, Instant};

/// Hellos of the peer in a row that have to echo an old one of ours: a single answer may be lost.
const STALE: u32 = 3;

/// Since when the peer has missed our hellos.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unheard {
    /// When the one left that the peer heard last, by our clock; 0 if none.
    echoed_ns: u64,
    /// When the first one after it left, or a moment later.
    missed: Option<Instant>,
    /// How many of the peer's have come since without a newer echo.
    stale: u32,
    since: Option<Instant>,
}

impl Unheard {
    /// A hello of ours leaves.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        self.missed.get_or_insert(now);
    }

    /// The peer shows that it heard us by something else than a hello.
    pub(crate) fn on_heard(&mut self, now: Instant) {
        *self = Self {
            echoed_ns: self.echoed_ns,
            missed: self.missed.map(|_| now),
            ..Self::default()
        };
    }

    /// The peer says which hello of ours it heard last; ours that left at `last` is the newest. It is deaf if that one is
    /// older than `patience` for several of its hellos.
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

    /// Since when the peer has not heard this end, as far as it tells.
    pub(crate) const fn since(&self) -> Option<Instant> {
        self.since
    }
}
