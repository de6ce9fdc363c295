//! Rates, sizes, queue limits and probabilities as files write them.
//!
//! k is 1000 throughout, as in the works that Airlane reproduces (XYL-A-14).

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Duration;
use crate::quantity::{UnitError, deserialize_quantity, number, parse_quantity};

macro_rules! quantity_serde {
    ($type:ty, $expected:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                deserialize_quantity(d, $expected)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
    };
}

/// A bit rate, bit/s, never zero. In files: `"14.4 kbit/s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(u64);

impl Rate {
    /// `bps` bit/s; `None` if zero.
    pub const fn from_bps(bps: u64) -> Option<Self> {
        if bps == 0 { None } else { Some(Self(bps)) }
    }

    /// bit/s.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Whole bytes serialised within `time`.
    pub const fn bytes_within(self, time: Duration) -> usize {
        let bits = self.0 as u128 * time.as_nanos() as u128 / 1_000_000_000;
        let bytes = bits / 8;
        if bytes > usize::MAX as u128 {
            usize::MAX
        } else {
            bytes as usize
        }
    }

    /// Time to serialise `bytes`, rounded up to a whole nanosecond.
    pub const fn transmission_time(self, bytes: usize) -> Duration {
        let bits = bytes as u64 * 8;
        // 64 bits suffice for up to 2.3 GB at once; 128 bits keep the rest exact.
        match bits.checked_mul(1_000_000_000) {
            Some(scaled) => Duration::from_nanos(scaled.div_ceil(self.0)),
            None => {
                let ns = (bits as u128 * 1_000_000_000).div_ceil(self.0 as u128);
                Duration::from_nanos(if ns > u64::MAX as u128 {
                    u64::MAX
                } else {
                    ns as u64
                })
            }
        }
    }
}

/// Caches the serialisation time of the last frame: the next one often has the same length, and then needs no division.
#[derive(Clone, Copy, Debug)]
pub struct Serialised {
    rate: Rate,
    bytes: usize,
    time: Duration,
}

impl Serialised {
    /// An empty cache.
    pub const fn new(rate: Rate) -> Self {
        Self {
            rate,
            bytes: 0,
            time: Duration::ZERO,
        }
    }

    /// Time to serialise `bytes` at this rate, as [`Rate::transmission_time`] computes it.
    #[inline]
    pub fn time(&mut self, rate: Rate, bytes: usize) -> Duration {
        if bytes != self.bytes || rate != self.rate {
            let time = rate.transmission_time(bytes);
            *self = Self { rate, bytes, time };
        }
        self.time
    }
}

const RATE_UNITS: [(&str, f64); 4] = [
    ("bit/s", 1.0),
    ("kbit/s", 1e3),
    ("Mbit/s", 1e6),
    ("Gbit/s", 1e9),
];

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bps = parse_quantity(text, "a rate such as \"20 Mbit/s\"", &RATE_UNITS)?;
        Self::from_bps((bps + 0.5) as u64).ok_or_else(|| UnitError::OutOfRange {
            text: format!("\"{text}\""),
            expected: "a rate is at least 1 bit/s".to_owned(),
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, &RATE_UNITS)
    }
}

quantity_serde!(Rate, "a rate with its unit, such as \"20 Mbit/s\"");

/// A number of bytes. In files: `"50 B"`, `"2 MB"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Size(u64);

impl Size {
    /// `n` bytes.
    pub const fn from_bytes(n: u64) -> Self {
        Self(n)
    }

    /// Bytes.
    pub const fn as_bytes(self) -> u64 {
        self.0
    }
}

const SIZE_UNITS: [(&str, f64); 4] = [("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9)];

impl FromStr for Size {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let bytes = parse_quantity(text, "a size such as \"1000 B\" or \"2 MB\"", &SIZE_UNITS)?;
        Ok(Self((bytes + 0.5) as u64))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_scaled(f, self.0, &SIZE_UNITS)
    }
}

quantity_serde!(Size, "a size with its unit, such as \"1000 B\"");

/// Writes in the largest unit that leaves at most six decimals.
fn write_scaled(f: &mut fmt::Formatter<'_>, n: u64, units: &[(&str, f64)]) -> fmt::Result {
    let (unit, factor) = units
        .iter()
        .rev()
        .find(|(_, factor)| n as f64 >= *factor)
        .unwrap_or(&units[0]);
    write!(f, "{} {unit}", number(n as f64 / factor))
}

/// How much may wait in a queue. In files: `"50 packets"` or `"125 kB"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QueueLimit {
    /// This many packets.
    Packets(u64),
    /// This many bytes.
    Bytes(u64),
}

impl QueueLimit {
    /// Whether a queue holding `packets` and `bytes` may take one more packet of `len` bytes.
    pub const fn admits(self, packets: usize, bytes: usize, len: usize) -> bool {
        match self {
            Self::Packets(limit) => (packets as u64) < limit,
            Self::Bytes(limit) => (bytes + len) as u64 <= limit,
        }
    }
}

impl FromStr for QueueLimit {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        const EXPECTED: &str = "a queue limit such as \"50 packets\" or \"125 kB\"";
        let trimmed = text.trim();
        if let Some(n) = trimmed
            .strip_suffix("packets")
            .or_else(|| trimmed.strip_suffix("packet"))
        {
            let n = n.trim().parse().map_err(|_| UnitError::BadNumber {
                text: text.to_owned(),
                expected: EXPECTED.to_owned(),
            })?;
            return Ok(Self::Packets(n));
        }
        let bytes = parse_quantity(
            text,
            EXPECTED,
            &[
                ("B", 1.0),
                ("kB", 1e3),
                ("MB", 1e6),
                ("GB", 1e9),
                ("packets", 1.0),
            ],
        )?;
        Ok(Self::Bytes((bytes + 0.5) as u64))
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(1) => f.write_str("1 packet"),
            Self::Packets(n) => write!(f, "{n} packets"),
            Self::Bytes(n) => Size(*n).fmt(f),
        }
    }
}

quantity_serde!(
    QueueLimit,
    "a queue limit such as \"50 packets\" or \"125 kB\""
);

/// A probability, 0 to 1. In files: a bare number.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

impl Probability {
    /// Impossible.
    pub const ZERO: Self = Self(0.0);

    /// `p`; `None` outside 0 to 1.
    pub fn new(p: f64) -> Option<Self> {
        (0.0..=1.0).contains(&p).then_some(Self(p))
    }

    /// The probability, 0 to 1.
    pub const fn value(self) -> f64 {
        self.0
    }
}

crate::schema_of!(Rate, "Rate", {
    "type": "string",
    "description": "A rate with its unit, above 0.",
    "pattern": r"^\s*[+]?[0-9._]+\s*(bit/s|kbit/s|Mbit/s|Gbit/s)\s*$",
    "examples": ["20 Mbit/s", "14.4 kbit/s"],
    "x-unit": "bit/s, kbit/s, Mbit/s, Gbit/s",
});
crate::schema_of!(Size, "Size", {
    "type": "string",
    "description": "A number of bytes with its unit; 1 kB is 1000 B.",
    "pattern": r"^\s*[+]?[0-9._]+\s*(B|kB|MB|GB)\s*$",
    "examples": ["1000 B", "2 MB"],
    "x-unit": "B, kB, MB, GB",
});
crate::schema_of!(QueueLimit, "QueueLimit", {
    "type": "string",
    "description": "How much may wait, in packets or in bytes.",
    "pattern": r"^\s*[+]?[0-9._]+\s*(packets?|B|kB|MB|GB)\s*$",
    "examples": ["50 packets", "125 kB"],
    "x-unit": "packets, B, kB, MB, GB",
});
crate::schema_of!(Probability, "Probability", {
    "type": "number",
    "description": "A probability.",
    "minimum": 0,
    "maximum": 1,
    "examples": [0.05],
    "x-unit": "probability",
});

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let p = f64::deserialize(d)?;
        Self::new(p).ok_or_else(|| {
            D::Error::custom(UnitError::OutOfRange {
                text: p.to_string(),
                expected: "a probability is between 0 and 1".to_owned(),
            })
        })
    }
}

impl Serialize for Probability {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_f64(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_sizes_and_limits_round_trip_as_text() {
        for text in ["14.4 kbit/s", "20 Mbit/s", "2 Mbit/s", "1 bit/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        for text in ["50 B", "2 MB", "131.072 kB"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        for text in ["50 packets", "125 kB", "1 packet"] {
            assert_eq!(text.parse::<QueueLimit>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn refusals_say_what_would_be_right() {
        let e = "0 bit/s".parse::<Rate>().unwrap_err().to_string();
        assert!(e.contains("at least 1 bit/s"), "{e}");
        let e = "20 Mb".parse::<Rate>().unwrap_err().to_string();
        assert!(e.contains("Mbit/s") && e.contains("\"Mb\""), "{e}");
        let e = "2.0.0 B".parse::<Size>().unwrap_err().to_string();
        assert!(e.contains("2.0.0"), "{e}");
        assert!("five packets".parse::<QueueLimit>().is_err());
    }

    #[test]
    fn transmission_time_rounds_up_and_never_overflows() {
        let rate: Rate = "14.4 kbit/s".parse().unwrap();
        // 51 B = 408 bit at 14,400 bit/s = 28.3333... ms.
        assert_eq!(rate.transmission_time(51).as_nanos(), 28_333_334);
        assert_eq!(rate.bytes_within(Duration::from_nanos(28_333_334)), 51);
        assert_eq!(rate.bytes_within(Duration::from_nanos(28_333_332)), 50);
        assert!(rate.bytes_within(Duration::MAX) > 1 << 40);
        let slow = Rate::from_bps(1).unwrap();
        assert_eq!(slow.transmission_time(usize::MAX / 8), Duration::MAX);
    }
}
