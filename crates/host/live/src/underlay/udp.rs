//! The UDP underlay: one nonblocking socket for all peers. Where the kernel supports it, datagrams of one
//! length to one peer are sent with one call (UDP GSO) and received with one (GRO).
//!
//! A socket on the unspecified IPv6 address serves peers of both versions; IPv4 peers have their IPv4
//! addresses instead of mapped ones (RFC 4291, section 2.5.5.2).
//!
//! The socket is not connected, so that datagrams from other addresses can be counted. Datagrams are never
//! fragmented (`IP_MTU_DISCOVER` = probe): the kernel sends them whole, whatever path MTU routers reported, or not
//! at all, and probing finds the possible length. Only datagrams that were built for a larger MTU may be fragmented.

use std::cell::Cell;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use airlane_secure::PeerAddress;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::net::sockopt::{
    self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use socket2::{MsgHdr, SockAddr, SockRef};

use crate::device::{BIND, DeviceError};
use crate::netlink::Netlink;
use crate::packet::ecn::Ecn;
use airlane_node::{DatagramAddresses, PathFacts};

/// Requested socket buffer in each direction, bytes: half a second at 64 Mbit/s.
const SOCKET_BUFFER: usize = 4 << 20;
/// Buffers for one receive call; each takes up to 64 datagrams of one length.
const RECEIVE_BUFFERS: usize = 8;
const RECEIVE_MAX: usize = 65_536;

/// A socket on one UDP port.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    offload: UdpSocketState,
    v4: bool,
    /// The traffic class of datagrams that are sent singly.
    class: Cell<u8>,
    /// Whether datagrams may be fragmented.
    fragments: Cell<bool>,
    /// The mark by which datagrams bypass the tunnel, and the index of the tunnel's interface.
    past: (u32, Option<u32>),
    name: String,
}

/// Datagrams received with one system call.
#[derive(Debug)]
pub(crate) struct Received {
    buffers: Vec<Box<[u8]>>,
    meta: [RecvMeta; RECEIVE_BUFFERS],
    filled: usize,
}

impl Received {
    pub(crate) fn new() -> Self {
        let buffer = || vec![0; RECEIVE_MAX].into_boxed_slice();
        Self {
            buffers: std::iter::repeat_with(buffer)
                .take(RECEIVE_BUFFERS)
                .collect(),
            meta: [RecvMeta::default(); RECEIVE_BUFFERS],
            filled: 0,
        }
    }

    /// Whether more datagrams may be waiting.
    pub(crate) const fn is_full(&self) -> bool {
        self.filled == RECEIVE_BUFFERS
    }

    pub(crate) fn for_each(&self, mut take: impl FnMut(&[u8], DatagramAddresses, Ecn)) {
        for (buffer, meta) in self.buffers.iter().zip(&self.meta).take(self.filled) {
            let bytes = &buffer[..meta.len.min(buffer.len())];
            let empty = bytes.is_empty().then_some(bytes);
            let mark = meta.ecn.map_or(Ecn::NotEct, |mark| Ecn::of(mark as u8));
            let source = SocketAddr::new(meta.addr.ip().to_canonical(), meta.addr.port());
            let addressing = DatagramAddresses {
                from: PeerAddress::Udp(source),
                to: meta.dst_ip.map(|ip| ip.to_canonical()),
            };
            for datagram in bytes.chunks(meta.stride.max(1)).chain(empty) {
                take(datagram, addressing, mark);
            }
        }
    }
}

impl Udp {
    /// Binds to `listen`.
    ///
    /// # Errors
    /// If the address is taken or not of this machine.
    pub fn bind(listen: SocketAddr) -> Result<Self, DeviceError> {
        Self::over(listen, UdpSocket::bind(listen))
    }

    /// Binds to an address that no interface may have yet; the socket works once one has it.
    ///
    /// # Errors
    /// If the address is taken.
    pub(super) fn bind_early(listen: SocketAddr) -> Result<Self, DeviceError> {
        let bound = match UdpSocket::bind(listen) {
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
                let why = "no interface has it yet; waiting for one";
                tracing::warn!(%listen, why, "the address is missing");
                bind_anyway(listen)
            }
            // Without IPv6 in the kernel, all addresses are IPv4 addresses.
            Err(error)
                if error.raw_os_error() == Some(libc::EAFNOSUPPORT)
                    && listen.ip() == Ipv6Addr::UNSPECIFIED =>
            {
                tracing::warn!(%listen, why = "the machine has no IPv6", "only IPv4 is heard");
                return Self::bind_early((Ipv4Addr::UNSPECIFIED, listen.port()).into());
            }
            bound => bound,
        };
        Self::over(listen, bound)
    }

    fn over(listen: SocketAddr, bound: io::Result<UdpSocket>) -> Result<Self, DeviceError> {
        let name = format!("udp {listen}");
        let failed = |call| move |source: io::Error| (call, source);
        let open = || {
            let socket = bound.map_err(failed(BIND))?;
            socket
                .set_nonblocking(true)
                .map_err(failed("set nonblocking"))?;
            let offload =
                UdpSocketState::new((&socket).into()).map_err(failed("agree on offloads"))?;
            discover_mtu(&socket, listen.is_ipv4(), false).map_err(failed("forbid fragments"))?;
            Ok((socket, offload))
        };
        let (socket, offload) =
            open().map_err(|(call, source)| DeviceError::new(&name, call, source))?;
        // Above the system's limit if privileged, otherwise up to that limit. Either is enough.
        if sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER).is_err() {
            let _up_to_the_limit = sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
        }
        if sockopt::set_socket_send_buffer_size_force(&socket, SOCKET_BUFFER).is_err() {
            let _up_to_the_limit = sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER);
        }
        Ok(Self {
            socket,
            offload,
            v4: listen.is_ipv4(),
            class: Cell::new(0),
            fragments: Cell::new(false),
            past: (0, None),
            name,
        })
    }

    /// Makes datagrams bypass the tunnel whose interface has this index: by a mark, if there is one; peers
    /// whose route leads into the tunnel count as unreachable.
    pub(crate) fn go_past(&mut self, tunnel: Option<u32>, mark: u32) -> Result<(), DeviceError> {
        self.past = (mark, tunnel);
        if mark == 0 {
            return Ok(());
        }
        SockRef::from(&self.socket)
            .set_mark(mark)
            .map_err(|source| {
                DeviceError::new(&self.name, "mark datagrams that bypass the tunnel", source)
            })
    }

    /// See [`Udp::go_past`].
    pub(crate) const fn mark(&self) -> u32 {
        self.past.0
    }

    /// Changes to another port of this address, any free one for 0.
    pub(crate) fn change_port(&mut self, port: u16) -> Result<SocketAddr, DeviceError> {
        let mut listen = self.local()?;
        listen.set_port(port);
        let mut other = Self::bind(listen)?;
        let (mark, tunnel) = self.past;
        other.go_past(tunnel, mark)?;
        *self = other;
        self.local()
    }

    /// The address that the socket is bound to.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn local(&self) -> Result<SocketAddr, DeviceError> {
        self.socket
            .local_addr()
            .map_err(|source| DeviceError::new(&self.name, "ask for the local address", source))
    }

    /// Receives waiting datagrams, as many as `received` holds.
    ///
    /// # Errors
    /// `WouldBlock` if there are none.
    pub(crate) fn receive(&self, received: &mut Received) -> io::Result<()> {
        received.filled = 0;
        let mut buffers = received.buffers.iter_mut();
        let mut slices: [IoSliceMut<'_>; RECEIVE_BUFFERS] = std::array::from_fn(|_| {
            IoSliceMut::new(buffers.next().map_or(&mut [], |buffer| &mut buffer[..]))
        });
        let socket = (&self.socket).into();
        received.filled = self.offload.recv(socket, &mut slices, &mut received.meta)?;
        Ok(())
    }

    /// Most datagrams of a traffic class that [`Udp::send`] takes at once.
    pub(crate) fn run_max(&self, class: u8) -> usize {
        match has_dscp(class) {
            true => 1,
            false => self.offload.max_gso_segments(),
        }
    }

    fn set_class(&self, class: u8) -> io::Result<()> {
        if class != self.class.get() {
            match self.v4 {
                true => sockopt::set_ip_tos(&self.socket, class)?,
                false => {
                    sockopt::set_ipv6_tclass(&self.socket, class.into())?;
                    sockopt::set_ip_tos(&self.socket, class)?;
                }
            }
            self.class.set(class);
        }
        Ok(())
    }

    /// Sends `contents` to `peer` as datagrams of `size` bytes each, all of them, from the local address `from`.
    ///
    /// # Errors
    /// The kernel's error; nothing was sent then.
    pub(crate) fn send(
        &self,
        (peer, from): (SocketAddr, Option<IpAddr>),
        contents: &[u8],
        size: usize,
        class: u8,
    ) -> io::Result<usize> {
        if has_dscp(class) {
            // Sending runs sets only the two ECN bits and clears the others.
            self.set_class(class)?;
            self.send_alone(peer, from, contents)?;
            return Ok(1);
        }
        let transmit = Transmit {
            destination: self.on_socket(peer),
            ecn: EcnCodepoint::from_bits(class),
            contents,
            segment_size: (size < contents.len()).then_some(size),
            src_ip: from,
        };
        self.offload.try_send((&self.socket).into(), &transmit)?;
        Ok(transmit
            .segment_size
            .map_or(1, |size| contents.len().div_ceil(size)))
    }

    /// Sends one datagram to any address, without a traffic class; `from` is a local address, or `None` to
    /// let the kernel choose.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn send_to(&self, to: SocketAddr, from: Option<IpAddr>, datagram: &[u8]) -> io::Result<()> {
        self.set_class(0)?;
        self.send_alone(to, from, datagram)
    }

    fn send_alone(&self, to: SocketAddr, from: Option<IpAddr>, datagram: &[u8]) -> io::Result<()> {
        let to = SockAddr::from(self.on_socket(to));
        let control = from.map(source_of);
        let parts = [IoSlice::new(datagram)];
        let message = MsgHdr::new().with_addr(&to).with_buffers(&parts);
        let socket = SockRef::from(&self.socket);
        match &control {
            Some(control) => socket.sendmsg(&message.with_control(control), 0)?,
            None => socket.sendmsg(&message, 0)?,
        };
        Ok(())
    }

    /// The address in the form that the socket takes.
    fn on_socket(&self, address: SocketAddr) -> SocketAddr {
        match address {
            SocketAddr::V4(v4) if !self.v4 => (v4.ip().to_ipv6_mapped(), v4.port()).into(),
            as_it_is => as_it_is,
        }
    }

    /// Sets whether datagrams that do not fit the path may be fragmented.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn allow_fragments(&self, allow: bool) -> io::Result<()> {
        if self.fragments.get() != allow {
            discover_mtu(&self.socket, self.v4, allow)?;
            self.fragments.set(allow);
        }
        Ok(())
    }

    /// The kernel's knowledge of the path to `peer`.
    ///
    /// # Errors
    /// If there is no route to the peer.
    pub(crate) fn path(&self, peer: SocketAddr) -> Result<PathFacts, DeviceError> {
        let ask = || {
            let mut netlink = Netlink::open()?;
            let (mark, tunnel) = self.past;
            let way = netlink.way_of(peer.ip(), mark)?;
            if Some(way) == tunnel {
                let why = "the way to it leads into the tunnel itself";
                return Err(io::Error::other(why));
            }
            Ok::<_, io::Error>(PathFacts {
                interface: netlink.mtu_of(way)?,
                said: self.path_mtu(peer)?,
            })
        };
        ask()
            .map_err(|source| DeviceError::new(&self.name, "find the path MTU to the peer", source))
    }

    /// The interface's MTU, or the lower path MTU that a router reported.
    fn path_mtu(&self, peer: SocketAddr) -> io::Result<usize> {
        // A new socket each time, because a connected one keeps its route. Nothing is sent.
        let any: IpAddr = match peer {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let source = self.socket.local_addr().map_or(any, |local| local.ip());
        let source = match source.is_ipv4() == any.is_ipv4() {
            true => source,
            false => any,
        };
        let probe = UdpSocket::bind((source, 0))?;
        if self.past.0 != 0 {
            SockRef::from(&probe).set_mark(self.past.0)?;
        }
        probe.connect(peer)?;
        let mtu = match peer {
            SocketAddr::V4(_) => sockopt::ip_mtu(&probe)?,
            SocketAddr::V6(_) => sockopt::ipv6_mtu(&probe)?,
        };
        Ok(mtu as usize)
    }
}

/// Binds to an address that no interface has (`IP_FREEBIND`, ip(7)).
fn bind_anyway(listen: SocketAddr) -> io::Result<UdpSocket> {
    let family = match listen {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
    match listen {
        SocketAddr::V4(_) => sockopt::set_ip_freebind(&socket, true)?,
        SocketAddr::V6(_) => sockopt::set_ipv6_freebind(&socket, true)?,
    }
    rustix::net::bind(&socket, &listen)?;
    Ok(socket.into())
}

/// The control message that sets the source address of a datagram (ip(7), ipv6(7)).
fn source_of(from: IpAddr) -> Vec<u8> {
    let (level, kind, info) = match from {
        // in_pktinfo: interface, source, and a field used only for received packets.
        IpAddr::V4(ip) => {
            let info = [[0; 4], ip.octets(), [0; 4]].concat();
            (libc::IPPROTO_IP, libc::IP_PKTINFO, info)
        }
        // in6_pktinfo: source, interface.
        IpAddr::V6(ip) => {
            let info = [&ip.octets()[..], &[0; 4]].concat();
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info)
        }
    };
    let head = size_of::<libc::cmsghdr>();
    let mut message = (head + info.len()).to_ne_bytes().to_vec();
    message.extend_from_slice(&level.to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&info);
    message.resize(message.len().next_multiple_of(size_of::<usize>()), 0);
    message
}

const fn has_dscp(class: u8) -> bool {
    class >> 2 != 0
}

fn discover_mtu(socket: &UdpSocket, v4: bool, fragments: bool) -> io::Result<()> {
    let how = match fragments {
        true => Ipv4PathMtuDiscovery::DONT,
        false => Ipv4PathMtuDiscovery::PROBE,
    };
    // For a socket of both versions, too.
    set_ip_mtu_discover(socket, how)?;
    if v4 {
        return Ok(());
    }
    let how = match fragments {
        true => Ipv6PathMtuDiscovery::DONT,
        false => Ipv6PathMtuDiscovery::PROBE,
    };
    set_ipv6_mtu_discover(socket, how)?;
    option::forbid_fragments_v6(socket, !fragments)
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The one socket option without a safe wrapper.
mod option {
    #![expect(unsafe_code, reason = "IPV6_DONTFRAG has no safe wrapper")]

    use std::io;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    /// Without this option the kernel may fragment a datagram at the source, whatever the path MTU discovery mode.
    pub(super) fn forbid_fragments_v6(socket: &UdpSocket, forbid: bool) -> io::Result<()> {
        let value = libc::c_int::from(forbid);
        // SAFETY: the option takes an integer (ipv6(7)), whose address and size are given.
        let done = unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_IPV6,
                libc::IPV6_DONTFRAG,
                (&raw const value).cast(),
                size_of_val(&value) as libc::socklen_t,
            )
        };
        if done < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}
