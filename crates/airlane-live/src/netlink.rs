//! What the live node asks of the kernel's routing tables: an interface's addresses, routes, MTU,
//! and the way to the peer. One blocking request and its answer at a time, at start and on rare
//! changes only.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use airlane_secure::EthernetAddress;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, LinkAttribute, LinkFlags, LinkLayerType, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::device::DeviceError;

/// An address and the length of its prefix. In files: `"10.7.0.1/24"`, `"fd07::1/64"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    /// The address; in a route, that of the network.
    pub address: IpAddr,
    /// How many leading bits name the network.
    pub prefix: u8,
}

impl Cidr {
    /// The network's address: all bits behind the prefix are zero.
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

/// How an Ethernet interface stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) index: u32,
    /// Whether it is switched on.
    pub(crate) up: bool,
    /// Whether there is somebody at the other end of the cable, or an access point.
    pub(crate) carrier: bool,
    /// Largest IP packet that it sends, bytes.
    pub(crate) mtu: usize,
    pub(crate) address: EthernetAddress,
    /// Whether it is a port of a bridge or of a bond, which takes its frames.
    pub(crate) is_port: bool,
}

impl Interface {
    /// Asks the kernel.
    ///
    /// # Errors
    /// If there is no such interface, or it is of another kind.
    pub(crate) fn ask(name: &str) -> Result<Self, DeviceError> {
        let failed = |e| DeviceError::new(name, "find the interface", e);
        let link = Netlink::open().and_then(|mut netlink| netlink.link(name));
        let link = link.map_err(failed)?;
        let mut facts = Self {
            index: link.header.index,
            up: link.header.flags.contains(LinkFlags::Up),
            carrier: link.header.flags.contains(LinkFlags::Running),
            mtu: 0,
            address: EthernetAddress([0; 6]),
            is_port: false,
        };
        for attribute in &link.attributes {
            match attribute {
                LinkAttribute::Mtu(mtu) => facts.mtu = *mtu as usize,
                LinkAttribute::Address(bytes) => {
                    if let Ok(address) = bytes.as_slice().try_into() {
                        facts.address = EthernetAddress(address);
                    }
                }
                LinkAttribute::Controller(_) => facts.is_port = true,
                _ => {}
            }
        }
        if link.header.link_layer_type != LinkLayerType::Ether {
            let why = "not an Ethernet interface, which it has to be";
            let call = "check the interface";
            return Err(DeviceError::new(name, call, io::Error::other(why)));
        }
        Ok(facts)
    }

    /// One that can send and receive now.
    ///
    /// # Errors
    /// If there is none, or it is down.
    pub(crate) fn usable(name: &str) -> Result<Self, DeviceError> {
        let facts = Self::ask(name)?;
        if facts.up {
            return Ok(facts);
        }
        let why = format!("the interface is down; run `ip link set {name} up`");
        let call = "check the interface";
        Err(DeviceError::new(name, call, io::Error::other(why)))
    }
}

/// Whether packets to `address` leave by the interface `name`.
///
/// # Errors
/// If there is no such interface, or no way to the address.
pub fn leads_to(name: &str, address: IpAddr) -> io::Result<bool> {
    let mut netlink = Netlink::open()?;
    Ok(netlink.link_index(name)? == netlink.way_to(address)?)
}

/// A socket to the kernel's routing tables, in the network namespace of the calling thread.
pub(crate) struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// The number of the interface `name`.
    pub(crate) fn link_index(&mut self, name: &str) -> io::Result<u32> {
        Ok(self.link(name)?.header.index)
    }

    fn link(&mut self, name: &str) -> io::Result<LinkMessage> {
        let mut message = LinkMessage::default();
        message.attributes = vec![LinkAttribute::IfName(name.to_owned())];
        match self.ask(RouteNetlinkMessage::GetLink(message))? {
            RouteNetlinkMessage::NewLink(link) => Ok(link),
            _ => Err(unexpected()),
        }
    }

    /// Keeps the kernel from speaking IPv6 of its own on the interface: no link-local address, so
    /// no router solicitations over the link.
    pub(crate) fn set_quiet(&mut self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = vec![LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(
            vec![AfSpecInet6::AddrGenMode(In6AddrGenMode::None)],
        )])];
        match self.tell(RouteNetlinkMessage::SetLink(message), 0) {
            // A kernel without IPv6 is as quiet as it gets.
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => Ok(()),
            other => other,
        }
    }

    pub(crate) fn set_up(&mut self, index: u32, mtu: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes = vec![LinkAttribute::Mtu(mtu)];
        self.tell(RouteNetlinkMessage::SetLink(message), 0)
    }

    pub(crate) fn add_address(&mut self, index: u32, address: Cidr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family(address.address);
        message.header.prefix_len = address.prefix;
        message.header.index = index;
        message.attributes = vec![
            AddressAttribute::Address(address.address),
            AddressAttribute::Local(address.address),
        ];
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.tell(RouteNetlinkMessage::NewAddress(message), flags)
    }

    pub(crate) fn add_route(&mut self, index: u32, route: Cidr) -> io::Result<()> {
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.tell(RouteNetlinkMessage::NewRoute(way(index, route)), flags)
    }

    pub(crate) fn remove_route(&mut self, index: u32, route: Cidr) -> io::Result<()> {
        self.tell(RouteNetlinkMessage::DelRoute(way(index, route)), 0)
    }

    /// The number of the interface that packets to `address` leave by.
    pub(crate) fn way_to(&mut self, address: IpAddr) -> io::Result<u32> {
        let route = self.route_to(address)?;
        let oif = route
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                RouteAttribute::Oif(index) => Some(*index),
                _ => None,
            });
        oif.ok_or_else(unexpected)
    }

    /// Whether packets to `address` stay in this machine.
    pub(crate) fn is_local(&mut self, address: IpAddr) -> io::Result<bool> {
        Ok(self.route_to(address)?.header.kind == RouteType::Local)
    }

    fn route_to(&mut self, address: IpAddr) -> io::Result<RouteMessage> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        message.attributes = vec![RouteAttribute::Destination(address.into())];
        match self.ask(RouteNetlinkMessage::GetRoute(message))? {
            RouteNetlinkMessage::NewRoute(route) => Ok(route),
            _ => Err(unexpected()),
        }
    }

    /// Longest packet that the interface takes by which packets to `address` leave.
    pub(crate) fn mtu_toward(&mut self, address: IpAddr) -> io::Result<usize> {
        let mut message = LinkMessage::default();
        message.header.index = self.way_to(address)?;
        let RouteNetlinkMessage::NewLink(link) = self.ask(RouteNetlinkMessage::GetLink(message))?
        else {
            return Err(unexpected());
        };
        let mtu = link
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Mtu(mtu) => Some(*mtu as usize),
                _ => None,
            });
        mtu.ok_or_else(unexpected)
    }

    /// A request whose answer is one message.
    fn ask(&mut self, request: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
        self.send(request, NLM_F_REQUEST)?;
        match self.receive()? {
            NetlinkPayload::InnerMessage(message) => Ok(message),
            NetlinkPayload::Error(error) => Err(error.to_io()),
            _ => Err(unexpected()),
        }
    }

    /// A request whose answer is that it was done.
    fn tell(&mut self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.send(request, NLM_F_REQUEST | NLM_F_ACK | flags)?;
        match self.receive()? {
            NetlinkPayload::Error(error) if error.code.is_none() => Ok(()),
            NetlinkPayload::Error(error) => Err(error.to_io()),
            _ => Err(unexpected()),
        }
    }

    fn send(&mut self, request: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        self.sequence += 1;
        let mut header = NetlinkHeader::default();
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        Ok(())
    }

    fn receive(&mut self) -> io::Result<NetlinkPayload<RouteNetlinkMessage>> {
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&bytes)
                .map_err(io::Error::other)?;
            if message.header.sequence_number == self.sequence {
                return Ok(message.payload);
            }
        }
    }
}

/// A static route out of an interface.
fn way(index: u32, route: Cidr) -> RouteMessage {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: family(route.address),
        destination_prefix_length: route.prefix,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: if route.address.is_ipv4() {
            RouteScope::Link
        } else {
            RouteScope::Universe
        },
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    message.attributes = vec![RouteAttribute::Oif(index)];
    if route.prefix > 0 {
        let network = RouteAddress::from(route.network());
        message
            .attributes
            .push(RouteAttribute::Destination(network));
    }
    message
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn unexpected() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an unexpected netlink answer")
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

    #[test]
    fn the_way_to_this_machine_is_the_loopback() {
        let mut netlink = Netlink::open().unwrap();
        let loopback = netlink.link_index("lo").unwrap();
        assert_eq!(netlink.way_to([127, 0, 0, 1].into()).unwrap(), loopback);
        assert!(netlink.mtu_toward([127, 0, 0, 1].into()).unwrap() >= 1280);
        assert!(leads_to("lo", [127, 0, 0, 1].into()).unwrap());
        let missing = netlink.link_index("no-such-link").unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::ENODEV));
    }
}
