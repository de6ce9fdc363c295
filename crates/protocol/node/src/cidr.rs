//! An IP address with a prefix length.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An address and a prefix length. In files: `"10.7.0.1/24"`, `"fd07::1/64"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The address; in a route, the network address.
    pub address: IpAddr,
    /// Prefix length, bits.
    pub prefix: u8,
}

impl Cidr {
    /// The network address: all host bits are zero.
    pub fn network(self) -> IpAddr {
        let host_bits = |bits: u8| u32::from(bits - self.prefix);
        match self.address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(host_bits(32)).unwrap_or(0);
                Ipv4Addr::from_bits(v4.to_bits() & mask).into()
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(host_bits(128)).unwrap_or(0);
                Ipv6Addr::from_bits(v6.to_bits() & mask).into()
            }
        }
    }
}

impl Cidr {
    /// Whether this is a default route or one of the halves that replace it (`0.0.0.0/1`; in IPv6 the global
    /// unicast range `2000::/3`). Such a prefix may cover the outer addresses of the link itself.
    pub fn is_wide(self) -> bool {
        self.prefix <= if self.address.is_ipv4() { 1 } else { 3 }
    }

    /// Whether `address` is in the network.
    pub fn covers(self, address: IpAddr) -> bool {
        let other = Self { address, ..self };
        address.is_ipv4() == self.address.is_ipv4() && other.network() == self.network()
    }
}

impl FromStr for Cidr {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "\"{text}\" is not an address with its prefix, such as \"10.7.0.1/24\" or \"fd07::1/64\""
            )
        };
        let (address, prefix) = text.split_once('/').ok_or_else(refuse)?;
        let address: IpAddr = address.parse().map_err(|_| refuse())?;
        let prefix: u8 = prefix.parse().map_err(|_| refuse())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        if prefix > longest {
            return Err(format!(
                "\"{text}\": a prefix of {prefix} is too long, at most {longest} is possible"
            ));
        }
        Ok(Self { address, prefix })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

airlane_base::schema_of!(Cidr, "AddressWithPrefix", {
    "type": "string",
    "description": "An address with the length of its prefix.",
    "pattern": "^[0-9A-Fa-f.:]+/[0-9]+$",
    "examples": ["10.7.0.1/24", "fd07::1/64"],
});

impl<'de> Deserialize<'de> for Cidr {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(de::Error::custom)
    }
}

impl Serialize for Cidr {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cidr_covers_what_is_in_its_network() {
        for (cidr, address, covered) in [
            ("10.7.0.1/24", "10.7.0.255", true),
            ("10.7.0.1/24", "10.7.1.1", false),
            ("0.0.0.0/0", "192.0.2.1", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("fd07::1/64", "fd07::ffff", true),
        ] {
            let parsed: Cidr = cidr.parse().unwrap();
            assert_eq!(parsed.covers(address.parse().unwrap()), covered, "{cidr}");
        }
    }

    #[test]
    fn a_cidr_round_trips_and_knows_its_network() {
        for (text, network) in [
            ("10.7.0.1/24", "10.7.0.0"),
            ("10.7.0.1/0", "0.0.0.0"),
            ("10.7.0.1/32", "10.7.0.1"),
            ("fd07::1/64", "fd07::"),
            ("fd07::1/0", "::"),
            ("fd07::1/128", "fd07::1"),
        ] {
            let cidr: Cidr = text.parse().unwrap();
            assert_eq!(cidr.to_string(), text);
            assert_eq!(cidr.network().to_string(), network);
        }
        for wrong in [
            "10.7.0.1",
            "10.7.0.1/33",
            "fd07::1/129",
            "x/4",
            "10.7.0.1/-1",
        ] {
            assert!(wrong.parse::<Cidr>().is_err(), "{wrong}");
        }
    }
}
