//! One end of the emulated link: receives every frame that arrives at an interface, and sends frames.
//!
//! With `PACKET_VNET_HDR` a [`VnetHeader`] precedes each frame and describes what its sender left to
//! offloads: a partial checksum, a super-packet. A VLAN tag that the kernel stripped arrives as auxiliary
//! data. Frames that this machine sends out of the interface are ignored (`PACKET_IGNORE_OUTGOING`), because
//! the emulator would otherwise receive its own frames. The arrival time comes from the kernel: the emulator
//! may run late, and its queue must not fill because of that.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::SocketType;

use crate::af_packet;
use crate::device::DeviceError;
use crate::netlink::Interface;
use crate::offload::vnet::{VNET_HEADER_LEN, VnetHeader};

/// Size of the socket buffers, bytes: frames that may arrive while this thread is not scheduled.
const SOCKET_BUFFER: usize = 16 << 20;

/// A received frame.
#[derive(Debug)]
pub(super) struct Received<'a> {
    pub(super) header: VnetHeader,
    /// The bytes from the destination address on.
    pub(super) frame: &'a mut [u8],
    /// Tag protocol identifier and tag control information, which belong right after the addresses.
    pub(super) vlan: Option<[u8; 4]>,
    /// Arrival time at the interface, ns since 1970.
    pub(super) arrived: Option<NonZeroU64>,
    /// The frame was longer than the receive buffer.
    pub(super) truncated: bool,
}

/// Buffers for a batch of received frames.
#[derive(Debug)]
pub(super) struct Batch(af_packet::Batch);

impl Batch {
    pub(super) fn new() -> Self {
        Self(af_packet::Batch::new())
    }

    /// The frames of the last [`EmulatorSocket::receive`].
    pub(super) fn frames(&mut self) -> impl Iterator<Item = Received<'_>> {
        self.0.messages_mut().filter_map(|(message, slot)| {
            let (header, frame) = message.split_at_mut_checked(VNET_HEADER_LEN)?;
            Some(Received {
                header: VnetHeader::read(header)?,
                frame,
                vlan: slot.vlan,
                arrived: slot.arrived,
                truncated: slot.truncated,
            })
        })
    }
}

/// A raw socket bound to one Ethernet interface, promiscuous and nonblocking.
#[derive(Debug)]
pub(super) struct EmulatorSocket {
    socket: af_packet::PacketSocket,
    interface: String,
    mtu: usize,
}

impl AsFd for EmulatorSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl EmulatorSocket {
    /// Opens a socket that receives all frames of `interface`, which must be an Ethernet interface and up.
    pub(super) fn open(interface: &str) -> Result<Self, DeviceError> {
        let failed = |call| move |e: io::Error| DeviceError::new(interface, call, e);
        let socket = af_packet::PacketSocket::open(SocketType::RAW)
            .map_err(failed("open a packet socket"))?;
        let facts = Interface::usable(interface)?;
        socket
            .with_offload_headers()
            .map_err(failed("ask for offload headers"))?;
        socket
            .with_vlan_tags()
            .map_err(failed("ask for VLAN tags"))?;
        socket
            .with_arrival_times()
            .map_err(failed("ask for arrival times"))?;
        socket
            .without_outgoing()
            .map_err(failed("ignore outgoing frames (Linux 4.20 or later)"))?;
        socket
            .be_promiscuous(facts.index)
            .map_err(failed("hear frames for all addresses"))?;
        socket
            .size_buffers(SOCKET_BUFFER)
            .map_err(failed("size the socket buffers"))?;
        socket
            .bind(facts.index, libc::ETH_P_ALL as u16)
            .map_err(failed("bind to the interface"))?;
        Ok(Self {
            socket,
            interface: interface.to_owned(),
            mtu: facts.mtu,
        })
    }

    pub(super) fn interface(&self) -> &str {
        &self.interface
    }

    /// MTU of the interface, bytes.
    pub(super) const fn mtu(&self) -> usize {
        self.mtu
    }

    /// Reads up to a batch of frames; fails with `WouldBlock` if there are none.
    pub(super) fn receive(&self, batch: &mut Batch) -> io::Result<()> {
        self.socket.receive(&mut batch.0)
    }

    /// Sends one frame, which `VNET_HEADER_LEN` zeros precede.
    pub(super) fn send(&self, header_and_frame: &[u8]) -> io::Result<()> {
        self.socket.send(header_and_frame)
    }

    /// Frames that the kernel dropped since the last call because the socket's buffer was full.
    pub(super) fn missed(&self) -> u64 {
        self.socket.missed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_testkit::netns::{Namespace, can_run};

    #[test]
    fn an_interface_that_does_not_exist_is_named() {
        let error = EmulatorSocket::open("no-such-if0").unwrap_err().to_string();
        assert!(error.starts_with("no-such-if0: "), "{error}");
    }

    /// The kernel strips tags before any socket receives the frame.
    #[test]
    fn the_vlan_tag_is_delivered_beside_the_frame() {
        if !can_run("the_vlan_tag_is_delivered_beside_the_frame") {
            return;
        }
        let namespace = Namespace::new("tag").unwrap();
        namespace.join("one", &namespace, "two").unwrap();
        let mut sent = vec![0; VNET_HEADER_LEN];
        sent.extend_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1]);
        sent.extend_from_slice(&[0x81, 0, 0x20, 5, 0x88, 0xb5]);
        // The longest frame: the tag is not part of the MTU.
        sent.resize(VNET_HEADER_LEN + 14 + 4 + 1500, 7);
        let exchange = || {
            let ends = ["one", "two"].map(|end| EmulatorSocket::open(end).unwrap());
            ends[0].send(&sent).unwrap();
            let mut batch = Batch::new();
            for _ in 0..30_000 {
                if ends[1].receive(&mut batch).is_ok() {
                    // The kernel's router solicitations arrive here as well.
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
