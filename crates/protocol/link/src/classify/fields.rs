//! The conditions of a rule as files write them: code points, protocols, prefixes and ports.

use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::flow;

/// Why a field of a rule was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The text names no code point.
    #[error("\"{text}\" is not a DS code point; write 0 to 63 or a name: {}", names(&DSCP_NAMES))]
    Dscp {
        /// What was written.
        text: String,
    },
    /// The text names no protocol.
    #[error(
        "\"{text}\" is not a known protocol; write its number, 0 to 255, or a name: {}",
        names(&PROTOCOL_NAMES)
    )]
    Protocol {
        /// What was written.
        text: String,
    },
    /// The text is not an address prefix.
    #[error("\"{text}\" is not a prefix; write {}", Prefix::EXPECTED)]
    Prefix {
        /// What was written.
        text: String,
    },
    /// The address has bits set after the prefix.
    #[error("\"{text}\" has bits set after the prefix; write \"{prefix}\" or the address alone")]
    HostBits {
        /// What was written.
        text: String,
        /// The network that the address lies in.
        prefix: Prefix,
    },
    /// The text is neither a port nor a range of ports.
    #[error("\"{text}\" is not a port; write {}", Ports::EXPECTED)]
    Ports {
        /// What was written.
        text: String,
    },
}

fn names(table: &[(&str, u8)]) -> String {
    table.iter().map(|n| n.0).collect::<Vec<_>>().join(", ")
}

/// A DS code point, 0 to 63. In files a name such as `"EF"`, or the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dscp(u8);

/// The IANA registry; BE is the usual name of DF and CS0.
const DSCP_NAMES: [(&str, u8); 26] = [
    ("BE", 0),
    ("DF", 0),
    ("LE", 1),
    ("CS0", 0),
    ("CS1", 8),
    ("CS2", 16),
    ("CS3", 24),
    ("CS4", 32),
    ("CS5", 40),
    ("CS6", 48),
    ("CS7", 56),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("EF", 46),
    ("VA", 44),
    ("NQB", 45),
];

impl Dscp {
    /// `n`; none above 63.
    pub const fn new(n: u8) -> Option<Self> {
        if n < 64 { Some(Self(n)) } else { None }
    }

    /// 0 to 63.
    pub const fn value(self) -> u8 {
        self.0
    }
}

impl FromStr for Dscp {
    type Err = FieldError;
    fn from_str(text: &str) -> Result<Self, FieldError> {
        named(&DSCP_NAMES, text)
            .or_else(|| text.parse().ok())
            .and_then(Self::new)
            .ok_or_else(|| FieldError::Dscp {
                text: text.to_owned(),
            })
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_named(f, &DSCP_NAMES, self.0)
    }
}

/// An IP protocol number. In files a name such as `"tcp"`, or the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(pub u8);

const PROTOCOL_NAMES: [(&str, u8); 10] = [
    ("tcp", flow::TCP),
    ("udp", flow::UDP),
    ("icmp", flow::ICMP),
    ("icmpv6", flow::ICMPV6),
    ("sctp", 132),
    ("dccp", 33),
    ("udplite", 136),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
];

impl FromStr for Protocol {
    type Err = FieldError;
    fn from_str(text: &str) -> Result<Self, FieldError> {
        named(&PROTOCOL_NAMES, text)
            .or_else(|| text.parse().ok())
            .map(Self)
            .ok_or_else(|| FieldError::Protocol {
                text: text.to_owned(),
            })
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_named(f, &PROTOCOL_NAMES, self.0)
    }
}

fn named(table: &[(&str, u8)], text: &str) -> Option<u8> {
    let found = table.iter().find(|n| n.0.eq_ignore_ascii_case(text));
    found.map(|n| n.1)
}

fn write_named(f: &mut fmt::Formatter<'_>, table: &[(&str, u8)], number: u8) -> fmt::Result {
    match table.iter().find(|n| n.1 == number) {
        Some((name, _)) => f.write_str(name),
        None => write!(f, "{number}"),
    }
}

/// An address prefix. In files `"192.168.40.0/24"`, `"fd07::/64"`, or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Prefix {
    address: IpAddr,
    /// Prefix length, 0 to 32 or 0 to 128.
    len: u8,
}

impl Prefix {
    const EXPECTED: &str = "a prefix such as \"192.168.40.0/24\" or \"fd07::/64\", or an address";

    /// The prefix of a single address.
    pub const fn of(address: IpAddr) -> Self {
        let len = if address.is_ipv4() { 32 } else { 128 };
        Self { address, len }
    }

    /// Whether `address` lies within; false for the other address family.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                network(address, self.len) == self.address
            }
            _ => false,
        }
    }

    /// Whether it is of IPv4.
    pub(super) const fn is_v4(self) -> bool {
        self.address.is_ipv4()
    }

    /// Whether all addresses of `other` lie within.
    pub(super) fn covers(self, other: Self) -> bool {
        self.len <= other.len && self.contains(other.address)
    }
}

/// The address with all bits after the first `len` cleared.
fn network(address: IpAddr, len: u8) -> IpAddr {
    let len = u32::from(len);
    match address {
        IpAddr::V4(a) => {
            let mask = u32::MAX.checked_shl(32u32.saturating_sub(len));
            IpAddr::V4((a.to_bits() & mask.unwrap_or(0)).into())
        }
        IpAddr::V6(a) => {
            let mask = u128::MAX.checked_shl(128u32.saturating_sub(len));
            IpAddr::V6((a.to_bits() & mask.unwrap_or(0)).into())
        }
    }
}

impl FromStr for Prefix {
    type Err = FieldError;
    fn from_str(text: &str) -> Result<Self, FieldError> {
        let bad = || FieldError::Prefix {
            text: text.to_owned(),
        };
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len.parse::<u8>().map_err(|_| bad())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let len = len.unwrap_or(longest);
        if len > longest {
            return Err(bad());
        }
        let network = network(address, len);
        let prefix = Self {
            address: network,
            len,
        };
        if network != address {
            return Err(FieldError::HostBits {
                text: text.to_owned(),
                prefix,
            });
        }
        Ok(prefix)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

/// A port or a range of ports. In files `443`, `"443"` or `"8000-8999"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// 1 or more: port 0 stands for "none" in a flow.
    first: u16,
    last: u16,
}

impl Ports {
    const EXPECTED: &str = "a port, 1 to 65535, or a range such as \"8000-8999\"";

    /// The ports from `first` to `last`; none if the range is empty or includes 0.
    pub const fn new(first: u16, last: u16) -> Option<Self> {
        if 0 < first && first <= last {
            Some(Self { first, last })
        } else {
            None
        }
    }

    /// Whether `port` is in the range.
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }

    /// Whether all ports of `other` are in the range.
    pub(super) const fn covers(self, other: Self) -> bool {
        self.contains(other.first) && self.contains(other.last)
    }
}

impl FromStr for Ports {
    type Err = FieldError;
    fn from_str(text: &str) -> Result<Self, FieldError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let ends = first.trim().parse().ok().zip(last.trim().parse().ok());
        ends.and_then(|(first, last)| Self::new(first, last))
            .ok_or_else(|| FieldError::Ports {
                text: text.to_owned(),
            })
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.last != self.first {
            write!(f, "-{}", self.last)?;
        }
        Ok(())
    }
}

/// Reads a field from its text, or from a bare number.
struct TextOrNumber<T>(&'static str, PhantomData<T>);

impl<T: FromStr<Err = FieldError>> Visitor<'_> for TextOrNumber<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

macro_rules! field_serde {
    ($type:ty, $expected:expr) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                d.deserialize_any(TextOrNumber($expected, PhantomData))
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
    };
}

field_serde!(Dscp, "a DS code point such as \"EF\" or 46");
field_serde!(Protocol, "a protocol such as \"udp\" or 17");
field_serde!(Prefix, Prefix::EXPECTED);
field_serde!(Ports, Ports::EXPECTED);

airlane_base::schema_of!(Dscp, "Dscp", {
    "type": ["string", "integer"],
    "description": "A DS code point, 0 to 63, or its name. Source: RFC 2474.",
    "minimum": 0,
    "maximum": 63,
    "examples": ["EF", "AF41", 46],
});
airlane_base::schema_of!(Protocol, "Protocol", {
    "type": ["string", "integer"],
    "description": "The protocol behind IP: its name, or its number, 0 to 255. Source: RFC 5237.",
    "minimum": 0,
    "maximum": 255,
    "examples": ["tcp", "udp", 17],
});
airlane_base::schema_of!(Prefix, "Prefix", {
    "type": "string",
    "description": "An address, or a network with the length of its prefix.",
    "examples": ["10.1.0.0/16", "2001:db8::1"],
});
airlane_base::schema_of!(Ports, "Ports", {
    "type": ["string", "integer"],
    "description": "A port, or the first and the last of several.",
    "minimum": 0,
    "maximum": 65535,
    "examples": [443, "5000-5100"],
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_names_and_numbers() {
        for (text, n) in [
            ("EF", 46),
            ("ef", 46),
            ("AF41", 34),
            ("CS1", 8),
            ("BE", 0),
            ("63", 63),
        ] {
            assert_eq!(text.parse::<Dscp>().unwrap().value(), n, "{text}");
        }
        // AFxy is 8x + 2y, CSx is 8x (RFC 2597, RFC 2474).
        for (name, n) in DSCP_NAMES {
            let digits: Vec<u8> = name
                .bytes()
                .filter(u8::is_ascii_digit)
                .map(|d| d - b'0')
                .collect();
            match (name.get(..2), digits.as_slice()) {
                (Some("AF"), [x, y]) => assert_eq!(n, 8 * x + 2 * y),
                (Some("CS"), [x]) => assert_eq!(n, 8 * x),
                _ => {}
            }
        }
        for n in 0..64 {
            let dscp = Dscp::new(n).unwrap();
            assert_eq!(dscp.to_string().parse(), Ok(dscp));
        }
        let error = "AF44".parse::<Dscp>().unwrap_err().to_string();
        assert!(
            error.contains("0 to 63") && error.contains("AF43"),
            "{error}"
        );
        assert!("64".parse::<Dscp>().is_err());
    }

    #[test]
    fn protocols_have_names_and_numbers() {
        for n in 0..=255 {
            assert_eq!(Protocol(n).to_string().parse(), Ok(Protocol(n)));
        }
        assert_eq!("TCP".parse(), Ok(Protocol(6)));
        assert!("256".parse::<Protocol>().is_err() && "http".parse::<Protocol>().is_err());
    }

    #[test]
    fn prefixes_match_their_addresses() {
        for (prefix, address, inside) in [
            ("10.7.0.0/24", "10.7.0.255", true),
            ("10.7.0.0/24", "10.7.1.0", false),
            ("0.0.0.0/0", "255.1.2.3", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "10.7.0.1", false),
            ("10.7.0.1", "10.7.0.1", true),
            ("10.7.0.1", "10.7.0.2", false),
            ("fd07::/64", "fd07::ffff:1", true),
            ("fd07::/64", "fd07:0:0:1::", false),
            ("fd07::1", "fd07::1", true),
        ] {
            let found: Prefix = prefix.parse().unwrap();
            assert_eq!(
                found.contains(address.parse().unwrap()),
                inside,
                "{prefix} {address}"
            );
        }
        for text in [
            "10.7.0.0/33",
            "10.7.0/24",
            "fd07::/129",
            "10.7.0.0/",
            "",
            "/8",
            "10.7.0.0/-1",
        ] {
            assert!(text.parse::<Prefix>().is_err(), "{text}");
        }
        let error = "10.7.0.1/24".parse::<Prefix>().unwrap_err().to_string();
        assert!(error.contains("write \"10.7.0.0/24\""), "{error}");
    }

    #[test]
    fn ports_are_single_or_ranges() {
        let range: Ports = "8000-8999".parse().unwrap();
        assert!(range.contains(8000) && range.contains(8999));
        assert!(!range.contains(7999) && !range.contains(9000));
        assert_eq!(range.to_string(), "8000-8999");
        assert_eq!("443".parse::<Ports>().unwrap().to_string(), "443");
        for text in ["0", "0-3", "65536", "5-4", "5-", "-5", "", "http", "1-2-3"] {
            let error = text.parse::<Ports>().unwrap_err().to_string();
            assert!(error.contains("8000-8999"), "{text}: {error}");
        }
    }
}
