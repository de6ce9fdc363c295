//! An `AF_PACKET` socket on one interface: every frame that arrives, and frames out.
//!
//! With `PACKET_VNET_HDR` each frame comes behind a [`VnetHeader`], which tells what its sender left
//! to offloads: an unfinished checksum, a super-packet. A VLAN tag that the kernel has taken off comes
//! as auxiliary data. Frames that this machine itself sends out of the interface are ignored
//! (`PACKET_IGNORE_OUTGOING`), or the emulator would hear itself.
//!
//! See packet(7).

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use crate::device::DeviceError;
use crate::offload::vnet::{VNET_HEADER_LEN, VnetHeader};

/// Frames read with one system call.
const BATCH: usize = 32;

/// The largest super-packet: 64 kB of IP packet and its Ethernet header with two tags.
const FRAME_MAX: usize = 65_536 + 22;

const BUFFER: usize = VNET_HEADER_LEN + FRAME_MAX;

/// Socket buffers, bytes: what may arrive while this thread is not scheduled.
const SOCKET_BUFFER: libc::c_int = 16 << 20;

/// A frame as it was received.
#[derive(Debug)]
pub(super) struct Received<'a> {
    pub(super) header: VnetHeader,
    /// From the destination address on.
    pub(super) frame: &'a mut [u8],
    /// Tag protocol and tag control information that belong behind the addresses.
    pub(super) vlan: Option<[u8; 4]>,
    /// The frame was longer than any that can be received.
    pub(super) truncated: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    len: usize,
    vlan: Option<[u8; 4]>,
    truncated: bool,
}

/// Room for a batch of received frames.
#[derive(Debug)]
pub(super) struct Batch {
    buffers: Box<[u8]>,
    slots: [Slot; BATCH],
    len: usize,
}

impl Batch {
    pub(super) fn new() -> Self {
        Self {
            buffers: vec![0; BATCH * BUFFER].into_boxed_slice(),
            slots: [Slot::default(); BATCH],
            len: 0,
        }
    }

    /// The frames of the last [`PacketSocket::receive`].
    pub(super) fn frames(&mut self) -> impl Iterator<Item = Received<'_>> {
        let buffers = self.buffers.chunks_exact_mut(BUFFER);
        let slots = self.slots.iter().take(self.len);
        buffers.zip(slots).filter_map(|(buffer, slot)| {
            let (header, frame) = buffer
                .get_mut(..slot.len)?
                .split_at_mut_checked(VNET_HEADER_LEN)?;
            Some(Received {
                header: VnetHeader::read(header)?,
                frame,
                vlan: slot.vlan,
                truncated: slot.truncated,
            })
        })
    }
}

/// A raw socket bound to one Ethernet interface, promiscuous, not blocking.
#[derive(Debug)]
pub(super) struct PacketSocket {
    fd: OwnedFd,
    interface: String,
    mtu: usize,
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl PacketSocket {
    /// Opens a socket that hears all of `interface`, which must be an Ethernet interface and up.
    pub(super) fn open(interface: &str) -> Result<Self, DeviceError> {
        let error = |call| move |e: rustix::io::Errno| DeviceError::new(interface, call, e);
        // Protocol 0 hears nothing until it is bound to the interface: no frames of others.
        let fd = rustix::net::socket_with(
            AddressFamily::PACKET,
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )
        .map_err(error("open a packet socket"))?;
        let index = rustix::net::netdevice::name_to_index(&fd, interface)
            .map_err(error("find the interface"))?;
        let mut socket = Self {
            fd,
            interface: interface.to_owned(),
            mtu: 0,
        };
        socket.check_interface()?;
        let on: libc::c_int = 1;
        socket.set(
            libc::SOL_PACKET,
            libc::PACKET_VNET_HDR,
            &on,
            "ask for offload headers",
        )?;
        socket.set(
            libc::SOL_PACKET,
            libc::PACKET_AUXDATA,
            &on,
            "ask for VLAN tags",
        )?;
        socket.set(
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            &on,
            "ignore outgoing frames (Linux 4.20 or later)",
        )?;
        let promiscuous = libc::packet_mreq {
            mr_ifindex: index as libc::c_int,
            mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        socket.set(
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            &promiscuous,
            "hear frames for all addresses",
        )?;
        for (force, polite) in [
            (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
            (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
        ] {
            if socket
                .set(libc::SOL_SOCKET, force, &SOCKET_BUFFER, "")
                .is_err()
            {
                socket.set(
                    libc::SOL_SOCKET,
                    polite,
                    &SOCKET_BUFFER,
                    "size the socket buffers",
                )?;
            }
        }
        socket.bind(index)?;
        Ok(socket)
    }

    pub(super) fn interface(&self) -> &str {
        &self.interface
    }

    /// Largest IP packet that the interface sends, bytes.
    pub(super) const fn mtu(&self) -> usize {
        self.mtu
    }

    /// Reads up to a batch of frames; an error if there are none.
    pub(super) fn receive(&self, batch: &mut Batch) -> io::Result<()> {
        /// Room for one `tpacket_auxdata`, aligned as control messages must be.
        #[derive(Clone, Copy)]
        #[repr(C, align(8))]
        struct Control([u8; 64]);

        batch.len = 0;
        let mut controls = [Control([0; 64]); BATCH];
        // SAFETY: both are C structures of integers and pointers, for which all zeros are valid.
        let (mut iovecs, mut messages) = unsafe {
            (
                mem::zeroed::<[libc::iovec; BATCH]>(),
                mem::zeroed::<[libc::mmsghdr; BATCH]>(),
            )
        };
        let buffers = batch.buffers.chunks_exact_mut(BUFFER);
        let parts = buffers
            .zip(&mut iovecs)
            .zip(&mut controls)
            .zip(&mut messages);
        for (((buffer, iovec), control), message) in parts {
            iovec.iov_base = buffer.as_mut_ptr().cast();
            iovec.iov_len = buffer.len();
            message.msg_hdr.msg_iov = iovec;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = control.0.len() as _;
        }
        // SAFETY: every message points to one iovec and one control buffer, and every iovec to one
        // buffer; all of them are alive and not otherwise used until the call returns.
        let received = unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as _,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        if received < 0 {
            return Err(io::Error::last_os_error());
        }
        batch.len = received as usize;
        for (slot, message) in batch.slots.iter_mut().zip(&messages).take(batch.len) {
            *slot = Slot {
                len: message.msg_len as usize,
                vlan: vlan_tag(&message.msg_hdr),
                truncated: message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            };
        }
        Ok(())
    }

    /// Sends one frame, which stands behind `VNET_HEADER_LEN` zeros.
    pub(super) fn send(&self, header_and_frame: &[u8]) -> io::Result<()> {
        rustix::net::send(&self.fd, header_and_frame, SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// Frames that the kernel dropped since the last call because this socket was full.
    pub(super) fn missed(&self) -> u64 {
        let mut stats = libc::tpacket_stats {
            tp_packets: 0,
            tp_drops: 0,
        };
        let mut len = size_of_val(&stats) as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes, the size of the structure.
        let done = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
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

    fn check_interface(&mut self) -> Result<(), DeviceError> {
        let refuse = |interface: &str, call, why: &str| {
            Err(DeviceError::new(interface, call, io::Error::other(why)))
        };
        // SAFETY: SIOCGIFHWADDR fills the address member of the union.
        let family = self.ioctl(
            libc::SIOCGIFHWADDR as _,
            "read the kind of interface",
            |r| unsafe { r.ifr_ifru.ifru_hwaddr.sa_family },
        )?;
        if family != libc::ARPHRD_ETHER {
            let why = "not an Ethernet interface; the emulator joins Ethernet interfaces";
            return refuse(&self.interface, "check the interface", why);
        }
        // SAFETY: SIOCGIFFLAGS fills the flags member of the union.
        let flags = self.ioctl(libc::SIOCGIFFLAGS as _, "read the flags", |r| unsafe {
            r.ifr_ifru.ifru_flags
        })?;
        if libc::c_int::from(flags) & libc::IFF_UP == 0 {
            let why = format!(
                "the interface is down; run `ip link set {} up`",
                self.interface
            );
            return refuse(&self.interface, "check the interface", &why);
        }
        // SAFETY: SIOCGIFMTU fills the MTU member of the union.
        let mtu = self.ioctl(libc::SIOCGIFMTU as _, "read the MTU", |r| unsafe {
            r.ifr_ifru.ifru_mtu
        })?;
        self.mtu = mtu as usize;
        Ok(())
    }

    /// Asks the kernel about the interface and reads one member of the answer.
    fn ioctl<T>(
        &self,
        request: libc::Ioctl,
        call: &'static str,
        read: impl FnOnce(&libc::ifreq) -> T,
    ) -> Result<T, DeviceError> {
        let mut answer = ifreq(&self.interface);
        // SAFETY: the requests used here read the name from, and write at most, one `ifreq`.
        let done = unsafe { libc::ioctl(self.fd.as_raw_fd(), request, &raw mut answer) };
        if done != 0 {
            return Err(DeviceError::last(&self.interface, call));
        }
        Ok(read(&answer))
    }

    fn bind(&self, index: u32) -> Result<(), DeviceError> {
        // SAFETY: a C structure of integers, for which all zeros are valid.
        let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as libc::c_int;
        let len = size_of_val(&address) as libc::socklen_t;
        // SAFETY: the pointer is to an address of the length given.
        let done = unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), len) };
        if done != 0 {
            return Err(DeviceError::last(&self.interface, "bind to the interface"));
        }
        Ok(())
    }

    fn set<T>(
        &self,
        level: libc::c_int,
        option: libc::c_int,
        value: &T,
        call: &'static str,
    ) -> Result<(), DeviceError> {
        let len = size_of::<T>() as libc::socklen_t;
        let value = std::ptr::from_ref(value).cast();
        // SAFETY: the pointer is to a value of the length given.
        let done = unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, option, value, len) };
        if done != 0 {
            return Err(DeviceError::last(&self.interface, call));
        }
        Ok(())
    }
}

/// A request about `interface`, a name of at most 15 bytes.
pub(super) fn ifreq(interface: &str) -> libc::ifreq {
    // SAFETY: a C structure of integers, and a union with a pointer, for which all zeros are valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

/// The tag that the kernel took off a frame, from the auxiliary data of its message.
fn vlan_tag(message: &libc::msghdr) -> Option<[u8; 4]> {
    // SAFETY: the header was filled by recvmmsg; its control buffer is still alive, and the macros
    // stay within the length that the kernel wrote.
    let first = unsafe { libc::CMSG_FIRSTHDR(message) };
    if first.is_null() {
        return None;
    }
    // SAFETY: not null, so it points to a whole control message header.
    let header = unsafe { *first };
    let room = header.cmsg_len as usize >= size_of::<libc::tpacket_auxdata>();
    if header.cmsg_level != libc::SOL_PACKET || header.cmsg_type != libc::PACKET_AUXDATA || !room {
        return None;
    }
    // SAFETY: this type of message carries a `tpacket_auxdata`, whose length was checked.
    let data: libc::tpacket_auxdata =
        unsafe { std::ptr::read_unaligned(libc::CMSG_DATA(first).cast()) };
    if data.tp_status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let [a, b] = data.tp_vlan_tpid.to_be_bytes();
    let [c, d] = data.tp_vlan_tci.to_be_bytes();
    Some([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_testkit::netns::{Namespace, can_run};

    #[test]
    fn an_interface_that_does_not_exist_is_named() {
        let error = PacketSocket::open("no-such-if0").unwrap_err().to_string();
        assert!(error.starts_with("no-such-if0: "), "{error}");
    }

    /// The kernel takes tags off before any socket sees the frame.
    #[test]
    fn a_tagged_frame_comes_with_its_tag_beside_it() {
        if !can_run("a_tagged_frame_comes_with_its_tag_beside_it") {
            return;
        }
        let namespace = Namespace::new("tag").unwrap();
        namespace.join("one", &namespace, "two").unwrap();
        let mut sent = vec![0; VNET_HEADER_LEN];
        sent.extend_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        sent.extend_from_slice(&[0x81, 0, 0x20, 5, 0x88, 0xb5]);
        // The longest frame: the tag comes on top of the MTU.
        sent.resize(VNET_HEADER_LEN + 14 + 4 + 1500, 7);
        let exchange = || {
            let ends = ["one", "two"].map(|end| PacketSocket::open(end).unwrap());
            ends[0].send(&sent).unwrap();
            let mut batch = Batch::new();
            for _ in 0..500 {
                if ends[1].receive(&mut batch).is_ok() {
                    // The kernel itself sends router solicitations here.
                    let ours = batch.frames().find(|r| r.frame[12..14] == [0x88, 0xb5]);
                    if let Some(received) = ours {
                        return Some((received.frame.to_vec(), received.vlan));
                    }
                }
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            None
        };
        let (frame, vlan) = namespace.run(exchange).unwrap().expect("the frame arrives");
        let sent = &sent[VNET_HEADER_LEN..];
        assert_eq!(vlan, Some([0x81, 0, 0x20, 5]));
        assert_eq!((&frame[..12], &frame[12..]), (&sent[..12], &sent[16..]));
    }
}
