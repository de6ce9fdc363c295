//! The table of schemes: the name, options and traits of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arq::{DefaultConfig, RlpConfig, SrConfig, WindowConfig};
use super::copies::CopiesConfig;
use super::fec::{RseAdConfig, RseConfig, XorAdConfig, XorConfig};
use super::gsm::GsmRlpConfig;
use super::problem::Wrong;
use super::snoop::SnoopConfig;
use super::timers::{Multiplier, TimerOrigin, TimersConfig};
use super::traits::{ArqOptions, Options, RAW, Traits, limited, reliable};
use crate::path::{Class, Reliability};
use crate::wire::HeaderProfile;

macro_rules! schemes {
    ($($(#[$doc:meta])+ $scheme:ident($options:ident) = $traits:expr;)+) => {
        /// The link layer schemes.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(tag = "kind", rename_all = "kebab-case")]
        #[schemars(extend("examples" = [{ "kind": "sr-m2" }]))]
        pub enum SchemeConfig {
            $($(#[$doc])+ $scheme($options),)+
        }

        impl SchemeConfig {
            /// Its row of the table.
            pub(crate) const fn traits(&self) -> Traits {
                match self {
                    $(Self::$scheme(_) => $traits,)+
                }
            }

            /// All rows.
            #[cfg(test)]
            pub(crate) const ALL: &'static [Traits] = &[$($traits,)+];

            const fn options(&self) -> &dyn Options {
                match self {
                    $(Self::$scheme(options) => options,)+
                }
            }

            const fn options_mut(&mut self) -> &mut dyn Options {
                match self {
                    $(Self::$scheme(options) => options,)+
                }
            }
        }
    };
}

schemes! {
    /// No recovery (Xylomenos 1999, section 3.3: the raw link).
    Default(DefaultConfig) = RAW;
    /// Go back N: a timeout retransmits all unacknowledged frames.
    Gbn(WindowConfig) = Traits {
        live_window: 127,
        study_window_at_most: 255,
        ..reliable("gbn")
    };
    /// Selective repeat with one NAK at a time.
    Sr(SrConfig) = reliable("sr");
    /// Selective repeat with one NAK for each missing frame.
    SrM1(SrConfig) = reliable("sr-m1");
    /// Selective repeat with several NAKs for each missing frame.
    SrM2(SrConfig) = reliable("sr-m2");
    /// Selective repeat with bitmaps of what has arrived.
    SrBitmap(WindowConfig) = reliable("sr-bitmap");
    /// Limited retransmission, in-order delivery.
    Rlp(RlpConfig) = Traits {
        in_order: true,
        holds: true,
        gives_up_by_requests: true,
        ..limited("rlp")
    };
    /// Limited retransmission, delivery as received.
    RlpOos(RlpConfig) = Traits {
        gives_up_by_requests: true,
        ..limited("rlp-oos")
    };
    /// GSM's radio link protocol: delivers all packets in order, or both ends reset and lose those in flight.
    GsmRlp(GsmRlpConfig) = Traits {
        study_window_at_most: 61,
        live_window_at_most: 61,
        ..reliable("gsm-rlp")
    };
    /// A parity frame after every n packets.
    Xor(XorConfig) = limited("xor");
    /// A parity frame after n packets, or when the source falls silent.
    XorAd(XorAdConfig) = limited("xor-ad");
    /// h Reed-Solomon parity frames after every n packets.
    Rse(RseConfig) = limited("rse");
    /// Reed-Solomon parity frames after every n packets, most of them on request.
    RseAd(RseAdConfig) = Traits {
        gives_up_by_requests: true,
        ..limited("rse-ad")
    };
    /// An agent at the base station that watches TCP.
    Snoop(SnoopConfig) = Traits {
        name: "snoop",
        looks_into_packets: true,
        ..RAW
    };
}

impl SchemeConfig {
    /// Fills in the defaults.
    pub(super) fn resolve(&mut self, header: HeaderProfile) {
        let traits = self.traits();
        self.options_mut().resolve(&traits, header);
    }

    /// Finds problems of the scheme's own options.
    pub(super) fn check(&self, header: HeaderProfile, at: &str, wrong: Wrong<'_>) {
        self.options().check(&self.traits(), header, at, wrong);
    }

    /// The options common to all schemes that retransmit, if it is one of them.
    pub(crate) fn arq(&self) -> Option<ArqOptions<'_>> {
        self.options().arq()
    }

    /// The options on which both ends of a link must agree besides the kind, for an error message.
    pub(crate) fn terms(&self) -> String {
        self.options().terms()
    }

    /// The name in files.
    pub const fn kind(&self) -> &'static str {
        self.traits().name
    }

    /// The class of the scheme's services. Snoop counts as the raw link, because it repairs only TCP, and
    /// only in one direction.
    pub const fn class(&self) -> Class {
        let Traits {
            reliability,
            in_order,
            ..
        } = self.traits();
        Class {
            reliability,
            in_order,
        }
    }

    /// Whether it needs one whole packet per frame, because it watches TCP segments.
    pub const fn looks_into_packets(&self) -> bool {
        self.traits().looks_into_packets
    }

    /// Whether every packet is kept until the peer acknowledges it, and delivered in order.
    pub const fn is_reliable(&self) -> bool {
        matches!(self.traits().reliability, Reliability::Full)
    }

    /// Frames that a sender or receiver buffers, where the scheme buffers any and the number is given.
    pub fn window(&self) -> Option<u32> {
        self.arq()?.window
    }

    /// Timer values, where the scheme has timers and they are given.
    pub fn timers(&self) -> Option<&TimersConfig> {
        self.arq()?.timers
    }

    /// The factor by which sharing the link stretches fixed timers, where the scheme has timers.
    pub fn multiplier(&self) -> Option<Multiplier> {
        self.arq().map(|options| options.multiplier)
    }

    /// Where timers start.
    pub fn timer_origin(&self) -> TimerOrigin {
        self.arq()
            .map_or(TimerOrigin::Departure, |options| options.timer_origin)
    }

    /// Options of copies, where the scheme supports them and they are on.
    pub fn copies(&self) -> Option<&CopiesConfig> {
        self.arq()?.copies
    }

    /// Capacity of its de-jitter buffer in packets, where it has one.
    pub(crate) fn dejitter(&self) -> Option<u32> {
        let options = self.arq()?;
        options.dejitter.then_some(options.window).flatten()
    }

    /// Whether TCP's retransmissions wait for repairs of earlier frames.
    pub(crate) fn holds_repeats(&self) -> bool {
        matches!(self, Self::RlpOos(config) if config.hold_repeats)
    }
}
