//! Delays of the raw service without contention: exact (docs/spec/multi-service.md, section 12.1).

use crate::common::{Air, Link, runs, talk};

/// Milliseconds, with all published digits.
const PUBLISHED: [(Link, [f64; 4]); 3] = [
    (Link::Cellular, [129.4, 178.5, 257.7, 306.9]),
    (Link::Pcs, [82.6, 132.4, 164.0, 213.8]),
    (Link::Wlan, [8.80, 61.0, 15.8, 68.0]),
];

/// Serialisation of F + 1 bytes and propagation on each wireless link, serialisation of F bytes and propagation on
/// the wired one; serialisation is rounded up to nanoseconds, hop by hop.
fn closed_form_ns(link: Link, topology: &str) -> u64 {
    let (rate, delay_ms, frame) = match link {
        Link::Cellular => (14_400, 100, 50),
        Link::Pcs => (64_000, 50, 250),
        Link::Wlan => (2_000_000, 3, 1_000),
    };
    let (wired_rate, wired_ms) = match &topology[..3] {
        "LAN" => (10_000_000, 1),
        _ => (2_000_000, 50),
    };
    let hop = |bytes: u64, rate: u64, ms: u64| {
        (bytes * 8 * 1_000_000_000).div_ceil(rate) + ms * 1_000_000
    };
    let links = if topology.ends_with('1') { 1 } else { 2 };
    links * hop(frame + 1, rate, delay_ms) + hop(frame, wired_rate, wired_ms)
}

#[test]
fn the_raw_service_delays_every_packet_by_the_closed_form() {
    for (link, published) in PUBLISHED {
        for (topology, published_ms) in ["LAN1", "WAN1", "LAN2", "WAN2"].iter().zip(published) {
            let air = Air {
                scheme: Some("{ kind = \"default\" }"),
                ..Air::default()
            };
            let result = runs(&talk(link, topology, air, 100), 1).remove(0);
            let flow = &result.flows[0];
            assert_eq!(flow.packets_received, flow.packets_sent);
            let exact_s = closed_form_ns(link, topology) as f64 / 1e9;
            assert_eq!(flow.delay_mean_s, Some(exact_s), "{link:?} {topology}");
            assert_eq!(flow.delay_sd_s, Some(0.0), "{link:?} {topology}");
            assert_eq!(flow.delay_mean_plus_2sd_s, Some(exact_s));
            // Published with one decimal digit: rounding is half a unit of it.
            let gap = (exact_s * 1e3 - published_ms).abs();
            assert!(gap <= 0.05 + 1e-9, "{link:?} {topology}: {exact_s} s");
        }
    }
}
