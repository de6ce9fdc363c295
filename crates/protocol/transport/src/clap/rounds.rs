//! The sender's half of CLAP's sender-driven reports (Gopal 2007, section 7.6): it keeps what the receiver has not
//! confirmed, and stops when that fills its buffer, until a report that it asks for has come.

use airlane_base::{Duration, Instant};

use super::config::ClapConfig;
use super::numbers::Numbers;
use super::packet::Nack;

#[derive(Clone, Debug)]
pub(super) struct Rounds {
    /// Packets sent and not confirmed.
    open: Numbers,
    buffer: u32,
    patience: Duration,
    /// When the report that is awaited was asked for.
    asked: Option<Instant>,
}

impl Rounds {
    pub(super) fn new(config: &ClapConfig, count: u32) -> Self {
        Self {
            open: Numbers::none(count),
            buffer: config.report_span(),
            patience: config.nack_period(),
            asked: None,
        }
    }

    /// Whether a packet may leave: not while a report is awaited, unless it is overdue.
    pub(super) fn may_send(&self, now: Instant) -> bool {
        self.asked.is_none_or(|asked| now >= asked + self.patience)
    }

    /// Whether a packet that has not been sent before fits into the buffer.
    pub(super) fn has_room(&self) -> bool {
        self.open.count() < self.buffer
    }

    /// A packet leaves; `repairs` are still to be sent, and so are new ones if `more`. True if it asks for a report.
    pub(super) fn on_sent(&mut self, now: Instant, n: u32, repairs: bool, more: bool) -> bool {
        self.open.insert(n);
        let asks = self.asked.is_some() || !(repairs || more && self.has_room());
        self.asked = asks.then_some(now);
        asks
    }

    /// A report starts at the first packet that is missing, so all before it have arrived.
    pub(super) fn on_nack(&mut self, nack: &Nack<'_>) {
        while let Some(first) = self.open.first().filter(|n| *n < nack.seq) {
            self.open.remove(first);
        }
        for (n, missing) in nack.packets() {
            if !missing {
                self.open.remove(n);
            }
        }
        self.asked = None;
    }
}
