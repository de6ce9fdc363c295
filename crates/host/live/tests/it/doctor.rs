//! `airlane doctor` with a peer that runs, has another key, or is absent.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use crate::common::pair::{Pair, established};
use crate::common::{Namespace, PATIENCE, Running, cable, can_run};
use airlane_live::config::LiveConfig;
use airlane_live::doctor::{Check, Grade, examine};
use airlane_live::security::new_key;

fn file(end: usize, directory: &str, peer_key: &str, more: &str) -> String {
    let (mine, theirs) = (end + 1, 2 - end);
    format!(
        r#"
schema = 1
name = "end-{end}"
[control]
socket = "{directory}/end-{end}.sock"
[link]
rate = "20 Mbit/s"
underlay = {{ kind = "udp", listen = "192.0.2.{mine}:7007", peer = "192.0.2.{theirs}:7007" }}
security = {{ private-key = "{directory}/{end}.key", peer-key = "{peer_key}" }}
[tun]
addresses = ["10.7.0.{mine}/24"]
{more}
"#
    )
}

/// The file without security.
fn without_keys(text: &str) -> String {
    let lines = text.lines().map(|line| match line.starts_with("security") {
        true => "security = \"none\"",
        false => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The findings of `doctor` in a namespace.
pub(crate) fn checks(namespace: &Namespace, text: &str) -> Vec<Check> {
    let config: LiveConfig = airlane_base::config::load(text, "up.toml").unwrap();
    namespace.run(move || {
        let mut found = Vec::new();
        examine(&config, &mut |check| found.push(check));
        found
    })
}

fn find<'a>(checks: &'a [Check], what: &str) -> &'a Check {
    let found = checks.iter().find(|check| check.what == what);
    found.unwrap_or_else(|| panic!("{what}: {checks:#?}"))
}

#[test]
fn faults_are_found_and_nothing_is_left_over() {
    if !can_run("faults_are_found_and_nothing_is_left_over") {
        return;
    }
    let (left, right) = (Namespace::new("left"), Namespace::new("right"));
    cable(&left, "wire", &right, "wire");
    left.ip("addr add 192.0.2.1/24 dev wire");
    right.ip("addr add 192.0.2.2/24 dev wire");
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().to_str().unwrap();
    let key = |end: usize| {
        let made = new_key(&folder.path().join(format!("{end}.key")));
        made.unwrap().to_string()
    };
    let keys = [key(0), key(1)];
    let here = file(0, directory, &keys[1], "");
    let right_node = Running::start(&right, &file(1, directory, &keys[0], "")).unwrap();

    let good = checks(&left, &here);
    assert!(good.iter().all(|c| c.verdict == Grade::Good), "{good:#?}");
    let mtu = &find(&good, "mtu").found;
    assert!(mtu.ends_with("the path beyond is not measured"), "{mtu}");
    assert!(find(&good, "peer").found.contains("with the right key"));
    assert!(!left.ip("link").contains("air0"));
    // `doctor` has left no state at the peer.
    let node = Running::start(&left, &here).unwrap();
    node.wait_until("established", |s| s.peers[0].session.state == "confirmed");
    let running = checks(&left, &here);
    assert_eq!(running.len(), 3);
    assert_eq!(find(&running, "route").verdict, Grade::Good);
    assert!(running[0].found.contains("up already"), "{running:?}");
    assert!(running[1].found.contains("is confirmed"), "{running:?}");
    left.ip("link set air0 down");
    let down = checks(&left, &here);
    assert_eq!(find(&down, "interface").verdict, Grade::Bad, "{down:?}");
    left.ip("link set air0 up");
    assert_eq!(checks(&left, &here).len(), 3);
    left.ip("link set wire down");
    let down = checks(&left, &here);
    let route = find(&down, "route");
    assert_eq!(route.verdict, Grade::Bad, "{down:?}");
    assert!(route.found.contains("wire is down"), "{route:?}");
    left.ip("link set wire up");
    node.stop();
    // A network of the interface that is one outside, too: the kernel prefers the older.
    let both = here.replace("10.7.0.1/24", "192.0.2.9/24");
    assert_eq!(find(&checks(&left, &both), "route").verdict, Grade::Warning);
    Running::start(&left, &both).unwrap().stop();

    let loops = checks(
        &left,
        &file(0, directory, &keys[1], "routes = [\"192.0.2.0/24\"]"),
    );
    assert_eq!(find(&loops, "route").verdict, Grade::Bad);
    let own = checks(&left, &file(0, directory, &keys[0], ""));
    assert_eq!(find(&own, "security").verdict, Grade::Bad);
    left.ip("link set wire mtu 1300");
    let narrow = here.replace("10.7.0.1/24", "fd07::1/64");
    let narrow = checks(&left, &narrow);
    assert_eq!(find(&narrow, "mtu").verdict, Grade::Bad);
    left.ip("link set wire mtu 1500");

    right_node.stop();
    let silent = checks(&left, &here);
    let peer = find(&silent, "peer");
    assert_eq!(peer.verdict, Grade::Bad, "{silent:#?}");
    assert!(peer.found.contains("nobody listens"), "{peer:?}");
    left.ip("route del 192.0.2.0/24 dev wire");
    let lost = checks(&left, &here.replace("192.0.2.1:", "0.0.0.0:"));
    let route = find(&lost, "route");
    assert_eq!(route.verdict, Grade::Warning, "{lost:#?}");
    assert!(route.found.contains("no way to 192.0.2.2 yet"), "{route:?}");
    assert!(lost.iter().all(|c| c.verdict != Grade::Bad), "{lost:#?}");
}

/// Two hosts on one wire, and a directory with a private key of each. Returns the public keys as well.
fn two_hosts() -> (Namespace, Namespace, tempfile::TempDir, [String; 2]) {
    let (left, right) = (Namespace::new("left"), Namespace::new("right"));
    cable(&left, "wire", &right, "wire");
    left.ip("addr add 192.0.2.1/24 dev wire");
    right.ip("addr add 192.0.2.2/24 dev wire");
    let folder = tempfile::tempdir().unwrap();
    let public = [0, 1].map(|end| {
        let made = new_key(&folder.path().join(format!("{end}.key")));
        made.unwrap().to_string()
    });
    (left, right, folder, public)
}

/// The peer check of each end of a link that runs or, at end 0, does not, and the callers that end 1 has logged.
fn peer_checks(keys: [&str; 2], files: [&str; 2], runs: bool) -> [(Grade, String); 2] {
    let (left, right, folder, public) = two_hosts();
    let directory = folder.path().to_str().unwrap();
    let known = |which: &str| match which {
        "right" => None,
        _ => Some("TjgqYkZ2rXp0wKc5nB1hLmQ8sVdE3uJfGyA7iWoR9CM=".to_owned()),
    };
    let texts = [0, 1].map(|end: usize| {
        let key = known(keys[end]).unwrap_or_else(|| public[1 - end].clone());
        file(end, directory, &key, "") + files[end]
    });
    let _left = runs.then(|| Running::start(&left, &texts[0]).unwrap());
    let _right = Running::start(&right, &texts[1]).unwrap();
    [(&left, &texts[0]), (&right, &texts[1])].map(|(end, text)| {
        let all = checks(end, text);
        let check = find(&all, "peer");
        let help = check.help.clone().unwrap_or_default();
        (check.verdict, format!("{}: {help}", check.found))
    })
}

#[test]
fn a_wrong_key_at_either_end_and_other_services_are_different_causes() {
    if !can_run("a_wrong_key_at_either_end_and_other_services_are_different_causes") {
        return;
    }
    for runs in [true, false] {
        // The left end has a wrong public key of the right end.
        let [left, right] = peer_checks(["wrong", "right"], ["", ""], runs);
        assert_eq!((left.0, right.0), (Grade::Bad, Grade::Bad));
        let not_its = "the peer key here is not that of the host at 192.0.2.2:7007";
        assert!(left.1.contains(not_its), "{left:?}");
        if runs {
            assert!(
                right.1.contains("expects a different public key from ours"),
                "{right:?}"
            );
        }
        // The right end expects another key: the left end has the wrong private key.
        let [left, _] = peer_checks(["right", "wrong"], ["", ""], runs);
        assert_eq!(left.0, Grade::Bad);
        assert!(
            left.1.contains("expects a different public key from ours"),
            "{left:?}"
        );
        assert!(left.1.contains("its peer-key has to be"), "{left:?}");
    }
    let service = |scheme: &str| {
        format!(
            "[[link.services]]\nnumber = 1\nname = \"files\"\nrate = 1\nscheme = {{ kind = \"{scheme}\" }}\n"
        )
    };
    let services = [service("sr-m2"), service("rlp-oos")];
    let [left, _] = peer_checks(["right", "right"], [&services[0], &services[1]], true);
    assert_eq!(left.0, Grade::Bad);
    assert!(left.1.contains("services of one number differ"), "{left:?}");
}

/// The other end counts a doctor's look as such, and has nothing to say about it.
#[test]
fn doctor_leaves_no_fault_at_the_other_end() {
    if !can_run("doctor_leaves_no_fault_at_the_other_end") {
        return;
    }
    let (left, right, folder, public) = two_hosts();
    let directory = folder.path().to_str().unwrap();
    // Calls for another key are named there. A peer that calls would be cause enough, and nothing be looked at.
    let wrong = file(
        0,
        directory,
        "TjgqYkZ2rXp0wKc5nB1hLmQ8sVdE3uJfGyA7iWoR9CM=",
        "",
    );
    let there = file(1, directory, &public[0], "");
    let keyed = there.replace(", peer = \"192.0.2.1:7007\"", "");
    let plain = without_keys(&there.replace("192.0.2.1:7007", "192.0.2.1:7009"));
    for (there, expected) in [
        (&keyed, &["empty", "secure-mac"][..]),
        (&plain, &["empty", "peer-with-keys"]),
    ] {
        let node = Running::start(&right, there).unwrap();
        let found = checks(&left, &wrong);
        assert_eq!(find(&found, "peer").verdict, Grade::Bad, "{found:?}");
        let status = node.stop();
        let drops: Vec<_> = status.drops.keys().map(String::as_str).collect();
        assert_eq!(drops, expected, "{:?}", status.callers);
    }
}

/// The kernel drops what comes from the other end after it has arrived, as a packet filter does.
#[test]
fn datagrams_that_arrive_and_are_not_delivered_are_laid_to_this_machine() {
    if !can_run("datagrams_that_arrive_and_are_not_delivered_are_laid_to_this_machine") {
        return;
    }
    let (left, right, folder, public) = two_hosts();
    let directory = folder.path().to_str().unwrap();
    let texts = [0, 1].map(|end: usize| file(end, directory, &public[1 - end], ""));
    let waits = texts[0].replace(", peer = \"192.0.2.2:7007\"", "");
    // The rule below also ends the answers to ARP.
    left.ip("link set wire address 02:00:00:00:00:01");
    right.ip("neigh replace 192.0.2.1 lladdr 02:00:00:00:00:01 dev wire nud permanent");
    let _right = Running::start(&right, &texts[1]).unwrap();
    for rule in [
        "add pref 10 lookup local",
        "del pref 0",
        "add pref 5 from 192.0.2.2 blackhole",
    ] {
        left.ip(&format!("rule {rule}"));
    }
    for text in [&texts[0], &waits] {
        for runs in [false, true] {
            let _node = runs.then(|| Running::start(&left, text).unwrap());
            let all = checks(&left, text);
            let peer = find(&all, "peer");
            assert_eq!(peer.verdict, Grade::Bad, "{all:#?}");
            assert!(peer.found.contains("lets nothing in from"), "{all:#?}");
        }
    }
    left.ip("rule del pref 5");
    let all = checks(&left, &waits);
    assert_eq!(find(&all, "peer").verdict, Grade::Good, "{all:#?}");
    // The filter comes when there is a session.
    let node = Running::start(&left, &texts[0]).unwrap();
    node.wait_until("confirmed", |s| s.peers[0].session.state == "confirmed");
    left.ip("rule add pref 5 from 192.0.2.2 blackhole");
    let all = checks(&left, &texts[0]);
    let found = &find(&all, "peer").found;
    assert!(found.contains("lets nothing in from"), "{all:#?}");
}

/// A session existed; then the other end comes back with another key.
#[test]
fn doctor_reports_what_the_log_knows_of_a_silent_peer() {
    if !can_run("doctor_reports_what_the_log_knows_of_a_silent_peer") {
        return;
    }
    let (left, right, folder, public) = two_hosts();
    let directory = folder.path().to_str().unwrap();
    let texts = [0, 1].map(|end: usize| file(end, directory, &public[1 - end], ""));
    let here = Running::start(&left, &texts[0]).unwrap();
    let there = Running::start(&right, &texts[1]).unwrap();
    here.wait_until("confirmed", |s| s.peers[0].session.state == "confirmed");
    there.stop();
    std::fs::remove_file(folder.path().join("1.key")).unwrap();
    new_key(&folder.path().join("1.key")).unwrap();
    let _there = Running::start(&right, &texts[1]).unwrap();
    here.wait_until("disconnected", |s| {
        s.peers[0].session.state == "disconnected" && !s.callers.is_empty()
    });
    let all = checks(&left, &texts[0]);
    let peer = find(&all, "peer");
    assert_eq!(peer.verdict, Grade::Bad, "{all:?}");
    assert!(
        peer.found
            .contains("the peer key here is not that of the host"),
        "{peer:?}"
    );
}

/// All findings but good ones of two running ends about each other, with their files changed by `change`.
fn two_ends(change: impl Fn(usize, String) -> String) -> [Vec<Check>; 2] {
    let (left, right, folder, keys) = two_hosts();
    let directory = folder.path().to_str().unwrap();
    let ends = [(0, &left), (1, &right)];
    let texts = [0, 1].map(|end| change(end, file(end, directory, &keys[1 - end], "")));
    let nodes = ends.map(|(end, namespace)| Running::start(namespace, &texts[end]).unwrap());
    let peer = |end: usize| nodes[end].status().peers.remove(0);
    let deadline = Instant::now() + PATIENCE;
    ends.map(|(end, namespace)| {
        let found = loop {
            let told = peer(end).version.is_some();
            let found = checks(namespace, &texts[end]);
            if told || peer(end).session.state != "confirmed" || Instant::now() >= deadline {
                break found;
            }
        };
        let unlike = found
            .into_iter()
            .filter(|check| check.verdict != Grade::Good);
        unlike.collect()
    })
}

#[test]
fn both_ends_are_compared_inside_the_session() {
    if !can_run("both_ends_are_compared_inside_the_session") {
        return;
    }
    let says = |found: &[Check], what: &str, words: &str| {
        let fits = |check: &Check| check.what == what && check.found.contains(words);
        assert!(found.iter().any(fits), "{what}, {words}: {found:#?}");
    };
    let alike = two_ends(|_, text| text);
    assert!(alike.iter().all(Vec::is_empty), "{alike:#?}");

    let same = two_ends(|_, text| text.replace("10.7.0.2/24", "10.7.0.1/24"));
    for found in &same {
        says(found, "addresses", "both have 10.7.0.1");
    }
    let apart = two_ends(|_, text| text.replace("10.7.0.2/24", "10.8.0.2/24"));
    says(
        &apart[0],
        "addresses",
        "has 10.8.0.2/24, to which nothing here leads: this end has 10.7.0.1/24",
    );
    assert_eq!(apart[0][0].verdict, Grade::Bad);

    let service = "[[link.services]]\nnumber = 7\nname = \"extra\"\nrate = 1\nscheme = { kind = \"sr-m2\" }\n";
    let lacking = two_ends(|end, text| match end {
        0 => text + service,
        _ => text + &service.replace("7", "6"),
    });
    says(&lacking[0], "services", "has no extra");
}

#[test]
fn keys_at_one_end_only_are_named_at_both() {
    if !can_run("keys_at_one_end_only_are_named_at_both") {
        return;
    }
    for plain in [0, 1] {
        let found = two_ends(|end, text| match end == plain {
            true => without_keys(&text),
            false => text,
        });
        for (end, words) in [
            (plain, "has keys, while this end has none"),
            (1 - plain, "has no keys, while this end"),
        ] {
            let peer = find(&found[end], "peer");
            assert_eq!(peer.verdict, Grade::Bad);
            assert!(peer.found.contains(words), "{peer:?}");
        }
    }
}

/// The other end is started anew, with keys where it had none, or without those that it had.
#[test]
fn keys_at_one_end_only_are_named_after_a_session() {
    if !can_run("keys_at_one_end_only_are_named_after_a_session") {
        return;
    }
    let (left, right, folder, public) = two_hosts();
    let directory = folder.path().to_str().unwrap();
    let keyed = [0, 1].map(|end: usize| file(end, directory, &public[1 - end], ""));
    let plain = keyed.each_ref().map(|text| without_keys(text));
    for (before, after, words) in [
        (&keyed, &plain, "has no keys, while this end has some"),
        (&plain, &keyed, "has keys, while this end has none"),
    ] {
        let here = Running::start(&left, &before[0]).unwrap();
        let there = Running::start(&right, &before[1]).unwrap();
        here.wait_until("confirmed", |s| s.peers[0].session.state == "confirmed");
        there.stop();
        let _there = Running::start(&right, &after[1]).unwrap();
        here.wait_until("called", |s| !s.callers.is_empty());
        for state in ["confirmed", "disconnected"] {
            let status = here.wait_until(state, |s| {
                state == "confirmed" || s.peers[0].session.state == state
            });
            let all = checks(&left, &before[0]);
            let peer = find(&all, "peer");
            assert_eq!(peer.verdict, Grade::Bad, "{all:?}");
            assert!(
                peer.found.contains(words),
                "{peer:?} {:?}",
                status.peers[0].session
            );
        }
        here.stop();
    }
}

#[test]
fn an_end_that_the_peer_does_not_hear_is_reported() {
    let Some(pair) = Pair::new("an_end_that_the_peer_does_not_hear_is_reported") else {
        return;
    };
    let nodes = [0, 1].map(|end| pair.start(end));
    nodes.iter().for_each(|node| {
        established(node);
    });
    let [left, _] = &pair.ends;
    let check = || {
        let all = checks(left, &pair.file(0, &pair.keys[1]));
        find(&all, "peer").clone()
    };
    assert_eq!(check().verdict, Grade::Good);
    // From now on the left end's datagrams are lost, and the right end's arrive.
    left.ip("neigh replace 192.0.2.2 lladdr 02:00:00:00:00:77 dev wire nud permanent");
    // The session counts as confirmed for some seconds, but the hello that `doctor` sends through it gets no answer.
    let asked = check();
    assert_eq!(asked.verdict, Grade::Bad, "{asked:?}");
    assert!(asked.found.contains("does not answer"), "{asked:?}");
    pair.ends[1].run(|| {
        let socket = UdpSocket::bind("10.7.0.2:0").unwrap();
        socket.send_to(b"there?", "10.7.0.1:9").unwrap();
    });
    let status = nodes[0].wait_until("unheard", |s| s.peers[0].session.unheard_ns.is_some());
    let session = &status.peers[0].session;
    assert_eq!(session.state, "unheard");
    let bad = check();
    assert_eq!(bad.verdict, Grade::Bad, "{bad:?}");
    assert!(bad.found.contains("the peer does not hear us"), "{bad:?}");
    nodes[1].wait_until("disconnected", |s| {
        s.peers[0].session.state == "disconnected"
    });
    left.ip("neigh del 192.0.2.2 dev wire");
    nodes[0].wait_until("heard", |s| s.peers[0].session.unheard_ns.is_none());
    nodes.iter().for_each(|node| {
        established(node);
    });
    assert_eq!(check().verdict, Grade::Good);
}

#[test]
fn an_answer_from_another_address_is_a_warning() {
    let Some(pair) = Pair::new("an_answer_from_another_address_is_a_warning") else {
        return;
    };
    // It calls, while this end seeks it elsewhere.
    let _right = pair.start(1);
    let file = pair.file(0, &pair.keys[1]);
    let file = file.replace("192.0.2.2:7007", "192.0.2.77:7007");
    let all = checks(&pair.ends[0], &file);
    let peer = find(&all, "peer");
    assert_eq!(peer.verdict, Grade::Warning, "{all:#?}");
    let both = "is at 192.0.2.2:7007, not at 192.0.2.77:7007";
    assert!(peer.found.contains(both), "{peer:?}");
    // `doctor` has left no keys at the peer: it calls at its next retry, and does not wait for keys to expire.
    let begun = Instant::now();
    let here = Running::start(&pair.ends[0], &file).unwrap();
    established(&here);
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}");
    let status = here.stop();
    assert_eq!(status.all_drops().get("secure-unknown-session"), None);
}

#[test]
fn a_file_that_differs_from_the_running_node_is_a_warning() {
    let Some(pair) = Pair::new("a_file_that_differs_from_the_running_node_is_a_warning") else {
        return;
    };
    let nodes = [0, 1].map(|end| pair.start(end));
    established(&nodes[0]);
    let file = pair.file(0, &pair.keys[1]);
    let security = file
        .lines()
        .find(|line| line.starts_with("security"))
        .unwrap();
    for (was, is, words) in [
        (
            "200 Mbit/s",
            "100 Mbit/s",
            "the link has rate 100 Mbit/s, was 200 Mbit/s",
        ),
        (
            "200 Mbit/s",
            "auto",
            "the link has rate auto, was 200 Mbit/s",
        ),
        ("192.0.2.2:7007", "192.0.2.77:7007", "192.0.2.77:7007"),
        (
            security,
            "security = \"none\"",
            "link.security cannot change",
        ),
    ] {
        let all = checks(&pair.ends[0], &file.replace(was, is));
        let found = find(&all, "file");
        assert_eq!(found.verdict, Grade::Warning, "{all:#?}");
        assert!(found.found.contains(words), "{found:?}");
    }
    let all = checks(&pair.ends[0], &file);
    assert!(all.iter().all(|check| check.what != "file"), "{all:#?}");
    // The file was not applied.
    assert_eq!(nodes[0].status().underlay.rate_bps, Some(200_000_000));
}
