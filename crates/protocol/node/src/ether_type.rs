//! The EtherType of our frames on an interface (IEEE 802, clause 9.2).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An EtherType, in files `0x88B5` or `"0x88b5"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EtherType(pub u16);

impl Default for EtherType {
    /// IEEE 802's first local experimental EtherType: not assigned to any protocol, and free for use within
    /// one's own network.
    fn default() -> Self {
        Self(0x88b5)
    }
}

/// Least EtherType; smaller values are the length of an IEEE 802.3 frame.
const LEAST: u16 = 0x0600;

/// EtherTypes of other protocols, from the IEEE's public list.
const TAKEN: &[(u16, u16, &str)] = &[
    (0x0800, 0x0800, "IPv4"),
    (0x0806, 0x0806, "ARP"),
    (0x0842, 0x0842, "Wake-on-LAN"),
    (0x22ea, 0x22ea, "stream reservation"),
    (0x22f0, 0x22f0, "audio and video transport"),
    (0x22f3, 0x22f4, "TRILL"),
    (0x4305, 0x4305, "B.A.T.M.A.N."),
    (0x6000, 0x6009, "DECnet"),
    (0x6558, 0x6558, "Ethernet bridging in GRE"),
    (0x8035, 0x8035, "RARP"),
    (0x809b, 0x809b, "AppleTalk"),
    (0x80f3, 0x80f3, "AppleTalk's ARP"),
    (0x8100, 0x8100, "VLAN tags"),
    (0x8137, 0x8138, "IPX"),
    (0x86dd, 0x86dd, "IPv6"),
    (0x8808, 0x8809, "the control of Ethernet itself"),
    (0x8847, 0x8848, "MPLS"),
    (0x8863, 0x8864, "PPPoE"),
    (0x886c, 0x886c, "network cards' own messages"),
    (0x8870, 0x8870, "jumbo frames"),
    (0x887b, 0x887b, "HomePlug"),
    (0x888e, 0x888e, "EAP over LAN, which Wi-Fi's keys come by"),
    (0x8892, 0x8892, "PROFINET"),
    (0x889a, 0x889a, "HyperSCSI"),
    (0x88a2, 0x88a2, "ATA over Ethernet"),
    (0x88a4, 0x88a4, "EtherCAT"),
    (0x88a8, 0x88a8, "service VLAN tags"),
    (0x88ab, 0x88ab, "Powerlink"),
    (0x88b7, 0x88b7, "protocols that the next OUI names"),
    (0x88b8, 0x88ba, "substations"),
    (0x88bb, 0x88bb, "LWAPP"),
    (0x88c7, 0x88c7, "Wi-Fi's pre-authentication"),
    (0x88cc, 0x88cc, "LLDP"),
    (0x88cd, 0x88cd, "SERCOS"),
    (0x88dc, 0x88dc, "WAVE short messages"),
    (0x88e1, 0x88e1, "HomePlug AV"),
    (0x88e3, 0x88e3, "MRP"),
    (0x88e5, 0x88e5, "MACsec"),
    (0x88e7, 0x88e7, "provider backbone bridges"),
    (0x88f5, 0x88f7, "MVRP, MMRP and PTP"),
    (0x88fb, 0x88fb, "PRP"),
    (0x8902, 0x8902, "connectivity fault management"),
    (0x8906, 0x8906, "Fibre Channel"),
    (0x890d, 0x890d, "Wi-Fi's direct links"),
    (0x8914, 0x8915, "Fibre Channel's initialisation and RoCE"),
    (0x891d, 0x891d, "TTEthernet"),
    (0x892f, 0x892f, "HSR"),
    (0x893a, 0x893a, "IEEE 1905"),
    (0x894f, 0x894f, "network service headers"),
    (0x9000, 0x9000, "loopback tests"),
    (0x9100, 0x9100, "VLAN tags before they had a standard"),
    (0x9200, 0x9200, "VLAN tags before they had a standard"),
    (0xffff, 0xffff, "nobody, as it is reserved"),
];

impl EtherType {
    /// The reason not to use it, if there is one.
    pub fn objection(self) -> Option<String> {
        if self.0 < LEAST {
            return Some(format!(
                "{self} is no EtherType: values below {} are lengths",
                Self(LEAST)
            ));
        }
        let taken = TAKEN
            .iter()
            .find(|(first, last, _)| (*first..=*last).contains(&self.0));
        taken.map(|(.., whose)| format!("{self} belongs to {whose}"))
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}

impl FromStr for EtherType {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let value = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        value
            .map(Self)
            .ok_or_else(|| format!("\"{text}\" is not an EtherType, such as 0x88B5"))
    }
}

airlane_base::schema_of!(EtherType, "EtherType", {
    "type": ["string", "integer"],
    "description": "An EtherType, in hexadecimal digits.",
    "minimum": LEAST,
    "maximum": 65535,
    "pattern": "^0[xX][0-9A-Fa-f]{1,4}$",
    "examples": ["0x88b5"],
});

impl<'de> Deserialize<'de> for EtherType {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Number;
        impl de::Visitor<'_> for Number {
            type Value = EtherType;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an EtherType such as 0x88B5")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<EtherType, E> {
                let refuse = |_| E::invalid_value(de::Unexpected::Signed(value), &self);
                u16::try_from(value).map(EtherType).map_err(refuse)
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<EtherType, E> {
                let refuse = |_| E::invalid_value(de::Unexpected::Unsigned(value), &self);
                u16::try_from(value).map(EtherType).map_err(refuse)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<EtherType, E> {
                text.parse().map_err(E::custom)
            }
        }
        d.deserialize_any(Number)
    }
}

/// Serializes as text, because EtherTypes are usually written in hexadecimal.
impl Serialize for EtherType {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unassigned_ether_types_are_accepted() {
        for free in [0x88b5, 0x88b6, 0x0600, 0x7777] {
            assert_eq!(EtherType(free).objection(), None, "{free:#06x}");
        }
        for (taken, why) in [
            (0x05dc, "0x05dc is no EtherType"),
            (0x0800, "belongs to IPv4"),
            (0x86dd, "belongs to IPv6"),
            (0x888e, "EAP over LAN"),
            (0x6004, "DECnet"),
            (0xffff, "reserved"),
        ] {
            let objection = EtherType(taken).objection().unwrap();
            assert!(objection.contains(why), "{objection}");
        }
        // The ranges are sorted and disjoint, so each value has one owner.
        for pair in TAKEN.windows(2) {
            assert!(pair[0].0 <= pair[0].1 && pair[0].1 < pair[1].0, "{pair:?}");
        }
    }

    #[test]
    fn it_is_read_as_a_number_or_as_text_and_written_as_text() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct File {
            e: EtherType,
        }
        let file = File {
            e: EtherType(0x88b6),
        };
        for text in ["e = 0x88B6", "e = 34998", "e = \"0x88b6\"\n"] {
            assert_eq!(toml::from_str::<File>(text).unwrap(), file, "{text}");
        }
        assert_eq!(toml::to_string(&file).unwrap(), "e = \"0x88b6\"\n");
        for text in [
            "e = 65536",
            "e = -1",
            "e = \"88b5\"",
            "e = \"0x1ffff\"",
            "e = 1.5",
        ] {
            let error = toml::from_str::<File>(text).unwrap_err().to_string();
            assert!(error.contains("0x88B5"), "{text}: {error}");
        }
    }
}
