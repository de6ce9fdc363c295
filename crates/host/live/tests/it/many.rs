//! A base station with 64 peers and 16 services: status, metrics and doctor show all of them.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use airlane_live::doctor::Grade;
use airlane_live::security::new_key;
use airlane_secure::PrivateKey;

use crate::common::{Namespace, Running, can_run};
use crate::doctor::checks;

const PEERS: usize = 64;
/// With service 0, the default for packets without a class, this is the maximum of 16.
const SERVICES: usize = 15;

/// A base whose peers are absent.
fn base(folder: &std::path::Path) -> String {
    let key = folder.join("base.key");
    new_key(&key).unwrap();
    let mut file = format!(
        "schema = 1\nname = \"base\"\nmetrics = \"127.0.0.1:9600\"\n[tun]\naddresses = [\"10.7.0.1/24\"]\n\
         [control]\nsocket = \"{}\"\n[link]\nrate = \"200 Mbit/s\"\n\
         underlay = {{ kind = \"udp\", listen = \"0.0.0.0:7007\" }}\nsecurity = {{ private-key = \"{}\" }}\n",
        folder.join("base.sock").display(),
        key.display()
    );
    for service in 1..=SERVICES {
        let port = 8_000 + service;
        writeln!(
            file,
            "[[link.services]]\nnumber = {service}\nname = \"service-{service}\"\nrate = 0.05\nscheme = {{ kind = \"sr-m2\" }}\n\
             [[link.classes]]\nmatch = {{ protocol = \"tcp\", port = {port} }}\nservice = \"service-{service}\""
        )
        .unwrap();
    }
    for peer in 1..=PEERS {
        let (public, last) = (PrivateKey::generate([peer as u8; 32]).public(), peer + 1);
        writeln!(
            file,
            "[[peers]]\nname = \"station-{peer}\"\nkey = \"{public}\"\nprefixes = [\"10.7.0.{last}/32\"]"
        )
        .unwrap();
    }
    file
}

fn scrape() -> String {
    let mut stream = TcpStream::connect("127.0.0.1:9600").unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn status_shows_all_peers_and_services_of_a_large_base() {
    if !can_run("status_shows_all_peers_and_services_of_a_large_base") {
        return;
    }
    let host = Namespace::new("base");
    host.ip("link set lo up");
    let folder = tempfile::tempdir().unwrap();
    let file = base(folder.path());
    let bad = |checks: &[airlane_live::doctor::Check]| {
        let bad = checks.iter().filter(|check| check.verdict == Grade::Bad);
        bad.map(|check| check.found.clone()).collect::<Vec<_>>()
    };
    assert_eq!(bad(&checks(&host, &file)), [""; 0], "before the start");
    let node = Running::start(&host, &file).unwrap();
    let status = node.status();
    assert_eq!(status.peers.len(), PEERS);
    let services = status.peers.iter().map(|peer| peer.services.len());
    assert!(
        services.clone().all(|services| services == SERVICES + 1),
        "{:?}",
        services.collect::<Vec<_>>()
    );
    let text = serde_json::to_string(&status).unwrap();
    assert!(
        text.len() > 250_000,
        "no more than once fitted: {} B",
        text.len()
    );
    let metrics = host.run(scrape);
    assert!(metrics.starts_with("HTTP/1.1 200"), "{}", &metrics[..200]);
    for peer in 1..=PEERS {
        for service in 1..=SERVICES {
            let labels = format!("peer=\"station-{peer}\",service=\"service-{service}\"");
            assert!(metrics.contains(&labels), "{labels}");
        }
    }
    assert!(metrics.ends_with("# EOF\n"), "whole");
    let said = bad(&checks(&host, &file));
    assert_eq!(said.len(), PEERS, "none of them has called: {said:#?}");
    for (peer, said) in (1..).zip(&said) {
        let name = format!("station-{peer} ");
        assert!(said.starts_with(&name), "{name}: {said}");
    }
}
