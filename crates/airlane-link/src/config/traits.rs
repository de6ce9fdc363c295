//! The table of schemes: what each is to those that never look inside it, and what those that send again have
//! in common. No row stands for "all others": where a new scheme belongs, the compiler asks.

use super::copies::CopiesConfig;
use super::scheme::{Order, SchemeConfig};
use super::timers::{Multiplier, TimerOrigin, TimersConfig};
use crate::path::{Class, Reliability};
use crate::wire::Layout;

/// What a scheme is, whatever its options say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    /// The name that stands in files.
    pub(crate) name: &'static str,
    /// The fields of its frames.
    pub(crate) layout: Layout,
    pub(crate) reliability: Reliability,
    /// Packets leave the link in the order in which they came.
    pub(crate) in_order: bool,
    /// A loss delays the packets behind it.
    pub(crate) holds: bool,
    /// It needs frames with one whole packet each: it watches its TCP.
    pub(crate) looks_into_packets: bool,
    /// The receiver asks for what is lost, and gives it up when it has asked often enough.
    pub(crate) gives_up_by_requests: bool,
}

/// The raw link.
const RAW: Traits = Traits {
    name: "default",
    layout: Layout::Bare,
    reliability: Reliability::None,
    in_order: true,
    holds: false,
    looks_into_packets: false,
    gives_up_by_requests: false,
};

/// Every packet is kept until the peer acknowledges it, and goes up in its order.
const fn reliable(name: &'static str, layout: Layout) -> Traits {
    Traits {
        name,
        layout,
        reliability: Reliability::Full,
        holds: true,
        ..RAW
    }
}

/// Losses are repaired with a limited effort; packets go up as they come.
const fn limited(name: &'static str, layout: Layout) -> Traits {
    Traits {
        name,
        layout,
        reliability: Reliability::Limited,
        in_order: false,
        ..RAW
    }
}

const RLP: Traits = Traits {
    in_order: true,
    holds: true,
    gives_up_by_requests: true,
    ..limited("rlp", Layout::Seq)
};

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

impl SchemeConfig {
    /// Its row of the table.
    pub(crate) const fn traits(&self) -> Traits {
        match self {
            Self::Default(_) => RAW,
            Self::Gbn(_) => reliable("gbn", Layout::SeqAck),
            Self::Sr(_) => reliable("sr", Layout::SeqAck),
            Self::SrM1(_) => reliable("sr-m1", Layout::SeqAck),
            Self::SrM2(_) => reliable("sr-m2", Layout::SeqAck),
            Self::SrBitmap(_) => reliable("sr-bitmap", Layout::Bitmap),
            Self::Rlp(_) => RLP,
            Self::RlpOos(_) => Traits {
                gives_up_by_requests: true,
                ..limited("rlp-oos", Layout::Seq)
            },
            Self::Xor(_) => limited("xor", Layout::Coded),
            Self::XorAd(_) => limited("xor-ad", Layout::Block),
            Self::Rse(_) => limited("rse", Layout::Coded),
            Self::RseAd(_) => Traits {
                gives_up_by_requests: true,
                ..limited("rse-ad", Layout::Coded)
            },
            Self::Snoop(_) => Traits {
                name: "snoop",
                looks_into_packets: true,
                ..RAW
            },
        }
    }

    /// The fields of its frames.
    pub(crate) const fn layout(&self) -> Layout {
        match self {
            Self::Sr(c) | Self::SrM1(c) | Self::SrM2(c) => c.layout(),
            _ => self.traits().layout,
        }
    }

    /// The options that it shares with all that send again, if it is one of them.
    pub(crate) const fn arq(&self) -> Option<ArqOptions<'_>> {
        Some(match self {
            Self::Gbn(c) | Self::SrBitmap(c) => arq!(c),
            Self::Sr(c) | Self::SrM1(c) | Self::SrM2(c) => {
                arq!(c, copies: c.copies.as_ref(), dejitter: c.dejitter)
            }
            Self::Rlp(c) | Self::RlpOos(c) => {
                arq!(c, retries: c.retries, copies: c.copies.as_ref())
            }
            Self::RseAd(c) => arq!(c, retries: c.retries),
            Self::Default(_) | Self::Xor(_) | Self::XorAd(_) | Self::Rse(_) | Self::Snoop(_) => {
                return None;
            }
        })
    }

    /// What both ends of a link must have in common beyond the kind, for an error message.
    pub(crate) fn terms(&self) -> String {
        let (name, value) = match self {
            Self::Default(_) => return String::new(),
            Self::Gbn(_) | Self::SrBitmap(_) | Self::Rlp(_) | Self::RlpOos(_) => {
                ("window", self.window())
            }
            Self::Sr(c) | Self::SrM1(c) | Self::SrM2(c) if c.order == Order::Flow => {
                let window = c.window.map_or(String::new(), |n| format!(" window {n}"));
                return format!("{window} order flow");
            }
            Self::Sr(c) | Self::SrM1(c) | Self::SrM2(c) => ("window", c.window),
            Self::Xor(c) => ("block", c.block),
            Self::XorAd(c) => ("block", c.block),
            Self::Rse(c) => return format!(" block {} parity {}", c.block(), c.parity()),
            Self::RseAd(c) => {
                let (n, first, all) = (c.block(), c.initial(), c.parity());
                return format!(" block {n} initial {first} parity {all}");
            }
            Self::Snoop(c) => return format!(" base-station {}", c.base_station.name()),
        };
        value.map_or(String::new(), |value| format!(" {name} {value}"))
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
}
