//! The TUN device above the port: one IP packet or super-packet per read and per write, nonblocking.
//!
//! The interface belongs to its file descriptor: when that closes, however the process ends, the kernel
//! removes the interface with its addresses and routes.
//!
//! With `IFF_VNET_HDR` an offload header precedes each packet, and the kernel leaves checksums and the
//! segmentation of super-packets to us (docs/lab/offloads.md).

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::device::{DeviceError, TUN_DEVICE};
use crate::netlink::{Cidr, Netlink, OwnTable};
use crate::offload::Offloads;
use crate::offload::vnet::{VNET_HEADER_LEN, VnetHeader};

/// Room for the largest super-packet and its offload header.
pub(crate) const READ_MAX: usize = VNET_HEADER_LEN + 65_536;

/// A TUN device.
#[derive(Debug)]
pub struct Tun {
    fd: OwnedFd,
    name: String,
    /// `None` for a descriptor that is not a network interface.
    index: Option<u32>,
    offloads: Offloads,
    /// Whether routing rules of ours exist, for IPv4 and for IPv6.
    followed: Cell<[bool; 2]>,
}

impl Tun {
    /// Creates the interface `name`, without addresses and down.
    ///
    /// # Errors
    /// If the name is taken or the kernel refuses; needs `CAP_NET_ADMIN`.
    pub fn create(name: &str) -> Result<Self, DeviceError> {
        let failed = |call| move |source: io::Error| DeviceError::new(name, call, source);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(failed(TUN_DEVICE))?;
        let fd = OwnedFd::from(file);
        request::set_interface(fd.as_fd(), name)
            .map_err(failed("create a TUN interface, whose name must be free"))?;
        let offloads = match request::set_offloads(fd.as_fd(), true) {
            Ok(()) => Offloads::TcpAndUdp,
            Err(_older) => {
                request::set_offloads(fd.as_fd(), false)
                    .map_err(failed("agree on offloads with the TUN interface"))?;
                Offloads::Tcp
            }
        };
        let index = Netlink::open()
            .and_then(|mut netlink| netlink.link_index(name))
            .map_err(failed("look the new interface up"))?;
        Ok(Self {
            fd,
            name: name.to_owned(),
            index: Some(index),
            offloads,
            followed: Cell::default(),
        })
    }

    /// Wraps a nonblocking descriptor that keeps packet boundaries: one end of a socket pair in tests, or an
    /// existing interface.
    pub fn from_fd(fd: OwnedFd, name: &str) -> Self {
        Self {
            fd,
            name: name.to_owned(),
            index: None,
            offloads: Offloads::None,
            followed: Cell::default(),
        }
    }

    /// Sets the interface's MTU, addresses and routes, and brings it up. Default routes go into a separate
    /// table, which the node's own datagrams bypass.
    ///
    /// # Errors
    /// If the kernel refuses one of them.
    pub fn configure(
        &self,
        mtu: usize,
        addresses: &[Cidr],
        routes: &[Cidr],
    ) -> Result<(), DeviceError> {
        let Some(index) = self.index else {
            return Ok(());
        };
        let failed = |call| move |source: io::Error| DeviceError::new(&self.name, call, source);
        let mut netlink = Netlink::open().map_err(failed("open a netlink socket"))?;
        netlink
            .set_quiet(index)
            .map_err(failed("turn link-local addresses off"))?;
        for address in addresses {
            netlink
                .add_address(index, *address)
                .map_err(|source| self.refused("add the address", *address, source))?;
        }
        netlink
            .set_up(index, mtu as u32)
            .map_err(failed("set the MTU and bring it up"))?;
        for route in routes {
            self.add_route(&mut netlink, index, *route)
                .map_err(|source| self.refused("add the route", *route, source))?;
        }
        Ok(())
    }

    /// Restores missing addresses and routes, and returns what was missing. An interface that the administrator has set
    /// down is left alone: `None`.
    ///
    /// # Errors
    /// If the kernel refuses one of them.
    pub(crate) fn restore(
        &self,
        addresses: &[Cidr],
        routes: &[Cidr],
    ) -> Result<Option<Vec<Cidr>>, DeviceError> {
        let mut back = Vec::new();
        let Some(index) = self.index else {
            return Ok(Some(back));
        };
        let failed = |call| move |source: io::Error| DeviceError::new(&self.name, call, source);
        let mut netlink = Netlink::open().map_err(failed("open a netlink socket"))?;
        if !netlink
            .is_up(index)
            .map_err(failed("look whether it is up"))?
        {
            return Ok(None);
        }
        for (all, call) in [
            (addresses, "add the address"),
            // The kernel makes this route with the address, and never again.
            (addresses, "add the route of the address"),
            (routes, "add the route"),
        ] {
            for what in all {
                let done = match call {
                    "add the address" => netlink.add_address(index, *what),
                    "add the route" => self.add_route(&mut netlink, index, *what),
                    _ => netlink.add_connected(index, *what),
                };
                match done {
                    Ok(()) => back.push(*what),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(source) => return Err(self.refused(call, *what, source)),
                }
            }
        }
        Ok(Some(back))
    }

    /// The table of the default routes.
    fn own_table(&self) -> OwnTable {
        OwnTable::of(&self.name)
    }

    /// Adds a route and, for a default route, the rules that lead to it.
    ///
    /// # Errors
    /// `AlreadyExists` if nothing was missing.
    fn add_route(&self, netlink: &mut Netlink, index: u32, route: Cidr) -> io::Result<()> {
        if !route.is_wide() {
            return netlink.add_route(index, route, None);
        }
        let (table, v4) = (self.own_table(), route.address.is_ipv4());
        let there = netlink.add_route(index, route, Some(table));
        if let Err(error) = &there
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return there;
        }
        let mut followed = self.followed.get();
        followed[usize::from(!v4)] = true;
        self.followed.set(followed);
        match netlink.follow(table, v4)? {
            true => Ok(()),
            false => there,
        }
    }

    /// Adds a route to the running interface, or removes it.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn set_route(&self, route: Cidr, there: bool) -> Result<(), DeviceError> {
        let Some(index) = self.index else {
            return Ok(());
        };
        let open = Netlink::open();
        let (call, done) = match there {
            true => (
                "add the route",
                open.and_then(|mut n| self.add_route(&mut n, index, route)),
            ),
            false => (
                "remove the route",
                open.and_then(|mut n| {
                    n.remove_route(index, route, route.is_wide().then(|| self.own_table()))
                }),
            ),
        };
        done.map_err(|source| self.refused(call, route, source))
    }

    /// Changes the MTU of a running interface.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn set_mtu(&self, mtu: usize) -> Result<(), DeviceError> {
        let Some(index) = self.index else {
            return Ok(());
        };
        Netlink::open()
            .and_then(|mut netlink| netlink.set_up(index, mtu as u32))
            .map_err(|source| DeviceError::new(&self.name, "change the MTU", source))
    }

    fn refused(&self, call: &'static str, what: Cidr, source: io::Error) -> DeviceError {
        DeviceError::new(&format!("{} {what}", self.name), call, source)
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interface's index, if there is one.
    pub const fn index(&self) -> Option<u32> {
        self.index
    }

    /// The offloads that the kernel leaves to us.
    pub(crate) const fn offloads(&self) -> Offloads {
        self.offloads
    }

    /// Reads one packet or super-packet with its offload header.
    ///
    /// # Errors
    /// `WouldBlock` if there is none.
    pub(crate) fn read<'a>(&self, buffer: &'a mut [u8]) -> io::Result<(VnetHeader, &'a mut [u8])> {
        let length = rustix::io::read(&self.fd, &mut *buffer)?;
        let packet = &mut buffer[..length];
        if self.offloads == Offloads::None {
            return Ok((VnetHeader::default(), packet));
        }
        let header = VnetHeader::read(packet).ok_or(io::ErrorKind::InvalidData)?;
        Ok((header, &mut packet[VNET_HEADER_LEN..]))
    }

    /// Writes one packet or super-packet, given in parts, the first of which begins with its offload header.
    ///
    /// # Errors
    /// The error of the write.
    pub(crate) fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        match (self.offloads, parts) {
            (Offloads::None, [head, rest @ ..]) => {
                // Without offloads nothing was joined: the first part is the offload header alone.
                debug_assert_eq!(head.len(), VNET_HEADER_LEN);
                rustix::io::writev(&self.fd, rest)?;
            }
            _ => {
                rustix::io::writev(&self.fd, parts)?;
            }
        }
        Ok(())
    }
}

/// Removes the routing rules, which the kernel does not remove with the interface.
impl Drop for Tun {
    fn drop(&mut self) {
        for (v4, followed) in [true, false].into_iter().zip(self.followed.get()) {
            if followed
                && let Err(error) =
                    Netlink::open().and_then(|mut n| n.unfollow(self.own_table(), v4))
            {
                tracing::warn!(%error, "a rule of the default route stays, and leads nowhere");
            }
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Requests without safe functions in rustix.
mod request {
    #![expect(
        unsafe_code,
        reason = "TUNSETIFF and TUNSETOFFLOAD have no safe wrappers"
    )]

    use std::io;
    use std::os::fd::BorrowedFd;

    use rustix::ioctl::{IntegerSetter, Opcode, Updater, ioctl, opcode};

    /// `_IOW('T', 202, int)`; the argument is actually an `ifreq` (linux/if_tun.h).
    const TUNSETIFF: Opcode = opcode::write::<libc::c_int>(b'T', 202);
    /// `_IOW('T', 208, unsigned int)`; the argument is the number itself (linux/if_tun.h).
    const TUNSETOFFLOAD: Opcode = opcode::write::<libc::c_uint>(b'T', 208);
    /// Partial checksums, and TCP super-packets over IPv4 and IPv6, also with ECN (linux/if_tun.h).
    const TUN_F_TCP: usize = 0x01 | 0x02 | 0x04 | 0x08;
    /// UDP super-packets over IPv4 and IPv6.
    const TUN_F_UDP: usize = 0x20 | 0x40;
    /// Fail if the interface exists (linux/if_tun.h).
    const IFF_TUN_EXCL: libc::c_int = 0x8000;

    /// Attaches `fd`, an open `/dev/net/tun`, to the new TUN interface `name`.
    pub(super) fn set_interface(fd: BorrowedFd<'_>, name: &str) -> io::Result<()> {
        let mut request = libc::ifreq {
            ifr_name: [0; libc::IFNAMSIZ],
            ifr_ifru: libc::__c_anonymous_ifr_ifru {
                ifru_flags: (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | IFF_TUN_EXCL)
                    as libc::c_short,
            },
        };
        // One byte must remain zero: the kernel reads a C string.
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "an interface name has 1 to 15 bytes",
            ));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: `request` is an initialised `ifreq`, the argument that TUNSETIFF reads and writes
        // back (drivers/net/tun.c), and outlives the call; the descriptor is open.
        unsafe { ioctl(fd, Updater::<TUNSETIFF, libc::ifreq>::new(&mut request))? };
        Ok(())
    }

    /// Enables the offloads.
    pub(super) fn set_offloads(fd: BorrowedFd<'_>, udp: bool) -> io::Result<()> {
        let flags = TUN_F_TCP | if udp { TUN_F_UDP } else { 0 };
        // SAFETY: TUNSETOFFLOAD takes an integer, not a pointer (drivers/net/tun.c), and the
        // descriptor is open.
        unsafe { ioctl(fd, IntegerSetter::<TUNSETOFFLOAD>::new_usize(flags))? };
        Ok(())
    }
}
