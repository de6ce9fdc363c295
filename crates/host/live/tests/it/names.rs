//! Peers with host names whose addresses change while the link runs.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

use airlane_live::config::HostPort;
use airlane_live::resolver::Resolve;
use airlane_live::security::new_key;

use crate::common::traffic::{address, transfer};
use crate::common::{FILES, Namespace, Running, cable, can_run};

/// A resolver with the names of a test, which counts the lookups.
#[derive(Clone, Default)]
struct Book {
    names: Arc<Mutex<BTreeMap<String, Vec<SocketAddr>>>>,
    asked: Arc<Mutex<u64>>,
}

impl Book {
    fn write(&self, host: &str, addresses: &[&str]) {
        let addresses = addresses.iter().map(|text| text.parse().unwrap());
        let mut names = self.names.lock().unwrap();
        names.insert(host.to_owned(), addresses.collect());
    }

    fn asked(&self) -> u64 {
        *self.asked.lock().unwrap()
    }
}

impl Resolve for Book {
    fn resolve(&self, host: &HostPort) -> io::Result<Vec<SocketAddr>> {
        *self.asked.lock().unwrap() += 1;
        let found = self.names.lock().unwrap().get(&host.to_string()).cloned();
        found.ok_or_else(|| io::Error::other("no such host"))
    }
}

/// Two ends with keys. The left one knows the right one by name, and the right one knows no address.
struct Ends {
    left: Namespace,
    right: Namespace,
    directory: tempfile::TempDir,
}

impl Ends {
    fn new() -> Self {
        let (left, right) = (Namespace::new("left"), Namespace::new("right"));
        cable(&left, "wire", &right, "wire");
        for (end, last) in [(&left, 1), (&right, 2)] {
            end.ip(&format!("addr add 192.0.2.{last}/24 dev wire"));
            end.ip(&format!("addr add 2001:db8::{last}/64 dev wire nodad"));
        }
        let directory = tempfile::tempdir().unwrap();
        Self {
            left,
            right,
            directory,
        }
    }

    fn files(&self, listen: &str, peer: &str) -> [String; 2] {
        let at = |end: usize| self.directory.path().join(format!("{end}.key"));
        let keys = [0, 1].map(|end| new_key(&at(end)).unwrap());
        let file = |end: usize, underlay: &str| {
            let socket = self.directory.path().join(format!("{end}.sock"));
            format!(
                r#"
schema = 1
name = "end-{end}"
[tun]
addresses = ["10.7.0.{}/24"]
[control]
socket = "{}"
[link]
rate = "50 Mbit/s"
delay = "1 ms"
underlay = {{ kind = "udp", {underlay} }}
security = {{ private-key = "{}", peer-key = "{}" }}
{FILES}"#,
                end + 1,
                Path::display(&socket),
                at(end).display(),
                keys[1 - end],
            )
        };
        [
            file(0, &format!("listen = \"{listen}\", peer = \"{peer}\"")),
            file(1, "listen = \"[::]:7007\""),
        ]
    }
}

fn established(node: &Running) {
    node.wait_until("established", |s| s.peers[0].session.state == "confirmed");
}

#[test]
fn a_peer_is_found_by_its_name_and_found_again_when_it_has_moved() {
    if !can_run("a_peer_is_found_by_its_name_and_found_again_when_it_has_moved") {
        return;
    }
    let ends = Ends::new();
    let files = ends.files("[::]:7007", "gate.example.org:7007");
    let book = Book::default();
    let theirs = book.clone();
    let left = Running::start_with(&ends.left, &files[0], move |node| {
        node.resolve_by(Arc::new(theirs)).unwrap();
    })
    .unwrap();
    let right = Running::start(&ends.right, &files[1]).unwrap();
    // The name does not exist yet; the status says so and the lookup is repeated.
    let status = left.wait_until("unresolved", |s| s.peers[0].unresolved.is_some());
    assert_eq!(status.peers[0].unresolved.as_deref(), Some("no such host"));
    assert_eq!(
        status.peers[0].host.as_deref(),
        Some("gate.example.org:7007")
    );
    // The first of its addresses is unreachable.
    book.write(
        "gate.example.org:7007",
        &["[2001:db8::99]:7007", "192.0.2.2:7007"],
    );
    established(&left);
    established(&right);
    let status = left.status();
    assert_eq!(status.peers[0].address, "192.0.2.2:7007".parse().ok());
    assert_eq!(status.peers[0].unresolved, None);
    transfer(&ends.left, &ends.right, address("10.7.0.2:8080"), 500_000);

    // The peer moves to the other IP version. It cannot call, because it knows no address.
    drop(right);
    ends.right.ip("addr del 192.0.2.2/24 dev wire");
    book.write("gate.example.org:7007", &["[2001:db8::2]:7007"]);
    let right = Running::start(&ends.right, &files[1]).unwrap();
    left.wait_until("found again", |s| {
        s.peers[0].address == "[2001:db8::2]:7007".parse().ok()
            && s.peers[0].session.state == "confirmed"
    });
    established(&right);
    // The name is not looked up while the peer is heard.
    let asked = book.asked();
    transfer(&ends.left, &ends.right, address("10.7.0.2:8081"), 500_000);
    std::thread::sleep(std::time::Duration::from_secs(4));
    assert_eq!(book.asked(), asked);
}

#[test]
fn localhost_is_resolved_and_an_address_of_another_family_is_not_used() {
    if !can_run("localhost_is_resolved_and_an_address_of_another_family_is_not_used") {
        return;
    }
    let ends = Ends::new();
    ends.left.ip("link set lo up");
    let files = ends.files("0.0.0.0:7007", "localhost:7009");
    let left = Running::start(&ends.left, &files[0]).unwrap();
    // Both ends in one namespace, where `localhost` resolves.
    let file = files[1].replace("[::]:7007", "127.0.0.1:7009");
    let right =
        Running::start(&ends.left, &file.replace("[tun]", "[tun]\nname = \"air1\"")).unwrap();
    established(&left);
    established(&right);
    assert_eq!(
        left.status().peers[0].address,
        "127.0.0.1:7009".parse().ok()
    );
    drop((left, right));

    let book = Book::default();
    book.write("gate.example.org:7007", &["[2001:db8::2]:7007"]);
    let file = files[0].replace("localhost:7009", "gate.example.org:7007");
    let left = Running::start_with(&ends.left, &file, move |node| {
        node.resolve_by(Arc::new(book)).unwrap();
    })
    .unwrap();
    let status = left.wait_until("unresolved", |s| s.peers[0].unresolved.is_some());
    let why = status.peers[0].unresolved.as_deref().unwrap();
    assert!(why.contains("[::]:PORT"), "{why}");
}
