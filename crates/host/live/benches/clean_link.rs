//! TCP throughput and round trips through two nodes over a clean cable, compared with the cable alone.
//!
//! ```text
//!  left: air0 ─ up ─ wire ══════ veth ══════ wire ─ up ─ air0 :right
//! ```
//!
//! `cargo bench -p airlane-live --bench clean_link`; needs root.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]
#![allow(clippy::print_stdout, reason = "it prints figures")]

#[path = "../tests/it/common/mod.rs"]
mod common;

use std::path::Path;

use airlane_live::security::new_key;
use common::traffic::{address, echo, round_trip, transfer};
use common::{Namespace, Running, cable, can_run};

fn file(
    end: usize,
    rate: &str,
    scheme: &str,
    directory: &Path,
    keys: Option<&[String; 2]>,
    ethernet: bool,
) -> String {
    let (last, other) = (end + 1, 2 - end);
    let underlay = match ethernet {
        false => format!(
            "kind = \"udp\", listen = \"192.0.2.{last}:7007\", peer = \"192.0.2.{other}:7007\""
        ),
        true => {
            format!("kind = \"ethernet\", interface = \"wire\", peer = \"02:00:00:00:00:0{other}\"")
        }
    };
    let security = match keys {
        Some(keys) => {
            let (key, peer) = (directory.join(format!("{end}.key")), &keys[1 - end]);
            format!(
                "{{ private-key = \"{}\", peer-key = \"{peer}\" }}",
                key.display()
            )
        }
        None => "\"none\"".to_owned(),
    };
    format!(
        r#"
schema = 1
name = "end-{end}"
[tun]
addresses = ["10.7.0.{last}/24"]
[control]
socket = "{}/end-{end}.sock"
[link]
rate = "{rate}"
delay = "1 ms"
underlay = {{ {underlay} }}
security = {security}
[[link.services]]
number = 1
name = "service"
rate = 1
scheme = {{ kind = "{scheme}" }}
[[link.classes]]
match = {{ protocol = "tcp" }}
service = "service"
[[link.classes]]
match = {{ protocol = "udp" }}
service = "service"
"#,
        directory.display()
    )
}

fn measure(what: &str, left: &Namespace, right: &Namespace, subnet: &str, bytes: usize) {
    let to = |port: u16| address(&format!("{subnet}.2:{port}"));
    let echoing = echo(right, to(5004), 1001);
    let rtt = round_trip(left, address(&format!("{subnet}.1:0")), to(5004), 1001);
    echoing.join().unwrap();
    let cpu = cpu_seconds();
    let time = transfer(left, right, to(8080), bytes);
    let cpu = cpu_seconds() - cpu;
    println!(
        "{what:<44} {:>7.0} Mbit/s   {:>5.2} CPU s for {} MB   median round trip {:>4} us",
        bytes as f64 * 8.0 / 1e6 / time.as_secs_f64(),
        cpu,
        bytes / 1_000_000,
        rtt.as_micros()
    );
}

/// CPU time of this process: both nodes, sender and receiver.
fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() {
    if !can_run("clean_link") {
        return;
    }
    let (left, right) = (Namespace::new("left"), Namespace::new("right"));
    cable(&left, "wire", &right, "wire");
    for (end, last) in [(&left, 1), (&right, 2)] {
        end.ip(&format!("addr add 192.0.2.{last}/24 dev wire"));
        end.ip(&format!("link set wire address 02:00:00:00:00:0{last}"));
    }
    measure("cable alone", &left, &right, "192.0.2", 1_000_000_000);
    let directory = tempfile::tempdir().unwrap();
    let keys = [0, 1].map(|end| {
        let key = new_key(&directory.path().join(format!("{end}.key")));
        key.unwrap().to_string()
    });
    for (rate, bytes) in [("100 Mbit/s", 40_000_000), ("10 Gbit/s", 400_000_000)] {
        for (scheme, keys, ethernet) in [
            ("default", None, false),
            ("sr-m2", None, false),
            ("rlp-oos", None, false),
            ("default", Some(&keys), false),
            ("sr-m2", Some(&keys), false),
            ("sr-m2", None, true),
            ("sr-m2", Some(&keys), true),
        ] {
            let nodes = [(&left, 0), (&right, 1)].map(|(namespace, end)| {
                let file = file(end, rate, scheme, directory.path(), keys, ethernet);
                Running::start(namespace, &file).unwrap()
            });
            for node in &nodes {
                node.wait_until("established", |s| s.peers[0].session.state == "confirmed");
            }
            measure(
                &format!(
                    "{scheme}{}{} at {rate}",
                    keys.map_or("", |_| ", sealed"),
                    if ethernet { ", raw Ethernet" } else { "" }
                ),
                &left,
                &right,
                "10.7.0",
                bytes,
            );
            for node in nodes {
                let status = node.stop();
                let service = status.peers[0]
                    .services
                    .iter()
                    .find(|s| s.name == "service");
                let ledger = service.unwrap().ledger;
                println!(
                    "    sent {} frames, repaired {}, codel dropped {}, queue full {}, elsewhere {:?}",
                    ledger.frames_sent,
                    ledger.repair_frames_sent,
                    ledger.dropped_codel,
                    ledger.dropped_queue_full,
                    status.all_drops()
                );
            }
        }
    }
}
