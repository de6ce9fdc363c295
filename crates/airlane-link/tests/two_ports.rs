//! Two ports over a lossy link with propagation delay, in virtual time: every scheme keeps its
//! contract, in both header profiles.

#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use airlane_base::{Duration, Instant, Payload, Rng, Streams};
use airlane_link::config::{HandedOver, SchedulerConfig, SchemeConfig, SrConfig};
use airlane_link::{FlowKey, Frame, HeaderProfile, Packet, Port, PortConfig, ServiceConfig};

#[derive(Clone, Debug, PartialEq)]
struct Numbered {
    id: u32,
    len: usize,
}

impl Payload for Numbered {
    fn len(&self) -> usize {
        self.len
    }
}

impl Packet for Numbered {
    fn flow(&self) -> FlowKey {
        let host = |n| IpAddr::V4(Ipv4Addr::new(10, 0, 0, n));
        FlowKey {
            dscp: 0,
            protocol: 17,
            src: host(1),
            dst: host(2),
            src_port: 1,
            dst_port: 2,
        }
    }
}

struct Link {
    ports: [Port<Numbered>; 2],
    /// Frames on their way to port 0 and 1, in order of arrival.
    air: [VecDeque<(Instant, Frame<Numbered>)>; 2],
    rng: Rng,
    loss: f64,
    now: Instant,
    delivered: Vec<u32>,
}

const DELAY: Duration = Duration::from_millis(10);

impl Link {
    fn new(header: HeaderProfile, scheme: SchemeConfig, loss: f64) -> Self {
        let config = PortConfig {
            header,
            rate: "1 Mbit/s".parse().unwrap(),
            delay: DELAY,
            max_payload: 1000,
            frame_overhead: 0,
            burst: Duration::ZERO,
            handed_over: HandedOver::usual(header),
            pacing: None,
            scheduler: SchedulerConfig::Scfq,
            services: vec![ServiceConfig {
                number: 0,
                name: "all".into(),
                rate: 1.0,
                scheme,
                queue: Some("limit = \"100000 packets\"\nkind = \"drop-tail\"".parse_toml()),
            }],
            classes: vec![],
        };
        Self {
            ports: [
                Port::new(config.clone()).unwrap(),
                Port::new(config).unwrap(),
            ],
            air: Default::default(),
            rng: Streams::new(1, 0).stream("loss"),
            loss,
            now: Instant::ORIGIN,
            delivered: vec![],
        }
    }

    fn drain(&mut self) {
        for from in 0..2 {
            while let Some(frame) = self.ports[from].poll_transmit(self.now) {
                if !self.rng.chance(self.loss) {
                    let takes = self.ports[from].frame_len(&frame);
                    let takes = "1 Mbit/s"
                        .parse::<airlane_base::Rate>()
                        .unwrap()
                        .transmission_time(takes);
                    self.air[1 - from].push_back((self.now + takes + DELAY, frame));
                }
            }
            while let Some(packet) = self.ports[from].poll_deliver() {
                assert_eq!(from, 1, "packets go one way");
                self.delivered.push(packet.id);
            }
        }
    }

    /// Runs until nothing happens any more or the time is over.
    fn run_until(&mut self, end: Instant) {
        loop {
            self.drain();
            let arrivals = self
                .air
                .iter()
                .filter_map(|air| air.front())
                .map(|(t, _)| *t);
            let deadlines = self.ports.iter().filter_map(Port::poll_timeout);
            let Some(next) = arrivals.chain(deadlines).min() else {
                return;
            };
            if next > end {
                self.now = end;
                return;
            }
            assert!(
                next > self.now
                    || self
                        .air
                        .iter()
                        .any(|a| a.front().is_some_and(|f| f.0 == next)),
                "a deadline at {next:?} does not move on"
            );
            self.now = next;
            for to in 0..2 {
                if self.air[to].front().is_some_and(|(t, _)| *t <= next) {
                    let (_, frame) = self.air[to].pop_front().unwrap();
                    self.ports[to].handle_frame(next, frame);
                }
            }
            for port in &mut self.ports {
                port.handle_timeout(next);
            }
        }
    }

    fn offer(&mut self, ids: std::ops::Range<u32>) {
        for id in ids {
            let len = 100 + (id as usize * 37) % 900;
            self.ports[0].handle_packet(self.now, Numbered { id, len });
        }
    }
}

trait ParseToml {
    fn parse_toml<T: serde::de::DeserializeOwned>(&self) -> T;
}

impl ParseToml for str {
    fn parse_toml<T: serde::de::DeserializeOwned>(&self) -> T {
        toml::from_str(self).unwrap()
    }
}

fn scheme(text: &str) -> SchemeConfig {
    text.parse_toml()
}

const PROFILES: [HeaderProfile; 2] = [HeaderProfile::Study, HeaderProfile::Live];

#[test]
fn sr_m2_delivers_everything_once_and_in_order() {
    for header in PROFILES {
        for resends in ["base", "each"] {
            let text = format!("kind = \"sr-m2\"\ntimeout-resends = \"{resends}\"");
            let mut link = Link::new(header, scheme(&text), 0.2);
            link.offer(0..3000);
            link.run_until(Instant::from_nanos(300_000_000_000));
            assert_eq!(
                link.delivered,
                (0..3000).collect::<Vec<_>>(),
                "{header:?} {resends}"
            );
            let sent = link.ports[0].ledger(0).unwrap();
            assert!(sent.repair_frames_sent > 500, "{sent:?}");
        }
    }
}

#[test]
fn rlp_loses_little_and_keeps_order() {
    for header in PROFILES {
        let mut link = Link::new(
            header,
            scheme("kind = \"rlp\"\nretries = 3\ntimers = \"tight\""),
            0.1,
        );
        link.offer(0..3000);
        link.run_until(Instant::from_nanos(300_000_000_000));
        assert!(link.delivered.is_sorted_by(|a, b| a < b), "{header:?}");
        let ledger = *link.ports[1].ledger(0).unwrap();
        assert_eq!(
            ledger.packets_delivered + ledger.residual_lost,
            3000,
            "{ledger:?}"
        );
        // p (1 - (1-p)^2)^3 = 0.07 %: 2 of 3000 on average.
        assert!(ledger.residual_lost < 12, "{ledger:?}");
        assert!(ledger.packets_recovered > 200, "{ledger:?}");
    }
}

#[test]
fn rlp_oos_never_holds_a_packet() {
    for header in PROFILES {
        let mut link = Link::new(
            header,
            scheme("kind = \"rlp-oos\"\nretries = 3\ntimers = \"tight\""),
            0.1,
        );
        link.offer(0..3000);
        link.run_until(Instant::from_nanos(300_000_000_000));
        let mut seen = link.delivered.clone();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(
            seen.len(),
            link.delivered.len(),
            "{header:?}: delivered twice"
        );
        assert!(seen.len() > 2980);
        assert!(
            !link.delivered.is_sorted(),
            "recovered packets come out of order"
        );
    }
}

#[test]
fn the_raw_service_measures_its_loss_in_the_live_profile() {
    let mut link = Link::new(HeaderProfile::Live, scheme("kind = \"default\""), 0.1);
    link.offer(0..3000);
    link.run_until(Instant::from_nanos(300_000_000_000));
    let ledger = link.ports[1].ledger(0).unwrap();
    let last = *link.delivered.last().unwrap();
    assert_eq!(
        u64::from(last) + 1,
        ledger.packets_delivered + ledger.residual_lost
    );
}

#[test]
fn a_full_window_without_a_queue_drops_and_counts() {
    let config = SchemeConfig::SrM2(SrConfig {
        window: Some(8),
        ..SrConfig::default()
    });
    let mut link = Link::new(HeaderProfile::Study, config, 0.0);
    let mut port_config = PortConfig {
        header: HeaderProfile::Study,
        rate: "1 Mbit/s".parse().unwrap(),
        delay: DELAY,
        max_payload: 1000,
        frame_overhead: 0,
        burst: Duration::ZERO,
        handed_over: toml::from_str::<Wrapper>("x = \"unlimited\"").unwrap().x,
        pacing: None,
        scheduler: SchedulerConfig::Scfq,
        services: vec![],
        classes: vec![],
    };
    port_config.services = vec![toml::from_str(
        "number = 0\nname = \"a\"\nrate = 1.0\nscheme = { kind = \"sr-m2\", window = 8 }\nqueue = { kind = \"none\" }",
    ).unwrap()];
    link.ports = [
        Port::new(port_config.clone()).unwrap(),
        Port::new(port_config).unwrap(),
    ];
    link.offer(0..20);
    let ledger = link.ports[0].ledger(0).unwrap();
    assert_eq!((ledger.packets_sent, ledger.dropped_window_full), (8, 12));
    link.run_until(Instant::from_nanos(10_000_000_000));
    assert_eq!(link.delivered, (0..8).collect::<Vec<_>>());
}

#[derive(serde::Deserialize)]
struct Wrapper {
    x: HandedOver,
}

#[test]
fn nominal_pacing_keeps_the_queue_at_ip() {
    let mut link = Link::new(HeaderProfile::Study, scheme("kind = \"sr-m2\""), 0.0);
    let config = PortConfig {
        header: HeaderProfile::Study,
        rate: "1 Mbit/s".parse().unwrap(),
        delay: DELAY,
        max_payload: 1000,
        frame_overhead: 0,
        burst: Duration::ZERO,
        handed_over: toml::from_str::<Wrapper>("x = \"unlimited\"").unwrap().x,
        pacing: Some("20 packets".parse().unwrap()),
        scheduler: SchedulerConfig::Scfq,
        services: vec![],
        classes: vec![],
    };
    link.ports = [
        Port::new(config.clone()).unwrap(),
        Port::new(config).unwrap(),
    ];
    for id in 0..30 {
        link.ports[0].handle_packet(link.now, Numbered { id, len: 1000 });
    }
    // One goes through, 20 wait, the rest is dropped and counted.
    let ledger = link.ports[0].ledger(0).unwrap();
    assert_eq!((ledger.packets_sent, ledger.dropped_queue_full), (1, 9));
    // The next is handed in 8 ms later: the nominal time of 1000 B at 1 Mbit/s.
    assert!(link.ports[0].poll_timeout() <= Some(Instant::from_nanos(8_000_000)));
    link.ports[0].handle_timeout(Instant::from_nanos(7_999_999));
    assert_eq!(link.ports[0].ledger(0).unwrap().packets_sent, 1);
    link.run_until(Instant::from_nanos(10_000_000_000));
    assert_eq!(link.delivered, (0..21).collect::<Vec<_>>());
}
