//! Requests to the kernel's routing tables: an interface's addresses, routes and MTU, and the route to the peer.
//! Each request blocks until its answer arrives, so requests are made only at the start and on rare changes.

use std::io;
use std::net::IpAddr;

use airlane_secure::EthernetAddress;
use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    AfSpecInet6, AfSpecUnspec, In6AddrGenMode, LinkAttribute, LinkFlags, LinkLayerType, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleFlags, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::device::DeviceError;
pub use airlane_node::Cidr;

/// State of an Ethernet interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub(crate) index: u32,
    /// Whether it is up.
    pub(crate) up: bool,
    /// Whether it has a carrier: a cable with another device, or an access point.
    pub(crate) carrier: bool,
    /// MTU, bytes.
    pub(crate) mtu: usize,
    pub(crate) address: EthernetAddress,
    /// Whether it is a port of a bridge or bond, which takes its frames.
    pub(crate) is_port: bool,
}

impl Interface {
    /// Queries the kernel.
    ///
    /// # Errors
    /// If there is no such interface, or it is not Ethernet.
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

    /// Queries an interface that must be up.
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

/// A routing table for default routes, used by all packets without the mark, unless the main table has a more
/// specific route: as wg-quick(8) does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnTable {
    /// Number of the table, and the mark of packets that bypass it.
    pub(crate) mark: u32,
    /// Priority of its first rule; the second rule has the next one.
    pub(crate) priority: u32,
}

impl OwnTable {
    /// The table of the interface `name`: the same at each start, so that the rules of a killed node are found.
    pub(crate) fn of(name: &str) -> Self {
        let hash = airlane_base::random::fnv1a(name.as_bytes()) as u16;
        Self {
            mark: 0x4169_0000 | u32::from(hash),
            priority: 31_000 + u32::from(hash % 500) * 2,
        }
    }

    fn rules(self, v4: bool) -> [RuleMessage; 2] {
        let rule = |priority, table, attributes: &[RuleAttribute], flags| {
            let mut rule = RuleMessage::default();
            rule.header.family = if v4 {
                AddressFamily::Inet
            } else {
                AddressFamily::Inet6
            };
            rule.header.action = RuleAction::ToTable;
            rule.header.flags = flags;
            rule.attributes = vec![
                RuleAttribute::Table(table),
                RuleAttribute::Priority(priority),
            ];
            rule.attributes.extend_from_slice(attributes);
            rule
        };
        let main = u32::from(RouteHeader::RT_TABLE_MAIN);
        let narrower = RuleAttribute::SuppressPrefixLen(0);
        let marked = RuleAttribute::FwMark(self.mark);
        [
            rule(self.priority, main, &[narrower], RuleFlags::empty()),
            rule(self.priority + 1, self.mark, &[marked], RuleFlags::Invert),
        ]
    }
}

/// Whether packets to `address` leave by the interface `name`.
///
/// # Errors
/// If there is no such interface, or no route to the address.
pub fn leads_to(name: &str, address: IpAddr) -> io::Result<bool> {
    let mut netlink = Netlink::open()?;
    Ok(netlink.link_index(name)? == netlink.way_to(address)?)
}

/// The interface by which datagrams to `address` with this mark leave.
///
/// # Errors
/// If none leaves: which interface is down or has no carrier, as far as that may be the reason.
pub(crate) fn way_out(address: IpAddr, mark: u32) -> Result<String, String> {
    let mut netlink = Netlink::open().map_err(|error| error.to_string())?;
    let way = netlink.way_of(address, mark);
    if let Ok(link) = way.and_then(|index| netlink.link_of(index)) {
        let name = name_of(&link);
        return match trouble(&link) {
            None => Ok(name.to_owned()),
            Some(what) => Err(format!("{name} {what}")),
        };
    }
    let links = netlink.links().unwrap_or_default();
    let away = links.iter().filter_map(|link| {
        // A new namespace has the kernel's default tunnel devices, which are down.
        use LinkLayerType::{Ether, None as Plain, Ppp};
        let what =
            trouble(link).filter(|_| matches!(link.header.link_layer_type, Ether | Plain | Ppp))?;
        Some(format!("{} {what}", name_of(link)))
    });
    let away: Vec<_> = std::iter::once("no route".to_owned()).chain(away).collect();
    Err(away.join("; "))
}

fn name_of(link: &LinkMessage) -> &str {
    let mut attributes = link.attributes.iter();
    let name = attributes.find_map(|attribute| match attribute {
        LinkAttribute::IfName(name) => Some(&**name),
        _ => None,
    });
    name.unwrap_or_default()
}

/// Why no packet can leave by an interface.
fn trouble(link: &LinkMessage) -> Option<&'static str> {
    let flags = link.header.flags;
    if !flags.contains(LinkFlags::Up) {
        Some("is down")
    } else if !flags.contains(LinkFlags::Running) {
        Some("has no carrier")
    } else {
        None
    }
}

/// A netlink socket in the network namespace of the calling thread.
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

    /// The index of the interface `name`.
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

    /// Stops the kernel's own IPv6 traffic on the interface: no link-local address, so no router
    /// solicitations over the link.
    pub(crate) fn set_quiet(&mut self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.attributes = vec![LinkAttribute::AfSpecUnspec(vec![AfSpecUnspec::Inet6(
            vec![AfSpecInet6::AddrGenMode(In6AddrGenMode::None)],
        )])];
        match self.tell(RouteNetlinkMessage::SetLink(message), 0) {
            // A kernel without IPv6 needs nothing.
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

    /// Adds a route to the main table, or to a table of its own.
    pub(crate) fn add_route(
        &mut self,
        index: u32,
        route: Cidr,
        table: Option<OwnTable>,
    ) -> io::Result<()> {
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.tell(
            RouteNetlinkMessage::NewRoute(way(index, route, table)),
            flags,
        )
    }

    /// Adds the route to the network of an address, as the kernel does when the address is added.
    ///
    /// # Errors
    /// `AlreadyExists` if the kernel's own is there, or if the network is the address alone.
    pub(crate) fn add_connected(&mut self, index: u32, address: Cidr) -> io::Result<()> {
        /// `IP6_RT_PRIO_ADDRCONF` (net/ip6_route.h): with another metric it would stand beside the kernel's.
        const CONNECTED: u32 = 256;
        let is_v4 = address.address.is_ipv4();
        if address.prefix == if is_v4 { 32 } else { 128 } {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let mut message = way(index, address, None);
        message.header.protocol = RouteProtocol::Kernel;
        let attribute = match is_v4 {
            true => RouteAttribute::PrefSource(address.address.into()),
            false => RouteAttribute::Priority(CONNECTED),
        };
        message.attributes.push(attribute);
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.tell(RouteNetlinkMessage::NewRoute(message), flags)
    }

    pub(crate) fn remove_route(
        &mut self,
        index: u32,
        route: Cidr,
        table: Option<OwnTable>,
    ) -> io::Result<()> {
        self.tell(RouteNetlinkMessage::DelRoute(way(index, route, table)), 0)
    }

    /// Adds the rules that lead packets without the mark to the table. Returns whether any was missing.
    pub(crate) fn follow(&mut self, table: OwnTable, v4: bool) -> io::Result<bool> {
        let mut missing = false;
        for rule in table.rules(v4) {
            let flags = NLM_F_CREATE | NLM_F_EXCL;
            match self.tell(RouteNetlinkMessage::NewRule(rule), flags) {
                Ok(()) => missing = true,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(missing)
    }

    /// Removes the rules of a table.
    pub(crate) fn unfollow(&mut self, table: OwnTable, v4: bool) -> io::Result<()> {
        for rule in table.rules(v4) {
            self.tell(RouteNetlinkMessage::DelRule(rule), 0)?;
        }
        Ok(())
    }

    /// Whether an interface is up.
    pub(crate) fn is_up(&mut self, index: u32) -> io::Result<bool> {
        Ok(self.link_of(index)?.header.flags.contains(LinkFlags::Up))
    }

    fn link_of(&mut self, index: u32) -> io::Result<LinkMessage> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        match self.ask(RouteNetlinkMessage::GetLink(message))? {
            RouteNetlinkMessage::NewLink(link) => Ok(link),
            _ => Err(unexpected()),
        }
    }

    /// All interfaces.
    fn links(&mut self) -> io::Result<Vec<LinkMessage>> {
        let all = RouteNetlinkMessage::GetLink(LinkMessage::default());
        self.send(all, NLM_F_REQUEST | NLM_F_DUMP)?;
        let mut links = Vec::new();
        loop {
            let (bytes, _) = self.socket.recv_from_full()?;
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let message = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(io::Error::other)?;
                let length = (message.header.length as usize).next_multiple_of(4);
                rest = rest.get(length..).unwrap_or_default();
                match message.payload {
                    _ if message.header.sequence_number != self.sequence => {}
                    NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(link)) => {
                        links.push(link);
                    }
                    NetlinkPayload::Done(_) => return Ok(links),
                    NetlinkPayload::Error(error) => return Err(error.to_io()),
                    _ => {}
                }
            }
        }
    }

    /// The index of the interface by which packets to `address` leave.
    pub(crate) fn way_to(&mut self, address: IpAddr) -> io::Result<u32> {
        self.way_of(address, 0)
    }

    /// The same for packets with this mark.
    pub(crate) fn way_of(&mut self, address: IpAddr, mark: u32) -> io::Result<u32> {
        let route = self.route_to(address, mark)?;
        let oif = route
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                RouteAttribute::Oif(index) => Some(*index),
                _ => None,
            });
        oif.ok_or_else(unexpected)
    }

    /// Whether `address` belongs to this machine.
    pub(crate) fn is_local(&mut self, address: IpAddr) -> io::Result<bool> {
        Ok(self.route_to(address, 0)?.header.kind == RouteType::Local)
    }

    /// Prefix length and metric of the route for packets to `address`.
    pub(crate) fn match_of(&mut self, address: IpAddr) -> io::Result<(u8, u32)> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        message.header.flags = RouteFlags::FibMatch;
        message.attributes = vec![RouteAttribute::Destination(address.into())];
        let RouteNetlinkMessage::NewRoute(route) =
            self.ask(RouteNetlinkMessage::GetRoute(message))?
        else {
            return Err(unexpected());
        };
        let mut attributes = route.attributes.iter();
        let metric = attributes.find_map(|attribute| match attribute {
            RouteAttribute::Priority(metric) => Some(*metric),
            _ => None,
        });
        let prefix = route.header.destination_prefix_length;
        Ok((prefix, metric.unwrap_or_default()))
    }

    fn route_to(&mut self, address: IpAddr, mark: u32) -> io::Result<RouteMessage> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(address);
        message.header.destination_prefix_length = if address.is_ipv4() { 32 } else { 128 };
        message.attributes = vec![RouteAttribute::Destination(address.into())];
        if mark != 0 {
            message.attributes.push(RouteAttribute::Mark(mark));
        }
        match self.ask(RouteNetlinkMessage::GetRoute(message))? {
            RouteNetlinkMessage::NewRoute(route) => Ok(route),
            _ => Err(unexpected()),
        }
    }

    /// MTU of an interface, bytes.
    pub(crate) fn mtu_of(&mut self, index: u32) -> io::Result<usize> {
        let link = self.link_of(index)?;
        let mut attributes = link.attributes.iter();
        let mtu = attributes.find_map(|attribute| match attribute {
            LinkAttribute::Mtu(mtu) => Some(*mtu as usize),
            _ => None,
        });
        mtu.ok_or_else(unexpected)
    }

    /// Sends a request that is answered with one message.
    fn ask(&mut self, request: RouteNetlinkMessage) -> io::Result<RouteNetlinkMessage> {
        self.send(request, NLM_F_REQUEST)?;
        match self.receive()? {
            NetlinkPayload::InnerMessage(message) => Ok(message),
            NetlinkPayload::Error(error) => Err(error.to_io()),
            _ => Err(unexpected()),
        }
    }

    /// Sends a request that is answered with an acknowledgment.
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

/// A static route through an interface.
fn way(index: u32, route: Cidr, table: Option<OwnTable>) -> RouteMessage {
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
    if let Some(table) = table {
        message.header.table = RouteHeader::RT_TABLE_UNSPEC;
        message.attributes.push(RouteAttribute::Table(table.mark));
    }
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
    fn the_route_to_this_machine_is_the_loopback() {
        let mut netlink = Netlink::open().unwrap();
        let loopback = netlink.link_index("lo").unwrap();
        assert_eq!(netlink.way_to([127, 0, 0, 1].into()).unwrap(), loopback);
        assert!(netlink.mtu_of(loopback).unwrap() >= 1280);
        assert!(leads_to("lo", [127, 0, 0, 1].into()).unwrap());
        let missing = netlink.link_index("no-such-link").unwrap_err();
        assert_eq!(missing.raw_os_error(), Some(libc::ENODEV));
    }
}
