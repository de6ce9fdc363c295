//! What an operator does with a running link: watches it from a scraper, changes its services.
//!
//! ```text
//!  namespace left            namespace right
//!  air0 10.7.0.1             air0 10.7.0.2
//!    │ up                      │ up
//!  wire 192.0.2.1 ══ veth ══ wire 192.0.2.2
//! ```

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use common::traffic::{address, transfer};
use common::{Namespace, Running, cable, can_run};

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
            node.wait_until("established", |s| s.session.state == "confirmed");
        }
        nodes
    }

    /// What a scraper at the left end reads.
    fn scrape(&self) -> String {
        self.ends[0].run(|| {
            let mut stream = TcpStream::connect("127.0.0.1:9107").unwrap();
            stream
                .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
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
    let files = status.services.iter().find(|s| s.name == "files").unwrap();
    assert!(files.ledger.sent_bytes > 1_000_000);
    let labels = "{link=\"end-0\",service=\"files\",direction=\"out\"}";
    for line in [
        format!(
            "airlane_service_sent_bytes_total{labels} {}",
            files.ledger.sent_bytes
        ),
        format!(
            "airlane_service_sent_packets_total{labels} {}",
            files.ledger.packets_sent
        ),
        "airlane_session_state{link=\"end-0\",state=\"confirmed\"} 1.0".to_owned(),
    ] {
        assert!(text.lines().any(|l| l == line), "{line}:\n{text}");
    }
    // A scraper that never reads its answer is in nobody's way.
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
