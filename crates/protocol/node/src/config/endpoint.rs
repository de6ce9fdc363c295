//! A peer's address as a file gives it: an address, or a host name to look up.

use std::fmt;
use std::str::FromStr;

use airlane_secure::PeerAddress;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Longest host name, and longest label (RFC 1035, section 2.3.4).
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

/// A peer's address as a file gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerEndpoint {
    /// A fixed address.
    Address(PeerAddress),
    /// A host name that is looked up.
    Host(HostPort),
}

/// A host name and a port: `gate.example.org:7007`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// Host name for the system's resolver.
    pub host: String,
    /// UDP port.
    pub port: u16,
}

impl PeerEndpoint {
    /// The address, if the file gives one.
    pub const fn address(&self) -> Option<PeerAddress> {
        match self {
            Self::Address(address) => Some(*address),
            Self::Host(_) => None,
        }
    }

    /// The host name, if the file gives one.
    pub const fn host(&self) -> Option<&HostPort> {
        match self {
            Self::Address(_) => None,
            Self::Host(host) => Some(host),
        }
    }
}

/// Whether `name` has the form of a host name (RFC 1123, section 2.1; underscores are accepted as well). A
/// name whose last label is a number is refused, because it is a mistyped IPv4 address.
fn is_host(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let label = |label: &str| {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        (1..=LONGEST_LABEL).contains(&label.len())
            && label.chars().all(legal)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= LONGEST_NAME
        && name.split('.').all(label)
        && !last.chars().all(|c| c.is_ascii_digit())
}

impl FromStr for HostPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "\"{text}\" is neither an address with its port nor a host's name with its port, such as \
                 \"192.0.2.7:7007\", \"[2001:db8::7]:7007\" or \"gate.example.org:7007\""
            )
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
        let digits = !port.is_empty() && port.chars().all(|c| c.is_ascii_digit());
        let port = match port.parse() {
            Ok(port) if digits => port,
            Err(_) if digits => return Err(format!("\"{port}\" is not a port, 1 to 65535")),
            _ => return Err(refuse()),
        };
        if !is_host(host) {
            return Err(refuse());
        }
        let host = host.to_owned();
        Ok(Self { host, port })
    }
}

impl FromStr for PeerEndpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let host = || text.parse().map(Self::Host);
        text.parse().map(Self::Address).or_else(|_: String| host())
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for PeerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::Host(host) => host.fmt(f),
        }
    }
}

impl Serialize for PeerEndpoint {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PeerEndpoint {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

airlane_base::schema_of!(PeerEndpoint, "PeerEndpoint", {
    "type": "string",
    "description": "Over UDP an address or the name of a host, with its port; over Ethernet the address of an interface.",
    "examples": ["192.0.2.7:7007", "gate.example.org:7007", "02:00:00:00:00:02"],
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_an_address_or_a_name() {
        for address in ["192.0.2.7:7007", "[2001:db8::7]:7007", "02:00:00:00:00:02"] {
            let endpoint: PeerEndpoint = address.parse().unwrap();
            assert_eq!(endpoint.address(), address.parse().ok(), "{address}");
            assert_eq!(endpoint.to_string(), address);
        }
        for name in [
            "gate.example.org:7007",
            "gate.example.org.:7007",
            "localhost:1",
            "my_gate-2:65535",
            "3com.example:7007",
        ] {
            let endpoint: PeerEndpoint = name.parse().unwrap();
            assert!(endpoint.host().is_some(), "{name}");
            assert_eq!(endpoint.to_string(), name);
        }
    }

    #[test]
    fn an_invalid_endpoint_is_refused_with_advice() {
        let long = format!("{}:7007", "a".repeat(64));
        for wrong in [
            "",
            ":7007",
            "gate.example.org",
            "gate.example.org:",
            "gate.example.org:port",
            "gate.example.org:+7",
            "gate..example.org:7007",
            "-gate:7007",
            "gate-:7007",
            "the gate:7007",
            "300.0.2.7:7007",
            "192.0.2:7007",
            "2001:db8::7",
            &long,
        ] {
            let error = wrong.parse::<PeerEndpoint>().unwrap_err();
            assert!(error.contains("gate.example.org:7007"), "{wrong}: {error}");
        }
        for wrong in ["gate.example.org:70000", "192.0.2.7:70000"] {
            let error = wrong.parse::<PeerEndpoint>().unwrap_err();
            assert_eq!(error, "\"70000\" is not a port, 1 to 65535");
        }
    }
}
