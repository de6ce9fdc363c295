use std::collections::BTreeMap;

use super::*;
use crate::status::{
    InterfaceReport, PeerReport, PeerStatus, SecureReport, ServiceReport, SessionReport, TunReport,
    UnderlayReport,
};

/// A status in which every number of the ledger differs.
fn sample() -> Status {
    let mut next = 1000u64;
    let ledger = serde_json::to_value(all_of_the_ledger()).unwrap();
    let ledger: serde_json::Map<_, _> = ledger
        .as_object()
        .unwrap()
        .keys()
        .map(|name| {
            next += 1;
            (name.clone(), next.into())
        })
        .collect();
    let metrics = serde_json::json!({
        "goodput": 0.5, "loss": 0.25, "delay_s": 0.125, "queueing_s": 0.0625, "share": 0.75,
    });
    let service = ServiceReport {
        number: 3,
        name: "vo\"ice".to_owned(),
        scheme: "rlp-oos".to_owned(),
        rate: 0.1,
        draining: false,
        waiting: false,
        queue_packets: 21,
        queue_bytes: 22,
        srtt_ns: Some(50_000_000),
        ledger: serde_json::from_value(ledger.into()).unwrap(),
        events: [("gave-up".to_owned(), 97)].into(),
        metrics: serde_json::from_value(metrics).unwrap(),
        peer: Some(PeerReport {
            received_packets: 31,
            lost_packets: 32,
            loss: Some(0.01),
        }),
        effective_goodput: Some(0.49),
        loss_before_repair: None,
    };
    let peer = PeerStatus {
        name: "farm".to_owned(),
        address: "192.0.2.7:7007".parse().ok(),
        answered_from: None,
        host: None,
        unresolved: None,
        key: Some(String::new()),
        keys_age_ns: Some(3_000_000_000),
        version: None,
        tunnel_addresses: Vec::new(),
        prefixes: vec!["10.7.0.2/32".to_owned()],
        weight: 2.0,
        rate_bps: Some(10_000_000),
        sending_rate_bps: 6_000_000,
        found_rate: None,
        shares_with: vec![],
        path_mtu_bytes: 1500,
        path_too_narrow: false,
        path_narrowed: 65,
        datagrams_sent: 81,
        sent_bytes: 82,
        datagrams_received: 83,
        received_bytes: 84,
        session: SessionReport {
            state: "confirmed".to_owned(),
            id: Some(1),
            epoch: "00".to_owned(),
            peer_epoch: None,
            age_ns: Some(1_000_000_000),
            sessions: 2,
            disconnections: 1,
            disconnected_ns: None,
            unheard_ns: None,
            reached_ns: None,
            rtt_ns: Some(25_000_000),
            refused: None,
            other_protocol: None,
            shared_key: None,
        },
        services: vec![service],
        drops: BTreeMap::from([("wrong-source".to_owned(), 72)]),
    };
    Status {
        schema: 2,
        version: "0.1.0".to_owned(),
        commit: None,
        protocol: 8,
        name: "hill-top".to_owned(),
        uptime_ns: 7_500_000_000,
        tun: TunReport {
            name: "air0".to_owned(),
            mtu_bytes: 1420,
            packets_read: 41,
            read_bytes: 42,
            packets_written: 43,
            written_bytes: 44,
            mss_clamped: 45,
        },
        underlay: UnderlayReport {
            listen: "0.0.0.0:7007".parse().unwrap(),
            left_port: Some(7007),
            interface: Some(InterfaceReport {
                name: "wlan0".to_owned(),
                ether_type: "0x88b5".to_owned(),
                up: true,
                carrier: false,
                losses: 73,
                missed_frames: 74,
            }),
            security: "noise-ik".to_owned(),
            secure: Some(SecureReport {
                key: String::new(),
                handshakes_begun: 51,
                handshakes_answered: 52,
                cookies_sent: 53,
                refused: 54,
            }),
            rate_bps: Some(20_000_000),
            frame_overhead_bytes: 42,
            datagrams_sent: 61,
            sent_bytes: 62,
            datagrams_received: 63,
            received_bytes: 64,
        },
        peers: vec![peer],
        drops: BTreeMap::from([("not-ip".to_owned(), 71)]),
        callers: Vec::new(),
        classes: Vec::new(),
    }
}

/// The same with a second peer, whose services have the same names.
fn two_peers() -> Status {
    let mut status = sample();
    let mut second = status.peers[0].clone();
    second.name = "mill".to_owned();
    status.peers.push(second);
    status
}

/// Includes the counters that are left out when zero.
fn all_of_the_ledger() -> airlane_link::ServiceLedger {
    airlane_link::ServiceLedger {
        dropped_disconnected: 1,
        ..Default::default()
    }
}

#[test]
fn everything_that_the_ledger_counts_is_there_once() {
    let status = sample();
    let text = exposition(&status);
    let ledger = serde_json::to_value(status.peers[0].services[0].ledger).unwrap();
    for (name, value) in ledger.as_object().unwrap() {
        let count = value.as_u64().unwrap();
        let wanted = match name.as_str() {
            "hold_ns" => format!(" {}", count as f64 / 1e9),
            _ => format!(" {count}"),
        };
        let found = text.lines().filter(|line| line.ends_with(&wanted)).count();
        assert_eq!(found, 1, "{name} = {wanted}:\n{text}");
    }
    for value in [
        31, 32, 41, 42, 43, 44, 45, 51, 52, 53, 54, 61, 62, 63, 64, 65, 71, 72, 73, 74, 81, 82, 83,
        84,
    ] {
        let wanted = format!(" {value}");
        let found = text.lines().filter(|line| line.ends_with(&wanted)).count();
        assert_eq!(found, 1, "{value}:\n{text}");
    }
}

/// The rules of OpenMetrics 1.0 whose violation makes a scraper refuse the text.
#[test]
fn the_text_is_open_metrics() {
    let text = exposition(&two_peers());
    assert!(text.ends_with("# EOF\n"), "{text}");
    let (mut family, mut kind, mut seen) = (String::new(), "", Vec::new());
    let mut series = Vec::new();
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# ") {
            let mut words = about.splitn(3, ' ');
            let (what, name) = (words.next().unwrap(), words.next());
            match what {
                "EOF" => continue,
                "HELP" => {
                    family = name.unwrap().to_owned();
                    assert!(!seen.contains(&family), "{family} stands in two places");
                    seen.push(family.clone());
                }
                "TYPE" => kind = words.next().unwrap(),
                "UNIT" => {
                    let unit = words.next().unwrap();
                    assert!(family.ends_with(&format!("_{unit}")), "{line}");
                }
                _ => panic!("{line}"),
            }
            assert_eq!(name.unwrap(), family);
            continue;
        }
        let (name, _) = line.split_once('{').unwrap();
        let suffix = match kind {
            "counter" => "_total",
            "info" => "_info",
            "gauge" => "",
            other => panic!("{other}: {line}"),
        };
        assert_eq!(name, format!("{family}{suffix}"), "{line}");
        let (labels, value) = line.rsplit_once(' ').unwrap();
        assert!(labels.contains("link=\"hill-top\""), "{line}");
        assert!(value.parse::<f64>().unwrap().is_finite(), "{line}");
        assert!(!series.contains(&labels), "{line} stands here twice");
        series.push(labels);
    }
    for line in [
        "airlane_uptime_seconds{link=\"hill-top\"} 7.5",
        "airlane_link_rate_bytes_per_second{link=\"hill-top\"} 2500000.0",
        "airlane_link_sending_rate_bytes_per_second{link=\"hill-top\",peer=\"mill\"} 750000.0",
        "airlane_session_state{link=\"hill-top\",peer=\"farm\",state=\"confirmed\"} 1.0",
        "airlane_session_state{link=\"hill-top\",peer=\"mill\",state=\"refused\"} 0.0",
        "airlane_session_state{link=\"hill-top\",peer=\"mill\",state=\"unheard\"} 0.0",
        "airlane_underlay_port_left{link=\"hill-top\"} 1.0",
        "airlane_dropped_total{link=\"hill-top\",reason=\"truncated\"} 0",
        "airlane_dropped_total{link=\"hill-top\",peer=\"mill\",reason=\"wrong-source\"} 72",
        "airlane_peer_bytes_total{link=\"hill-top\",peer=\"farm\",direction=\"in\"} 84",
        "airlane_service_rtt_seconds{link=\"hill-top\",peer=\"mill\",service=\"vo\\\"ice\",direction=\"out\"} 0.05",
        "airlane_service_scheme{link=\"hill-top\",peer=\"farm\",service=\"vo\\\"ice\",number=\"3\",scheme=\"rlp-oos\"} 1.0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}:\n{text}");
    }
}

/// The rules of Prometheus's text 0.0.4: a family has the name of its series.
#[test]
fn the_older_text_has_the_same_series() {
    let text = exposition(&two_peers());
    let older = older(&text);
    let series = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(series(&text), series(&older));
    let mut lines = older.lines().peekable();
    let mut families = 0;
    while let Some(help) = lines.next() {
        let (name, _) = (help.strip_prefix("# HELP ").unwrap())
            .split_once(' ')
            .unwrap();
        let kind = lines.next().unwrap().strip_prefix("# TYPE ").unwrap();
        let kinds = ["counter", "gauge"].map(|kind| format!("{name} {kind}"));
        assert!(kinds.contains(&kind.to_owned()), "{kind}");
        while let Some(series) = lines.next_if(|line| !line.starts_with('#')) {
            assert!(series.starts_with(&format!("{name}{{")), "{name}: {series}");
        }
        families += 1;
    }
    assert!(families > 20, "{older}");
    assert!(
        older.contains("# TYPE airlane_build_info gauge\n"),
        "{older}"
    );
}

/// Names that begin with `airlane_` in a text.
fn names(text: &str) -> Vec<&str> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !part(c));
    words.filter(|word| word.starts_with("airlane_")).collect()
}

#[test]
fn the_alerts_ask_for_nothing_that_is_not_exported() {
    let text = include_str!("../../../../../deploy/airlane-alerts.yaml");
    let mut status = sample();
    status.peers[0].services[0].loss_before_repair = Some(0.5);
    status.peers[0].session.unheard_ns = Some(1);
    let exported = exposition(&status);
    let exported: Vec<_> = exported
        .lines()
        .filter_map(|line| line.split_once('{').map(|(name, _)| name))
        .collect();
    let asked = names(text);
    assert!(asked.len() > 5, "{asked:?}");
    for name in asked {
        assert!(exported.contains(&name), "{name} is not exported");
    }
    // The reasons and states that the alerts name exist.
    let up = STATES[2..4].join("|");
    for label in [
        format!("reason=\"{}\"", Reason::OwnDatagram.name()),
        format!("state=~\"{up}\""),
    ] {
        assert!(text.contains(&label), "{label}");
    }
}

#[test]
fn the_dashboard_asks_for_nothing_that_is_not_exported() {
    let text = include_str!("../../../../../deploy/grafana-airlane.json");
    let dashboard: serde_json::Value = serde_json::from_str(text).unwrap();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 39);
    let exported = exposition(&sample());
    let exported: Vec<_> = exported
        .lines()
        .filter_map(|line| line.split_once('{').map(|(name, _)| name))
        .collect();
    let panels = dashboard["panels"].as_array().unwrap();
    let (mut ids, mut asked) = (Vec::new(), 0);
    for panel in panels {
        let title = panel["title"].as_str().unwrap();
        assert!(!ids.contains(&&panel["id"]), "{title}");
        ids.push(&panel["id"]);
        if panel["type"] == "row" {
            continue;
        }
        for target in panel["targets"].as_array().unwrap() {
            let names = names(target["expr"].as_str().unwrap());
            assert!(!names.is_empty(), "{title} asks for nothing");
            asked += names.len();
        }
    }
    assert!(asked > 20, "{asked}");
    for name in names(text) {
        assert!(exported.contains(&name), "{name} is not exported");
    }
}
