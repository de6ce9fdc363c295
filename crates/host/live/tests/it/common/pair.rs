//! Two nodes with keys on one cable.

use std::time::Duration;

use airlane_live::security::new_key;
use airlane_live::status::Status;

use super::traffic::{address, transfer};
use super::{FILES, Namespace, Running, cable, can_run};

/// Two namespaces on a cable, and keys for a node in each.
pub struct Pair {
    pub ends: [Namespace; 2],
    pub directory: tempfile::TempDir,
    /// The public keys.
    pub keys: [String; 2],
}

/// An address of the second end in the tunnel.
pub const SERVER: &str = "10.7.0.2:8080";

impl Pair {
    pub fn new(test: &str) -> Option<Self> {
        if !can_run(test) {
            return None;
        }
        let ends = [Namespace::new("left"), Namespace::new("right")];
        join(&ends);
        let directory = tempfile::tempdir().unwrap();
        let keys = [0, 1].map(|end| {
            let file = directory.path().join(format!("{end}.key"));
            new_key(&file).unwrap().to_string()
        });
        Some(Self {
            ends,
            directory,
            keys,
        })
    }

    pub fn file(&self, end: usize, peer_key: &str) -> String {
        let (mine, theirs) = (end + 1, 2 - end);
        let directory = self.directory.path().display();
        format!(
            r#"
schema = 1
name = "end-{end}"
[tun]
addresses = ["10.7.0.{mine}/24"]
[control]
socket = "{directory}/end-{end}.sock"
[link]
rate = "200 Mbit/s"
underlay = {{ kind = "udp", listen = "0.0.0.0:7007", peer = "192.0.2.{theirs}:7007" }}
security = {{ private-key = "{directory}/{end}.key", peer-key = "{peer_key}" }}
{FILES}"#
        )
    }

    pub fn start(&self, end: usize) -> Running {
        Running::start(&self.ends[end], &self.file(end, &self.keys[1 - end])).unwrap()
    }

    pub fn transfer(&self) -> Duration {
        transfer(&self.ends[0], &self.ends[1], address(SERVER), 2_000_000)
    }
}

/// Connects both ends and sets their addresses.
pub fn join(ends: &[Namespace; 2]) {
    cable(&ends[0], "wire", &ends[1], "wire");
    for (end, last) in ends.iter().zip(1..) {
        end.ip(&format!("addr add 192.0.2.{last}/24 dev wire"));
    }
}

/// Waits until the node has a session.
pub fn established(node: &Running) -> Status {
    node.wait_until("established", |status| {
        status.peers[0].session.state == "confirmed"
    })
}
