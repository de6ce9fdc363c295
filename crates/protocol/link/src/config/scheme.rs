//! The table of schemes: how each stands in files, with which options, and what it is to those that never look inside
//! it.

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
    /// Go back N: a timeout sends everything again.
    Gbn(WindowConfig) = Traits {
        live_window: 127,
        study_window_at_most: 255,
        ..reliable("gbn")
    };
    /// Selective repeat with one NAK at a time.
    Sr(SrConfig) = reliable("sr");
    /// Selective repeat with one NAK for each frame.
    SrM1(SrConfig) = reliable("sr-m1");
    /// Selective repeat with several NAKs per frame.
    SrM2(SrConfig) = reliable("sr-m2");
    /// Selective repeat with bitmaps of what has arrived.
    SrBitmap(WindowConfig) = reliable("sr-bitmap");
    /// Limited retransmission, delivery in order.
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
    /// GSM's radio link protocol: all in order, or both ends begin anew and what was under way is lost.
    GsmRlp(GsmRlpConfig) = Traits {
        study_window_at_most: 61,
        live_window_at_most: 61,
        ..reliable("gsm-rlp")
    };
    /// A parity frame behind every n packets.
    Xor(XorConfig) = limited("xor");
    /// A parity frame behind n packets, or when the source falls silent.
    XorAd(XorAdConfig) = limited("xor-ad");
    /// h Reed-Solomon parity frames behind every n packets.
    Rse(RseConfig) = limited("rse");
    /// Reed-Solomon parity frames behind every n packets, most of them on request.
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
    /// Fills in what was left out.
    pub(super) fn resolve(&mut self, header: HeaderProfile) {
        let traits = self.traits();
        self.options_mut().resolve(&traits, header);
    }

    /// What is wrong with the scheme's own options.
    pub(super) fn check(&self, header: HeaderProfile, at: &str, wrong: Wrong<'_>) {
        self.options().check(&self.traits(), header, at, wrong);
    }

    /// The options that it shares with all that send again, if it is one of them.
    pub(crate) fn arq(&self) -> Option<ArqOptions<'_>> {
        self.options().arq()
    }

    /// What both ends of a link must have in common beyond the kind, for an error message.
    pub(crate) fn terms(&self) -> String {
        self.options().terms()
    }

    /// The name that stands in files.
    pub const fn kind(&self) -> &'static str {
        self.traits().name
    }

    /// The class of the scheme's services. Snoop repairs nothing but TCP, and that in one direction:
    /// to the rest it is the raw link.
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

    /// It needs frames with one whole packet each: it watches its TCP.
    pub const fn looks_into_packets(&self) -> bool {
        self.traits().looks_into_packets
    }

    /// Every packet is kept until the peer acknowledges it, and goes up in its order.
    pub const fn is_reliable(&self) -> bool {
        matches!(self.traits().reliability, Reliability::Full)
    }

    /// Frames that a sender or receiver keeps, where the scheme keeps any and the number is given.
    pub fn window(&self) -> Option<u32> {
        self.arq()?.window
    }

    /// Timer values, where the scheme has timers and they are given.
    pub fn timers(&self) -> Option<&TimersConfig> {
        self.arq()?.timers
    }

    /// By how much sharing stretches fixed timers, where the scheme has timers.
    pub fn multiplier(&self) -> Option<Multiplier> {
        self.arq().map(|options| options.multiplier)
    }

    /// Where timers start.
    pub fn timer_origin(&self) -> TimerOrigin {
        self.arq()
            .map_or(TimerOrigin::Departure, |options| options.timer_origin)
    }

    /// Copies, where the scheme can send some and shall.
    pub fn copies(&self) -> Option<&CopiesConfig> {
        self.arq()?.copies
    }

    /// Packets that its de-jitter buffer holds at most, where it has one.
    pub(crate) fn dejitter(&self) -> Option<u32> {
        let options = self.arq()?;
        options.dejitter.then_some(options.window).flatten()
    }

    /// Whether what TCP sends again waits for repairs of what left before it.
    pub(crate) fn holds_repeats(&self) -> bool {
        matches!(self, Self::RlpOos(config) if config.hold_repeats)
    }
}
