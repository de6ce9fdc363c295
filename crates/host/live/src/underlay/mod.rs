//! The underlay: UDP datagrams, or Ethernet frames with an EtherType of their own. The node sees datagrams
//! from and to a [`PeerAddress`].
//!
//! All addresses of a node are of its underlay's kind; an address of the other kind belongs to no peer.

mod ethernet;
mod parts;
pub(crate) mod udp;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use airlane_base::Instant;
use airlane_secure::PeerAddress;

pub(crate) use airlane_node::DatagramAddresses;
pub use airlane_node::{EtherType, PathFacts};
pub use ethernet::Ethernet;
pub use udp::Udp;

use crate::config::underlay::UnderlayConfig;
use crate::device::DeviceError;
use crate::netlink::way_out;
use crate::packet::ecn::Ecn;
use crate::status::InterfaceReport;

/// The socket of a node.
#[derive(Debug)]
pub enum Underlay {
    /// One UDP port.
    Udp(Udp),
    /// One EtherType of one interface.
    Ethernet(Ethernet),
}

/// Datagrams received with one system call.
#[derive(Debug, Default)]
pub(crate) enum Received {
    #[default]
    None,
    Udp(udp::Received),
    Ethernet(ethernet::Received),
}

impl Received {
    /// Whether more datagrams may be waiting.
    pub(crate) const fn is_full(&self) -> bool {
        match self {
            Self::None => false,
            Self::Udp(received) => received.is_full(),
            Self::Ethernet(received) => received.is_full(),
        }
    }

    /// Calls `take` with each datagram, in order, with its addresses and its ECN mark. Empty datagrams are included.
    pub(crate) fn for_each(&mut self, mut take: impl FnMut(&[u8], DatagramAddresses, Ecn)) {
        match self {
            Self::None => {}
            Self::Udp(received) => received.for_each(take),
            Self::Ethernet(received) => {
                received.for_each(|datagram, from| {
                    let to = None;
                    take(datagram, DatagramAddresses { from, to }, Ecn::NotEct);
                });
            }
        }
    }
}

impl Underlay {
    /// Opens the underlay that the file configures.
    ///
    /// # Errors
    /// If the address is taken or not of this machine, or there is no such interface.
    pub fn open(config: &UnderlayConfig) -> Result<Self, DeviceError> {
        match config {
            UnderlayConfig::Udp { listen, .. } => Udp::bind(*listen).map(Self::Udp),
            UnderlayConfig::Ethernet {
                interface,
                ether_type,
                ..
            } => Ethernet::open(interface, *ether_type).map(Self::Ethernet),
        }
    }

    /// Opens the underlay even if its interface or address does not exist yet; it works once that exists.
    ///
    /// # Errors
    /// If the address is taken, or the interface is not Ethernet.
    pub(crate) fn open_early(now: Instant, config: &UnderlayConfig) -> Result<Self, DeviceError> {
        match config {
            UnderlayConfig::Udp { listen, .. } => Udp::bind_early(*listen).map(Self::Udp),
            UnderlayConfig::Ethernet {
                interface,
                ether_type,
                ..
            } => Ethernet::open_early(now, interface, *ether_type).map(Self::Ethernet),
        }
    }

    /// Checks that a peer is not this end itself, where only the open socket knows.
    ///
    /// # Errors
    /// If it is.
    pub(crate) fn refuse_self(&self, peer: PeerAddress) -> Result<(), DeviceError> {
        match (self, peer) {
            (Self::Ethernet(ethernet), PeerAddress::Ethernet(peer)) => ethernet.refuse_self(peer),
            _ => Ok(()),
        }
    }

    /// Makes datagrams bypass the tunnel whose interface has this index, by a mark unless that is 0.
    ///
    /// # Errors
    /// If the kernel refuses the mark.
    pub(crate) fn go_past(&mut self, tunnel: Option<u32>, mark: u32) -> Result<(), DeviceError> {
        match self {
            Self::Udp(udp) => udp.go_past(tunnel, mark),
            Self::Ethernet(_) => Ok(()),
        }
    }

    /// Changes the UDP port, to any free one for 0. Returns the new local address.
    ///
    /// # Errors
    /// If the port is taken.
    pub(crate) fn change_port(&mut self, port: u16) -> Result<PeerAddress, DeviceError> {
        match self {
            Self::Udp(udp) => udp.change_port(port).map(PeerAddress::Udp),
            Self::Ethernet(_) => self.local(),
        }
    }

    /// The mark of sent datagrams; 0 for none.
    pub(crate) const fn mark(&self) -> u32 {
        match self {
            Self::Udp(udp) => udp.mark(),
            Self::Ethernet(_) => 0,
        }
    }

    /// The address for a peer whose own address is unknown, if there is one.
    pub const fn anyone(&self) -> Option<PeerAddress> {
        match self {
            Self::Udp(_) => None,
            Self::Ethernet(_) => Some(Ethernet::ANYONE),
        }
    }

    /// This end's own address.
    ///
    /// # Errors
    /// If the kernel does not report it.
    pub fn local(&self) -> Result<PeerAddress, DeviceError> {
        match self {
            Self::Udp(udp) => udp.local().map(PeerAddress::Udp),
            Self::Ethernet(ethernet) => Ok(PeerAddress::Ethernet(ethernet.local())),
        }
    }

    /// Buffers for one receive call.
    pub(crate) fn room(&self) -> Received {
        match self {
            Self::Udp(_) => Received::Udp(udp::Received::new()),
            Self::Ethernet(_) => Received::Ethernet(ethernet::Received::new()),
        }
    }

    /// Receives waiting datagrams, as many as `received` holds.
    ///
    /// # Errors
    /// `WouldBlock` if there are none.
    pub(crate) fn receive(&self, received: &mut Received) -> io::Result<()> {
        match (self, received) {
            (Self::Udp(udp), Received::Udp(received)) => udp.receive(received),
            (Self::Ethernet(ethernet), Received::Ethernet(received)) => ethernet.receive(received),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    /// Most datagrams of a traffic class that [`Underlay::send`] takes at once.
    pub(crate) fn run_max(&self, class: u8) -> usize {
        match self {
            Self::Udp(udp) => udp.run_max(class),
            Self::Ethernet(_) => Ethernet::RUN_MAX,
        }
    }

    /// Sends `contents` as datagrams of `size` bytes each (the last may be shorter), with this traffic class (or
    /// TOS) where the underlay has one, and from the local address `from`. Returns how many were sent, at least one.
    ///
    /// # Errors
    /// The kernel's error for the first; nothing was sent then.
    pub(crate) fn send(
        &self,
        (to, from): (PeerAddress, Option<IpAddr>),
        contents: &[u8],
        size: usize,
        class: u8,
    ) -> io::Result<usize> {
        match (self, to) {
            (Self::Udp(udp), PeerAddress::Udp(to)) => udp.send((to, from), contents, size, class),
            (Self::Ethernet(ethernet), PeerAddress::Ethernet(to)) => {
                ethernet.send(to, contents, size)
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sends one datagram to any address, without a traffic class; `from` is a local address, or `None` to
    /// let the kernel choose.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn send_to(
        &self,
        to: PeerAddress,
        from: Option<IpAddr>,
        datagram: &[u8],
    ) -> io::Result<()> {
        match (self, to) {
            (Self::Udp(udp), PeerAddress::Udp(to)) => udp.send_to(to, from, datagram),
            (Self::Ethernet(ethernet), PeerAddress::Ethernet(to)) => ethernet.send_to(to, datagram),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sets whether datagrams that do not fit the path may be fragmented.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn allow_fragments(&self, allow: bool) -> io::Result<()> {
        match self {
            Self::Udp(udp) => udp.allow_fragments(allow),
            Self::Ethernet(ethernet) => {
                ethernet.allow_parts(allow);
                Ok(())
            }
        }
    }

    /// The facts that a node needs.
    ///
    /// # Errors
    /// If the kernel does not report this end's address.
    pub fn facts(&self) -> Result<airlane_node::Underlay, DeviceError> {
        Ok(match self {
            Self::Udp(udp) => airlane_node::Underlay::Udp {
                listen: udp.local()?,
            },
            Self::Ethernet(ethernet) => airlane_node::Underlay::Ethernet {
                address: ethernet.local(),
                overhead: Ethernet::OVERHEAD,
            },
        })
    }

    /// The kernel's knowledge of the path to a peer, or to an unknown address.
    ///
    /// # Errors
    /// If there is no route to the peer.
    pub fn path(&self, peer: Option<PeerAddress>) -> Result<PathFacts, DeviceError> {
        match (self, peer) {
            (Self::Udp(udp), Some(PeerAddress::Udp(peer))) => udp.path(peer),
            (Self::Udp(_), _) => Ok(PathFacts::UNKNOWN),
            (Self::Ethernet(ethernet), _) => {
                let interface = ethernet.path_mtu()?;
                let said = interface;
                Ok(PathFacts { interface, said })
            }
        }
    }

    /// The interface by which datagrams to a peer leave, or why none does.
    pub(crate) fn way_out(&self, to: PeerAddress) -> Result<String, String> {
        match (self, to.ip()) {
            (Self::Ethernet(ethernet), _) => Ok(ethernet.interface().to_owned()),
            (Self::Udp(_), Some(ip)) => way_out(ip, self.mark()),
            (Self::Udp(_), None) => Err("no IP address".to_owned()),
        }
    }

    /// Time at which [`Underlay::handle_timeout`] must be called.
    pub(crate) fn poll_timeout(&self) -> Instant {
        match self {
            Self::Udp(_) => Instant::FAR_FUTURE,
            Self::Ethernet(ethernet) => ethernet.poll_timeout(),
        }
    }

    /// Searches for a lost interface. Returns whether it is back; its peer and its MTU may then have changed.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        match self {
            Self::Udp(_) => false,
            Self::Ethernet(ethernet) => ethernet.handle_timeout(now),
        }
    }

    /// The interface, if the underlay is Ethernet.
    pub(crate) fn report(&self) -> Option<InterfaceReport> {
        match self {
            Self::Udp(_) => None,
            Self::Ethernet(ethernet) => Some(ethernet.report()),
        }
    }
}

impl AsFd for Underlay {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(udp) => udp.as_fd(),
            Self::Ethernet(ethernet) => ethernet.as_fd(),
        }
    }
}
