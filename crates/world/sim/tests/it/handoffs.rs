//! Nodes that leave a link and join another: routes, losses with their reasons, and hints.

use crate::common::load;
use airlane_base::Instant;
use airlane_sim::event::{Event, Watcher};
use airlane_sim::scenario::HandoffKind;
use airlane_sim::{LinkResult, Prepared, RunResult, Scenario, run};

const NAME: &str = "handoff-wlan-cellular";

fn walk(assignments: &[&str]) -> RunResult {
    run(&load(NAME, assignments), 1, 0).unwrap()
}

fn link<'a>(result: &'a RunResult, name: &str) -> &'a LinkResult {
    result.links.iter().find(|l| l.name == name).unwrap()
}

/// Today's TCP over the same links.
const MODERN: &str =
    "flows[file].transport={ kind = \"tcp\", profile = \"modern\", freeze = true }";

/// The window of the file's sender in segments, over time.
#[derive(Default)]
struct Windows(Vec<(Instant, f64)>);

impl Watcher for Windows {
    fn on_event(&mut self, now: Instant, event: &Event) {
        if let Event::TcpState(_, state) = event {
            let usable = state.cwnd_segments.min(state.window_segments as f64);
            self.0.push((now, usable));
        }
    }
}

impl Windows {
    /// The largest window in the second before.
    fn before(&self, at_s: f64) -> u64 {
        let near = |at: &Instant| (at_s - 1.0..at_s).contains(&at.as_secs_f64());
        let usable = self.0.iter().filter(|(at, _)| near(at));
        usable
            .map(|(_, usable)| usable.ceil() as u64)
            .max()
            .unwrap()
    }
}

#[test]
fn routes_follow_and_packets_on_the_old_link_are_lost_with_a_reason() {
    follows_routes(&[]);
    follows_routes(&[MODERN]);
}

fn follows_routes(assignments: &[&str]) {
    let mut windows = Windows::default();
    let prepared = Prepared::new(&load(NAME, assignments)).unwrap();
    let result = prepared.run_watched(1, 0, &mut windows);
    let kinds: Vec<HandoffKind> = result.handoffs.iter().map(|h| h.kind).collect();
    assert_eq!(kinds, [HandoffKind::Horizontal, HandoffKind::Vertical]);
    // 20 s at 2 Mbit/s each; then 78 s on the cellular link.
    for (name, least) in [("office-wlan", 3_000), ("hall-wlan", 2_500), ("cell", 300)] {
        let air = link(&result, name);
        assert!(air.down.channel.delivered.frames > least, "{name}: {air:?}");
        for way in [&air.down, &air.up] {
            let c = &way.channel;
            let known = c.dropped_queue.frames + c.lost_air.frames + c.delivered.frames;
            assert!(
                c.offered.frames - known <= 1,
                "{name}: every frame has a fate: {c:?}"
            );
            for service in &way.services {
                let (sent, got) = (&service.sender, &service.receiver);
                assert!(sent.packets_offered >= sent.packets_sent + sent.packets_dropped());
                assert!(got.packets_delivered <= sent.packets_sent);
            }
        }
    }
    for (name, handoff) in ["office-wlan", "hall-wlan"].iter().zip(&result.handoffs) {
        let down = &link(&result, name).down;
        let air = down.channel.lost_handoff.frames;
        let sent = &down.services[1].sender;
        let unfinished = sent.epoch_lost + sent.dropped_disconnected;
        // At most a window in flight, the additions of limited transmit, and a frame and its neighbour on the air.
        let window = windows.before(handoff.at_s) + 2;
        assert!((1..=2).contains(&air), "{name}: {air}");
        assert!(
            (1..=window).contains(&unfinished),
            "{name}: {unfinished} of {window}"
        );
    }
    let cell = &link(&result, "cell").down.channel;
    assert!(
        cell.lost_handoff.is_zero(),
        "nothing was sent there too early"
    );
    assert!(result.flows[0].delivered_bytes > 6_000_000, "{result:?}");
    // The offer of the file's current path: wire and cellular link.
    assert_eq!(result.paths.len(), 1);
    assert_eq!(result.paths[0].links, ["wired-tower", "cell"]);
    // A goodput ratio over three different links is undefined.
    assert_eq!(result.flows[0].goodput_ratio, None);
}

#[test]
fn packets_without_a_link_have_no_route_and_informed_tcp_sends_none() {
    // Without a gap there are no hints: the first handoff costs both the same. With a gap below a timeout, freezing
    // would only add to the timer.
    let long = [
        "handoffs[0].gap=0 s",
        "handoffs[1].gap=20 s",
        "duration=75 s",
    ];
    let told = walk(&long);
    let freeze = "flows[file].transport.freeze=false";
    let untold = walk(&[&long[..], &[freeze]].concat());
    // The server gets the hint 1 ms after the base station; segments sent before that may be on the wire.
    assert!(told.unroutable.frames <= 20, "{:?}", told.unroutable);
    // Each timeout sends another segment.
    assert!(untold.unroutable.frames > told.unroutable.frames);
    assert!(told.flows[0].timeouts < untold.flows[0].timeouts);
    assert!(told.flows[0].delivered_bytes > untold.flows[0].delivered_bytes);
}

#[test]
fn a_node_may_come_back() {
    let back = "handoffs=[\
        { at = \"10 s\", node = \"phone\", from = \"office-wlan\", to = \"hall-wlan\" }, \
        { at = \"20 s\", node = \"phone\", from = \"hall-wlan\", to = \"office-wlan\" }]";
    // The third link stays: the phone then has two paths of the same length.
    let lone = "links.cell.ends=[\"tower\", \"hall\"]";
    let result = walk(&[back, lone, "duration=30 s"]);
    let frames = |name| link(&result, name).down.channel.delivered.frames;
    assert!(frames("office-wlan") > 2 * frames("hall-wlan") * 8 / 10);
    assert!(frames("hall-wlan") > 1_500, "{}", frames("hall-wlan"));
    assert!(result.unroutable.is_zero());
}

/// The same packets on any number of threads, and in a repeated run.
#[test]
fn handoffs_are_repeatable() {
    assert_eq!(walk(&[]), walk(&[]));
}

#[test]
fn impossible_handoffs_are_refused() {
    let text = load(NAME, &[]).to_toml();
    for (assignment, expected) in [
        ("handoffs[0].node=phon", "there is no node \"phon\""),
        (
            "handoffs[0].node=tower",
            "no end of the link \"office-wlan\"",
        ),
        ("handoffs[0].from=wlan", "there is no link \"wlan\""),
        ("handoffs[0].to=office-wlan", "has had an outage"),
        ("handoffs[0].at=0 s", "nothing is handed over at 0 s"),
        ("handoffs[0].gap=21 s", "not over yet"),
        ("handoffs[1].from=office-wlan", "has been left already"),
        ("handoffs[0].to=cell", "is there already"),
        (
            "handoffs[0].carries=true",
            "only circuits that have the node",
        ),
        ("links.cell.frame=500 B", "does not fit the link \"cell\""),
    ] {
        let packet = "flows[file].app.packet=1000 B";
        let error = Scenario::from_toml_with(&text, "w", &[packet, assignment]).unwrap_err();
        assert!(
            error.to_string().contains(expected),
            "{assignment}: {error}"
        );
    }
}
