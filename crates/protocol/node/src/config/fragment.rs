//! `link.fragment`: whether packets longer than a frame are fragmented.

use std::fmt;
use std::str::FromStr;

use airlane_base::Size;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The value of `fragment`: `"auto"`, `"adaptive"`, or a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentConfig {
    /// Datagrams are as long as the path MTU allows.
    Auto,
    /// Within the path MTU, each service chooses a length by the loss of its frames.
    Adaptive,
    /// Datagrams are at most this long, IP header included.
    Datagram(Size),
}

/// The shortest datagram worth fragmenting for: less than half of it is headers.
pub(super) const LEAST_DATAGRAM: u64 = 160;

impl FragmentConfig {
    /// The longest datagram on a path with this MTU, bytes.
    pub fn datagram(self, path_mtu: usize) -> usize {
        match self {
            Self::Auto | Self::Adaptive => path_mtu,
            Self::Datagram(size) => path_mtu.min(size.as_bytes() as usize),
        }
    }
}

impl FromStr for FragmentConfig {
    type Err = airlane_base::UnitError;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "auto" => Ok(Self::Auto),
            "adaptive" => Ok(Self::Adaptive),
            size => size.parse().map(Self::Datagram),
        }
    }
}

impl fmt::Display for FragmentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Adaptive => f.write_str("adaptive"),
            Self::Datagram(size) => write!(f, "{} B", size.as_bytes()),
        }
    }
}

airlane_base::schema_of!(FragmentConfig, "Fragment", {
    "type": "string",
    "pattern": r"^(auto|adaptive|\s*[+]?[0-9._]+\s*(B|kB|MB|GB)\s*)$",
    "examples": ["auto", "adaptive", "256 B"],
    "x-unit": "B, kB, \"auto\" or \"adaptive\"",
});

impl<'de> Deserialize<'de> for FragmentConfig {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = FragmentConfig;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"auto\", \"adaptive\" or the longest datagram, such as \"256 B\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<FragmentConfig, E> {
                text.parse().map_err(E::custom)
            }
        }
        d.deserialize_any(Text)
    }
}

impl Serialize for FragmentConfig {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
