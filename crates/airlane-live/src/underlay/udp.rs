//! The UDP underlay: one nonblocking socket for all peers. Datagrams of one length to one peer leave with
//! one call (UDP GSO), and come with one (GRO), where the kernel can do it.
//!
//! The socket is not connected, so that datagrams from elsewhere can be counted. Datagrams are
//! never fragmented (`IP_MTU_DISCOVER` = do): the path MTU that the kernel learnt is asked for
//! instead, and the TUN device gets what is left of it.

use std::cell::Cell;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use airlane_secure::PeerAddress;
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::net::sockopt::{
    self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use crate::device::DeviceError;
use crate::packet::ecn::Ecn;

/// Asked of the kernel for each direction: half a second at 64 Mbit/s.
const SOCKET_BUFFER: usize = 4 << 20;
/// What a path takes until more is known of it.
pub(crate) const ETHERNET_MTU: usize = 1500;
const UDP: usize = 8;
const IPV4: usize = 20;
const IPV6: usize = 40;
/// Buffers for one call; each takes up to 64 datagrams of one length.
const RECEIVE_BUFFERS: usize = 8;
const RECEIVE_MAX: usize = 65_536;

/// One UDP port.
#[derive(Debug)]
pub struct Udp {
    socket: UdpSocket,
    offload: UdpSocketState,
    v4: bool,
    /// The traffic class of what is sent alone.
    class: Cell<u8>,
    name: String,
}

/// Datagrams as they were received with one call.
#[derive(Debug)]
pub(crate) struct Received {
    buffers: Vec<Box<[u8]>>,
    meta: [RecvMeta; RECEIVE_BUFFERS],
    filled: usize,
}

impl Received {
    pub(super) fn new() -> Self {
        let buffer = || vec![0; RECEIVE_MAX].into_boxed_slice();
        Self {
            buffers: std::iter::repeat_with(buffer)
                .take(RECEIVE_BUFFERS)
                .collect(),
            meta: [RecvMeta::default(); RECEIVE_BUFFERS],
            filled: 0,
        }
    }

    /// Whether there may be more than had room.
    pub(super) const fn is_full(&self) -> bool {
        self.filled == RECEIVE_BUFFERS
    }

    pub(super) fn for_each(&self, mut take: impl FnMut(&[u8], PeerAddress, Ecn)) {
        for (buffer, meta) in self.buffers.iter().zip(&self.meta).take(self.filled) {
            let bytes = &buffer[..meta.len.min(buffer.len())];
            let empty = bytes.is_empty().then_some(bytes);
            let mark = meta.ecn.map_or(Ecn::NotEct, |mark| Ecn::of(mark as u8));
            for datagram in bytes.chunks(meta.stride.max(1)).chain(empty) {
                take(datagram, PeerAddress::Udp(meta.addr), mark);
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

    /// Binds to an address that no interface may have yet: it is used once one has it.
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
            bound => bound,
        };
        Self::over(listen, bound)
    }

    fn over(listen: SocketAddr, bound: io::Result<UdpSocket>) -> Result<Self, DeviceError> {
        let name = format!("udp {listen}");
        let failed = |call| move |source: io::Error| (call, source);
        let open = || {
            let socket = bound.map_err(failed("bind"))?;
            socket
                .set_nonblocking(true)
                .map_err(failed("set nonblocking"))?;
            let offload =
                UdpSocketState::new((&socket).into()).map_err(failed("agree on offloads"))?;
            // After the offloads, which would ignore what the kernel knows of the path.
            discover_mtu(&socket, listen.is_ipv4(), false).map_err(failed("forbid fragments"))?;
            Ok((socket, offload))
        };
        let (socket, offload) =
            open().map_err(|(call, source)| DeviceError::new(&name, call, source))?;
        // Beyond the system's limit where we may, up to it where we may not. Either serves.
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
            name,
        })
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

    /// Receives what there is, up to the room in `received`.
    ///
    /// # Errors
    /// `WouldBlock` if there is nothing.
    pub(super) fn receive(&self, received: &mut Received) -> io::Result<()> {
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
    pub(super) fn run_max(&self, class: u8) -> usize {
        match has_dscp(class) {
            true => 1,
            false => self.offload.max_gso_segments(),
        }
    }

    fn set_class(&self, class: u8) -> io::Result<()> {
        if class != self.class.get() {
            match self.v4 {
                true => sockopt::set_ip_tos(&self.socket, class)?,
                false => sockopt::set_ipv6_tclass(&self.socket, class.into())?,
            }
            self.class.set(class);
        }
        Ok(())
    }

    /// Sends `contents` to `peer` as datagrams of `size` bytes each: all of them.
    ///
    /// # Errors
    /// What the kernel has against it; then nothing was sent.
    pub(super) fn send(
        &self,
        peer: SocketAddr,
        contents: &[u8],
        size: usize,
        class: u8,
    ) -> io::Result<usize> {
        if has_dscp(class) {
            // What sends runs sets the two bits of ECN and clears the others.
            self.set_class(class)?;
            self.send_alone(peer, contents)?;
            return Ok(1);
        }
        let transmit = Transmit {
            destination: peer,
            ecn: EcnCodepoint::from_bits(class),
            contents,
            segment_size: (size < contents.len()).then_some(size),
            src_ip: None,
        };
        self.offload.try_send((&self.socket).into(), &transmit)?;
        Ok(transmit
            .segment_size
            .map_or(1, |size| contents.len().div_ceil(size)))
    }

    /// Sends one datagram to any address, without a traffic class.
    ///
    /// # Errors
    /// What the kernel has against it.
    pub fn send_to(&self, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        self.set_class(0)?;
        self.send_alone(to, datagram)
    }

    fn send_alone(&self, to: SocketAddr, datagram: &[u8]) -> io::Result<()> {
        rustix::net::sendto(&self.socket, datagram, SendFlags::empty(), &to)?;
        Ok(())
    }

    /// Whether datagrams that do not fit the path may be sent in fragments.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn allow_fragments(&self, allow: bool) -> io::Result<()> {
        discover_mtu(&self.socket, self.v4, allow)
    }

    /// Bytes that UDP and IP add to each frame.
    pub const fn overhead(&self) -> usize {
        match self.v4 {
            true => IPV4 + UDP,
            false => IPV6 + UDP,
        }
    }

    /// The path MTU to `peer` as the kernel knows it now: that of the interface, or less where a router
    /// said so. Ethernet's while nobody knows where the peer is.
    ///
    /// # Errors
    /// If there is no route to the peer.
    pub fn path_mtu(&self, peer: Option<SocketAddr>) -> Result<usize, DeviceError> {
        self.ask_path_mtu(peer)
            .map_err(|source| DeviceError::new(&self.name, "find the path MTU to the peer", source))
    }

    fn ask_path_mtu(&self, peer: Option<SocketAddr>) -> io::Result<usize> {
        let Some(peer) = peer else {
            return Ok(ETHERNET_MTU);
        };
        // A fresh socket each time: a connected one keeps the route that it had. It never sends.
        let any: IpAddr = match peer {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let source = self.socket.local_addr().map_or(any, |local| local.ip());
        let probe = UdpSocket::bind((source, 0))?;
        probe.connect(peer)?;
        let mtu = match peer {
            SocketAddr::V4(_) => sockopt::ip_mtu(&probe)?,
            SocketAddr::V6(_) => sockopt::ipv6_mtu(&probe)?,
        };
        Ok(mtu as usize)
    }
}

/// Binds to an address that is nobody's (`IP_FREEBIND`, ip(7)).
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

const fn has_dscp(class: u8) -> bool {
    class >> 2 != 0
}

fn discover_mtu(socket: &UdpSocket, v4: bool, fragments: bool) -> io::Result<()> {
    match (v4, fragments) {
        (true, false) => set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DO)?,
        (true, true) => set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::DONT)?,
        (false, false) => {
            set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DO)?;
            option::forbid_fragments_v6(socket, true)?;
        }
        (false, true) => {
            set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::DONT)?;
            option::forbid_fragments_v6(socket, false)?;
        }
    }
    Ok(())
}

impl AsFd for Udp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The one socket option that has no safe wrapper.
mod option {
    #![expect(unsafe_code, reason = "IPV6_DONTFRAG has no safe wrapper")]

    use std::io;
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;

    /// Without it a datagram may be cut at the source, whatever path MTU discovery says.
    pub(super) fn forbid_fragments_v6(socket: &UdpSocket, forbid: bool) -> io::Result<()> {
        let value = libc::c_int::from(forbid);
        // SAFETY: the option takes an integer (ipv6(7)), whose address and size these are.
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
