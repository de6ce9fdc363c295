//! Tests of the screen, drawn into a buffer.

use super::*;
use crate::sample::status;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// The same with a second peer, which gets twice the rate over a service of another name.
fn two_peers(at_s: u64, sent_bytes: u64) -> Status {
    let mut both = status(at_s, sent_bytes);
    let mut mill = status(at_s, 2 * sent_bytes).peers.remove(0);
    (mill.name, mill.services[0].name) = ("mill".to_owned(), "pages".to_owned());
    both.peers.push(mill);
    both
}

#[test]
fn each_peer_has_a_line_and_the_chosen_one_its_services() {
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
    // The chosen peer is gone.
    view.take(Ok(status(14, 500_000)));
    assert!(screen(&view, 130, 40).contains("1 files"));
}

fn screen(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn an_update_shows_rates_costs_and_losses() {
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
        "files to the peer, highest 2",
    ] {
        assert!(screen.contains(part), "{part}:\n{screen}");
    }
    view.take(Err("no node answers".to_owned()));
    assert!(self::screen(&view, 130, 30).contains("no node answers"));
}

#[test]
fn sixty_columns_show_essential_columns_whole() {
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
        "files to, highest 2.00 M",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    // A column without room is left out, not cut off.
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

/// A status of this many peers with this many services each.
fn many(peers: usize, services: usize) -> Status {
    let mut many = status(10, 0);
    let one = many.peers.remove(0);
    many.peers = (0..peers)
        .map(|peer| {
            let mut peer = PeerStatus {
                name: format!("peer-{peer}"),
                ..one.clone()
            };
            peer.services = (0..services)
                .map(|n| ServiceReport {
                    number: n as u8,
                    name: format!("service-{n}"),
                    ..one.services[0].clone()
                })
                .collect();
            peer
        })
        .collect();
    many
}

/// On any screen with room for the heading, each service is shown or the foot says that some are
/// hidden, and all of them can be reached.
#[test]
fn hidden_services_are_announced_and_reachable() {
    for peers in [1, 2, 30] {
        for (width, height) in [(80, 24), (60, 20), (200, 60), (80, 18)] {
            for flows in [false, true] {
                let mut view = View {
                    flows: flows.then(Vec::new),
                    ..View::default()
                };
                view.take(Ok(many(peers, 7)));
                let first = screen(&view, width, height);
                assert!(first.contains("hill-top, up for"), "{first}");
                assert!(first.contains("ends"), "{first}");
                let words = first.split(['"', '\n', ' ']);
                let said: Vec<_> = words.filter(|word| !word.is_empty()).collect();
                let said = said.join(" ");
                let shows = |screen: &str, n: usize| screen.contains(&format!("{n} service-{n}"));
                let all = (0..7).all(|n| shows(&first, n));
                assert_eq!(!all, said.contains("7 services"), "{first}");
                if said.contains("no room for 7 services") {
                    assert!(flows, "{first}");
                    continue;
                }
                let mut reached = [false; 7];
                for _ in 0..7 {
                    let page = screen(&view, width, height);
                    for (n, reached) in reached.iter_mut().enumerate() {
                        *reached |= shows(&page, n);
                    }
                    view.turn_page();
                }
                assert_eq!(reached, [true; 7], "{width}x{height}, {peers}:\n{first}");
                let listed = (0..peers).all(|n| first.contains(&format!("peer-{n} ")));
                assert_eq!(peers > 1 && !listed, said.contains("more peers"), "{first}");
            }
        }
    }
}

#[test]
fn flows_replace_rates_and_the_least_important_columns_go_first() {
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
    // Seven services would fill the screen, but flows that are asked for get room, too.
    view.take(Ok(many(1, 7)));
    if let Some(flows) = &mut view.flows {
        flows[0].peer = "peer-0".to_owned();
        let more = vec![flows[0].flows[0].clone(); 30];
        flows[0].flows.extend(more);
    }
    let small = screen(&view, 80, 24);
    assert!(small.contains("10.0.0.1:5004"), "{small}");
    assert!(small.contains("more flows"), "{small}");
    let narrow = screen(&view, 60, 24);
    assert!(
        narrow.contains("10.0.0.1:5004") && narrow.contains("voice"),
        "{narrow}"
    );
    assert!(!narrow.contains("protocol"), "{narrow}");
}
