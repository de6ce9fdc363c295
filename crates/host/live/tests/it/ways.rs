//! Addresses and routes of a node, and the routes of its own datagrams.
//!
//! ```text
//!  left: air0 10.7.0.1 ══ tunnel ══ right: air0 10.7.0.2, 203.0.113.1
//!    │ 192.0.2.1, default via .2      │ 192.0.2.2, 192.0.2.9
//!    └──────────── wire ──────────────┘
//! ```

use std::time::{Duration, Instant};

use airlane_live::doctor::{Check, Grade};
use airlane_live::import::from_wireguard;
use airlane_live::security::{new_preshared, save_key, save_preshared};
use airlane_live::status::Status;

use crate::common::pair::Pair;
use crate::common::traffic::{address, echo, round_trip};
use crate::common::{Namespace, PATIENCE, Running, cable, can_run};
use crate::doctor::checks;

const OUTSIDE: &str = "203.0.113.1:5004";

fn confirmed(status: &Status) -> bool {
    status.peers[0].session.state == "confirmed"
}

/// A pair whose left end has `more` under `[tun]`, and a default route outside the tunnel.
fn pair(test: &str, more: &str) -> Option<(Pair, [String; 2])> {
    let pair = Pair::new(test)?;
    let [left, right] = &pair.ends;
    for end in [left, right] {
        end.ip("link set lo up");
    }
    left.ip("route add default via 192.0.2.2");
    right.ip("addr add 203.0.113.1/32 dev lo");
    let mut files = [0, 1].map(|end| pair.file(end, &pair.keys[1 - end]));
    files[0] = files[0].replace("[tun]\n", &format!("[tun]\n{more}\n"));
    Some((pair, files))
}

fn verdict(checks: &[Check], what: &str) -> Grade {
    let all = checks.iter().filter(|check| check.what == what);
    let worst = all.max_by_key(|check| check.verdict as u8);
    worst
        .unwrap_or_else(|| panic!("{what}: {checks:#?}"))
        .verdict
}

/// Sends datagrams to an address outside, from the address that the kernel chooses.
fn ask_outside(pair: &Pair) {
    let [left, right] = &pair.ends;
    let echoing = echo(right, address(OUTSIDE), 5);
    round_trip(left, address("0.0.0.0:0"), address(OUTSIDE), 5);
    echoing.join().unwrap();
}

#[test]
fn a_default_route_carries_everything_but_the_underlay() {
    let test = "a_default_route_carries_everything_but_the_underlay";
    let wide = "routes = [\"0.0.0.0/0\", \"::/0\"]";
    let Some((pair, mut files)) = pair(test, wide) else {
        return;
    };
    files[0] = files[0].replace("\"10.7.0.1/24\"", "\"10.7.0.1/24\", \"fd07::1/64\"");
    let [left, right] = &pair.ends;
    let rules = || (left.ip("rule"), left.ip("-6 rule"));
    let before = rules();
    let there = Running::start(right, &files[1]).unwrap();
    let said = checks(left, &files[0]);
    assert!(
        said.iter().all(|check| check.verdict != Grade::Bad),
        "{said:#?}"
    );
    let here = Running::start(left, &files[0]).unwrap();
    here.wait_until("in it", confirmed);
    let main = left.ip("route show default");
    assert!(main.contains("via 192.0.2.2"), "it stands beside: {main}");
    let written = || there.status().tun.packets_written;
    let through = |what: &str| {
        let before = written();
        ask_outside(&pair);
        assert!(written() >= before + 5, "{what}");
    };
    through("through the tunnel");

    // Routes and addresses that are removed come back soon.
    let ways = || {
        let routes = |family: &str| left.ip(&format!("{family} route show table all dev air0"));
        let (v4, v6) = rules();
        [
            (routes("-4"), "default"),
            (routes("-6"), "default"),
            (left.ip("addr show dev air0"), "10.7.0.1/24"),
            (left.ip("route show dev air0"), "10.7.0.0/24"),
            (left.ip("-6 route show dev air0"), "fd07::/64"),
            (v4, "suppress"),
            (v6, "suppress"),
        ]
    };
    let complete = || ways().iter().all(|(said, part)| said.contains(part));
    for taken in [
        "link set air0 down",
        "addr del 10.7.0.1/24 dev air0",
        "route del 10.7.0.0/24 dev air0",
        "-6 route del fd07::/64 dev air0",
        "rule flush",
    ] {
        left.ip(taken);
        if taken.starts_with("link") {
            std::thread::sleep(Duration::from_millis(100));
            left.ip("link set air0 up");
        }
        if taken.starts_with("rule") {
            // The node does not restore the system's own rules.
            left.ip("rule add priority 32766 lookup main");
            left.ip("rule add priority 32767 lookup default");
        }
        let deadline = Instant::now() + PATIENCE;
        while !complete() {
            assert!(Instant::now() < deadline, "{taken}: {:?}", ways());
            std::thread::sleep(Duration::from_millis(20));
        }
        here.wait_until("in it again", confirmed);
        through(taken);
    }
    let told = checks(left, &files[0]);
    assert_eq!(verdict(&told, "route"), Grade::Good, "{told:#?}");
    let status = here.stop();
    assert_eq!(status.all_drops().get("own-datagram"), None);
    assert_eq!(rules(), before, "taken back");
}

/// Strict filters block peers that the default route leads to, and no others.
#[test]
fn a_strict_rp_filter_is_reported_where_it_would_drop_the_peer() {
    let test = "a_strict_rp_filter_is_reported_where_it_would_drop_the_peer";
    let Some((pair, files)) = pair(test, "routes = [\"0.0.0.0/0\"]") else {
        return;
    };
    let [left, right] = &pair.ends;
    left.sysctl("net/ipv4/conf/all/rp_filter", "1");
    // The peer's address is reached by the default route, or is on the wire itself.
    let far = files[0].replace("192.0.2.2:7007", "203.0.113.1:7007");
    // The peer must not call, because its calls would come from its address on the wire.
    let called = files[1].replace(", peer = \"192.0.2.1:7007\"", "");
    let _there = Running::start(right, &called).unwrap();
    let blocked = |file: &str| {
        let told = checks(left, file);
        let mut all = told.iter().filter(|check| check.what == "route");
        all.any(|check| check.verdict == Grade::Bad && check.found.contains("rp_filter of wire"))
    };
    assert!(!blocked(&files[0]) && blocked(&far));
    let here = Running::start(left, &far).unwrap();
    assert!(blocked(&far), "while it runs");
    left.sysctl("net/ipv4/conf/all/rp_filter", "2");
    here.wait_until("in it", confirmed);
    assert!(!blocked(&far));
}

/// When the route to the peer is lost, the route into the tunnel matches; it must not carry the datagrams.
#[test]
fn what_the_node_sends_is_never_taken_from_its_own_interface() {
    let test = "what_the_node_sends_is_never_taken_from_its_own_interface";
    let Some((pair, files)) = pair(test, "") else {
        return;
    };
    let [left, right] = &pair.ends;
    let _there = Running::start(right, &files[1]).unwrap();
    let here = Running::start(left, &files[0]).unwrap();
    let mtu = here.wait_until("in it", confirmed).peers[0].path_mtu_bytes;
    left.ip("route add 192.0.2.2/32 dev air0");
    let drops = |status: &Status| status.all_drops().get("own-datagram").copied();
    let begun = here.wait_until("dropping", |status| drops(status).is_some());
    std::thread::sleep(Duration::from_secs(3));
    let later = here.status();
    let sent = later.underlay.datagrams_sent - begun.underlay.datagrams_sent;
    assert!(sent < 100, "none is sent again: {sent}");
    assert_eq!(later.peers[0].path_mtu_bytes, mtu);
    let told = checks(left, &files[0]);
    assert_eq!(verdict(&told, "route"), Grade::Bad, "{told:#?}");
    left.ip("route del 192.0.2.2/32 dev air0");
    here.wait_until("in it again", confirmed);
    let told = checks(left, &files[0]);
    assert_eq!(verdict(&told, "route"), Grade::Good, "{told:#?}");
}

/// A NAT between the ends knows only the address that was called.
#[test]
fn a_peer_is_answered_from_the_address_that_it_called() {
    let test = "a_peer_is_answered_from_the_address_that_it_called";
    if !can_run(test) {
        return;
    }
    let [left, right] = ["left", "right"].map(Namespace::new);
    cable(&left, "wire", &right, "wire");
    for (end, last) in [(&left, "1"), (&right, "2"), (&right, "9")] {
        end.ip(&format!("addr add 192.0.2.{last}/24 dev wire"));
        end.ip(&format!("addr add 2001:db8::{last}/64 dev wire nodad"));
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display();
    // Without keys a datagram from another address is refused. Once with a socket for both versions, once
    // with one for IPv4.
    for (everywhere, hosts, class) in [
        ("0.0.0.0", ["192.0.2.1", "192.0.2.9"], 0),
        ("[::]", ["[2001:db8::1]", "[2001:db8::9]"], 0),
        ("[::]", ["192.0.2.1", "192.0.2.9"], 0xb8),
    ] {
        let file = |end: usize| {
            let (mine, theirs) = (end + 1, hosts[1 - end]);
            let listen = everywhere;
            format!(
                "schema = 1\nname = \"end-{end}\"\n[tun]\naddresses = [\"10.7.0.{mine}/24\"]\n[control]\n\
                 socket = \"{path}/end-{end}.sock\"\n[link]\nrate = \"20 Mbit/s\"\nsecurity = \"none\"\n\
                 underlay = {{ kind = \"udp\", listen = \"{listen}:7007\", peer = \"{theirs}:7007\" }}\n"
            )
        };
        let there = Running::start(&right, &file(1)).unwrap();
        let here = Running::start(&left, &file(0)).unwrap();
        // Datagrams of the other end from before it was called had another source address.
        let before = here.wait_until("in it", confirmed).all_drops();
        let called = hosts[1].trim_matches(['[', ']']).parse().ok();
        assert_eq!(there.status().peers[0].answered_from, called);
        // Frames with a DSCP of their own are sent one by one.
        right.run(|| {
            let socket = std::net::UdpSocket::bind("10.7.0.2:0").unwrap();
            socket2::SockRef::from(&socket).set_tos_v4(class).unwrap();
            for _ in 0..20 {
                socket.send_to(b"marked", "10.7.0.1:5004").unwrap();
            }
        });
        let status = here.wait_until("there", |s| s.tun.packets_written >= 20);
        assert_eq!(status.all_drops(), before);
        // The called address is removed, and the other one is used.
        if class == 0 {
            let (address, dead) = (hosts[1].trim_matches(['[', ']']), Duration::from_millis(50));
            let long = if address.contains(':') { 64 } else { 24 };
            right.ip(&format!("addr del {address}/{long} dev wire"));
            std::thread::sleep(dead);
            let sent = there.status().peers[0].datagrams_sent;
            there.wait_until("going on", |s| s.peers[0].datagrams_sent > sent + 2);
            let again = if long == 64 { " nodad" } else { "" };
            right.ip(&format!("addr add {address}/{long} dev wire{again}"));
            here.wait_until("in it again", confirmed);
        }
    }
}

/// From now on the path loses datagrams from the end's port.
fn swallow(end: &Namespace) {
    for step in [
        "link add sink type veth peer name drain",
        "link set sink up",
        "link set drain up",
        "neigh add 192.0.2.2 lladdr 02:00:00:00:00:99 dev sink",
        "route add 192.0.2.2/32 dev sink table 77",
        "rule add priority 100 ipproto udp sport 7007 lookup 77",
    ] {
        end.ip(step);
    }
}

/// A NAT may have lost its mapping of a port, and drop datagrams to it as long as datagrams arrive.
#[test]
fn a_port_that_the_path_drops_is_replaced() {
    let Some(pair) = Pair::new("a_port_that_the_path_drops_is_replaced") else {
        return;
    };
    let [left, right] = &pair.ends;
    swallow(left);
    let files = [0, 1].map(|end| pair.file(end, &pair.keys[1 - end]));
    let there = files[1].replace(", peer = \"192.0.2.1:7007\"", "");
    let there = Running::start(right, &there).unwrap();
    let told = checks(left, &files[0]);
    let peer = told.iter().find(|check| check.what == "peer").unwrap();
    assert!(peer.found.contains("answers another port"), "{told:#?}");
    assert_eq!(peer.verdict, Grade::Warning);
    let here = Running::start(left, &files[0]).unwrap();
    let status = here.wait_until("in it", confirmed);
    assert_ne!(status.underlay.listen, "0.0.0.0:7007".parse().unwrap());
    there.wait_until("in it", confirmed);
    here.stop();
    let any = files[0].replace("0.0.0.0:7007", "0.0.0.0:0");
    let here = Running::start(left, &any).unwrap();
    here.wait_until("in it at once", confirmed);
}

/// Without this finding, an operator whose own filter blocks datagrams would search at the other end.
#[test]
fn a_local_packet_filter_is_distinguished_from_silence() {
    let Some(pair) = Pair::new("a_local_packet_filter_is_distinguished_from_silence") else {
        return;
    };
    let [left, _right] = &pair.ends;
    let file = pair.file(0, &pair.keys[1]);
    // The peer runs, and would answer another port.
    let _there = pair.start(1);
    // A routing rule gives the same error as a packet filter.
    for port in ["dport", "sport"] {
        let rule = format!("priority 100 ipproto udp {port} 7007 prohibit");
        left.ip(&format!("rule add {rule}"));
        let told = checks(left, &file);
        let peer = told.iter().find(|check| check.what == "peer").unwrap();
        assert!(peer.found.contains("lets nothing out"), "{port}: {told:#?}");
        assert_eq!(peer.verdict, Grade::Bad);
        left.ip(&format!("rule del {rule}"));
    }
}

/// A common WireGuard setup: a client that sends all traffic through its server, with a pre-shared key.
#[test]
fn an_imported_full_tunnel_reaches_its_server_and_beyond() {
    let test = "an_imported_full_tunnel_reaches_its_server_and_beyond";
    let Some((pair, _)) = pair(test, "") else {
        return;
    };
    let folder = pair.directory.path();
    let secret = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    new_preshared(&folder.join("both")).unwrap();
    let interface = |end: usize, more: &str| {
        format!(
            "[Interface]\nPrivateKey = {}\n{more}\n[Peer]\nPublicKey = {}\nPresharedKey = {}\n",
            secret(&format!("{end}.key")).trim(),
            pair.keys[1 - end],
            secret("both").trim()
        )
    };
    let texts = [
        interface(0, "Address = 10.7.0.2/32")
            + "AllowedIPs = 0.0.0.0/0, ::/0\nEndpoint = 192.0.2.2:7007\n",
        interface(1, "Address = 10.7.0.1/24\nListenPort = 7007") + "AllowedIPs = 10.7.0.2/32\n",
    ];
    let files = [0, 1].map(|end: usize| {
        let key = folder.join(format!("wg{end}.key"));
        let import = from_wireguard(&texts[end], &format!("wg{end}"), &key, None).unwrap();
        save_key(&key, &import.key).unwrap();
        for (file, secret) in &import.preshared {
            save_preshared(file, secret).unwrap();
        }
        let socket = folder.join(format!("wg{end}.sock"));
        let control = format!("control = {{ socket = \"{}\" }}\n", socket.display());
        import
            .text
            .replacen("\n[link]", &format!("{control}\n[link]"), 1)
    });
    let there = Running::start(&pair.ends[1], &files[1]).unwrap();
    let here = Running::start(&pair.ends[0], &files[0]).unwrap();
    here.wait_until("in it", confirmed);
    for server in ["10.7.0.1:5004", OUTSIDE] {
        let before = there.status().tun.packets_written;
        let echoing = echo(&pair.ends[1], address(server), 5);
        round_trip(&pair.ends[0], address("0.0.0.0:0"), address(server), 5);
        echoing.join().unwrap();
        assert!(there.status().tun.packets_written >= before + 5, "{server}");
    }
}
