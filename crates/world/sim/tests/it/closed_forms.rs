//! Measurements against formulas (docs/spec/multi-service.md, sections 12.1 and 12.4).
//!
//! Losses are means over 30 repetitions; the formula must lie within 3.66 standard errors, the 99.9 % interval of
//! Student's t with 29 degrees of freedom. There are 20 comparisons with one seed.

use crate::common::{Air, Link, file, runs, sums, talk};

const RUNS: u64 = 30;
const T_999: f64 = 3.66;

const UNIFORM: [(f64, &str); 4] = [
    (0.01, "{ kind = \"uniform\", rate = 0.01 }"),
    (0.02, "{ kind = \"uniform\", rate = 0.02 }"),
    (0.05, "{ kind = \"uniform\", rate = 0.05 }"),
    (0.10, "{ kind = \"uniform\", rate = 0.1 }"),
];

const BYTES: [(f64, &str); 4] = [
    (
        131_072.0,
        "{ kind = \"byte-exponential\", mean = \"131072 B\" }",
    ),
    (
        65_536.0,
        "{ kind = \"byte-exponential\", mean = \"65536 B\" }",
    ),
    (
        32_768.0,
        "{ kind = \"byte-exponential\", mean = \"32768 B\" }",
    ),
    (
        16_384.0,
        "{ kind = \"byte-exponential\", mean = \"16384 B\" }",
    ),
];

const DEFAULT: &str = "{ kind = \"default\" }";

fn check_loss(link: Link, topology: &str, errors: &str, scheme: &str, seconds: u32, formula: f64) {
    let air = Air {
        errors: Some(errors),
        scheme: Some(scheme),
        ..Air::default()
    };
    let summary = sums(&talk(link, topology, air, seconds), RUNS);
    let loss = summary.flows[0].get("loss_ratio").unwrap();
    let standard_error = loss.sd / (RUNS as f64).sqrt();
    assert!(
        (loss.mean - formula).abs() <= T_999 * standard_error,
        "{link:?}/{topology} {scheme} {errors}: {loss:?}, formula {formula}"
    );
}

#[test]
fn the_raw_service_loses_what_the_channel_loses() {
    for (p, errors) in UNIFORM {
        check_loss(Link::Cellular, "LAN1", errors, DEFAULT, 500, p);
    }
    for (mean, errors) in BYTES {
        let p = -libm::expm1(-1001.0 / mean);
        check_loss(Link::Wlan, "LAN1", errors, DEFAULT, 100, p);
    }
}

#[test]
fn two_links_lose_independently() {
    for (p, errors) in UNIFORM {
        let both = 1.0 - (1.0 - p) * (1.0 - p);
        check_loss(Link::Cellular, "WAN2", errors, DEFAULT, 500, both);
    }
}

/// A lost packet cannot be recovered if another frame of its block is lost, too: p (1 - (1 - p)^n). The uniform model
/// ignores size; on WLAN, data and parity have the same length.
#[test]
fn one_parity_frame_leaves_the_residual_of_the_formula() {
    let residual = |p: f64, n: f64| p * (1.0 - libm::pow(1.0 - p, n));
    for (p, errors) in UNIFORM {
        let scheme = "{ kind = \"xor\", block = 8 }";
        check_loss(
            Link::Cellular,
            "LAN1",
            errors,
            scheme,
            500,
            residual(p, 8.0),
        );
    }
    for (mean, errors) in BYTES {
        let p = -libm::expm1(-1002.0 / mean);
        let scheme = "{ kind = \"xor\", block = 12 }";
        check_loss(Link::Wlan, "LAN1", errors, scheme, 100, residual(p, 12.0));
    }
}

/// A lost frame cannot be recovered if the NAK or the only retransmission is lost: p (1 - (1 - p)(1 - p_nak)).
#[test]
fn one_retransmission_leaves_the_residual_of_the_formula() {
    for (p, errors) in UNIFORM {
        for scheme in ["rlp", "rlp-oos"] {
            let scheme = format!("{{ kind = \"{scheme}\", retries = 1 }}");
            let residual = p * (1.0 - (1.0 - p) * (1.0 - p));
            check_loss(Link::Cellular, "LAN1", errors, &scheme, 2_000, residual);
        }
    }
}

/// XYL-Q-F5.4-1 and F5.5-1, for the schemes that this version has.
#[test]
fn out_of_sequence_delivery_saves_delay_at_the_same_loss() {
    let metric = |scheme: &str, metric: &str| {
        let air = Air {
            errors: Some(UNIFORM[3].1),
            scheme: Some(scheme),
            ..Air::default()
        };
        let summary = sums(&talk(Link::Cellular, "LAN1", air, 500), 10);
        *summary.flows[0].get(metric).unwrap()
    };
    let delays = ["default", "rlp-oos", "rlp"].map(|scheme| {
        let retries = if scheme == "default" {
            ""
        } else {
            ", retries = 1"
        };
        let scheme = format!("{{ kind = \"{scheme}\"{retries} }}");
        metric(&scheme, "delay_mean_plus_2sd_s").ci95().unwrap()
    });
    assert!(delays[0].1 < delays[1].0, "{delays:?}");
    assert!(delays[1].1 < delays[2].0, "{delays:?}");
}

#[test]
fn a_full_window_bounds_the_throughput() {
    // 8 * window * F / RTT, where the round trip includes serialisations of 1000 B and 40 B (12.4). Slow start
    // reduces the first seconds.
    let rtt = 2.0 * (2.0 * 0.003 + 0.050) + 2.0 * 0.004 + 0.004 + 2.0 * 0.000_16 + 0.000_16;
    let bound = 8.0 * 20.0 * 1000.0 / rtt;
    let summary = sums(&file(Link::Wlan, "WAN2", Air::default(), "100 MB", 20), 1);
    let found = summary.flows[0].get("throughput_bps").unwrap().mean;
    assert!(
        found < bound && found > 0.998 * bound,
        "{found}, bound {bound}"
    );
}

#[test]
fn without_errors_goodput_is_the_share_of_payload_in_a_frame() {
    for (link, frame, scheme, header) in [
        (Link::Cellular, 50.0, "default", 1.0),
        (Link::Cellular, 50.0, "sr-m2", 3.0),
        (Link::Wlan, 1000.0, "rlp", 2.0),
    ] {
        let scheme_table = format!("{{ kind = \"{scheme}\" }}");
        let air = Air {
            scheme: Some(&scheme_table),
            ..Air::default()
        };
        let result = runs(&file(link, "LAN1", air, "1 MB", 20), 1).remove(0);
        let goodput = result.flows[0].goodput_ratio.unwrap();
        let exact = frame / (frame + header);
        assert!(
            (goodput - exact).abs() < 1e-4,
            "{link:?} {scheme}: {goodput}, {exact}"
        );
    }
}
