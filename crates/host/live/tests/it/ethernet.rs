//! Two nodes straight on Ethernet, without an IP address below the tunnel.
//!
//! ```text
//!  left: air0 ─ up ─ wire ═══ one [ air, or a bridge ] two ═══ wire ─ up ─ air0 :right
//!  10.7.0.1         02:..:01                                  02:..:02    10.7.0.2
//! ```

use std::time::{Duration, Instant};

use crate::common::air::Air;
use crate::common::pair::{SERVER, established};
use crate::common::traffic::{address, transfer};
use crate::common::{
    Namespace, PATIENCE, Running, cable, can_run, check_voice, files_and_voice, service,
};
use crate::doctor::checks;
use airlane_base::Streams;
use airlane_live::air::Refused;
use airlane_live::doctor::Grade;
use airlane_live::security::new_key;
use airlane_live::status::Status;
use airlane_live::underlay::{EtherType, Ethernet, Underlay};
use airlane_secure::{EthernetAddress, PeerAddress};
use socket2::{Domain, Protocol, Socket, Type};

/// The address of an end's interface `wire`.
fn wire(end: usize) -> EthernetAddress {
    EthernetAddress([2, 0, 0, 0, 0, end as u8 + 1])
}

/// Two ends, the namespace between them, and keys.
struct Site {
    ends: [Namespace; 2],
    middle: Namespace,
    directory: tempfile::TempDir,
    keys: [String; 2],
}

impl Site {
    fn new(test: &str) -> Option<Self> {
        if !can_run(test) {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let keys = [0, 1].map(|end| {
            let file = directory.path().join(format!("{end}.key"));
            new_key(&file).unwrap().to_string()
        });
        let site = Self {
            ends: [Namespace::new("left"), Namespace::new("right")],
            middle: Namespace::new("middle"),
            directory,
            keys,
        };
        for end in [0, 1] {
            site.plug_in(end, wire(end));
        }
        Some(site)
    }

    /// Connects an end, whose interface gets this address.
    fn plug_in(&self, end: usize, own: EthernetAddress) {
        let port = ["one", "two"][end];
        cable(&self.ends[end], "wire", &self.middle, port);
        self.ends[end].ip(&format!("link set wire address {own}"));
    }

    /// Bridges the connected ports.
    fn bridge(&self, ports: &[&str]) {
        if !self.middle.ip("-o link").contains("br0") {
            self.middle
                .ip("link add br0 type bridge stp_state 0 mcast_snooping 0");
            self.middle.ip("link set br0 up");
        }
        for port in ports {
            self.middle.ip(&format!("link set {port} master br0"));
        }
    }

    /// The file of an end with or without keys; with keys it has no address of the peer.
    fn file(&self, end: usize, keys: bool) -> String {
        let directory = self.directory.path().display();
        let (peer, security) = match keys {
            false => (
                format!(", peer = \"{}\"", wire(1 - end)),
                "\"none\"".to_owned(),
            ),
            true => (
                String::new(),
                format!(
                    "{{ private-key = \"{directory}/{end}.key\", peer-key = \"{}\" }}",
                    self.keys[1 - end]
                ),
            ),
        };
        format!(
            r#"
schema = 1
name = "end-{end}"
[tun]
addresses = ["10.7.0.{}/24"]
[control]
socket = "{directory}/end-{end}.sock"
[link]
rate = "19.5 Mbit/s"
delay = "10 ms"
underlay = {{ kind = "ethernet", interface = "wire"{peer} }}
security = {security}
{}"#,
            end + 1,
            files_and_voice(3, "{ protocol = \"icmp\" }")
        )
    }

    fn start(&self, keys: bool) -> [Running; 2] {
        [0, 1].map(|end| Running::start(&self.ends[end], &self.file(end, keys)).unwrap())
    }

    fn transfer(&self, bytes: usize) -> Duration {
        transfer(&self.ends[0], &self.ends[1], address(SERVER), bytes)
    }
}

/// Sends `count` echo requests to the kernel at 10.7.0.2, one after the other. Returns the number of answers
/// that came within `patience` each.
fn ping(from: &Namespace, count: u16, patience: Duration) -> usize {
    from.run(move || {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).unwrap();
        socket.connect(&address("10.7.0.2:0").into()).unwrap();
        socket.set_read_timeout(Some(patience)).unwrap();
        let echo = |number: u16| {
            let [a, b] = number.to_be_bytes();
            // Type 8, and a checksum that makes the sum of all words 0xffff.
            let sum = !(0x0800 + number);
            let [c, d] = sum.to_be_bytes();
            let begun = Instant::now();
            if socket.send(&[8, 0, c, d, 0, 0, a, b]).is_err() {
                return false;
            }
            let mut bytes = [std::mem::MaybeUninit::uninit(); 64];
            while let Ok(length) = socket.recv(&mut bytes) {
                // The IP header arrives too; the buffer's old contents are not read.
                let heard = length == 28 && begun.elapsed() < patience;
                if heard {
                    return true;
                }
            }
            false
        };
        (1..=count).filter(|number| echo(*number)).count()
    })
}

fn lossy(middle: &Namespace, loss: f64) -> Air {
    let text = format!(
        "schema = 1\ninterfaces = [\"one\", \"two\"]\nrate = \"20 Mbit/s\"\ndelay = \"10 ms\"\n\
         queue = \"125 kB\"\nerrors = {{ kind = \"uniform\", rate = {loss} }}\n"
    );
    Air::start(middle, &text)
}

#[test]
fn a_file_and_pings_cross_a_lossy_segment_with_keys_and_without() {
    let test = "a_file_and_pings_cross_a_lossy_segment_with_keys_and_without";
    let Some(site) = Site::new(test) else { return };
    for keys in [false, true] {
        let air = lossy(&site.middle, 0.05);
        let nodes = site.start(keys);
        let status = nodes.each_ref().map(established);
        // 1500 less the length field, our longest header, and the overhead of sealing.
        let (header, sealing) = if keys { (13, 24) } else { (19, 0) };
        assert_eq!(status[0].tun.mtu_bytes, 1500 - 2 - header - sealing);
        assert_eq!(status[0].underlay.frame_overhead_bytes, 14 + 2 + sealing);
        assert_eq!(status[0].underlay.listen, PeerAddress::Ethernet(wire(0)));
        for (end, status) in status.iter().enumerate() {
            let peer = Some(PeerAddress::Ethernet(wire(1 - end)));
            assert_eq!(status.peers[0].address, peer, "learned, or as in the file");
        }
        let answered = ping(&site.ends[0], 100, Duration::from_secs(1));
        site.transfer(5_000_000);
        // Taken while both run: frames that arrive after one has ended belong to no session.
        let statuses = nodes.each_ref().map(Running::status);
        drop(nodes);
        check_voice(&statuses, answered);
        for status in statuses {
            let files = service(&status.peers[0], "files");
            assert_eq!(files.ledger.residual_lost, 0, "every frame was repaired");
            // If both ends begin at once, one handshake is abandoned.
            let unexpected = |(reason, _): &(&String, &u64)| !reason.starts_with("secure-");
            assert_eq!(status.all_drops().iter().find(unexpected), None);
            let interface = status.underlay.interface.unwrap();
            assert_eq!(interface.losses, 0);
        }
        let report = air.stop();
        assert!(report.down.lost_air.frames > 100, "{report}");
        assert_eq!(report.down.refused, Refused::default());
    }
}

/// Waits until a ping is answered.
fn until_ping(from: &Namespace) {
    let deadline = Instant::now() + PATIENCE;
    while ping(from, 1, Duration::from_millis(50)) == 0 {
        assert!(Instant::now() < deadline, "no ping comes through");
    }
}

/// Checks that the link has survived this many losses of its interface.
fn check_losses(status: &Status, session: Option<u32>, losses: u64) {
    assert_eq!(status.peers[0].session.id, session, "the session goes on");
    assert_eq!(status.peers[0].session.sessions, 1);
    let interface = status.underlay.interface.as_ref().unwrap();
    assert_eq!((interface.up, interface.losses), (true, losses));
    let unexpected = |(reason, _): &(&String, &u64)| {
        *reason != "interface-away" && !reason.starts_with("secure-")
    };
    assert_eq!(status.all_drops().iter().find(unexpected), None);
}

#[test]
fn an_interface_returns_with_another_index_and_address() {
    let test = "an_interface_returns_with_another_index_and_address";
    let Some(site) = Site::new(test) else { return };
    site.bridge(&["one", "two"]);
    for keys in [false, true] {
        let nodes = site.start(keys);
        let session = nodes.each_ref().map(established)[0].peers[0].session.id;
        site.transfer(200_000);
        // The interface goes down and up.
        let [left, right] = &site.ends;
        left.ip("link set wire down");
        nodes[0].wait_until("down", |s| !s.underlay.interface.as_ref().unwrap().up);
        assert_eq!(ping(left, 10, Duration::from_millis(50)), 0);
        left.ip("link set wire up");
        until_ping(left);
        let status = nodes[0].status();
        check_losses(&status, session, 1);
        assert!(
            status.all_drops()["interface-away"] > 0,
            "{:?}",
            status.all_drops()
        );
        // The interface is removed and created again; with keys both at once, and with other addresses.
        let (ends, host) = if keys { (0..2, 0x10) } else { (0..1, 0) };
        for end in ends.clone() {
            site.ends[end].ip("link del wire");
        }
        nodes[0].wait_until("gone", |s| !s.underlay.interface.as_ref().unwrap().up);
        std::thread::sleep(Duration::from_millis(600));
        let address = |end: usize| EthernetAddress([2, 0, 0, 0, host, end as u8 + 1]);
        for end in ends {
            site.plug_in(end, address(end));
        }
        let ports: &[&str] = if keys { &["one", "two"] } else { &["one"] };
        site.bridge(ports);
        until_ping(left);
        for (end, node) in nodes.iter().enumerate() {
            // An interface gets its address after its creation, so its new index may be noticed first.
            let [own, peer] = [end, 1 - end].map(|end| PeerAddress::Ethernet(address(end)));
            let status = node.wait_until("at its new address", |status| {
                status.underlay.listen == own && status.peers[0].address == Some(peer)
            });
            check_losses(&status, session, if end == 0 { 2 } else { u64::from(keys) });
        }
        transfer(right, left, "10.7.0.1:8080".parse().unwrap(), 200_000);
    }
}

#[test]
fn strangers_on_the_segment_change_nothing_and_are_counted() {
    let test = "strangers_on_the_segment_change_nothing_and_are_counted";
    let Some(site) = Site::new(test) else { return };
    let stranger = Namespace::new("stranger");
    cable(&stranger, "wire", &site.middle, "three");
    site.bridge(&["one", "two", "three"]);
    for keys in [false, true] {
        let nodes = site.start(keys);
        let before = nodes.each_ref().map(established);
        site.transfer(200_000);
        let total = 600;
        stranger.run(|| {
            let own = Ethernet::open("wire", EtherType::default()).unwrap();
            let own = Underlay::Ethernet(own);
            let other = Ethernet::open("wire", EtherType(0x88b6)).unwrap();
            let other = Underlay::Ethernet(other);
            let mut rng = Streams::new(1, 0).stream("stranger");
            for i in 0..total {
                let length = [0, 7, 32, 64, 93, 145, 1400][i % 7];
                let mut bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
                if let Some(start) = bytes.get_mut(..4) {
                    start.copy_from_slice(&[1 + (i / 7 % 4) as u8, 0, 0, 0]);
                }
                let to = [wire(1), EthernetAddress::BROADCAST][i % 2];
                own.send_to(to.into(), None, &bytes).unwrap();
                // The kernel filters these out: another EtherType, and another machine's address.
                other.send_to(to.into(), None, &bytes).unwrap();
                own.send_to(EthernetAddress([2; 6]).into(), None, &bytes)
                    .unwrap();
                if i % 50 == 0 {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        });
        site.transfer(200_000);
        let dropped = |status: &Status| status.all_drops().values().sum::<u64>();
        for (end, heard) in [(0, total / 2), (1, total)] {
            let count = |status: &Status| {
                let missed = status.underlay.interface.as_ref().unwrap().missed_frames;
                dropped(status) + missed
            };
            let all = count(&before[end]) + heard as u64;
            let after = nodes[end].wait_until("counting", |status| count(status) >= all);
            assert_eq!(after.peers[0].session.id, before[end].peers[0].session.id);
            assert_eq!(after.peers[0].address, before[end].peers[0].address);
            assert_eq!(count(&after), all, "{:?}", after.all_drops());
            let reasons: &[_] = match keys {
                true => &["secure-length", "secure-mac", "secure-unknown-session"],
                false => &["other-address"],
            };
            for reason in reasons {
                assert!(
                    after.all_drops().contains_key(*reason),
                    "{:?}",
                    after.all_drops()
                );
            }
        }
    }
}

#[test]
fn a_smaller_interface_mtu_only_shortens_frames() {
    let test = "a_smaller_interface_mtu_only_shortens_frames";
    let Some(site) = Site::new(test) else { return };
    site.bridge(&["one", "two"]);
    let nodes = site.start(true);
    for node in &nodes {
        established(node);
    }
    let transferring = {
        let [left, right] = site.ends.clone();
        std::thread::spawn(move || transfer(&left, &right, address(SERVER), 4_000_000))
    };
    std::thread::sleep(Duration::from_millis(500));
    for end in &site.ends {
        end.ip("link set wire mtu 1400");
    }
    transferring.join().unwrap();
    let status = nodes[0].wait_until("narrower", |s| s.tun.mtu_bytes == 1400 - 2 - 13 - 24);
    assert!(status.peers[0].path_narrowed >= 1);
    assert!(
        !status.all_drops().contains_key("send-too-big"),
        "{:?}",
        status.all_drops()
    );
    drop(nodes);
    // Packets of the interface's own MTU, in frames that are longer.
    for end in &site.ends {
        end.ip("link set wire mtu 1500");
    }
    let nodes = [0, 1].map(|end| {
        let file = site.file(end, true);
        let file = file.replace("[tun]", "[tun]\nmtu = \"1500 B\"");
        Running::start(&site.ends[end], &file).unwrap()
    });
    for node in &nodes {
        assert_eq!(established(node).tun.mtu_bytes, 1500);
    }
    site.transfer(2_000_000);
    let status = nodes[0].status();
    assert!(
        !status.all_drops().contains_key("send-too-big"),
        "{:?}",
        status.all_drops()
    );
}

#[test]
fn a_reload_moves_the_peer_and_nothing_else() {
    let test = "a_reload_moves_the_peer_and_nothing_else";
    let Some(site) = Site::new(test) else { return };
    site.bridge(&["one", "two"]);
    let nodes = site.start(false);
    let session = nodes.each_ref().map(established)[0].peers[0].session.id;
    site.ends[1].ip("link set wire address 02:00:00:00:00:0b");
    let file = site.file(0, false);
    let moved = file.replace("02:00:00:00:00:02", "02:00:00:00:00:0b");
    let changes = nodes[0].reload(&moved).unwrap();
    assert_eq!(changes, ["peer \"peer\" is at 02:00:00:00:00:0b"]);
    site.transfer(200_000);
    assert_eq!(nodes[0].status().peers[0].session.id, session);
    for (old, new) in [
        ("\"wire\"", "\"lo\""),
        ("peer = ", "ether-type = 0x88B6, peer = "),
    ] {
        let error = nodes[0].reload(&moved.replace(old, new)).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("link.underlay cannot change"), "{error}");
    }
}

#[test]
fn interface_faults_are_reported() {
    let test = "interface_faults_are_reported";
    let Some(site) = Site::new(test) else { return };
    site.bridge(&["one", "two"]);
    let file = site.file(0, true);
    let left = &site.ends[0];
    let found = |what: &str, file: &str| {
        let checks = checks(left, file);
        let check = checks.iter().find(|check| check.what == what);
        let check = check.unwrap_or_else(|| panic!("{what}: {checks:#?}"));
        (check.verdict, check.found.clone())
    };
    let right = Running::start(&site.ends[1], &site.file(1, true)).unwrap();
    let good = checks(left, &file);
    assert!(good.iter().all(|c| c.verdict == Grade::Good), "{good:#?}");
    let said: Vec<_> = good.iter().map(|check| check.found.as_str()).collect();
    let said = said.join("\n");
    assert!(said.contains("peer (wherever it is) answered in"), "{said}");
    assert!(
        said.contains("EtherType 0x88b5; this end is 02:00:00:00:00:01"),
        "{said}"
    );
    right.stop();

    for (old, new, why) in [
        ("\"wire\"", "\"wlan7\"", "No such device"),
        ("\"wire\"", "\"lo\"", "not an Ethernet interface"),
        (
            "interface = \"wire\"",
            "interface = \"wire\", peer = \"02:00:00:00:00:01\"",
            "that of this interface itself",
        ),
    ] {
        let (verdict, said) = found("underlay", &file.replace(old, new));
        assert!(said.contains(why), "{said}");
        let missing = new == "\"wlan7\"";
        let expected = [Grade::Bad, Grade::Warning][usize::from(missing)];
        assert_eq!(verdict, expected, "{said}");
        if missing {
            // A missing interface is waited for.
            let waiting = Running::start(left, &file.replace(old, new)).unwrap();
            assert!(!waiting.status().underlay.interface.unwrap().up);
            continue;
        }
        let refused = Running::start(left, &file.replace(old, new));
        let refused = refused.err().unwrap().to_string();
        assert!(refused.contains(why), "{refused}");
    }
    left.ip("link set wire down");
    let (_, said) = found("underlay", &file);
    assert!(said.contains("`ip link set wire up`"), "{said}");
    left.ip("link set wire up");
    left.ip("link add br0 type bridge");
    left.ip("link set wire master br0");
    let (verdict, said) = found("underlay", &file);
    assert_eq!(verdict, Grade::Bad);
    assert!(said.contains("a port of a bridge"), "{said}");
}
