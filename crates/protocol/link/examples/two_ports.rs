//! Two ports over a lossy pipe, in virtual time:
//!
//! ```text
//! cargo run -p airlane-link --example two_ports
//! ```
//!
//! Three applications send from the first port to the second for ten seconds: a file over TCP, a marked call, and
//! traffic that no rule classifies. The pipe loses a tenth of all frames in each direction. `sr-m2` delivers the whole
//! file in order; `rlp-oos` delivers nearly the whole call, each packet as soon as it arrives; the raw service loses
//! what the pipe loses.

#![expect(clippy::print_stdout, reason = "the table goes to standard output")]

use std::collections::VecDeque;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr};

use airlane_base::{Duration, Instant, Payload, Rate, Streams};
use airlane_link::config::{PortConfig, ServiceConfig};
use airlane_link::{ClassConfig, FlowKey, HeaderProfile, Packet, Port};

/// The service table as both ends read it from a file. Service 0, the raw one, exists without being named.
const LINK: &str = r#"
classes = [
    { match = { protocol = "tcp" }, service = "file" },
    { match = { dscp = "EF" }, service = "call" },
]
[[services]]
number = 1
name = "file"
rate = 0.6
scheme = { kind = "sr-m2" }
[[services]]
number = 2
name = "call"
rate = 0.2
scheme = { kind = "rlp-oos" }
"#;

const RATE: Rate = Rate::from_bps(1_000_000).expect("it is not zero");
const DELAY: Duration = Duration::from_millis(20);
const LOSS: f64 = 0.1;
/// Each application sends one packet per interval.
const INTERVAL: Duration = Duration::from_millis(20);
const PACKETS: usize = 500;
/// Time after the last packet for the last repairs.
const AFTER: Duration = Duration::from_secs(2);

#[derive(serde::Deserialize)]
struct Link {
    classes: Vec<ClassConfig>,
    services: Vec<ServiceConfig>,
}

/// What an application sends: protocol number, DS code point and packet length.
#[derive(Clone, Copy, Debug)]
struct Application {
    protocol: u8,
    dscp: u8,
    len: usize,
}

/// By the number of the service that each is classified to.
const APPLICATIONS: [Application; 3] = [
    Application {
        protocol: 17,
        dscp: 0,
        len: 500,
    },
    Application {
        protocol: 6,
        dscp: 0,
        len: 1_000,
    },
    Application {
        protocol: 17,
        dscp: 46,
        len: 200,
    },
];

/// A simulated packet: the link needs only its length and its flow.
#[derive(Clone, Copy, Debug)]
struct Simulated {
    application: usize,
    number: usize,
    sent: Instant,
}

impl Payload for Simulated {
    fn len(&self) -> usize {
        APPLICATIONS[self.application].len
    }

    // Only erasure codes look at images, and no service here has one.
    fn image(&self) -> impl AsRef<[u8]> {
        []
    }

    fn coded(&self, _: &[u8], _: usize) -> Self {
        *self
    }

    fn recovered(&self, _: &[u8], _: usize) -> Option<Self> {
        None
    }
}

impl airlane_link::pack::Divisible for Simulated {}

impl Packet for Simulated {
    fn flow(&self) -> FlowKey {
        let host = |n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n));
        let Application { protocol, dscp, .. } = APPLICATIONS[self.application];
        FlowKey {
            dscp,
            protocol,
            src: host(1),
            dst: host(2),
            src_port: 40_000,
            dst_port: 9_000,
        }
    }
}

/// What arrived of one application.
#[derive(Clone, Debug, Default)]
struct Arrived {
    packets: usize,
    overtaken: usize,
    newest: usize,
    delay_s: f64,
    longest_s: f64,
}

impl Arrived {
    fn add(&mut self, now: Instant, packet: Simulated) {
        let delay_s = now.saturating_since(packet.sent).as_secs_f64();
        self.packets += 1;
        self.overtaken += usize::from(packet.number < self.newest);
        self.newest = self.newest.max(packet.number);
        self.delay_s += delay_s;
        self.longest_s = self.longest_s.max(delay_s);
    }
}

fn port() -> Result<Port<Simulated>, Box<dyn Error>> {
    let Link { classes, services } = toml::from_str(LINK)?;
    let config = PortConfig {
        services,
        classes,
        ..PortConfig::new(HeaderProfile::Live, RATE, DELAY, 1_500)
    };
    Port::new(config).map_err(|problems| {
        let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
        problems.join("\n").into()
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut ends = [port()?, port()?];
    // Frames in flight to each end, with their arrival times: a constant delay keeps them in order.
    let mut pipes = [VecDeque::new(), VecDeque::new()];
    let mut losses = ["forward", "backward"].map(|way| Streams::new(1, 0).stream(way));
    let mut arrived: [Arrived; 3] = Default::default();
    let mut sent = 0;
    let mut now = Instant::ORIGIN;
    let end_of_run = now + INTERVAL * PACKETS as u64 + AFTER;
    while now < end_of_run {
        // Inputs: the applications, arriving frames, expired timers.
        let next_packet = Instant::ORIGIN + INTERVAL * sent as u64;
        if sent < PACKETS && next_packet <= now {
            for application in 0..APPLICATIONS.len() {
                let packet = Simulated {
                    application,
                    number: sent,
                    sent: now,
                };
                ends[0].handle_packet(now, packet);
            }
            sent += 1;
        }
        for (port, pipe) in ends.iter_mut().zip(&mut pipes) {
            while let Some((_, frame)) = pipe.pop_front_if(|(at, _)| *at <= now) {
                port.handle_frame(now, frame);
            }
            if port.poll_timeout().is_some_and(|due| due <= now) {
                port.handle_timeout(now);
            }
        }

        // Everything out: frames into the pipe, packets to the application.
        for (from, port) in ends.iter_mut().enumerate() {
            while let Some(frame) = port.poll_transmit(now) {
                let arrives = now + RATE.transmission_time(port.frame_len(&frame)) + DELAY;
                if !losses[from].chance(LOSS) {
                    pipes[1 - from].push_back((arrives, frame));
                }
            }
            while let Some(packet) = port.poll_deliver() {
                arrived[packet.application].add(now, packet);
            }
        }

        // On to the next event.
        let arrivals = pipes
            .iter()
            .filter_map(|pipe| pipe.front())
            .map(|(at, _)| *at);
        let deadlines = ends.iter().filter_map(Port::poll_timeout);
        let next_packet = Instant::ORIGIN + INTERVAL * sent as u64;
        let packets = (sent < PACKETS).then_some(next_packet);
        let next = arrivals.chain(deadlines).chain(packets).min();
        now = next.map_or(end_of_run, |next| next.max(now));
    }

    println!("service  scheme   offered  delivered  overtaken  repairs  mean delay  longest");
    for service in ends[0].services() {
        let Arrived {
            packets,
            overtaken,
            delay_s,
            longest_s,
            ..
        } = arrived[usize::from(service.number)];
        let mean_ms = 1e3 * delay_s / packets.max(1) as f64;
        println!(
            "{:<8} {:<8} {:>7}  {packets:>9}  {overtaken:>9}  {:>7}  {mean_ms:>7.1} ms  {:>4.0} ms",
            service.name,
            service.scheme,
            service.ledger.packets_offered,
            service.ledger.repair_frames_sent,
            1e3 * longest_s,
        );
    }
    Ok(())
}
