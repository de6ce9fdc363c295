//! What the rest of the crate knows of a scheme and its options. No match has a catch-all arm, so the
//! compiler shows every place that a new scheme has to be added to.

use super::copies::CopiesConfig;
use super::problem::Wrong;
use super::timers::{Multiplier, TimerOrigin, TimersConfig};
use crate::path::Reliability;
use crate::wire::HeaderProfile;

/// The properties of a scheme that do not depend on its options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    /// The name in files.
    pub(crate) name: &'static str,
    pub(crate) reliability: Reliability,
    /// Packets leave the link in order.
    pub(crate) in_order: bool,
    /// A loss delays later packets.
    pub(crate) holds: bool,
    /// It needs one whole packet per frame, because it watches TCP segments.
    pub(crate) looks_into_packets: bool,
    /// The receiver requests lost frames, and gives up after a number of requests.
    pub(crate) gives_up_by_requests: bool,
    /// Default number of frames that may be unacknowledged, or are buffered, with live headers.
    pub(super) live_window: u32,
    /// Its maximum with study headers.
    pub(super) study_window_at_most: u32,
    /// Its maximum with live headers.
    pub(super) live_window_at_most: u32,
}

/// The largest live window: echoes truncate sequence numbers to 16 bits.
pub(crate) const MAX_LIVE_WINDOW: u32 = 16_384;

impl Traits {
    /// Default number of frames that may be unacknowledged, or are buffered.
    pub(super) const fn usual_window(&self, header: HeaderProfile) -> u32 {
        match header {
            HeaderProfile::Study => 127,
            HeaderProfile::Live | HeaderProfile::Sealed => self.live_window,
        }
    }
}

/// The raw link.
pub(super) const RAW: Traits = Traits {
    name: "default",
    reliability: Reliability::None,
    in_order: true,
    holds: false,
    looks_into_packets: false,
    gives_up_by_requests: false,
    live_window: 127,
    study_window_at_most: 127,
    live_window_at_most: MAX_LIVE_WINDOW,
};

/// Every packet is kept until the peer acknowledges it, and is delivered in order.
pub(super) const fn reliable(name: &'static str) -> Traits {
    Traits {
        name,
        reliability: Reliability::Full,
        holds: true,
        live_window: 4096,
        ..RAW
    }
}

/// Losses are repaired with limited effort; packets are delivered as received.
pub(super) const fn limited(name: &'static str) -> Traits {
    Traits {
        name,
        reliability: Reliability::Limited,
        in_order: false,
        live_window: 1024,
        ..RAW
    }
}

/// The options common to all schemes that retransmit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArqOptions<'a> {
    pub(crate) window: Option<u32>,
    pub(crate) timers: Option<&'a TimersConfig>,
    pub(crate) multiplier: Multiplier,
    pub(crate) timer_origin: TimerOrigin,
    /// Number of requests, where the receiver gives up.
    pub(crate) retries: Option<u32>,
    pub(crate) copies: Option<&'a CopiesConfig>,
    pub(crate) dejitter: bool,
}

/// The common options from a table whose fields have these names, and further ones.
macro_rules! arq {
    ($config:expr $(, $more:ident: $value:expr)*) => {
        ArqOptions {
            $($more: $value,)*
            ..ArqOptions {
                window: $config.window,
                timers: $config.timers.as_ref(),
                multiplier: $config.multiplier,
                timer_origin: $config.timer_origin,
                retries: None,
                copies: None,
                dejitter: false,
            }
        }
    };
}
pub(super) use arq;

/// The interface of every scheme's options.
pub(super) trait Options {
    /// Fills in the defaults.
    fn resolve(&mut self, scheme: &Traits, header: HeaderProfile);
    /// The options common to all schemes that retransmit, if the scheme is one of them.
    fn arq(&self) -> Option<ArqOptions<'_>>;
    /// The options on which both ends of a link must agree, each preceded by a space.
    fn terms(&self) -> String;
    /// Finds problems of the options, except those common to all schemes that retransmit.
    fn check(&self, scheme: &Traits, header: HeaderProfile, at: &str, wrong: Wrong<'_>);
}

/// Terms that consist of the window.
pub(super) fn window_terms(window: Option<u32>) -> String {
    window.map_or(String::new(), |window| format!(" window {window}"))
}
