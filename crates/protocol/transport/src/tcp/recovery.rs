//! Loss detection and recovery: which segments are lost, and which one is sent next.
//!
//! A recovery acts on the other parts of its sender through `Control`. Each algorithm has a file of its own;
//! [`Recovery`] holds the one that the settings select.

mod eln;
mod fast;
mod newreno;
mod prr;
mod rack;
mod reno;
mod sack;
mod smart;
mod tahoe;
mod vegas;

use airlane_base::Instant;

use super::control::Control;
use super::{Ack, RecoveryKind, TcpConfig};
use eln::Eln;
use newreno::NewReno;
use rack::Rack;
use reno::Reno;
use sack::Sack;
use smart::Smart;
use tahoe::Tahoe;
use vegas::Vegas;

/// The recovery of one connection.
#[derive(Clone, Debug)]
pub(super) enum Recovery {
    Tahoe(Tahoe),
    Reno(Reno),
    NewReno(NewReno),
    Sack(Box<Sack>),
    Smart(Box<Smart>),
    Rack(Box<Rack>),
    Eln(Eln),
    Vegas(Box<Vegas>),
}

macro_rules! each {
    ($recovery:expr, $one:ident => $call:expr) => {
        match $recovery {
            Recovery::Tahoe($one) => $call,
            Recovery::Reno($one) => $call,
            Recovery::NewReno($one) => $call,
            Recovery::Sack($one) => $call,
            Recovery::Smart($one) => $call,
            Recovery::Rack($one) => $call,
            Recovery::Eln($one) => $call,
            Recovery::Vegas($one) => $call,
        }
    };
}

impl Recovery {
    pub(super) fn new(config: &TcpConfig) -> Self {
        match config.recovery() {
            RecoveryKind::Tahoe => Self::Tahoe(Tahoe::new(config)),
            RecoveryKind::Reno => Self::Reno(Reno::new(config)),
            RecoveryKind::NewReno => Self::NewReno(NewReno::new(config)),
            RecoveryKind::Sack => Self::Sack(Box::new(Sack::new(config))),
            RecoveryKind::Rack => Self::Rack(Box::new(Rack::new(config))),
            RecoveryKind::Smart => Self::Smart(Box::new(Smart::new())),
            RecoveryKind::Eln | RecoveryKind::ElnRxmt => Self::Eln(Eln::new(config)),
            RecoveryKind::Vegas => Self::Vegas(Box::new(Vegas::new(config))),
        }
    }

    /// An acknowledgment of new data: `ack.ack` lies between `una` and `max`.
    #[inline]
    pub(super) fn on_new_ack(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        each!(self, recovery => recovery.on_new_ack(control, now, ack));
    }

    /// A duplicate acknowledgment: it repeats the last number while data is in flight.
    pub(super) fn on_duplicate(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        each!(self, recovery => recovery.on_duplicate(control, now, ack));
    }

    /// An acknowledgment that was overtaken by a later one: its report is still new information (RFC 6675, section
    /// 5).
    #[cold]
    pub(super) fn on_overtaken(&mut self, control: &mut Control, now: Instant, ack: &Ack) {
        if let Self::Sack(_) | Self::Rack(_) | Self::Smart(_) = self {
            self.on_duplicate(control, now, ack);
        }
    }

    /// The retransmission timer has expired; it is already backed off and restarted.
    pub(super) fn on_timeout(&mut self, control: &mut Control, now: Instant) {
        each!(self, recovery => recovery.on_timeout(control, now));
    }

    /// Whether the algorithm has timers of its own.
    #[inline]
    pub(super) const fn has_timers(&self) -> bool {
        matches!(self, Self::Rack(_))
    }

    /// When `on_timer` is due; most algorithms have no timer of their own.
    #[inline]
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Self::Rack(rack) => rack.due(),
            _ => None,
        }
    }

    /// Advances the algorithm's own timers. An early call does nothing.
    #[inline]
    pub(super) fn on_timer(&mut self, control: &mut Control, now: Instant) {
        if let Self::Rack(rack) = self {
            rack.on_timer(control, now);
        }
    }

    /// Whether retransmissions of segments from `from` on are in flight, if the algorithm tracks single segments.
    pub(super) fn has_copies(&self, from: u64) -> bool {
        matches!(self, Self::Rack(rack) if rack.has_copies(from))
    }

    /// The retransmissions were spurious: the segments had not been lost.
    pub(super) fn undo(&mut self) {
        each!(self, recovery => recovery.undo());
    }

    /// Whether no segment may be sent now, if the window alone decides that.
    #[inline]
    pub(super) fn is_full(&self, control: &Control) -> bool {
        match self {
            Self::Reno(Reno { fast, .. })
            | Self::NewReno(NewReno { fast, .. })
            | Self::Eln(Eln { fast, .. }) => fast.is_full(control),
            Self::Tahoe(_) | Self::Sack(_) | Self::Smart(_) | Self::Rack(_) | Self::Vegas(_) => {
                false
            }
        }
    }

    /// The segment that may be sent now.
    #[inline]
    pub(super) fn next(&mut self, control: &mut Control, now: Instant) -> Option<u64> {
        each!(self, recovery => recovery.next(control, now))
    }
}
