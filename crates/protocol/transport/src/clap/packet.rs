//! What the ends of a CLAP connection say to each other, without the bytes of the file and without ports.

use std::fmt;

use airlane_base::{Duration, Instant};

/// A time on somebody's clock as packets carry it: microseconds that wrap, and never 0, which stands for no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(u32);

impl Stamp {
    /// The stamp of a time. Clocks start at 1 us, so that their first stamp is none already.
    pub fn of(now: Instant) -> Self {
        let micros = (now.as_nanos() / 1_000).wrapping_add(1) as u32;
        Self(micros.max(1))
    }

    /// As it stands in a packet; none for 0.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => None,
            number => Some(Self(number)),
        }
    }

    /// As it stands in a packet.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// How long after `earlier` it was taken, if that was less than half of a round of the clock.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.wrapping_sub(earlier.0).into())
    }

    /// Whether it was taken after `other`, by less than half a round of the clock.
    pub const fn is_after(self, other: Self) -> bool {
        let ahead = self.0.wrapping_sub(other.0);
        ahead != 0 && ahead < 1 << 31
    }
}

/// One packet of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Its number.
    pub seq: u32,
    /// When it left.
    pub stamp: Stamp,
    /// The stamp of the last NACK that had come by then.
    pub echo: Option<Stamp>,
    /// Whether a NACK asked for it. The header does not say so: it is for whoever counts.
    pub again: bool,
}

/// What a sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// It asks for a connection for a file of `count` packets, the first of which has the number `first`.
    Syn {
        /// Number of the first packet.
        first: u32,
        /// How many packets there are.
        count: u32,
    },
    /// A packet of the file.
    Data(Data),
    /// It has learned that the receiver has all.
    FinAck {
        /// Number of the first packet.
        first: u32,
    },
}

/// Why a NACK leaves. Senders treat all alike; traces do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NackKind {
    /// Of CLAP-beta and its forerunner: the time has come, or a packet behind a hole.
    Periodic,
    /// Of CLAP-final: a loss that nobody has reported.
    Pivot,
    /// Of CLAP-final: all that is missing.
    Sweep,
    /// A stretch of the file is complete.
    Milestone,
}

/// What has come and what is missing of some packets in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack<'a> {
    /// Why it leaves.
    pub kind: NackKind,
    /// Number of the first packet that it reports.
    pub seq: u32,
    /// How many packets it reports.
    pub count: u32,
    /// A bit for each, the most significant of a byte first: 1 for a missing packet. What is left of the last byte says
    /// nothing.
    pub bitmap: &'a [u8],
    /// When it left.
    pub stamp: Stamp,
}

impl Nack<'_> {
    /// The packets that it reports, and whether each is missing.
    pub fn packets(&self) -> impl Iterator<Item = (u32, bool)> {
        let bits = self
            .bitmap
            .iter()
            .flat_map(|byte| (0..8).map(move |bit| byte & (0x80 >> bit) != 0));
        let numbers = (0..self.count).map_while(|i| self.seq.checked_add(i));
        numbers.zip(bits)
    }
}

/// What a receiver sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback<'a> {
    /// It agrees to a connection.
    SynAck {
        /// Number of the first packet.
        first: u32,
    },
    /// What has come and what is missing.
    Nack(Nack<'a>),
    /// It has all.
    Fin {
        /// Number of the first packet.
        first: u32,
    },
}

/// Why a connection ended without the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nobody answered the SYN.
    NoAnswer,
    /// The peer was not heard for so long that nobody expects it back.
    Silence,
    /// The file has no packets, or more than an end keeps bits for.
    Length(u32),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = super::config::MOST_PACKETS;
        match self {
            Self::NoAnswer => f.write_str("no receiver answered; is one there?"),
            Self::Silence => f.write_str("the other end was not heard for 64 s"),
            Self::Length(count) => write!(
                f,
                "a file of {count} packets cannot be sent; 1 to {most} packets can"
            ),
        }
    }
}

impl std::error::Error for Failure {}
