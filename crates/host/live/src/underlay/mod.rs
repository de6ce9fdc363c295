//! What frames travel in: UDP datagrams, or Ethernet frames with an EtherType of their own. The node
//! knows them as datagrams from and to an [`PeerAddress`].
//!
//! A node's endpoints are of its underlay's kind; one of the other kind is nobody's.

mod ethernet;
mod parts;
pub(crate) mod udp;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use airlane_base::Instant;
use airlane_secure::PeerAddress;

pub(crate) use airlane_node::Came;
pub use airlane_node::{EtherType, PathFacts};
pub use ethernet::Ethernet;
pub use udp::Udp;

use crate::config::underlay::UnderlayConfig;
use crate::device::DeviceError;
use crate::netlink::way_out;
use crate::packet::ecn::Ecn;
use crate::status::InterfaceReport;

/// The socket below the port.
#[derive(Debug)]
pub enum Underlay {
    /// One UDP port.
    Udp(Udp),
    /// One EtherType of one interface.
    Ethernet(Ethernet),
}

/// Datagrams as they were received with one call.
#[derive(Debug, Default)]
pub(crate) enum Received {
    #[default]
    None,
    Udp(udp::Received),
    Ethernet(ethernet::Received),
}

impl Received {
    /// Whether there may be more than had room.
    pub(crate) const fn is_full(&self) -> bool {
        match self {
            Self::None => false,
            Self::Udp(received) => received.is_full(),
            Self::Ethernet(received) => received.is_full(),
        }
    }

    /// Gives `take` the datagrams, where they came from and how they are marked, in the order in
    /// which they came. An empty one is one all the same.
    pub(crate) fn for_each(&mut self, mut take: impl FnMut(&[u8], Came, Ecn)) {
        match self {
            Self::None => {}
            Self::Udp(received) => received.for_each(take),
            Self::Ethernet(received) => {
                received.for_each(|datagram, from| {
                    let to = None;
                    take(datagram, Came { from, to }, Ecn::NotEct);
                });
            }
        }
    }
}

impl Underlay {
    /// Opens what the file says.
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

    /// Opens what the file says where its interface or address may not be there yet: it is used once it is.
    ///
    /// # Errors
    /// If the address is taken, or the interface is none for frames.
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

    /// Makes sure that a peer is not this end itself, where only the open socket knows.
    ///
    /// # Errors
    /// If it is.
    pub(crate) fn refuse_self(&self, peer: PeerAddress) -> Result<(), DeviceError> {
        match (self, peer) {
            (Self::Ethernet(ethernet), PeerAddress::Ethernet(peer)) => ethernet.refuse_self(peer),
            _ => Ok(()),
        }
    }

    /// What is sent goes past the tunnel whose interface has this number, by a mark if that is not 0.
    ///
    /// # Errors
    /// If the kernel refuses the mark.
    pub(crate) fn go_past(&mut self, tunnel: Option<u32>, mark: u32) -> Result<(), DeviceError> {
        match self {
            Self::Udp(udp) => udp.go_past(tunnel, mark),
            Self::Ethernet(_) => Ok(()),
        }
    }

    /// Has another UDP port, any that is free for 0: where it listens then.
    ///
    /// # Errors
    /// If that is not free.
    pub(crate) fn change_port(&mut self, port: u16) -> Result<PeerAddress, DeviceError> {
        match self {
            Self::Udp(udp) => udp.change_port(port).map(PeerAddress::Udp),
            Self::Ethernet(_) => self.local(),
        }
    }

    /// The mark of what is sent; 0: none.
    pub(crate) const fn mark(&self) -> u32 {
        match self {
            Self::Udp(udp) => udp.mark(),
            Self::Ethernet(_) => 0,
        }
    }

    /// Where a peer can be called while nobody knows where it is.
    pub const fn anyone(&self) -> Option<PeerAddress> {
        match self {
            Self::Udp(_) => None,
            Self::Ethernet(_) => Some(Ethernet::ANYONE),
        }
    }

    /// This end's own address.
    ///
    /// # Errors
    /// If the kernel does not know.
    pub fn local(&self) -> Result<PeerAddress, DeviceError> {
        match self {
            Self::Udp(udp) => udp.local().map(PeerAddress::Udp),
            Self::Ethernet(ethernet) => Ok(PeerAddress::Ethernet(ethernet.local())),
        }
    }

    /// Room for what one call receives.
    pub(crate) fn room(&self) -> Received {
        match self {
            Self::Udp(_) => Received::Udp(udp::Received::new()),
            Self::Ethernet(_) => Received::Ethernet(ethernet::Received::new()),
        }
    }

    /// Receives what there is, up to the room in `received`.
    ///
    /// # Errors
    /// `WouldBlock` if there is nothing.
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

    /// Sends `contents` as datagrams of `size` bytes each, the last may be shorter, with this traffic
    /// class (or TOS), where there is one, and `from` an address of this machine. How many of them, at least one.
    ///
    /// # Errors
    /// What the kernel has against the first; then nothing was sent.
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

    /// Sends one datagram to any address, without a traffic class; `from` an address of this machine, or as the
    /// kernel chooses.
    ///
    /// # Errors
    /// What the kernel has against it.
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

    /// Whether datagrams that do not fit the path may be sent in fragments.
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

    /// What a node has to know of it.
    ///
    /// # Errors
    /// If the kernel does not know this end's address.
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

    /// What the kernel knows of the path to a peer, or to wherever it may be.
    ///
    /// # Errors
    /// If there is no path to the peer.
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

    /// The interface that datagrams to a peer leave by, or why there is none, in words.
    pub(crate) fn way_out(&self, to: PeerAddress) -> String {
        match (self, to.ip()) {
            (Self::Ethernet(ethernet), _) => ethernet.interface().to_owned(),
            (Self::Udp(_), Some(ip)) => way_out(ip, self.mark()),
            (Self::Udp(_), None) => "no IP address".to_owned(),
        }
    }

    /// When [`Underlay::handle_timeout`] wants to be called.
    pub(crate) fn poll_timeout(&self) -> Instant {
        match self {
            Self::Udp(_) => Instant::FAR_FUTURE,
            Self::Ethernet(ethernet) => ethernet.poll_timeout(),
        }
    }

    /// Looks for an interface that was lost. Whether it is back: its peer and its MTU may be others.
    pub(crate) fn handle_timeout(&mut self, now: Instant) -> bool {
        match self {
            Self::Udp(_) => false,
            Self::Ethernet(ethernet) => ethernet.handle_timeout(now),
        }
    }

    /// The interface, where the underlay is one.
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
