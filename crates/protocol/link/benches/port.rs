//! The cost of a packet through a pair of ports, and of a header through the codec. Nothing may be allocated
//! in steady state: the allocation columns count what it takes to build the ports.

use std::net::{IpAddr, Ipv4Addr};

use airlane_base::{Duration, Instant, Payload, Rate};
use airlane_link::config::{PortConfig, ServiceConfig};
use airlane_link::{Codec, FlowKey, Frame, FrameKind, Header, HeaderProfile, Layout, Packet, Port};
use divan::Bencher;
use divan::counter::ItemsCount;

#[global_allocator]
static ALLOC: divan::AllocProfiler = divan::AllocProfiler::system();

fn main() {
    divan::main();
}

#[derive(Clone, Copy, Debug)]
struct Stand;

impl Payload for Stand {
    fn len(&self) -> usize {
        1400
    }

    fn image(&self) -> impl AsRef<[u8]> {
        []
    }

    fn coded(&self, _: &[u8], _: usize) -> Self {
        Self
    }

    fn recovered(&self, _: &[u8], _: usize) -> Option<Self> {
        Some(Self)
    }
}

impl airlane_link::pack::Divisible for Stand {}

impl Packet for Stand {
    fn flow(&self) -> FlowKey {
        let host = |n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n));
        FlowKey {
            dscp: 0,
            protocol: 6,
            src: host(1),
            dst: host(2),
            src_port: 1,
            dst_port: 2,
        }
    }
}

const PACKETS: usize = 100_000;

fn port(scheme: &str) -> Port<Stand> {
    let service = format!("number = 0\nname = \"all\"\nrate = 1.0\nscheme = {scheme}");
    let service: ServiceConfig = toml::from_str(&service).expect("a valid service");
    let rate = Rate::from_bps(1_000_000_000).expect("not zero");
    let config = PortConfig {
        frame_overhead: 42,
        services: vec![service],
        ..PortConfig::new(HeaderProfile::Live, rate, Duration::from_micros(10), 1400)
    };
    Port::new(config).expect("a valid port")
}

/// Packets pass from port to port one at a time, at line rate; every twentieth frame is lost.
#[divan::bench(args = ["{ kind = \"default\" }", "{ kind = \"gbn\" }", "{ kind = \"sr-m2\" }", "{ kind = \"sr-bitmap\" }", "{ kind = \"rlp\" }", "{ kind = \"rlp-oos\" }"])]
fn packets_through_two_ports(bencher: Bencher, scheme: &str) {
    bencher
        .counter(ItemsCount::new(PACKETS))
        .with_inputs(|| (port(scheme), port(scheme)))
        .bench_local_refs(|(a, b)| {
            let mut now = Instant::ORIGIN;
            let (mut delivered, mut frames) = (0, 0u32);
            for _ in 0..PACKETS {
                now += Duration::from_micros(13);
                a.handle_packet(now, Stand);
                if a.poll_timeout().is_some_and(|due| due <= now) {
                    a.handle_timeout(now);
                }
                while let Some(frame) = a.poll_transmit(now) {
                    frames += 1;
                    if frames % 20 != 0 {
                        b.handle_frame(now, frame);
                    }
                }
                if b.poll_timeout().is_some_and(|due| due <= now) {
                    b.handle_timeout(now);
                }
                while let Some(frame) = b.poll_transmit(now) {
                    a.handle_frame(now, frame);
                }
                while b.poll_deliver().is_some() {
                    delivered += 1;
                }
            }
            delivered
        });
}

#[divan::bench]
fn header_round_trip(bencher: Bencher) {
    let codec = Codec::new(HeaderProfile::Live);
    let frame = Frame::<()>::new(Header::new(FrameKind::Data, 12_345), None);
    let mut buf = [0u8; 64];
    bencher.bench_local(move || {
        let len = codec.encode(divan::black_box(&frame), &Layout::SEQ_ACK, 7, &mut buf);
        codec.decode(&buf[..len.unwrap_or(0)], |_| Some(&Layout::SEQ_ACK))
    });
}
