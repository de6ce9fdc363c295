//! The screen, drawn into a buffer.

use super::*;
use airlane_live::status::{PeerStatus, SessionReport, TunReport, UnderlayReport};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn status(at_s: u64, sent_bytes: u64) -> Status {
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
            listen: "0.0.0.0:7007".parse().unwrap(),
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

/// The same with a second peer that gets twice as much over a service of another name.
fn two_peers(at_s: u64, sent_bytes: u64) -> Status {
    let mut both = status(at_s, sent_bytes);
    let mut mill = status(at_s, 2 * sent_bytes).peers.remove(0);
    (mill.name, mill.services[0].name) = ("mill".to_owned(), "pages".to_owned());
    both.peers.push(mill);
    both
}

#[test]
fn of_several_peers_each_has_a_line_and_one_its_services() {
    let mut view = View::default();
    view.take(Ok(two_peers(10, 0)));
    view.take(Ok(two_peers(12, 500_000)));
    let farm = screen(&view, 130, 40);
    for part in [
        "2 of 2 peers confirmed",
        "farm",
        "mill",
        "4.00 Mbit/s",
        "1 files",
        "to farm",
        "from farm",
    ] {
        assert!(farm.contains(part), "{part}:\n{farm}");
    }
    assert!(!farm.contains("1 pages"), "{farm}");
    for (step, shown) in [(1, "1 pages"), (1, "1 files"), (-1, "1 pages")] {
        view.choose(step);
        let screen = screen(&view, 130, 40);
        assert!(screen.contains(shown), "{shown}:\n{screen}");
    }
    // The chosen one is gone.
    view.take(Ok(status(14, 500_000)));
    assert!(screen(&view, 130, 40).contains("1 files"));
}

fn screen(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_turn_shows_rates_costs_and_losses() {
    let mut view = View::default();
    view.take(Ok(status(10, 0)));
    view.take(Ok(status(12, 500_000)));
    let screen = screen(&view, 130, 30);
    for part in [
        "hill-top, up for 12.0 s, session confirmed",
        "20.0 Mbit/s, 12.0 Mbit/s now, security noise-ik",
        "6 dropped outside of the services, most of them not-ip (5)",
        "2.00 Mbit/s",
        "5.00 %",
        "52.0 ms",
        "files to the peer, peak 2",
    ] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    view.take(Err("no node answers".to_owned()));
    assert!(self::screen(&view, 130, 30).contains("no node answers"));
}

#[test]
fn sixty_columns_show_what_matters_whole() {
    let mut view = View::default();
    view.take(Ok(status(10, 0)));
    view.take(Ok(status(12, 500_000)));
    let text = screen(&view, 60, 30);
    for part in [
        "session confirmed",
        "security noise-ik",
        "not-ip (5)",
        "1 files",
        "2.00 Mbit/s",
        "dropped",
        "recovered",
        "files to, peak 2.00 Mbit/s",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    // What has no room is left out, and not cut.
    assert!(!text.contains("scheme"), "{text}");
    view.take(Ok(two_peers(14, 900_000)));
    let text = screen(&view, 60, 40);
    assert!(
        text.contains("farm") && text.contains("mill") && text.contains("confirmed"),
        "{text}"
    );
}

#[test]
fn no_size_of_screen_and_no_restart_make_it_panic() {
    let mut view = View::default();
    for (at, sent) in [(10, 500_000), (11, 900_000), (1, 100), (2, 200)] {
        view.take(Ok(status(at, sent)));
        for (width, height) in [(1, 1), (20, 3), (80, 24), (300, 100)] {
            screen(&view, width, height);
        }
    }
}

#[test]
fn flows_take_the_place_of_rates_and_what_matters_least_goes_where_there_is_no_room() {
    let mut view = View::default();
    view.take(Ok(status(10, 0)));
    let flow = FlowStatus {
        protocol: "udp".to_owned(),
        here: "10.0.0.1:5004".to_owned(),
        there: "10.0.0.2:6000".to_owned(),
        service: Some("voice".to_owned()),
        behaviour: airlane_link::classify::Behaviour::Call,
        why: "Small packets, 200 B in the mean, come at even gaps of 20 ms.".to_owned(),
        rule: None,
        sent_packets: 50,
        sent_bytes: 10_000,
        received_packets: 0,
        received_bytes: 0,
        age_s: 1.5,
        silent_s: 0.1,
    };
    view.flows = Some(vec![PeerFlows {
        peer: "farm".to_owned(),
        flows: vec![flow],
        others: 0,
        classes: None,
    }]);
    let wide = screen(&view, 160, 24);
    for part in ["10.0.0.1:5004", "voice", "call", "gaps of 20 ms", "10.0 kB"] {
        assert!(wide.contains(part), "{part}:\n{wide}");
    }
    let narrow = screen(&view, 60, 24);
    assert!(
        narrow.contains("10.0.0.1:5004") && narrow.contains("voice"),
        "{narrow}"
    );
    assert!(!narrow.contains("protocol"), "{narrow}");
}
