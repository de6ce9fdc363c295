//! What segmentation and coalescing by the kernel would save, measured through the live node's own
//! building blocks. docs/offloads.md holds the figures and what follows from them.
//!
//! ```text
//!  1. left: UDP sender ══════ veth ══════ UDP receiver :right         one by one, batches, GSO, GRO
//!  2. left: tun ── port ── port ── tun :right, kernel TCP through it  one by one, super-packets
//! ```
//!
//! `cargo run --release -p airlane-live --example offload_spike`; needs root.

#![allow(clippy::unwrap_used, reason = "an experiment may panic")]
#![allow(clippy::print_stdout, reason = "it prints figures")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::time::Duration;

use airlane_base::{Instant, Rate};
use airlane_link::config::{HandedOver, RateLimit, Rates, SchedulerConfig};
use airlane_link::{HeaderProfile, Port, PortConfig};
use airlane_live::packet::{Lease, LivePacket, Pool};
use airlane_live::tun::Tun;
use airlane_live::underlay::{BATCH, Underlay};
use common::traffic::{address, transfer};
use common::{Namespace, cable, can_run};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use tun_rs::{DeviceBuilder, GROTable, IDEAL_BATCH_SIZE, SyncDevice, VIRTIO_NET_HDR_LEN};

/// A full frame at an MTU of 1500: the header and a packet.
const FRAME: usize = 1472;
const DATAGRAMS: usize = 300_000;
const MTU: usize = 1452;

fn main() {
    if !can_run("offload_spike") {
        return;
    }
    let (left, right) = (Namespace::new("left"), Namespace::new("right"));
    cable(&left, "wire", &right, "wire");
    left.ip("addr add 192.0.2.1/24 dev wire");
    right.ip("addr add 192.0.2.2/24 dev wire");
    println!("UDP over veth, {FRAME} B datagrams; CPU of each thread per datagram");
    println!("(the kernel's work for the receiver up to its socket is on the sender's account)");
    for send in [Send::One, Send::Batch, Send::Gso] {
        for gro in [false, true] {
            udp(&left, &right, send, gro);
        }
    }
    println!("\nTCP through two ports in one thread, MTU {MTU}; CPU of that thread per packet");
    for scheme in ["default", "sr-m2"] {
        for offload in [false, true] {
            tunnel(&left, &right, scheme, offload);
        }
    }
}

fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[derive(Clone, Copy, Debug)]
enum Send {
    One,
    Batch,
    Gso,
}

/// Part 1.
fn udp(left: &Namespace, right: &Namespace, send: Send, gro: bool) {
    let (from, to) = (address("192.0.2.1:7007"), address("192.0.2.2:7007"));
    let (ready, is_ready) = mpsc::channel();
    let receiver = right.thread(move || {
        let underlay = Underlay::bind(to, from).unwrap();
        if gro {
            // Switches GRO on for the socket, whoever reads it.
            UdpSocketState::new((&underlay).into()).unwrap();
        }
        ready.send(()).unwrap();
        receive(&underlay, gro)
    });
    is_ready.recv().unwrap();
    let sending_ns = left.run(move || {
        let underlay = Underlay::bind(from, to).unwrap();
        let gso = UdpSocketState::new((&underlay).into()).unwrap();
        let frame = [0x5a; FRAME];
        let header = [0; 20];
        let per_call = match send {
            Send::One => 1,
            Send::Batch => BATCH,
            Send::Gso => gso.max_gso_segments().min(65_000 / FRAME),
        };
        // As the port gives frames: header and packet lie apart.
        let parts = vec![[IoSlice::new(&header), IoSlice::new(&frame[20..])]; per_call];
        let mut joined = Vec::with_capacity(per_call * FRAME);
        let start = thread_cpu_ns();
        for _ in 0..DATAGRAMS / per_call {
            let sent = match send {
                Send::One => underlay.send_one(&parts[0]),
                Send::Batch => underlay.send(&parts).map(drop),
                Send::Gso => {
                    joined.clear();
                    for [header, packet] in &parts {
                        joined.extend_from_slice(header);
                        joined.extend_from_slice(packet);
                    }
                    let transmit = Transmit {
                        destination: to,
                        ecn: None,
                        contents: &joined,
                        segment_size: Some(FRAME),
                        src_ip: None,
                    };
                    gso.try_send((&underlay).into(), &transmit)
                }
            };
            if sent.is_err() {
                std::thread::yield_now();
            }
        }
        let spent = thread_cpu_ns() - start;
        spent / DATAGRAMS as u64
    });
    let (received, receiving_ns, calls) = receiver.join().unwrap();
    println!(
        "  send {:<5}  receive {:<3}  {sending_ns:>5} ns  {receiving_ns:>5} ns   {:>4.1} datagrams a call, {:.1} % arrived",
        format!("{send:?}").to_lowercase(),
        if gro { "gro" } else { "one" },
        received as f64 / calls as f64,
        100.0 * received as f64 / DATAGRAMS as f64,
    );
}

/// Reads until nothing has come for a while: datagrams, CPU ns for each, calls that gave some.
fn receive(underlay: &Underlay, gro: bool) -> (usize, u64, usize) {
    let state = gro.then(|| UdpSocketState::new(underlay.into()).unwrap());
    let mut buffers = vec![vec![0; 65_536]; quinn_udp::BATCH_SIZE];
    let (mut received, mut calls) = (0, 0);
    let start = thread_cpu_ns();
    loop {
        let mut fds = [PollFd::new(underlay, PollFlags::IN)];
        let patience = Timespec {
            tv_sec: 0,
            tv_nsec: 300_000_000,
        };
        if poll(&mut fds, Some(&patience)).unwrap() == 0 {
            return (
                received,
                (thread_cpu_ns() - start) / received.max(1) as u64,
                calls,
            );
        }
        loop {
            let got = match &state {
                None => underlay.receive(&mut buffers[0]).map(|_| 1),
                Some(state) => {
                    let mut meta = [RecvMeta::default(); quinn_udp::BATCH_SIZE];
                    let mut slices: Vec<_> =
                        buffers.iter_mut().map(|b| IoSliceMut::new(b)).collect();
                    state
                        .recv(underlay.into(), &mut slices, &mut meta)
                        .map(|n| {
                            meta[..n]
                                .iter()
                                .map(|m| m.len.div_ceil(m.stride.max(1)))
                                .sum()
                        })
                }
            };
            match got {
                Ok(n) => (received, calls) = (received + n, calls + 1),
                Err(_) => break,
            }
        }
    }
}

/// Part 2.
fn tunnel(left: &Namespace, right: &Namespace, scheme: &'static str, offload: bool) {
    let ends = [(left, 1), (right, 2)].map(|(namespace, last)| {
        let device = namespace.run(move || Device::create(offload));
        namespace.ip(&format!("link set spike up mtu {MTU}"));
        namespace.ip(&format!("addr add 10.9.0.{last}/24 dev spike"));
        device
    });
    let (stop, stopped) = mpsc::channel::<()>();
    let pump = std::thread::spawn(move || {
        let mut ends = ends.map(|device| End::new(device, scheme));
        let start = thread_cpu_ns();
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            turn(&mut ends);
        }
        let spent = thread_cpu_ns() - start;
        let sum = |f: fn(&End) -> u64| ends.iter().map(f).sum::<u64>();
        (
            spent,
            sum(|e| e.packets),
            sum(|e| e.reads),
            sum(|e| e.writes),
        )
    });
    let bytes = 500_000_000;
    let time = transfer(left, right, address("10.9.0.2:8080"), bytes);
    drop(stop);
    let (spent, packets, reads, writes) = pump.join().unwrap();
    println!(
        "  {scheme:<8} {:<13} {:>5.0} Mbit/s  {:>5} ns a packet  {:>4.1} packets a read, {:>4.1} a write",
        if offload {
            "super-packets"
        } else {
            "one by one"
        },
        bytes as f64 * 8.0 / 1e6 / time.as_secs_f64(),
        spent / packets,
        packets as f64 / reads as f64,
        packets as f64 / writes as f64,
    );
}

enum Device {
    Plain(Tun),
    Offload(SyncDevice),
}

impl Device {
    fn create(offload: bool) -> Self {
        if offload {
            let builder = DeviceBuilder::new().name("spike").with(|builder| {
                builder.offload(true);
            });
            let device = builder.build_sync().unwrap();
            rustix::io::ioctl_fionbio(&device, true).unwrap();
            Self::Offload(device)
        } else {
            Self::Plain(Tun::create("spike").unwrap())
        }
    }
}

/// A pool's buffer in the form that the splitter wants.
struct Writable(Lease);

impl AsRef<[u8]> for Writable {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl AsMut<[u8]> for Writable {
    fn as_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

/// A device and its port.
struct End {
    device: Device,
    port: Port<LivePacket>,
    pool: Pool,
    super_packet: Vec<u8>,
    coalescing: GROTable,
    delivered: Vec<Vec<u8>>,
    packets: u64,
    reads: u64,
    writes: u64,
}

impl End {
    fn new(device: Device, scheme: &str) -> Self {
        let services = format!(
            "[[services]]\nnumber = 0\nname = \"all\"\nrate = 1\nscheme = {{ kind = \"{scheme}\" }}"
        );
        #[derive(serde::Deserialize)]
        struct Table {
            services: Vec<airlane_link::ServiceConfig>,
        }
        let config = PortConfig {
            header: HeaderProfile::Live,
            rate: Rate::from_bps(100_000_000_000).unwrap(),
            delay: airlane_base::Duration::from_millis(1),
            max_payload: MTU,
            frame_overhead: 42,
            burst: airlane_base::Duration::from_millis(1),
            handed_over: HandedOver::usual(HeaderProfile::Live),
            pacing: None,
            rates: Rates::Fixed,
            rate_limit: RateLimit::Fixed,
            scheduler: SchedulerConfig::Scfq,
            services: toml::from_str::<Table>(&services).unwrap().services,
            classes: Vec::new(),
        };
        Self {
            device,
            port: Port::new(config).unwrap(),
            pool: Pool::new(2048, 8192),
            super_packet: vec![0; VIRTIO_NET_HDR_LEN + 65_536],
            coalescing: GROTable::new(),
            delivered: Vec::new(),
            packets: 0,
            reads: 0,
            writes: 0,
        }
    }

    /// One read's worth of packets for the port.
    fn read(&mut self) -> io::Result<Vec<LivePacket>> {
        let packets = match &self.device {
            Device::Plain(tun) => {
                let mut lease = self.pool.lease();
                let length = tun.read(lease.bytes_mut())?;
                vec![LivePacket::from_kernel(lease, length).unwrap()]
            }
            Device::Offload(tun) => {
                let mut buffers: Vec<_> = (0..IDEAL_BATCH_SIZE)
                    .map(|_| Writable(self.pool.lease()))
                    .collect();
                let mut sizes = [0; IDEAL_BATCH_SIZE];
                let count =
                    tun.recv_multiple(&mut self.super_packet, &mut buffers, &mut sizes, 0)?;
                let split = buffers.into_iter().zip(sizes).take(count);
                split
                    .filter_map(|(buffer, size)| LivePacket::from_kernel(buffer.0, size).ok())
                    .collect()
            }
        };
        self.reads += 1;
        self.packets += packets.len() as u64;
        Ok(packets)
    }

    /// Gives the kernel what the port delivered, coalesced where it can be.
    fn write(&mut self) {
        match &self.device {
            Device::Plain(tun) => {
                while let Some(packet) = self.port.poll_deliver() {
                    self.writes += 1;
                    tun.write(packet.bytes()).unwrap();
                }
            }
            Device::Offload(tun) => {
                self.delivered.clear();
                while let Some(packet) = self.port.poll_deliver() {
                    let mut buffer = Vec::with_capacity(VIRTIO_NET_HDR_LEN + 65_536);
                    buffer.resize(VIRTIO_NET_HDR_LEN, 0);
                    buffer.extend_from_slice(packet.bytes());
                    self.delivered.push(buffer);
                }
                if !self.delivered.is_empty() {
                    let buffers = &mut self.delivered;
                    tun.send_multiple(&mut self.coalescing, buffers, VIRTIO_NET_HDR_LEN)
                        .unwrap();
                    // What was not appended to another one was written by itself.
                    let merged = buffers
                        .iter()
                        .filter(|b| b.len() > MTU + VIRTIO_NET_HDR_LEN);
                    let merged: usize = merged
                        .map(|b| (b.len() - VIRTIO_NET_HDR_LEN).div_ceil(MTU) - 1)
                        .sum();
                    self.writes += buffers.len().saturating_sub(merged) as u64;
                }
            }
        }
    }
}

/// Packets go from either device through both ports to the other.
fn turn(ends: &mut [End; 2]) {
    let mut fds = [0, 1].map(|end: usize| {
        let fd = match &ends[end].device {
            Device::Plain(tun) => tun.as_fd(),
            Device::Offload(tun) => tun.as_fd(),
        };
        PollFd::from_borrowed_fd(fd, PollFlags::IN)
    });
    let due = ends.iter().filter_map(|end| end.port.poll_timeout()).min();
    let now = now();
    let wait = due.map_or(Duration::from_millis(5), |due| {
        Duration::from_nanos(due.saturating_since(now).as_nanos()).min(Duration::from_millis(5))
    });
    poll(&mut fds, Some(&wait.try_into().unwrap())).unwrap();
    let ready = fds.map(|fd| !fd.revents().is_empty());
    let now = self::now();
    for (from, ready) in ready.into_iter().enumerate() {
        ends[from].port.handle_timeout(now);
        for _ in 0..BATCH {
            if !ready {
                break;
            }
            let Ok(packets) = ends[from].read() else {
                break;
            };
            ends[from].port.handle_packets(now, packets);
        }
        while let Some(frame) = ends[from].port.poll_transmit(now) {
            ends[1 - from].port.handle_frame(now, frame);
        }
        ends[1 - from].write();
    }
}

fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
