//! The packets that the ends of a CLAP connection exchange, without the bytes of the file and without ports.

use std::fmt;

use airlane_base::{Duration, Instant};

/// A timestamp as packets carry it: microseconds that wrap. It is never 0, which stands for no timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(u32);

impl Stamp {
    /// The timestamp of `now`. Clocks start at 1 us, so that even the first timestamp is not 0.
    pub fn of(now: Instant) -> Self {
        let micros = (now.as_nanos() / 1_000).wrapping_add(1) as u32;
        Self(micros.max(1))
    }

    /// The timestamp from its number in a packet; none for 0.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => None,
            number => Some(Self(number)),
        }
    }

    /// Its number in a packet.
    pub const fn number(self) -> u32 {
        self.0
    }

    /// The time since `earlier`, modulo the range of the clock.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.wrapping_sub(earlier.0).into())
    }

    /// Whether this is later than `other`, by less than half the range of the clock.
    pub const fn is_after(self, other: Self) -> bool {
        let ahead = self.0.wrapping_sub(other.0);
        ahead != 0 && ahead < 1 << 31
    }
}

/// One packet of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Packet number.
    pub seq: u32,
    /// When it was sent.
    pub stamp: Stamp,
    /// The timestamp of the last NACK received by then.
    pub echo: Option<Stamp>,
    /// Whether it was sent before. The header does not carry this; it is for counters.
    pub again: bool,
    /// Whether it asks for a report; the sender waits for that.
    pub solicits: bool,
}

/// What a sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forward {
    /// Requests a connection for a file of `count` packets, numbered from `first`.
    Syn {
        /// Number of the first packet.
        first: u32,
        /// How many packets there are.
        count: u32,
    },
    /// A packet of the file.
    Data(Data),
    /// Acknowledges that the receiver has the whole file.
    FinAck {
        /// Number of the first packet.
        first: u32,
    },
}

/// Why a NACK is sent. Senders treat all kinds alike; traces do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NackKind {
    /// CLAP-beta and its forerunners: the period is over, a packet came after a hole, or the sender asked.
    Periodic,
    /// CLAP-final: a loss that has not been reported yet.
    Pivot,
    /// CLAP-final: everything that is missing.
    Sweep,
    /// A stretch of the file is complete.
    Milestone,
}

/// Which of a run of consecutive packets have arrived, and which are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack<'a> {
    /// Why it is sent.
    pub kind: NackKind,
    /// Number of the first packet that it covers.
    pub seq: u32,
    /// How many packets it covers.
    pub count: u32,
    /// One bit per packet, most significant bit of a byte first; 1 means missing. The unused bits of the last byte
    /// carry no meaning.
    pub bitmap: &'a [u8],
    /// When it was sent.
    pub stamp: Stamp,
}

impl Nack<'_> {
    /// The packets that it covers, and whether each is missing.
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
    /// Nothing was heard from the peer for so long that it is considered gone.
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
