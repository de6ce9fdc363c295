//! The status of a node, for tests of what is made of one.

use std::collections::BTreeMap;

use airlane_live::status::{
    PeerStatus, ServiceReport, SessionReport, Status, TunReport, UnderlayReport,
};

/// With one peer, at a time after the start.
pub(crate) fn status(at_s: u64, sent_bytes: u64) -> Status {
    let service = ServiceReport {
        number: 1,
        name: "files".to_owned(),
        scheme: "sr-m2".to_owned(),
        rate: 1.0,
        draining: false,
        waiting: false,
        queue_packets: 17,
        queue_bytes: 0,
        srtt_ns: Some(52_000_000),
        ledger: airlane_link::ServiceLedger {
            sent_bytes,
            frame_sent_bytes: 1000,
            repair_frame_bytes: 40,
            control_frame_bytes: 10,
            residual_lost: 3,
            ..Default::default()
        },
        events: Default::default(),
        metrics: airlane_link::ServiceMetrics::default(),
        peer: None,
        effective_goodput: None,
        loss_before_repair: None,
    };
    let peer = PeerStatus {
        name: "farm".to_owned(),
        address: "192.0.2.7:7007".parse().ok(),
        answered_from: None,
        host: None,
        unresolved: None,
        key: None,
        keys_age_ns: None,
        version: None,
        tunnel_addresses: Vec::new(),
        prefixes: Vec::new(),
        weight: 2.0,
        rate_bps: 20_000_000,
        sending_rate_bps: 12_000_000,
        found_rate: None,
        shares_with: vec![],
        path_mtu_bytes: 1500,
        path_too_narrow: false,
        path_narrowed: 0,
        datagrams_sent: 0,
        sent_bytes: 0,
        datagrams_received: 0,
        received_bytes: 0,
        session: SessionReport {
            state: "confirmed".to_owned(),
            id: Some(1),
            epoch: "00".to_owned(),
            peer_epoch: None,
            age_ns: None,
            sessions: 1,
            disconnections: 0,
            disconnected_ns: None,
            unheard_ns: None,
            rtt_ns: None,
            refused: None,
            other_protocol: None,
            shared_key: None,
        },
        services: vec![service],
        drops: BTreeMap::from([("wrong-source".to_owned(), 1)]),
    };
    Status {
        schema: 2,
        version: "0".to_owned(),
        commit: None,
        protocol: 8,
        name: "hill-top".to_owned(),
        uptime_ns: at_s * 1_000_000_000,
        tun: TunReport {
            name: "air0".to_owned(),
            mtu_bytes: 1420,
            packets_read: 0,
            read_bytes: 0,
            packets_written: 0,
            written_bytes: 0,
            mss_clamped: 0,
        },
        underlay: UnderlayReport {
            listen: "0.0.0.0:7007".parse().expect("an address"),
            interface: None,
            security: "noise-ik".to_owned(),
            secure: None,
            rate_bps: 20_000_000,
            frame_overhead_bytes: 42,
            datagrams_sent: 0,
            sent_bytes: 0,
            datagrams_received: 0,
            received_bytes: 0,
        },
        peers: vec![peer],
        drops: BTreeMap::from([("not-ip".to_owned(), 5)]),
        callers: Vec::new(),
        classes: Vec::new(),
    }
}
