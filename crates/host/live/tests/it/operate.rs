//! What an operator does with a running link: scrapes its metrics, changes its services.
//!
//! ```text
//!  namespace left            namespace right
//!  air0 10.7.0.1             air0 10.7.0.2
//!    │ up                      │ up
//!  wire 192.0.2.1 ══ veth ══ wire 192.0.2.2
//! ```

use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::traffic::{Transfer, address, echo, round_trip, transfer};
use crate::common::{Namespace, Running, cable, can_run};
use airlane_link::config::RateLimit;
use airlane_live::control::{self, AddServices, ControlError, ServiceChange};
use airlane_live::status::ServiceReport;

struct Pair {
    ends: [Namespace; 2],
    directory: tempfile::TempDir,
}

const SERVER: &str = "10.7.0.2:8080";
const FILES: &str = r#"
[[link.services]]
number = 1
name = "files"
rate = 0.6
scheme = { kind = "sr-m2" }
[[link.classes]]
match = { protocol = "tcp", port = 8080 }
service = "files"
"#;

impl Pair {
    fn new(test: &str) -> Option<Self> {
        if !can_run(test) {
            return None;
        }
        let ends = [Namespace::new("left"), Namespace::new("right")];
        cable(&ends[0], "wire", &ends[1], "wire");
        for (end, last) in ends.iter().zip(1..) {
            end.ip(&format!("addr add 192.0.2.{last}/24 dev wire"));
            end.ip("link set lo up");
        }
        Some(Self {
            ends,
            directory: tempfile::tempdir().unwrap(),
        })
    }

    fn file(&self, end: usize, services: &str) -> String {
        let (mine, theirs) = (end + 1, 2 - end);
        let directory = self.directory.path().display();
        format!(
            r#"
schema = 1
name = "end-{end}"
metrics = "127.0.0.1:9107"
[tun]
addresses = ["10.7.0.{mine}/24"]
[control]
socket = "{directory}/end-{end}.sock"
[link]
rate = "200 Mbit/s"
underlay = {{ kind = "udp", listen = "192.0.2.{mine}:7007", peer = "192.0.2.{theirs}:7007" }}
security = "none"
{services}"#
        )
    }

    fn start(&self, services: &str) -> [Running; 2] {
        let nodes = [0, 1].map(|end| {
            let file = self.file(end, services);
            Running::start(&self.ends[end], &file).unwrap()
        });
        for node in &nodes {
            node.wait_until("established", |s| s.peers[0].session.state == "confirmed");
        }
        nodes
    }

    /// The text that a scraper at the left end reads.
    fn scrape(&self) -> String {
        self.ends[0].run(|| {
            let mut stream = TcpStream::connect("127.0.0.1:9107").unwrap();
            stream
                .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost:9107\r\n\r\n")
                .unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        })
    }
}

#[test]
fn a_scraper_reads_what_status_says() {
    let Some(pair) = Pair::new("a_scraper_reads_what_status_says") else {
        return;
    };
    let [left, right] = pair.start(FILES);
    transfer(&pair.ends[0], &pair.ends[1], address(SERVER), 1_000_000);
    let text = pair.scrape();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    let status = left.status();
    let files = crate::common::service(&status.peers[0], "files");
    assert!(files.ledger.sent_bytes > 1_000_000);
    let labels = "{link=\"end-0\",peer=\"peer\",service=\"files\",direction=\"out\"}";
    for line in [
        format!(
            "airlane_service_sent_bytes_total{labels} {}",
            files.ledger.sent_bytes
        ),
        format!(
            "airlane_service_sent_packets_total{labels} {}",
            files.ledger.packets_sent
        ),
        "airlane_session_state{link=\"end-0\",peer=\"peer\",state=\"confirmed\"} 1.0".to_owned(),
    ] {
        assert!(text.lines().any(|l| l == line), "{line}:\n{text}");
    }
    // A scraper that never reads its answer delays no other.
    let stuck = pair.ends[0].run(|| {
        let mut stream = TcpStream::connect("127.0.0.1:9107").unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
        stream
    });
    transfer(&pair.ends[0], &pair.ends[1], address(SERVER), 1_000_000);
    assert!(pair.scrape().ends_with("# EOF\n"));
    drop(stuck);
    left.stop();
    let gone = pair.ends[0].run(|| TcpStream::connect("127.0.0.1:9107").is_err());
    assert!(gone, "the port is free again");
    right.stop();
}

const GAMES: &str = r#"
[[services]]
number = 2
name = "games"
rate = 0.1
scheme = { kind = "rlp-oos" }
[[classes]]
match = { protocol = "udp", port = 5004 }
service = "games"
"#;

fn change(node: &Running, change: ServiceChange) -> Result<Vec<String>, ControlError> {
    control::change_services(&node.socket, &change)
}

fn add(node: &Running) -> Vec<String> {
    let games: AddServices = airlane_base::config::load(GAMES, "games.toml").unwrap();
    change(node, ServiceChange::Add(games)).unwrap()
}

fn remove(node: &Running, name: &str) -> Vec<String> {
    let name = name.to_owned();
    change(node, ServiceChange::Remove { name }).unwrap()
}

fn set(node: &Running, name: &str, rate: f64) -> Result<Vec<String>, ControlError> {
    let name = name.to_owned();
    change(node, ServiceChange::Set { name, rate })
}

fn service(node: &Running, name: &str) -> Option<ServiceReport> {
    let mut services = node.status().peers.remove(0).services.into_iter();
    services.find(|s| s.name == name)
}

fn open(node: &Running, name: &str) {
    node.wait_until("open", |status| {
        let mut services = status.peers[0].services.iter();
        services.any(|s| s.name == name && !s.waiting && !s.draining)
    });
}

#[test]
fn services_come_change_and_go_while_a_connection_stays() {
    let Some(pair) = Pair::new("services_come_change_and_go_while_a_connection_stays") else {
        return;
    };
    let nodes = pair.start(FILES);
    let session = nodes[0].status().peers[0].session.id;
    let talk = |times| {
        let (mine, theirs) = (address("10.7.0.1:0"), address("10.7.0.2:5004"));
        let echoing = echo(&pair.ends[1], theirs, times);
        // None may be lost.
        round_trip(&pair.ends[0], mine, theirs, times);
        echoing.join().unwrap();
    };
    let sent = |node: &Running, name: &str| service(node, name).unwrap().ledger.packets_sent;
    let carrying = Transfer::begin(&pair.ends[0], &pair.ends[1], address(SERVER));
    assert_eq!(add(&nodes[0])[0], "service 2 \"games\" is added");
    assert!(service(&nodes[0], "games").unwrap().waiting);
    talk(20);
    assert_eq!(sent(&nodes[0], "games"), 0, "the peer has none");
    add(&nodes[1]);
    nodes.iter().for_each(|node| open(node, "games"));
    talk(20);
    for node in &nodes {
        assert_eq!(sent(node, "games"), 20);
    }
    assert_eq!(
        set(&nodes[0], "games", 0.3).unwrap(),
        ["service \"games\" has rate 0.3, was 0.1"]
    );
    assert_eq!(service(&nodes[0], "games").unwrap().rate, 0.3);
    talk(20);
    remove(&nodes[1], "games");
    nodes[0].wait_until("draining", |status| {
        status.peers[0]
            .services
            .iter()
            .any(|s| s.name == "games" && s.draining)
    });
    talk(20);
    assert_eq!(sent(&nodes[0], "games"), 40, "by the raw service");
    assert_eq!(
        remove(&nodes[0], "games")[0],
        "service 2 \"games\" is removed"
    );
    carrying.end();
    for node in &nodes {
        let status = node.status();
        assert_eq!(
            (status.peers[0].session.id, status.peers[0].session.sessions),
            (session, 1)
        );
        let files = crate::common::service(&status.peers[0], "files");
        assert_eq!(files.ledger.epoch_lost, 0);
        assert!(status.all_drops().is_empty(), "{:?}", status.all_drops());
    }
}

#[test]
fn a_reload_applies_services_and_a_wrong_file_changes_nothing() {
    let Some(pair) = Pair::new("a_reload_applies_services_and_a_wrong_file_changes_nothing") else {
        return;
    };
    let nodes = pair.start(FILES);
    for (refused, why) in [
        (
            set(&nodes[0], "film", 1.0),
            "the services are default, files",
        ),
        (set(&nodes[0], "files", -1.0), "a rate is a share above 0"),
        (
            change(
                &nodes[0],
                ServiceChange::Remove {
                    name: "default".to_owned(),
                },
            ),
            "service 0",
        ),
        (
            nodes[0].reload(&pair.file(0, &FILES.replace("number = 1", "number = 0"))),
            "service 0",
        ),
    ] {
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
    assert_eq!(service(&nodes[0], "files").unwrap().rate, 0.6);
    // The file adds a service and changes the share of the first one.
    let games = GAMES.replace("[[", "[[link.");
    let more = FILES.replace("rate = 0.6", "rate = 0.5") + &games;
    let changes = nodes[0].reload(&pair.file(0, &more)).unwrap();
    let expected = [
        "service \"files\" has rate 0.5, was 0.6",
        "service 2 \"games\" is added",
        "class { match = { protocol = \"udp\", port = \"5004\" }, service = \"games\" } is added",
    ];
    assert_eq!(changes, expected);
    assert!(nodes[0].reload(&pair.file(0, &more)).unwrap().is_empty());
    nodes[1].reload(&pair.file(1, &more)).unwrap();
    nodes.iter().for_each(|node| open(node, "games"));
    // After a restart in between, of one end or of both, the service is found again.
    let [left, right] = nodes;
    right.stop();
    let right = Running::start(&pair.ends[1], &pair.file(1, FILES)).unwrap();
    left.wait_until("waiting", |status| {
        status.peers[0].session.sessions == 2 && status.peers[0].services.iter().any(|s| s.waiting)
    });
    transfer(&pair.ends[0], &pair.ends[1], address(SERVER), 100_000);
    right.reload(&pair.file(1, &more)).unwrap();
    [&left, &right]
        .into_iter()
        .for_each(|node| open(node, "games"));
}

/// Without classes each flow gets the service that suits it. A list of rules alone ends that.
#[test]
fn a_reload_that_ends_repair_warns() {
    let Some(pair) = Pair::new("a_reload_that_ends_repair_warns") else {
        return;
    };
    let node = Running::start(&pair.ends[0], &pair.file(0, "")).unwrap();
    let changes = |end: &str| {
        let rule = r#"{ match = { port = 5600 }, service = "video" }"#;
        let file = pair.file(0, &format!("classes = [{rule}{end}]\n"));
        let all = node.dry_run(&file).unwrap();
        let warns = all.iter().filter(|change| change.starts_with("WARNING"));
        (warns.cloned().collect::<Vec<_>>(), all)
    };
    let (warnings, all) = changes("");
    assert_eq!(warnings.len(), 2, "{all:?}");
    for (warning, protocol) in warnings.iter().zip(["TCP", "UDP"]) {
        assert!(warning.contains(protocol), "{warning}");
    }
    let (warnings, all) = changes(r#", "behaviour""#);
    assert!(warnings.is_empty() && !all.is_empty(), "{all:?}");
}

/// Bytes per second through the left end's interface while more is offered.
fn carried(pair: &Pair, left: &Running) -> f64 {
    let sent = || left.status().peers[0].sent_bytes as f64;
    let (stop, address) = (AtomicBool::new(false), address("10.7.0.2:9"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pair.ends[0].run(|| {
                let socket = UdpSocket::bind("10.7.0.1:0").unwrap();
                while !stop.load(Ordering::Relaxed) {
                    // There is no receiver; a full queue drops the excess.
                    let _refused = socket.send_to(&[7; 1000], address);
                    std::thread::sleep(Duration::from_micros(100));
                }
            });
        });
        std::thread::sleep(Duration::from_millis(300));
        let (before, begun) = (sent(), Instant::now());
        std::thread::sleep(Duration::from_secs(1));
        let rate = (sent() - before) / begun.elapsed().as_secs_f64();
        stop.store(true, Ordering::Relaxed);
        rate
    })
}

#[test]
fn the_rate_changes_by_reload_and_command_within_the_session() {
    let Some(pair) = Pair::new("the_rate_changes_by_reload_and_command_within_the_session") else {
        return;
    };
    let nodes = pair.start(FILES);
    let session = nodes[0].status().peers[0].session.id;
    let slow = pair.file(0, FILES).replace("200 Mbit/s", "800 kbit/s");
    assert_eq!(
        nodes[0].reload(&slow).unwrap(),
        ["the link has rate 800 kbit/s, was 200 Mbit/s"]
    );
    // The shaper sets an upper limit; a busy machine carries less.
    let bytes = carried(&pair, &nodes[0]);
    assert!(bytes < 150_000.0, "{bytes} B/s at 800 kbit/s");
    assert!(bytes > 10_000.0, "{bytes} B/s: it does not go on");
    let rate = "2 Mbit/s".parse().unwrap();
    assert_eq!(
        control::change_rate(&nodes[0].socket, rate).unwrap(),
        ["the link has rate 2 Mbit/s, was 800 kbit/s"]
    );
    // The rate cannot be measured, because the file states one.
    let refused = control::change_rate(&nodes[0].socket, RateLimit::UNSTATED).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("does not leave its rate to be found"),
        "{refused}"
    );
    // The file would restore the old rate; a dry run changes nothing.
    assert_eq!(
        nodes[0].dry_run(&slow).unwrap(),
        ["the link has rate 800 kbit/s, was 2 Mbit/s (undoes what a command had changed)"]
    );
    let status = nodes[0].status();
    assert_eq!(status.underlay.rate_bps, Some(2_000_000));
    assert_eq!(status.peers[0].sending_rate_bps, 2_000_000);
    let faster = carried(&pair, &nodes[0]);
    assert!(faster < 350_000.0, "{faster} B/s at 2 Mbit/s");
    // Everything that is transferred during the change arrives, once and in order.
    control::change_rate(&nodes[0].socket, "50 Mbit/s".parse().unwrap()).unwrap();
    std::thread::scope(|scope| {
        let carrying = scope.spawn(|| {
            transfer(&pair.ends[0], &pair.ends[1], address(SERVER), 3_000_000);
        });
        for mbps in [2, 90, 5, 40] {
            let rate = format!("{mbps} Mbit/s").parse().unwrap();
            control::change_rate(&nodes[0].socket, rate).unwrap();
            std::thread::sleep(Duration::from_millis(150));
        }
        carrying.join().unwrap();
    });
    let peer = &nodes[0].status().peers[0];
    assert_eq!((peer.session.id, peer.session.sessions), (session, 1));
    assert_eq!(crate::common::service(peer, "files").ledger.epoch_lost, 0);
}
