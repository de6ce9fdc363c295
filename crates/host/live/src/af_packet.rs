//! `AF_PACKET` sockets (packet(7)): frames of one Ethernet interface, many with one system call.
//!
//! The emulator hears and sends whole frames of every kind, the underlay messages of one EtherType.
//! What is unsafe about both is here, and knows neither.

#![expect(unsafe_code, reason = "packet sockets have no safe wrappers")]

use std::io::{self, IoSlice};
use std::mem;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use airlane_secure::EthernetAddress;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, sockopt};

use crate::offload::vnet::VNET_HEADER_LEN;

/// Most messages that one system call reads or sends.
pub(crate) const BATCH: usize = 32;

/// The largest super-packet: 64 kB of IP packet and its Ethernet header with two tags.
const FRAME_MAX: usize = 65_536 + 22;

const BUFFER: usize = VNET_HEADER_LEN + FRAME_MAX;

/// What is known of a received message beside its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageInfo {
    len: u32,
    /// The interface that sent it.
    pub(crate) source: EthernetAddress,
    /// Tag protocol and tag control information that belong behind the addresses.
    pub(crate) vlan: Option<[u8; 4]>,
    /// When it came to the interface, where the socket was asked to say so: ns since 1970.
    pub(crate) arrived: Option<NonZeroU64>,
    /// It was longer than any that can be received.
    pub(crate) truncated: bool,
}

impl MessageInfo {
    const EMPTY: Self = Self {
        len: 0,
        source: EthernetAddress([0; 6]),
        vlan: None,
        arrived: None,
        truncated: false,
    };
}

/// Room for a batch of received messages. Pages that no message reaches stay untouched.
#[derive(Debug)]
pub(crate) struct Batch {
    buffers: Box<[u8]>,
    slots: [MessageInfo; BATCH],
    len: usize,
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self {
            buffers: vec![0; BATCH * BUFFER].into_boxed_slice(),
            slots: [MessageInfo::EMPTY; BATCH],
            len: 0,
        }
    }

    /// Whether there may be more than had room.
    pub(crate) const fn is_full(&self) -> bool {
        self.len == BATCH
    }

    /// The messages of the last [`PacketSocket::receive`].
    pub(crate) fn messages(&self) -> impl Iterator<Item = (&[u8], &MessageInfo)> {
        let slots = self.slots.iter().take(self.len);
        let buffers = self.buffers.chunks_exact(BUFFER);
        buffers
            .zip(slots)
            .map(|(b, slot)| (&b[..slot.len as usize], slot))
    }

    /// Gives the messages, to be changed in place.
    pub(crate) fn messages_mut(&mut self) -> impl Iterator<Item = (&mut [u8], &MessageInfo)> {
        let slots = self.slots.iter().take(self.len);
        let buffers = self.buffers.chunks_exact_mut(BUFFER);
        buffers
            .zip(slots)
            .map(|(b, slot)| (&mut b[..slot.len as usize], slot))
    }
}

/// Where a message goes: out of an interface, to another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    pub(crate) index: u32,
    pub(crate) ether_type: u16,
    pub(crate) to: EthernetAddress,
}

/// A packet socket that does not block.
#[derive(Debug)]
pub(crate) struct PacketSocket(OwnedFd);

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl PacketSocket {
    /// One that hears nothing until it is bound: no frames of other interfaces. A message is a whole
    /// frame with `SocketType::RAW`, what follows the EtherType with `SocketType::DGRAM`.
    pub(crate) fn open(kind: SocketType) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(AddressFamily::PACKET, kind, flags, None)?;
        Ok(Self(fd))
    }

    /// Each message comes, and goes, behind a [`VnetHeader`](crate::offload::vnet::VnetHeader).
    pub(crate) fn with_offload_headers(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, &ON)
    }

    /// A VLAN tag that the kernel took off comes beside its message.
    pub(crate) fn with_vlan_tags(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_AUXDATA, &ON)
    }

    /// Each message comes with the time at which it came to the interface: this thread may be late.
    pub(crate) fn with_arrival_times(&self) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &ON)
    }

    /// Frames that this machine sends are not heard.
    pub(crate) fn without_outgoing(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &ON)
    }

    /// The interface passes on frames for all addresses.
    pub(crate) fn be_promiscuous(&self, index: u32) -> io::Result<()> {
        let promiscuous = libc::packet_mreq {
            mr_ifindex: index as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        let option = libc::PACKET_ADD_MEMBERSHIP;
        self.set(libc::SOL_PACKET, option, &promiscuous)
    }

    /// Asks for buffers of this size: beyond the system's limit where we may, up to it where we may
    /// not. Either serves.
    pub(crate) fn size_buffers(&self, bytes: usize) -> io::Result<()> {
        if sockopt::set_socket_recv_buffer_size_force(&self.0, bytes).is_err() {
            sockopt::set_socket_recv_buffer_size(&self.0, bytes)?;
        }
        if sockopt::set_socket_send_buffer_size_force(&self.0, bytes).is_err() {
            sockopt::set_socket_send_buffer_size(&self.0, bytes)?;
        }
        Ok(())
    }

    /// The kernel passes on only what this program (BPF) accepts.
    pub(crate) fn filter(&self, program: &[libc::sock_filter]) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: program.len() as libc::c_ushort,
            // The kernel copies it and writes nothing.
            filter: program.as_ptr().cast_mut(),
        };
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Hears frames of `ether_type` that arrive at one interface, from now on.
    pub(crate) fn bind(&self, index: u32, ether_type: u16) -> io::Result<()> {
        let address = link_address(Destination {
            index,
            ether_type,
            to: EthernetAddress([0; 6]),
        });
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the pointer is to an address of the length given.
        let done = unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len) };
        outcome(done as isize).map(drop)
    }

    /// Reads up to a batch of messages; an error if there are none.
    pub(crate) fn receive(&self, batch: &mut Batch) -> io::Result<()> {
        /// Room for a `tpacket_auxdata` and a `timespec`, aligned as control messages must be.
        #[derive(Clone, Copy)]
        #[repr(C, align(8))]
        struct Control([u8; 128]);

        batch.len = 0;
        let mut controls = [Control([0; 128]); BATCH];
        // SAFETY: all are C structures of integers and pointers, for which all zeros are valid.
        let (mut sources, mut iovecs, mut messages) = unsafe {
            (
                mem::zeroed::<[libc::sockaddr_ll; BATCH]>(),
                mem::zeroed::<[libc::iovec; BATCH]>(),
                mem::zeroed::<[libc::mmsghdr; BATCH]>(),
            )
        };
        let buffers = batch.buffers.chunks_exact_mut(BUFFER);
        let parts = buffers
            .zip(&mut iovecs)
            .zip(&mut controls)
            .zip(&mut sources)
            .zip(&mut messages);
        for ((((buffer, iovec), control), source), message) in parts {
            iovec.iov_base = buffer.as_mut_ptr().cast();
            iovec.iov_len = buffer.len();
            message.msg_hdr.msg_name = (&raw mut *source).cast();
            message.msg_hdr.msg_namelen = size_of_val(source) as libc::socklen_t;
            message.msg_hdr.msg_iov = iovec;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = control.0.len() as _;
        }
        // SAFETY: every message points to one address, one iovec and one control buffer, and every
        // iovec to one buffer; all of them are alive and not otherwise used until the call returns.
        let received = unsafe {
            libc::recvmmsg(
                self.0.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as _,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        batch.len = outcome(received as isize)?;
        let heard = messages.iter().zip(&sources).take(batch.len);
        for (slot, (message, source)) in batch.slots.iter_mut().zip(heard) {
            let [a, b, c, d, e, f, ..] = source.sll_addr;
            let (vlan, arrived) = beside(&message.msg_hdr);
            *slot = MessageInfo {
                len: message.msg_len,
                source: EthernetAddress([a, b, c, d, e, f]),
                vlan,
                arrived,
                truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            };
        }
        Ok(())
    }

    /// Sends one message out of the interface that the socket is bound to.
    pub(crate) fn send(&self, message: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.0, message, SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// Sends messages of two parts each, in order: how many of them, a [`BATCH`] at most.
    ///
    /// # Errors
    /// What the kernel has against the first.
    pub(crate) fn send_batch(
        &self,
        to: Destination,
        batch: &[[IoSlice<'_>; 2]],
    ) -> io::Result<usize> {
        let mut address = link_address(to);
        // SAFETY: C structures of integers and pointers, for which all zeros are valid.
        let mut messages = unsafe { mem::zeroed::<[libc::mmsghdr; BATCH]>() };
        for (message, parts) in messages.iter_mut().zip(batch) {
            message.msg_hdr.msg_name = (&raw mut address).cast();
            message.msg_hdr.msg_namelen = size_of_val(&address) as libc::socklen_t;
            // An `IoSlice` is an `iovec`, which the kernel only reads here.
            message.msg_hdr.msg_iov = parts.as_ptr().cast_mut().cast();
            message.msg_hdr.msg_iovlen = parts.len() as _;
        }
        // SAFETY: the messages that are counted point to the address and to two iovecs each, of
        // buffers that are borrowed until the call returns.
        let sent = unsafe {
            libc::sendmmsg(
                self.0.as_raw_fd(),
                messages.as_mut_ptr(),
                batch.len().min(BATCH) as _,
                libc::MSG_DONTWAIT as _,
            )
        };
        outcome(sent as isize)
    }

    /// Messages that the kernel dropped since the last call because this socket was full.
    pub(crate) fn missed(&self) -> u64 {
        let mut stats = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut len = size_of_val(&stats) as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes, the size of the structure.
        let done = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut len,
            )
        };
        if done == 0 {
            u64::from(stats.tp_drops)
        } else {
            0
        }
    }

    fn set<T>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
        let len = size_of::<T>() as libc::socklen_t;
        let value = std::ptr::from_ref(value).cast();
        // SAFETY: the pointer is to a value of the length given; a program that it points to is
        // borrowed by the caller until the call returns.
        let done = unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, value, len) };
        outcome(done as isize).map(drop)
    }
}

const ON: libc::c_int = 1;

/// What a system call counted, or why it failed.
fn outcome(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_negative| io::Error::last_os_error())
}

fn link_address(to: Destination) -> libc::sockaddr_ll {
    // SAFETY: a C structure of integers, for which all zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = to.ether_type.to_be();
    address.sll_ifindex = to.index as libc::c_int;
    address.sll_halen = to.to.0.len() as libc::c_uchar;
    address.sll_addr[..6].copy_from_slice(&to.to.0);
    address
}

/// What came beside a message: the tag that the kernel took off it, and when it arrived.
fn beside(message: &libc::msghdr) -> (Option<[u8; 4]>, Option<NonZeroU64>) {
    let (mut vlan, mut arrived) = (None, None);
    // SAFETY: the header was filled by recvmmsg; its control buffer is still alive, and the macros
    // stay within the length that the kernel wrote.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !next.is_null() {
        // SAFETY: not null, so it points to a whole control message header.
        let header = unsafe { *next };
        match (header.cmsg_level, header.cmsg_type) {
            (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                // SAFETY: this type of message carries this structure, of integers alone.
                vlan = unsafe { data_of::<libc::tpacket_auxdata>(next) }.and_then(vlan_tag);
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // SAFETY: likewise.
                arrived = unsafe { data_of::<libc::timespec>(next) }.and_then(since_1970);
            }
            _ => {}
        }
        // SAFETY: as for the first.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
    (vlan, arrived)
}

/// What a control message carries; none if it is too short for that.
///
/// # Safety
/// `header` points to a whole control message, and any bytes are a valid `T`.
unsafe fn data_of<T>(header: *const libc::cmsghdr) -> Option<T> {
    // SAFETY: the caller's, and the length is checked before the data are read.
    unsafe {
        // Lengths are of another type with each C library.
        let needs = u64::from(libc::CMSG_LEN(size_of::<T>() as _));
        let fits = (*header).cmsg_len as u64 >= needs;
        fits.then(|| std::ptr::read_unaligned(libc::CMSG_DATA(header).cast()))
    }
}

fn vlan_tag(data: libc::tpacket_auxdata) -> Option<[u8; 4]> {
    if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let [a, b] = data.tp_vlan_tpid.to_be_bytes();
    let [c, d] = data.tp_vlan_tci.to_be_bytes();
    Some([a, b, c, d])
}

fn since_1970(time: libc::timespec) -> Option<NonZeroU64> {
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u64::try_from(time.tv_nsec).ok()?;
    NonZeroU64::new(
        seconds
            .checked_mul(1_000_000_000)?
            .checked_add(nanoseconds)?,
    )
}
