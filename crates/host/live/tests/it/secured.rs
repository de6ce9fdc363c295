//! Two nodes with keys: datagrams from strangers change nothing, a restarted or moved peer is found again,
//! and a wrong key is refused.
//!
//! ```text
//!  namespace left                           namespace right
//!  air0 10.7.0.1                            air0 10.7.0.2
//!    │ up                                     │ up
//!  wire 192.0.2.1 (later .9) ═════ veth ═════ wire 192.0.2.2
//! ```

use std::net::UdpSocket;
use std::time::Duration;

use crate::common::Running;
use crate::common::pair::{Pair, SERVER, established};
use crate::common::traffic::{address, transfer};
use airlane_base::Streams;
use airlane_live::security::{new_key, new_preshared};
use airlane_live::status::{CallFault, Status};

#[test]
fn strangers_change_nothing() {
    let Some(pair) = Pair::new("strangers_change_nothing") else {
        return;
    };
    let nodes = [0, 1].map(|end| pair.start(end));
    let before = nodes.each_ref().map(established);
    // 1500 less IP and UDP, our longest header, and the overhead of sealing.
    assert_eq!(before[0].tun.mtu_bytes, 1500 - 28 - 13 - 24);
    assert_eq!(before[0].underlay.security, "noise-ik");
    pair.transfer();
    let total = 2_000;
    pair.ends[0].run(|| {
        let stranger = UdpSocket::bind("192.0.2.1:0").unwrap();
        let mut rng = Streams::new(1, 0).stream("stranger");
        for i in 0..total {
            let length = [1, 7, 32, 64, 93, 145, 1400][i % 7];
            let mut bytes: Vec<u8> = (0..length).map(|_| rng.next_u64() as u8).collect();
            // Every message type, with correct reserved bytes.
            if let Some(start) = bytes.get_mut(..4) {
                start.copy_from_slice(&[1 + (i / 7 % 4) as u8, 0, 0, 0]);
            }
            stranger.send_to(&bytes, "192.0.2.2:7007").unwrap();
            if i % 50 == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    });
    pair.transfer();
    let dropped = |status: &Status| status.all_drops().values().sum::<u64>();
    let all = dropped(&before[1]) + total as u64;
    let after = nodes[1].wait_until("counting", |status| dropped(status) >= all);
    assert_eq!(after.peers[0].session.id, before[1].peers[0].session.id);
    assert_eq!(after.peers[0].address, before[1].peers[0].address);
    // Both ends may have begun a handshake at once: an answer to the abandoned one belongs to no session.
    assert_eq!(dropped(&after), all, "{:?}", after.all_drops());
    for reason in ["secure-length", "secure-mac", "secure-unknown-session"] {
        assert!(
            after.all_drops().contains_key(reason),
            "{:?}",
            after.all_drops()
        );
    }
    let [left, right] = nodes;
    assert_eq!(left.stop().all_drops(), before[0].all_drops());
    right.stop();
}

#[test]
fn a_restarted_peer_is_secured_again() {
    let Some(pair) = Pair::new("a_restarted_peer_is_secured_again") else {
        return;
    };
    let [left, right] = [0, 1].map(|end| pair.start(end));
    let before = established(&left).peers[0].session.id;
    pair.transfer();
    right.stop();
    let right = pair.start(1);
    left.wait_until("in a new session", |status| {
        status.peers[0].session.id != before && status.peers[0].session.state == "confirmed"
    });
    established(&right);
    pair.transfer();
}

#[test]
fn a_peer_may_move() {
    let Some(pair) = Pair::new("a_peer_may_move") else {
        return;
    };
    let [left, right] = [0, 1].map(|end| pair.start(end));
    let before = established(&right).peers[0].session.id;
    pair.ends[0].ip("addr add 192.0.2.9/24 dev wire");
    pair.ends[0].ip("addr del 192.0.2.1/24 dev wire");
    pair.ends[0].ip("addr add 192.0.2.9/24 dev wire");
    let after = right.wait_until("following", |status| {
        status.peers[0].address == "192.0.2.9:7007".parse().ok()
    });
    assert_eq!(after.peers[0].session.id, before, "the session goes on");
    pair.transfer();
    assert_eq!(established(&left).peers[0].session.id, before);
}

#[test]
fn a_peer_may_call_from_anywhere() {
    let Some(pair) = Pair::new("a_peer_may_call_from_anywhere") else {
        return;
    };
    // The right end does not know the left end's address, and the left end's port does not show it.
    let file = pair.file(1, &pair.keys[0]);
    let right = Running::start(
        &pair.ends[1],
        &file.replace(", peer = \"192.0.2.1:7007\"", ""),
    )
    .unwrap();
    assert_eq!(right.status().peers[0].address, None);
    let file = pair.file(0, &pair.keys[1]);
    let left = Running::start(&pair.ends[0], &file.replace("0.0.0.0:7007", "0.0.0.0:7009"));
    let left = left.unwrap();
    established(&left);
    let status = established(&right);
    assert_eq!(status.peers[0].address, "192.0.2.1:7009".parse().ok());
    pair.transfer();
}

#[test]
fn an_unknown_key_is_refused() {
    let Some(pair) = Pair::new("an_unknown_key_is_refused") else {
        return;
    };
    let other = new_key(&pair.directory.path().join("other.key")).unwrap();
    let _left = pair.start(0);
    let right = Running::start(&pair.ends[1], &pair.file(1, &other.to_string())).unwrap();
    let status = right.wait_until("refusing", |s| {
        s.all_drops().contains_key("secure-unknown-key")
    });
    assert_eq!(status.peers[0].session.state, "waiting");
    assert_eq!(status.tun.packets_written, 0);
}

/// Ends with different pre-shared keys have no session, and at least one says why; with the same key they have one.
#[test]
fn different_pre_shared_keys_are_reported() {
    let name = "different_pre_shared_keys_are_reported";
    let Some(pair) = Pair::new(name) else {
        return;
    };
    let path = |key: &str| pair.directory.path().join(key);
    for key in ["a.psk", "b.psk"] {
        new_preshared(&path(key)).unwrap();
    }
    let file = |end: usize, key: Option<&str>| {
        let file = pair.file(end, &pair.keys[1 - end]);
        let Some(key) = key else { return file };
        let key = format!(
            "peer-key = \"{}\", preshared-key = \"{}\"",
            pair.keys[1 - end],
            path(key).display()
        );
        file.replace(&format!("peer-key = \"{}\"", pair.keys[1 - end]), &key)
    };
    let left = Running::start(&pair.ends[0], &file(0, Some("a.psk"))).unwrap();
    for other in [None, Some("b.psk")] {
        let right = Running::start(&pair.ends[1], &file(1, other)).unwrap();
        let before = left.status().all_drops().get("secure-preshared").copied();
        let status = left.wait_until("refusing", |s| {
            s.all_drops().get("secure-preshared").copied() > before
        });
        assert!(status.peers[0].session.id.is_none());
        let says = |s: &Status| s.callers.iter().any(|c| c.why == CallFault::OtherPreshared);
        assert!(says(&status), "{:?}", status.callers);
        drop(right);
    }
    let right = Running::start(&pair.ends[1], &file(1, Some("b.psk"))).unwrap();
    let changes = right.reload(&file(1, Some("a.psk"))).unwrap();
    assert!(changes[0].contains("another pre-shared key"), "{changes:?}");
    for node in [&left, &right] {
        established(node);
    }
    pair.transfer();
}

#[test]
fn keys_change_without_a_restart() {
    let Some(pair) = Pair::new("keys_change_without_a_restart") else {
        return;
    };
    let nodes = [0, 1].map(|end| pair.start(end));
    let before = nodes.each_ref().map(established);
    let server = address(SERVER);
    let [left, right] = pair.ends.clone();
    let transferring = std::thread::spawn(move || transfer(&left, &right, server, 100_000_000));
    // While a connection is open the left end gets another key, which both ends load.
    std::thread::sleep(Duration::from_millis(300));
    let file = pair.directory.path().join("0.key");
    std::fs::remove_file(&file).unwrap();
    let key = new_key(&file).unwrap().to_string();
    let changes = nodes[1].reload(&pair.file(1, &key)).unwrap();
    assert_eq!(changes.len(), 1, "{changes:?}");
    let changes = nodes[0].reload(&pair.file(0, &pair.keys[1])).unwrap();
    assert!(changes[0].contains(&key), "{changes:?}");
    assert!(
        nodes[0]
            .reload(&pair.file(0, &pair.keys[1]))
            .unwrap()
            .is_empty()
    );
    transferring.join().unwrap();
    let after = nodes[1].status();
    assert_eq!(after.peers[0].key.as_deref(), Some(key.as_str()));
    assert_eq!(
        after.peers[0].session.id, before[1].peers[0].session.id,
        "the session goes on"
    );

    let farther = pair
        .file(0, &pair.keys[1])
        .replace("[link]", "[link]\ndelay = \"7 ms\"");
    let error = nodes[0].reload(&farther).unwrap_err().to_string();
    assert!(error.contains("link.delay cannot change"), "{error}");
}
