//! `AF_PACKET` sockets (packet(7)): frames of one Ethernet interface, many with one system call.
//!
//! The emulator receives and sends whole frames of every type, the underlay only the payloads of one
//! EtherType. The unsafe code of both is here, and depends on neither.

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

/// Metadata of a received message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageInfo {
    len: u32,
    /// Address of the sending interface.
    pub(crate) source: EthernetAddress,
    /// Tag protocol identifier and tag control information, which belong right after the addresses.
    pub(crate) vlan: Option<[u8; 4]>,
    /// Arrival time at the interface, ns since 1970, if the socket was asked for it.
    pub(crate) arrived: Option<NonZeroU64>,
    /// The message was longer than the receive buffer.
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

/// Buffers for a batch of received messages. Pages that no message reaches stay untouched.
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

    /// Whether more messages may be waiting.
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

    /// The same messages, mutable.
    pub(crate) fn messages_mut(&mut self) -> impl Iterator<Item = (&mut [u8], &MessageInfo)> {
        let slots = self.slots.iter().take(self.len);
        let buffers = self.buffers.chunks_exact_mut(BUFFER);
        buffers
            .zip(slots)
            .map(|(b, slot)| (&mut b[..slot.len as usize], slot))
    }
}

/// Destination of a message: the interface it leaves by, and the receiver's address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    pub(crate) index: u32,
    pub(crate) ether_type: u16,
    pub(crate) to: EthernetAddress,
}

/// A nonblocking packet socket.
#[derive(Debug)]
pub(crate) struct PacketSocket(OwnedFd);

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl PacketSocket {
    /// Opens a socket that receives nothing until it is bound, so that no frames of other interfaces arrive. A
    /// message is a whole frame with `SocketType::RAW`, and the payload of a frame with `SocketType::DGRAM`.
    pub(crate) fn open(kind: SocketType) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd = rustix::net::socket_with(AddressFamily::PACKET, kind, flags, None)?;
        Ok(Self(fd))
    }

    /// Puts a [`VnetHeader`](crate::offload::vnet::VnetHeader) before each received and sent message.
    pub(crate) fn with_offload_headers(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_VNET_HDR, &ON)
    }

    /// Receives VLAN tags that the kernel stripped, with each message.
    pub(crate) fn with_vlan_tags(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_AUXDATA, &ON)
    }

    /// Receives the arrival time of each message at the interface, as this thread may read it late.
    pub(crate) fn with_arrival_times(&self) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &ON)
    }

    /// Ignores frames that this machine sends.
    pub(crate) fn without_outgoing(&self) -> io::Result<()> {
        self.set(libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &ON)
    }

    /// Receives frames to all addresses.
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

    /// Requests socket buffers of this size: above the system's limit if privileged, otherwise up to that
    /// limit. Either is enough.
    pub(crate) fn size_buffers(&self, bytes: usize) -> io::Result<()> {
        if sockopt::set_socket_recv_buffer_size_force(&self.0, bytes).is_err() {
            sockopt::set_socket_recv_buffer_size(&self.0, bytes)?;
        }
        if sockopt::set_socket_send_buffer_size_force(&self.0, bytes).is_err() {
            sockopt::set_socket_send_buffer_size(&self.0, bytes)?;
        }
        Ok(())
    }

    /// Attaches a BPF filter to the socket.
    pub(crate) fn filter(&self, program: &[libc::sock_filter]) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: program.len() as libc::c_ushort,
            // The kernel copies the program and does not write to it.
            filter: program.as_ptr().cast_mut(),
        };
        self.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
    }

    /// Receives frames of `ether_type` that arrive at one interface from now on.
    pub(crate) fn bind(&self, index: u32, ether_type: u16) -> io::Result<()> {
        let address = link_address(Destination {
            index,
            ether_type,
            to: EthernetAddress([0; 6]),
        });
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the pointer is to an address of the given length.
        let done = unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), len) };
        outcome(done as isize).map(drop)
    }

    /// Reads up to a batch of messages; fails with `WouldBlock` if there are none.
    pub(crate) fn receive(&self, batch: &mut Batch) -> io::Result<()> {
        /// Room for a `tpacket_auxdata` and a `timespec`, with the alignment of control messages.
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

    /// Sends one message on the interface that the socket is bound to.
    pub(crate) fn send(&self, message: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.0, message, SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// Sends messages of two parts each, in order. Returns how many were sent, at most [`BATCH`].
    ///
    /// # Errors
    /// The error of the first message.
    pub(crate) fn send_batch(
        &self,
        to: Destination,
        batch: &[[IoSlice<'_>; 2]],
    ) -> io::Result<usize> {
        let mut address = link_address(to);
        // SAFETY: these are C structures of integers and pointers, for which all zeros are valid.
        let mut messages = unsafe { mem::zeroed::<[libc::mmsghdr; BATCH]>() };
        for (message, parts) in messages.iter_mut().zip(batch) {
            message.msg_hdr.msg_name = (&raw mut address).cast();
            message.msg_hdr.msg_namelen = size_of_val(&address) as libc::socklen_t;
            // An `IoSlice` is an `iovec`, which the kernel only reads here.
            message.msg_hdr.msg_iov = parts.as_ptr().cast_mut().cast();
            message.msg_hdr.msg_iovlen = parts.len() as _;
        }
        // SAFETY: the messages within the count point to the address and to two iovecs each, whose buffers
        // are borrowed until the call returns.
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

    /// Messages that the kernel dropped since the last call because the socket's buffer was full.
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
        // SAFETY: the pointer is to a value of the given length; a program that it points to is borrowed by
        // the caller until the call returns.
        let done = unsafe { libc::setsockopt(self.0.as_raw_fd(), level, option, value, len) };
        outcome(done as isize).map(drop)
    }
}

const ON: libc::c_int = 1;

/// Converts the return value of a system call.
fn outcome(returned: isize) -> io::Result<usize> {
    usize::try_from(returned).map_err(|_negative| io::Error::last_os_error())
}

fn link_address(to: Destination) -> libc::sockaddr_ll {
    // SAFETY: this is a C structure of integers, for which all zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = to.ether_type.to_be();
    address.sll_ifindex = to.index as libc::c_int;
    address.sll_halen = to.to.0.len() as libc::c_uchar;
    address.sll_addr[..6].copy_from_slice(&to.to.0);
    address
}

/// Metadata of a message: the VLAN tag that the kernel stripped, and the arrival time.
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
                // SAFETY: a message of this type carries this structure, which has only integers.
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

/// The payload of a control message; `None` if it is too short for a `T`.
///
/// # Safety
/// `header` points to a whole control message, and any bytes are a valid `T`.
unsafe fn data_of<T>(header: *const libc::cmsghdr) -> Option<T> {
    // SAFETY: by the caller's promise, and the length is checked before the data are read.
    unsafe {
        // The type of the length differs between C libraries.
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
