//! Little's law for stationary queues: the mean number of packets in the system is the arrival rate times the mean
//! delay.

use airlane_base::{Duration, Instant};
use airlane_sim::event::{Event, Watcher};
use airlane_sim::{Prepared, Scenario};
use proptest::prelude::*;

/// Packets that have been sent and have not arrived.
#[derive(Default)]
struct OnTheirWay {
    now: Instant,
    packets: u64,
    /// Their number, integrated over time.
    total: Duration,
}

impl Watcher for OnTheirWay {
    fn on_event(&mut self, now: Instant, event: &Event) {
        self.total = self.total + now.saturating_since(self.now) * self.packets;
        self.now = now;
        match event {
            Event::PacketSent(_) => self.packets += 1,
            Event::PacketReceived(_) => self.packets -= 1,
            _ => {}
        }
    }
}

/// A call whose talk periods are one packet, over two links with partial load, optionally with a service on one.
fn world(load: f64, bytes: u32, kbps: [u32; 2], delay_ms: u32, served: bool) -> String {
    let slowest = f64::from(kbps[0].min(kbps[1])) * 1e3;
    // A service's header is short.
    let silence_us = f64::from(bytes + 12) * 8.0 / slowest / load * 1e6;
    let service = match served {
        true => {
            "services = [{ number = 0, name = \"all\", rate = 1, scheme = { kind = \"sr-m2\" }, \
             queue = { kind = \"drop-tail\", limit = \"100000 packets\" } }]"
        }
        false => "",
    };
    format!(
        "schema = 1\nname = \"little\"\nduration = \"3000 s\"\ndrain = \"0 s\"\n[nodes.a]\n[nodes.b]\n[nodes.c]\n\
         [links.l1]\nends = [\"a\", \"b\"]\nrate = \"{} kbit/s\"\ndelay = \"{delay_ms} ms\"\nframe = \"1500 B\"\n\
         queue = \"100000 packets\"\n{service}\n\
         [links.l2]\nends = [\"b\", \"c\"]\nrate = \"{} kbit/s\"\ndelay = \"{delay_ms} ms\"\nqueue = \"100000 packets\"\n\
         [[flows]]\nname = \"call\"\nends = [\"a\", \"c\"]\ntransport = {{ kind = \"udp\" }}\n\
         app = {{ kind = \"conferencing\", rate = \"100 Mbit/s\", packet = \"{bytes} B\", talk = \"1 us\", silence = \"{silence_us:.0} us\" }}\n",
        kbps[0], kbps[1]
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn queues_hold_what_little_says(
        load in 0.1..0.85,
        bytes in 100u32..1_400,
        kbps in [20u32..300, 20u32..300],
        delay_ms in 0u32..100,
        served in any::<bool>(),
        seed in 0u64..1_000,
    ) {
        let text = world(load, bytes, kbps, delay_ms, served);
        let scenario = Scenario::from_toml(&text, "little").unwrap_or_else(|e| panic!("{e}"));
        let mut seen = OnTheirWay::default();
        let result = Prepared::new(&scenario).unwrap().run_watched(seed, 0, &mut seen);
        let call = &result.flows[0];
        prop_assert_eq!(call.loss_ratio, Some(0.0));
        let on_their_way = seen.total.as_secs_f64() / seen.now.as_secs_f64();
        let a_second = call.packets_sent as f64 / result.stopped_s;
        let little = a_second * call.delay_mean_s.unwrap();
        // A packet in flight at the end counts with its whole delay on one side and with a part of it on the other.
        let edge = (call.packets_under_way as f64 + 1.0) * 20.0 * call.delay_mean_s.unwrap() / result.stopped_s;
        prop_assert!((on_their_way - little).abs() <= edge + 0.001 * little, "{} {}", on_their_way, little);
    }
}
