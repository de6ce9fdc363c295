//! The services, each of which acts as if it were alone on the link.
//!
//! A service takes packets when it has room for them, frames when they arrive, and the time; it returns
//! frames when asked, in the order control, repairs, new packets, and its next deadline. It passes up the
//! payloads of frames without knowing what they contain. It never sees the scheduler, the other services or
//! the kind of traffic (Xylomenos 1999, section 6.2.2; XYL-R-1).

mod default;
mod gbn;
mod gsm_rlp;
#[cfg(test)]
mod model;
mod rlp;
mod rse;
mod rse_ad;
mod scheme;
mod selective;
mod snoop;
mod sr;
mod sr_bitmap;
mod sr_m1;
mod sr_m2;
pub(crate) mod xor;

use airlane_base::Instant;

use crate::config::SchemeConfig;
use crate::context::{Ages, Context, Origin, PortFacts};
use crate::flow::Packet;
use crate::wire::{Frame, Header};

pub(crate) use default::DefaultService;
pub(crate) use gbn::GoBackN;
pub(crate) use gsm_rlp::GsmRlp;
pub(crate) use rlp::Rlp;
use rse::Rse;
use rse_ad::RseAd;
pub(crate) use scheme::Frames;
use scheme::Scheme;
use selective::SelectiveRepeat;
use snoop::Snoop;
pub use snoop::SnoopCounts;
use sr_bitmap::SrBitmap;
pub(crate) use xor::Xor;

/// Expands a macro with all services and further arguments.
macro_rules! with_all {
    ($then:ident!($($given:tt)*)) => {
        $then! {
            [
                Default: DefaultService,
                Gbn: GoBackN<P>,
                Sr: SelectiveRepeat<P, sr::OneNak>,
                SrM1: SelectiveRepeat<P, sr_m1::NakForEach>,
                SrM2: SelectiveRepeat<P, sr_m2::NaksForEach>,
                SrBitmap: SrBitmap<P>,
                Rlp: Rlp<P>,
                GsmRlp: GsmRlp<P>,
                Xor: Xor<P>,
                Rse: Rse<P>,
                RseAd: RseAd<P>,
                Snoop: Snoop<P>,
            ]
            $($given)*
        }
    };
}

macro_rules! define {
    ([$($variant:ident: $service:ty,)+]) => {
        /// The closed set of services.
        #[derive(Clone, Debug)]
        pub(crate) enum Service<P> {
            $($variant($service),)+
        }
    };
}

macro_rules! match_each {
    ([$($variant:ident: $service:ty,)+] $self:expr, $s:ident => $body:expr) => {
        match $self {
            $(Service::$variant($s) => $body,)+
        }
    };
}

macro_rules! retime_each {
    ([$($variant:ident: $service:ty,)+] $self:expr, $fresh:expr) => {
        match ($self, $fresh) {
            $((Service::$variant(s), Service::$variant(fresh)) => Scheme::<P>::retime(s, fresh),)+
            _ => debug_assert!(false, "a service stays of its kind"),
        }
    };
}

with_all!(define!());

macro_rules! each {
    ($self:expr, $s:ident => $body:expr) => {
        with_all!(match_each!($self, $s => $body))
    };
}

impl<P: Packet> Service<P> {
    /// `scheme` must be resolved: no option left out.
    pub(crate) fn new(scheme: &SchemeConfig, ages: Ages, facts: &PortFacts) -> Self {
        match scheme {
            SchemeConfig::Default(_) => Self::Default(DefaultService::new(facts)),
            SchemeConfig::Gbn(c) => Self::Gbn(GoBackN::new(c, facts)),
            SchemeConfig::Sr(c) => Self::Sr(SelectiveRepeat::new(c, facts)),
            SchemeConfig::SrM1(c) => Self::SrM1(SelectiveRepeat::new(c, facts)),
            SchemeConfig::SrM2(c) => Self::SrM2(SelectiveRepeat::new(c, facts)),
            SchemeConfig::SrBitmap(c) => Self::SrBitmap(SrBitmap::new(c, facts)),
            SchemeConfig::Rlp(c) => Self::Rlp(Rlp::new(c, ages, rlp::Order::InOrder, facts)),
            SchemeConfig::RlpOos(c) => Self::Rlp(Rlp::new(c, ages, rlp::Order::AsReceived, facts)),
            SchemeConfig::GsmRlp(c) => Self::GsmRlp(GsmRlp::new(c, facts)),
            SchemeConfig::Snoop(c) => Self::Snoop(Snoop::new(c, facts)),
            SchemeConfig::Xor(c) => Self::Xor(Xor::new(c.block(), facts)),
            SchemeConfig::Rse(c) => Self::Rse(Rse::new(c.block(), c.parity(), facts)),
            SchemeConfig::RseAd(c) => Self::RseAd(RseAd::new(c, facts)),
            SchemeConfig::XorAd(c) => Self::Xor(Xor::adaptive(c.block(), c.silence, facts)),
        }
    }

    /// The scheme as a trait object, for calls off the packet path.
    pub(crate) fn scheme(&self) -> &dyn Scheme<P> {
        each!(self, s => s)
    }

    /// The same, mutable.
    pub(crate) fn scheme_mut(&mut self) -> &mut dyn Scheme<P> {
        each!(self, s => s)
    }

    #[inline]
    pub(crate) fn handle_frame(&mut self, cx: &mut Context<'_, P>, frame: Frame<P>) {
        each!(self, s => s.handle_frame(cx, frame));
    }

    #[inline]
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_, P>) -> Option<Frame<P>> {
        each!(self, s => s.poll_frame(cx))
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        each!(self, s => Scheme::<P>::has_room(s))
    }

    #[inline]
    pub(crate) fn send(&mut self, cx: &mut Context<'_, P>, packet: P, from: Origin) -> Frame<P> {
        each!(self, s => s.send(cx, packet, from))
    }

    #[inline]
    pub(crate) fn has_frames(&self) -> bool {
        each!(self, s => Scheme::<P>::has_frames(s))
    }

    #[inline]
    pub(crate) fn start_timers(&mut self, header: &Header, left: Instant) {
        each!(self, s => Scheme::<P>::start_timers(s, header, left));
    }

    #[inline]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        each!(self, s => Scheme::<P>::poll_timeout(s))
    }

    /// Continues on a link of another rate. `fresh` is the same service, constructed for that rate.
    pub(crate) fn retime(&mut self, fresh: Self) {
        with_all!(retime_each!(self, fresh));
    }

    /// Counters of a Snoop agent here, by application.
    pub(crate) fn snoop(&self) -> &[SnoopCounts] {
        if let Self::Snoop(snoop) = self {
            snoop.counts()
        } else {
            &[]
        }
    }
}
