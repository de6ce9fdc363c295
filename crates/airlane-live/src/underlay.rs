//! The UDP underlay: one nonblocking socket, one peer.
//!
//! The socket is not connected, so that datagrams from elsewhere can be counted. Datagrams are
//! never fragmented (`IP_MTU_DISCOVER` = do): the path MTU that the kernel learnt is asked for
//! instead, and the TUN device gets what is left of it.

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::addr::SocketAddrArg;
use rustix::net::sockopt::{
    self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use rustix::net::{MMsgHdr, RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrAny};

use crate::device::DeviceError;

/// Asked of the kernel for each direction: half a second at 64 Mbit/s.
const SOCKET_BUFFER: usize = 4 << 20;
const ETHERNET: usize = 14;
const UDP: usize = 8;
const IPV4: usize = 20;
const IPV6: usize = 40;

/// The socket below the port.
#[derive(Debug)]
pub struct Underlay {
    socket: UdpSocket,
    peer: SocketAddr,
    /// The peer in the form that the system calls take.
    target: SocketAddrAny,
    name: String,
}

impl Underlay {
    /// Binds to `listen`, for datagrams from and to `peer`.
    ///
    /// # Errors
    /// If the address is taken or not of this machine.
    pub fn bind(listen: SocketAddr, peer: SocketAddr) -> Result<Self, DeviceError> {
        let name = format!("udp {listen}");
        let failed = |call| move |source: io::Error| (call, source);
        let open = || {
            let socket = UdpSocket::bind(listen).map_err(failed("bind"))?;
            socket
                .set_nonblocking(true)
                .map_err(failed("set nonblocking"))?;
            discover_mtu(&socket, peer, false).map_err(failed("forbid fragments"))?;
            Ok(socket)
        };
        let socket = open().map_err(|(call, source)| DeviceError::new(&name, call, source))?;
        // Beyond the system's limit where we may, up to it where we may not. Either serves.
        if sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER).is_err() {
            let _up_to_the_limit = sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER);
        }
        if sockopt::set_socket_send_buffer_size_force(&socket, SOCKET_BUFFER).is_err() {
            let _up_to_the_limit = sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER);
        }
        Ok(Self {
            socket,
            peer,
            target: peer.as_any(),
            name,
        })
    }

    /// The configured peer.
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The address that the socket is bound to.
    ///
    /// # Errors
    /// If the kernel does not know.
    pub fn local(&self) -> Result<SocketAddr, DeviceError> {
        self.socket
            .local_addr()
            .map_err(|source| DeviceError::new(&self.name, "ask for the local address", source))
    }

    /// The peer is at another address of the same IP version from now on.
    pub fn set_peer(&mut self, peer: SocketAddr) {
        (self.peer, self.target) = (peer, peer.as_any());
    }

    /// Whether a datagram from `source` comes from the peer.
    pub fn is_peer(&self, source: SocketAddr) -> bool {
        source.ip() == self.peer.ip() && source.port() == self.peer.port()
    }

    /// Receives one datagram: its whole length, which may exceed the buffer, and its source.
    ///
    /// # Errors
    /// `WouldBlock` if there is none.
    pub fn receive(&self, datagram: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (_, length, source) = rustix::net::recvfrom(&self.socket, datagram, RecvFlags::TRUNC)?;
        let source = source.and_then(|source| SocketAddr::try_from(source).ok());
        let unknown = || SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        Ok((length, source.unwrap_or_else(unknown)))
    }

    /// Sends datagrams, each in two parts, with one system call. How many were taken.
    ///
    /// # Errors
    /// That of the first datagram, if none was taken.
    pub fn send(&self, datagrams: &[[IoSlice<'_>; 2]]) -> io::Result<usize> {
        let mut controls: [SendAncillaryBuffer<'_, '_, '_>; BATCH] =
            std::array::from_fn(|_| SendAncillaryBuffer::default());
        let mut messages: Vec<MMsgHdr<'_>> = Vec::with_capacity(BATCH);
        for (datagram, control) in datagrams.iter().zip(&mut controls) {
            messages.push(MMsgHdr::new_with_addr(&self.target, datagram, control));
        }
        Ok(rustix::net::sendmmsg(
            &self.socket,
            &mut messages,
            SendFlags::empty(),
        )?)
    }

    /// Sends one datagram in two parts.
    ///
    /// # Errors
    /// What the kernel has against it.
    pub fn send_one(&self, parts: &[IoSlice<'_>; 2]) -> io::Result<()> {
        let mut control = SendAncillaryBuffer::default();
        let flags = SendFlags::empty();
        rustix::net::sendmsg_addr(&self.socket, &self.target, parts, &mut control, flags)?;
        Ok(())
    }

    /// Sends one datagram to any address.
    ///
    /// # Errors
    /// What the kernel has against it.
    pub fn send_to(&self, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        rustix::net::sendto(&self.socket, datagram, SendFlags::empty(), &to)?;
        Ok(())
    }

    /// Whether datagrams that do not fit the path may be sent in fragments.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn allow_fragments(&self, allow: bool) -> io::Result<()> {
        discover_mtu(&self.socket, self.peer, allow)
    }

    /// Bytes that UDP, IP and Ethernet add to each frame.
    pub const fn wire_overhead(&self) -> usize {
        ETHERNET + self.ip_overhead()
    }

    /// Bytes that UDP and IP add to each frame.
    pub const fn ip_overhead(&self) -> usize {
        match self.peer {
            SocketAddr::V4(_) => IPV4 + UDP,
            SocketAddr::V6(_) => IPV6 + UDP,
        }
    }

    /// The path MTU to the peer as the kernel knows it now: that of the interface, or less where a
    /// router said so.
    ///
    /// # Errors
    /// If there is no route to the peer.
    pub fn path_mtu(&self) -> Result<usize, DeviceError> {
        self.ask_path_mtu()
            .map_err(|source| DeviceError::new(&self.name, "find the path MTU to the peer", source))
    }

    fn ask_path_mtu(&self) -> io::Result<usize> {
        // A fresh socket each time: a connected one keeps the route that it had. It never sends.
        let any: IpAddr = match self.peer {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let source = self.socket.local_addr().map_or(any, |local| local.ip());
        let probe = UdpSocket::bind((source, 0))?;
        probe.connect(self.peer)?;
        let mtu = match self.peer {
            SocketAddr::V4(_) => sockopt::ip_mtu(&probe)?,
            SocketAddr::V6(_) => sockopt::ipv6_mtu(&probe)?,
        };
        Ok(mtu as usize)
    }
}

fn discover_mtu(socket: &UdpSocket, peer: SocketAddr, fragments: bool) -> io::Result<()> {
    match (peer, fragments) {
        (SocketAddr::V4(_), false) => set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO)?,
        (SocketAddr::V4(_), true) => set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DONT)?,
        (SocketAddr::V6(_), false) => set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DO)?,
        (SocketAddr::V6(_), true) => set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DONT)?,
    }
    Ok(())
}

/// Most datagrams that one call sends.
pub const BATCH: usize = 64;

impl AsFd for Underlay {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
