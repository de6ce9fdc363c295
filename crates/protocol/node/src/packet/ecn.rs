//! Marks that cross the tunnel: the DSCP (RFC 2474, RFC 2983) and explicit congestion notification (RFC
//! 6040) of a packet, in the outer header of the datagram that carries it.
//!
//! ```text
//! sending:    outer DSCP = none, the packet's, or a fixed one;   outer ECN = the packet's (normal mode)
//! receiving:  the packet's DSCP stays; its ECN becomes
//!
//!             outer   Not-ECT   ECT(0)    ECT(1)    CE
//!   inner Not-ECT     Not-ECT   Not-ECT   Not-ECT   dropped
//!         ECT(0)      ECT(0)    ECT(0)    ECT(1)    CE
//!         ECT(1)      ECT(1)    ECT(1)    ECT(1)    CE
//!         CE          CE        CE        CE        CE
//! ```
//!
//! A router on the underlay that marks the outer header thus reaches the endpoints of the inner connection,
//! which alone can slow down. CE on the datagram of a Not-ECT packet means what a drop would mean, so the
//! packet is dropped. Frames without a packet, and parity frames, are Not-ECT. Packets that are aggregated
//! have the same mark wherever marks are copied, and all take the mark of the datagram. Of a fragmented
//! packet, the fragment with the IP header carries the packet's mark and the others are Not-ECT. A packet
//! recovered from parity passed no router, so it keeps its own mark.
//!
//! Left out: reading and writing the outer header, which the socket does.

use airlane_link::classify::Dscp;
use airlane_link::pack::headers::{self, CLASS_AT, Form};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// The ECN field (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// The endpoints do not use ECN.
    NotEct,
    /// The endpoints use ECN; the usual code point.
    Ect0,
    /// The endpoints use ECN; the second code point.
    Ect1,
    /// A router marked congestion.
    Ce,
}

/// A router marked congestion on the datagram of a Not-ECT packet, which must be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("congestion marked above a packet that does not take marks")]
pub struct Unmarkable;

impl Ecn {
    /// Reads the field from a traffic class (or TOS) byte.
    pub const fn of(traffic_class: u8) -> Self {
        match traffic_class & 0b11 {
            0b00 => Self::NotEct,
            0b10 => Self::Ect0,
            0b01 => Self::Ect1,
            _ => Self::Ce,
        }
    }

    /// The two bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotEct => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Ce => 0b11,
        }
    }

    /// Combines the mark of a packet with that of its datagram (RFC 6040, figure 4).
    ///
    /// # Errors
    /// If the packet must be dropped.
    pub const fn leaving_under(self, outer: Self) -> Result<Self, Unmarkable> {
        match (self, outer) {
            (Self::NotEct, Self::Ce) => Err(Unmarkable),
            (Self::NotEct, _) => Ok(Self::NotEct),
            (Self::Ce, _) | (_, Self::Ce) => Ok(Self::Ce),
            (Self::Ect1, _) | (_, Self::Ect1) => Ok(Self::Ect1),
            (Self::Ect0, _) => Ok(Self::Ect0),
        }
    }
}

/// Source of the outer DSCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OuterDscp {
    /// Always 0.
    #[default]
    None,
    /// Copied from the inner packet, for underlays with the same classes.
    Copy,
    /// The same value for all datagrams.
    Fixed(Dscp),
}

/// The fields of the outer IP header that are copied from the inner packet, such as `{ dscp = "copy", ecn =
/// true }`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outer {
    /// Source of the outer DSCP: `"none"`, `"copy"`, or a code point such as `"EF"`.
    #[serde(default)]
    pub dscp: OuterDscp,
    /// Whether ECN marks cross the tunnel.
    #[serde(default)]
    pub ecn: bool,
}

impl Outer {
    /// The outer traffic class (or TOS) byte of a datagram that carries a packet with this one, or no packet.
    pub fn traffic_class(self, inner: Option<u8>) -> u8 {
        let dscp = match (self.dscp, inner) {
            (OuterDscp::Fixed(dscp), _) => dscp.value() << 2,
            (OuterDscp::Copy, Some(inner)) => inner & !0b11,
            _ => 0,
        };
        let ecn = inner.filter(|_| self.ecn).map_or(0, |inner| inner & 0b11);
        dscp | ecn
    }

    /// Mask of the traffic class bits that are copied from the inner packet.
    pub const fn taken(self) -> u8 {
        let dscp = match self.dscp {
            OuterDscp::Copy => 0b1111_1100,
            OuterDscp::None | OuterDscp::Fixed(_) => 0,
        };
        dscp | if self.ecn { 0b11 } else { 0 }
    }

    /// The traffic class of a packet as it leaves the tunnel, given the mark of its datagram; `None` if it
    /// does not change.
    ///
    /// # Errors
    /// If the packet must be dropped.
    pub fn left_with(self, packet: &[u8], outer: Ecn) -> Result<Option<u8>, Unmarkable> {
        let Some(inner) = traffic_class(packet).filter(|_| self.ecn) else {
            return Ok(None);
        };
        let before = Ecn::of(inner);
        let after = before.leaving_under(outer)?;
        Ok((after != before).then_some(inner & !0b11 | after.bits()))
    }
}

/// The traffic class (or TOS) byte of an IP packet, with a full or a compressed header; `None` if the bytes
/// are too short for a header.
pub fn traffic_class(packet: &[u8]) -> Option<u8> {
    match packet.first()? >> 4 {
        _ if headers::form(packet) == Some(Form::Short) => Some(packet[CLASS_AT]),
        4 | 5 if packet.len() >= 20 => Some(packet[1]),
        6 | 7 if packet.len() >= 40 => Some(packet[0] << 4 | packet[1] >> 4),
        _ => None,
    }
}

/// Writes the byte that [`traffic_class`] reads from a packet with a full header, and updates the IPv4
/// checksum (RFC 1624).
pub fn set_traffic_class(packet: &mut [u8], class: u8) {
    if matches!(packet[0] >> 4, 6 | 7) {
        packet[0] = packet[0] & 0xf0 | class >> 4;
        packet[1] = class << 4 | packet[1] & 0x0f;
        return;
    }
    let word = |packet: &[u8], at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let before = word(packet, 0);
    packet[1] = class;
    let after = word(packet, 0);
    let sum = u32::from(!word(packet, 10)) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    let folded = (folded & 0xffff) + (folded >> 16);
    packet[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

airlane_base::schema_of!(OuterDscp, "OuterDscp", {
    "type": ["string", "integer"],
    "description": "`none`, `copy`, or a DS code point, 0 to 63 or its name.",
    "minimum": 0,
    "maximum": 63,
    "examples": ["copy", "EF"],
});

impl<'de> Deserialize<'de> for OuterDscp {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Form;
        impl de::Visitor<'_> for Form {
            type Value = OuterDscp;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(
                    "\"none\", \"copy\", a code point from 0 to 63 or its name such as \"EF\"",
                )
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<OuterDscp, E> {
                match text {
                    "none" => Ok(OuterDscp::None),
                    "copy" => Ok(OuterDscp::Copy),
                    name => name
                        .parse()
                        .map(OuterDscp::Fixed)
                        .map_err(|_| E::invalid_value(de::Unexpected::Str(name), &self)),
                }
            }
            fn visit_i64<E: de::Error>(self, n: i64) -> Result<OuterDscp, E> {
                let dscp = u8::try_from(n).ok().and_then(Dscp::new);
                dscp.map(OuterDscp::Fixed)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(n), &self))
            }
            fn visit_u64<E: de::Error>(self, n: u64) -> Result<OuterDscp, E> {
                self.visit_i64(i64::try_from(n).unwrap_or(-1))
            }
        }
        d.deserialize_any(Form)
    }
}

impl Serialize for OuterDscp {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => s.serialize_str("none"),
            Self::Copy => s.serialize_str("copy"),
            Self::Fixed(dscp) => dscp.serialize(s),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{Ipv4Header, PacketBuilder};
    use proptest::prelude::*;

    const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
    const ECN: Outer = Outer {
        dscp: OuterDscp::None,
        ecn: true,
    };

    /// A packet of either IP version with this traffic class.
    fn packet(v6: bool, class: u8) -> Vec<u8> {
        let builder = match v6 {
            false => PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64),
            true => PacketBuilder::ipv6([1; 16], [2; 16], 64),
        };
        let mut bytes = Vec::new();
        builder.udp(1, 2).write(&mut bytes, b"payload").unwrap();
        // The tests below compare both reading and writing with etherparse.
        if v6 {
            bytes[0] = 0x60 | class >> 4;
            bytes[1] = class << 4 | bytes[1] & 0x0f;
        } else {
            bytes[1] = class;
            let header = Ipv4Header::from_slice(&bytes).unwrap().0;
            let sum = header.calc_header_checksum();
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        bytes
    }

    /// RFC 6040, figure 4, row by row.
    #[test]
    fn marks_combine_as_the_table_says() {
        use Ecn::{Ce, Ect0, Ect1, NotEct};
        let table = [
            [Ok(NotEct), Ok(NotEct), Ok(NotEct), Err(Unmarkable)],
            [Ok(Ect0), Ok(Ect0), Ok(Ect1), Ok(Ce)],
            [Ok(Ect1), Ok(Ect1), Ok(Ect1), Ok(Ce)],
            [Ok(Ce), Ok(Ce), Ok(Ce), Ok(Ce)],
        ];
        for (inner, row) in ALL.into_iter().zip(table) {
            for (outer, expected) in ALL.into_iter().zip(row) {
                assert_eq!(inner.leaving_under(outer), expected, "{inner:?} {outer:?}");
            }
            assert_eq!(Ecn::of(inner.bits()), inner);
        }
        // The code points of RFC 3168, figure 1.
        assert_eq!(ALL.map(Ecn::bits), [0b00, 0b10, 0b01, 0b11]);
    }

    #[test]
    fn the_outer_header_has_the_requested_mark() {
        let ef_ect0 = 46 << 2 | 0b10;
        let outer = |dscp, ecn| Outer { dscp, ecn };
        let cs1 = OuterDscp::Fixed(Dscp::new(8).unwrap());
        for v6 in [false, true] {
            let packet = packet(v6, ef_ect0);
            for (outer, expected) in [
                (outer(OuterDscp::None, false), 0),
                (outer(OuterDscp::None, true), 0b10),
                (outer(OuterDscp::Copy, false), 46 << 2),
                (outer(OuterDscp::Copy, true), ef_ect0),
                (outer(cs1, false), 8 << 2),
                (outer(cs1, true), 8 << 2 | 0b10),
            ] {
                assert_eq!(
                    outer.traffic_class(traffic_class(&packet)),
                    expected,
                    "{outer:?}"
                );
            }
        }
        assert_eq!(outer(cs1, true).traffic_class(None), 8 << 2);
        assert_eq!(outer(OuterDscp::Copy, true).traffic_class(None), 0);
    }

    #[test]
    fn without_ecn_nothing_is_changed_or_dropped() {
        let bytes = packet(false, 0);
        assert_eq!(Outer::default().left_with(&bytes, Ecn::Ce), Ok(None));
        assert_eq!(ECN.left_with(&bytes, Ecn::Ce), Err(Unmarkable));
    }

    #[test]
    fn what_is_written_is_read_and_written_again() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct File {
            outer: Outer,
        }
        for (text, dscp) in [
            ("{ dscp = \"copy\", ecn = true }", OuterDscp::Copy),
            ("{ ecn = true }", OuterDscp::None),
            (
                "{ dscp = \"EF\", ecn = true }",
                OuterDscp::Fixed(Dscp::new(46).unwrap()),
            ),
            (
                "{ dscp = 10, ecn = true }",
                OuterDscp::Fixed(Dscp::new(10).unwrap()),
            ),
        ] {
            let file: File = toml::from_str(&format!("outer = {text}")).unwrap();
            assert_eq!(file.outer, Outer { dscp, ecn: true });
            let again = toml::to_string(&file).unwrap();
            assert_eq!(toml::from_str::<File>(&again).unwrap(), file, "{again}");
        }
        for bad in ["{ dscp = \"fast\" }", "{ dscp = 64 }", "{ dscp = -1 }"] {
            let error = toml::from_str::<File>(&format!("outer = {bad}")).unwrap_err();
            assert!(error.message().contains("\"copy\""), "{error}");
        }
    }

    proptest! {
        /// The rest of the packet stays the same, and the checksum is valid.
        #[test]
        fn a_changed_mark_changes_nothing_else(v6: bool, class: u8, outer: u8) {
            let mut bytes = packet(v6, class);
            let left = ECN.left_with(&bytes, Ecn::of(outer));
            prop_assert_eq!(left.is_err(), class & 3 == 0 && outer & 3 == 3);
            if let Ok(Some(after)) = left {
                prop_assert_eq!(after >> 2, class >> 2);
                prop_assert_ne!(after, class);
                set_traffic_class(&mut bytes, after);
                prop_assert_eq!(traffic_class(&bytes), Some(after));
                prop_assert_eq!(bytes, packet(v6, after));
            }
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), outer: u8) {
            let _any = ECN.traffic_class(traffic_class(&bytes));
            let _any = ECN.left_with(&bytes, Ecn::of(outer));
        }
    }
}
