//! The plain tunnel (`plain-tun`) with the kernel's help: super-packets from and to the TUN device, UDP GSO and GRO.
//! Still one thread and no encryption: a practical bound for single-threaded tunnels.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};

use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, poll};
use tun_rs::{DeviceBuilder, GROTable, IDEAL_BATCH_SIZE, SyncDevice, VIRTIO_NET_HDR_LEN};

use super::plain_tun::{MTU, is_passing};

/// The largest GSO send, bytes.
const LARGEST: usize = 65_000;
/// The longest super-packet, bytes.
const SUPER: usize = 65_536;

/// Forwards until the process ends.
///
/// # Errors
/// If the device or the socket cannot be opened, or fails permanently.
pub fn forward_offload(interface: &str, listen: SocketAddr, peer: SocketAddr) -> io::Result<()> {
    let builder = DeviceBuilder::new().name(interface).mtu(MTU);
    let device = builder.with(|b| {
        b.offload(true);
    });
    let device = device.build_sync()?;
    device.set_nonblocking(true)?;
    let socket = UdpSocket::bind(listen)?;
    socket.connect(peer)?;
    let mut out = Out::new(&socket, peer)?;
    let mut back = Back::new();
    loop {
        let mut ready = [
            PollFd::new(&device, PollFlags::IN),
            PollFd::new(&socket, PollFlags::IN),
        ];
        match poll(&mut ready, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        out.turn(&device, &socket)?;
        back.turn(&out.state, &socket, &device)?;
    }
}

/// Carries packets from the device to the socket.
struct Out {
    state: UdpSocketState,
    peer: SocketAddr,
    super_packet: Vec<u8>,
    packets: Vec<Vec<u8>>,
    joined: Vec<u8>,
}

impl Out {
    fn new(socket: &UdpSocket, peer: SocketAddr) -> io::Result<Self> {
        Ok(Self {
            state: UdpSocketState::new(socket.into())?,
            peer,
            super_packet: vec![0; VIRTIO_NET_HDR_LEN + SUPER],
            packets: vec![vec![0; 2048]; IDEAL_BATCH_SIZE],
            joined: Vec::with_capacity(SUPER),
        })
    }

    /// One read, which returns the segments of one super-packet.
    fn turn(&mut self, device: &SyncDevice, socket: &UdpSocket) -> io::Result<()> {
        let mut sizes = [0; IDEAL_BATCH_SIZE];
        let read = device.recv_multiple(&mut self.super_packet, &mut self.packets, &mut sizes, 0);
        let count = match read {
            Ok(count) => count,
            Err(e) if is_passing(&e) => return Ok(()),
            Err(e) => return Err(e),
        };
        let most = self.state.max_gso_segments();
        let mut next = 0;
        while next < count {
            let run = run_of(&sizes[next..count], most);
            self.joined.clear();
            let packets = self.packets[next..next + run].iter();
            for (packet, size) in packets.zip(&sizes[next..]) {
                self.joined.extend_from_slice(&packet[..*size]);
            }
            let transmit = Transmit {
                destination: self.peer,
                ecn: None,
                contents: &self.joined,
                segment_size: (run > 1).then_some(sizes[next]),
                src_ip: None,
            };
            match self.state.try_send(socket.into(), &transmit) {
                Err(e) if !is_passing(&e) => return Err(e),
                // Lack of buffer space is a loss like any other.
                _ => next += run,
            }
        }
        Ok(())
    }
}

/// How many of the first packets fit into one GSO send: all of the same length, except for a shorter last one.
fn run_of(sizes: &[usize], most: usize) -> usize {
    let first = sizes[0].max(1);
    let most = most.min(LARGEST / first).clamp(1, sizes.len());
    let equal = sizes[..most].iter().take_while(|s| **s == first).count();
    match sizes[..most].get(equal) {
        Some(shorter) if *shorter < first => equal + 1,
        _ => equal.max(1),
    }
}

/// Carries packets from the socket to the device.
struct Back {
    received: Vec<Vec<u8>>,
    packets: Vec<Vec<u8>>,
    table: GROTable,
}

impl Back {
    fn new() -> Self {
        // With room for coalescing packets in place.
        let packet = || Vec::with_capacity(VIRTIO_NET_HDR_LEN + SUPER);
        Self {
            received: vec![vec![0; SUPER]; BATCH_SIZE],
            packets: (0..IDEAL_BATCH_SIZE).map(|_| packet()).collect(),
            table: GROTable::new(),
        }
    }

    fn turn(
        &mut self,
        state: &UdpSocketState,
        socket: &UdpSocket,
        device: &SyncDevice,
    ) -> io::Result<()> {
        let mut meta = [RecvMeta::default(); BATCH_SIZE];
        let mut slices: Vec<_> = self
            .received
            .iter_mut()
            .map(|b| IoSliceMut::new(b))
            .collect();
        let count = match state.recv(socket.into(), &mut slices, &mut meta) {
            Ok(count) => count,
            Err(e) if is_passing(&e) => return Ok(()),
            Err(e) => return Err(e),
        };
        let mut waiting = 0;
        for (buffer, meta) in self.received.iter().zip(&meta[..count]) {
            for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                if waiting == self.packets.len() {
                    write(device, &mut self.table, &mut self.packets)?;
                    waiting = 0;
                }
                let packet = &mut self.packets[waiting];
                packet.clear();
                packet.resize(VIRTIO_NET_HDR_LEN, 0);
                packet.extend_from_slice(datagram);
                waiting += 1;
            }
        }
        write(device, &mut self.table, &mut self.packets[..waiting])
    }
}

fn write(device: &SyncDevice, table: &mut GROTable, packets: &mut [Vec<u8>]) -> io::Result<()> {
    if packets.is_empty() {
        return Ok(());
    }
    match device.send_multiple(table, packets, VIRTIO_NET_HDR_LEN) {
        Err(e) if !is_passing(&e) => Err(e),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gso_run_ends_at_another_length_or_the_size_limit() {
        assert_eq!(run_of(&[100], 64), 1);
        assert_eq!(run_of(&[100, 100, 100], 64), 3);
        assert_eq!(run_of(&[100, 100, 40, 100], 64), 3);
        assert_eq!(run_of(&[100, 100, 140], 64), 2);
        assert_eq!(run_of(&[100; 9], 4), 4);
        assert_eq!(run_of(&[1400; 64], 64), LARGEST / 1400);
        assert_eq!(run_of(&[40, 1400], 64), 1);
    }
}
