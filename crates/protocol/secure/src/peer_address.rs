//! Addresses of datagrams. This crate only compares them and binds cookies to them.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The address of an Ethernet interface; in files `"02:00:00:00:00:01"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetAddress(pub [u8; 6]);

impl EthernetAddress {
    /// All interfaces on the segment.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Whether it is the address of a single interface.
    pub fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0 && self.0 != [0; 6]
    }
}

impl fmt::Display for EthernetAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for EthernetAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut octets = text.split(':').map(|octet| {
            let digits = octet.len() == 2 && octet.bytes().all(|b| b.is_ascii_hexdigit());
            digits.then(|| u8::from_str_radix(octet, 16).ok()).flatten()
        });
        let mut address = [0; 6];
        let whole = address.iter_mut().all(|byte| {
            let octet = octets.next().flatten();
            octet.inspect(|octet| *byte = *octet).is_some()
        });
        if whole && octets.next().is_none() {
            return Ok(Self(address));
        }
        Err(format!(
            "\"{text}\" is not the address of an Ethernet interface, such as \"02:00:00:00:00:01\""
        ))
    }
}

/// The source or destination of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerAddress {
    /// An IP address and a UDP port.
    Udp(SocketAddr),
    /// An interface on the same Ethernet segment, or all of them.
    Ethernet(EthernetAddress),
}

impl PeerAddress {
    /// The IP address, if there is one.
    pub const fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Udp(address) => Some(address.ip()),
            Self::Ethernet(_) => None,
        }
    }

    /// The bytes to which cookies are bound, and how many of the array they are. All addresses of a node are of one
    /// kind, so no two have the same bytes.
    pub(crate) fn bytes(&self) -> ([u8; 18], usize) {
        let mut bytes = [0; 18];
        let mut len = 0;
        let mut add = |part: &[u8]| {
            bytes[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        };
        match self {
            Self::Udp(address) => {
                match address.ip() {
                    IpAddr::V4(ip) => add(&ip.octets()),
                    IpAddr::V6(ip) => add(&ip.octets()),
                }
                add(&address.port().to_be_bytes());
            }
            Self::Ethernet(address) => add(&address.0),
        }
        (bytes, len)
    }
}

impl From<SocketAddr> for PeerAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Udp(address)
    }
}

impl From<EthernetAddress> for PeerAddress {
    fn from(address: EthernetAddress) -> Self {
        Self::Ethernet(address)
    }
}

impl fmt::Display for PeerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) => address.fmt(f),
            Self::Ethernet(address) => address.fmt(f),
        }
    }
}

impl FromStr for PeerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ethernet = || text.parse().map(Self::Ethernet);
        text.parse().map(Self::Udp).or_else(|_not_udp| ethernet())
    }
}

macro_rules! as_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                String::deserialize(d)?.parse().map_err(de::Error::custom)
            }
        }
    };
}

as_text!(EthernetAddress);
as_text!(PeerAddress);

airlane_base::schema_of!(EthernetAddress, "EthernetAddress", {
    "type": "string",
    "description": "The address of an Ethernet interface.",
    "pattern": "^[0-9A-Fa-f]{2}(:[0-9A-Fa-f]{2}){5}$",
    "examples": ["02:00:00:00:00:02"],
});
airlane_base::schema_of!(PeerAddress, "Endpoint", {
    "type": "string",
    "description": "Address and port over UDP, or the address of an Ethernet interface.",
    "examples": ["192.0.2.7:7007", "02:00:00:00:00:02"],
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_read_as_they_are_written() {
        for text in [
            "192.0.2.7:7007",
            "[2001:db8::7]:7007",
            "02:00:5e:10:0f:fe",
            "ff:ff:ff:ff:ff:ff",
        ] {
            let address: PeerAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), text);
            let json = serde_json::to_string(&address).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<PeerAddress>(&json).unwrap(), address);
        }
        for wrong in [
            "",
            "02:00:00:00:00",
            "02:00:00:00:00:01:02",
            "02:00:00:00:00:0g",
            "02:00:00:00:00:+1",
            "2:0:0:0:0:1",
            "02-00-00-00-00-01",
        ] {
            let error = wrong.parse::<EthernetAddress>().unwrap_err();
            assert!(error.contains("02:00:00:00:00:01"), "{error}");
        }
    }

    #[test]
    fn an_interface_has_a_unicast_address() {
        let unicast = |text: &str| text.parse::<EthernetAddress>().unwrap().is_unicast();
        assert!(unicast("02:00:00:00:00:01"));
        assert!(!unicast("03:00:00:00:00:01"));
        assert!(!unicast("00:00:00:00:00:00"));
        assert!(!EthernetAddress::BROADCAST.is_unicast());
    }

    #[test]
    fn cookies_are_bound_to_all_of_an_endpoint() {
        let bytes = |text: &str| {
            let (bytes, len) = text.parse::<PeerAddress>().unwrap().bytes();
            bytes[..len].to_vec()
        };
        assert_eq!(bytes("192.0.2.7:258"), [192, 0, 2, 7, 1, 2]);
        assert_eq!(bytes("02:03:04:05:06:07"), [2, 3, 4, 5, 6, 7]);
        assert_eq!(bytes("[2001:db8::7]:258").len(), 18);
    }
}
