//! What a scheme is to those that never look inside it, and what its options can tell. Nothing stands for "all others":
//! where a new scheme belongs, the compiler asks.

use super::copies::CopiesConfig;
use super::problem::Wrong;
use super::timers::{Multiplier, TimerOrigin, TimersConfig};
use crate::path::Reliability;
use crate::wire::HeaderProfile;

/// What a scheme is, whatever its options say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    /// The name that stands in files.
    pub(crate) name: &'static str,
    pub(crate) reliability: Reliability,
    /// Packets leave the link in the order in which they came.
    pub(crate) in_order: bool,
    /// A loss delays the packets behind it.
    pub(crate) holds: bool,
    /// It needs frames with one whole packet each: it watches its TCP.
    pub(crate) looks_into_packets: bool,
    /// The receiver asks for what is lost, and gives it up when it has asked often enough.
    pub(crate) gives_up_by_requests: bool,
    /// Frames that may be unacknowledged, or are kept, where nothing is said and headers are live.
    pub(super) live_window: u32,
    /// The most that may be with study headers.
    pub(super) study_window_at_most: u32,
    /// The most that may be with live headers.
    pub(super) live_window_at_most: u32,
}

/// The largest live window: echoes shorten numbers to 16 bits.
pub(crate) const MAX_LIVE_WINDOW: u32 = 16_384;

impl Traits {
    /// Frames that may be unacknowledged, or are kept, where nothing is said.
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

/// Every packet is kept until the peer acknowledges it, and goes up in its order.
pub(super) const fn reliable(name: &'static str) -> Traits {
    Traits {
        name,
        reliability: Reliability::Full,
        holds: true,
        live_window: 4096,
        ..RAW
    }
}

/// Losses are repaired with a limited effort; packets go up as they come.
pub(super) const fn limited(name: &'static str) -> Traits {
    Traits {
        name,
        reliability: Reliability::Limited,
        in_order: false,
        live_window: 1024,
        ..RAW
    }
}

/// What all schemes that send again are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArqOptions<'a> {
    pub(crate) window: Option<u32>,
    pub(crate) timers: Option<&'a TimersConfig>,
    pub(crate) multiplier: Multiplier,
    pub(crate) timer_origin: TimerOrigin,
    /// Where the receiver gives up some day.
    pub(crate) retries: Option<u32>,
    pub(crate) copies: Option<&'a CopiesConfig>,
    pub(crate) dejitter: bool,
}

/// The options that all have, out of a table with fields of these names, and what it has beyond them.
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

/// What the options of every scheme can tell.
pub(super) trait Options {
    /// Fills in what was left out.
    fn resolve(&mut self, scheme: &Traits, header: HeaderProfile);
    /// Those that all schemes that send again have, if this is one of them.
    fn arq(&self) -> Option<ArqOptions<'_>>;
    /// What both ends of a link must have in common of them, with a space in front of each.
    fn terms(&self) -> String;
    /// What is wrong with them, but for what all schemes that send again have.
    fn check(&self, scheme: &Traits, header: HeaderProfile, at: &str, wrong: Wrong<'_>);
}

/// Terms of which the window is one.
pub(super) fn window_terms(window: Option<u32>) -> String {
    window.map_or(String::new(), |window| format!(" window {window}"))
}
