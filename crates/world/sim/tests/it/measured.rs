//! The basis of a flow's metrics: bits and time of one period, the flow's own, in every run.

use crate::custom::{Nobody, Pinger};
use airlane_base::{Duration, Instant, Rng};
use airlane_sim::custom::{Application, Pieces};
use airlane_sim::event::{Event, Watcher};
use airlane_sim::{FlowResult, Prepared, RunResult, Scenario, compare, repeat, run, summary};

const CALL: &str = "transport = { kind = \"udp\" }\n\
     app = { kind = \"conferencing\", rate = \"2 Mbit/s\", packet = \"1000 B\", talk = \"1000 s\", silence = \"0 s\"";
const TCP: &str = "transport = { kind = \"tcp\", profile = \"modern\" }\n";

/// A flow from `a` to `b` over a link of 1 Mbit/s and 10 ms.
fn world(head: &str, link: &str, flow: &str) -> Scenario {
    let text = format!(
        "schema = 1\nname = \"measured\"\n{head}\n[nodes.a]\n[nodes.b]\n[links.l]\nends = [\"a\", \"b\"]\n\
         rate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n{link}\n[[flows]]\nname = \"flow\"\nends = [\"a\", \"b\"]\n{flow}"
    );
    Scenario::from_toml(&text, "measured").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn play(scenario: &Scenario) -> RunResult {
    run(scenario, 1, 0).unwrap()
}

fn flow(scenario: &Scenario) -> FlowResult {
    play(scenario).flows.remove(0)
}

/// An endless flow of each kind, over the link of [`world`].
fn kinds() -> Vec<(&'static str, String)> {
    let tcp = |app: &str| format!("{TCP}app = {{ {app} }}\n");
    let relay = "relay = { kind = \"split\", at = \"m\" }\n";
    vec![
        ("call", format!("{CALL} }}\n")),
        ("file", tcp("kind = \"bulk\", packet = \"1000 B\"")),
        (
            "sized file",
            tcp("kind = \"bulk\", size = \"1 GB\", packet = \"1000 B\""),
        ),
        (
            "clap",
            "transport = { kind = \"clap\" }\n\
             app = { kind = \"bulk\", size = \"1 GB\", packet = \"1000 B\" }\n"
                .to_owned(),
        ),
        (
            "split",
            format!("{relay}{}", tcp("kind = \"bulk\", packet = \"1000 B\"")),
        ),
        (
            "pages",
            tcp(
                "kind = \"pages\", request = \"100 B\", reply = \"20 kB\", pause = \"0 s\", packet = \"1000 B\"",
            ),
        ),
        ("web", tcp("kind = \"web\", packet = \"1000 B\"")),
    ]
}

/// The world for a kind of flow: a split one has a relay on its path, and CLAP begins at a station.
fn of_kind(kind: &str, head: &str, link: &str, flow: &str) -> Scenario {
    let before = match kind {
        "split" => "[links.w]\nends = [\"a\", \"m\"]\nrate = \"10 Mbit/s\"\ndelay = \"1 ms\"\n",
        "clap" => "[media.air]\nkind = \"wifi\"\n[media.air.nodes]\na = [0, 0]\nm = [7, 0]\n",
        _ => return world(head, link, flow),
    };
    let text = format!(
        "schema = 1\nname = \"measured\"\n{head}\n[nodes.a]\n[nodes.m]\n[nodes.b]\n{before}\
         [links.l]\nends = [\"m\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n{link}\n\
         [[flows]]\nname = \"flow\"\nends = [\"a\", \"b\"]\n{flow}"
    );
    Scenario::from_toml(&text, "measured").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn a_call_gets_no_more_than_its_link_carries() {
    for (drain, head) in [0, 3, 60].map(|s| (s, format!("duration = \"10 s\"\ndrain = \"{s} s\"")))
    {
        let call = flow(&world(
            &head,
            "queue = \"1000 packets\"",
            &format!("{CALL} }}\n"),
        ));
        let mbps = call.throughput_bps.unwrap() / 1e6;
        assert!((mbps - 1.0).abs() < 0.005, "{drain}: {mbps}");
        // One was sent each 4 ms; 1250 of them left, and 1000 wait.
        assert_eq!(call.packets_sent, 2501, "{drain}");
        assert!((1000..=1003).contains(&call.packets_under_way), "{call:?}");
        let lost = call.packets_sent - call.packets_received - call.packets_under_way;
        let ratio = lost as f64 / call.packets_sent as f64;
        assert!((call.loss_ratio.unwrap() - ratio).abs() < 1e-12, "{call:?}");
        assert!((0.09..0.11).contains(&ratio), "{ratio}");
    }
}

#[test]
fn a_call_is_measured_while_it_is_on() {
    let queue = "queue = \"1000 packets\"";
    let of = |head: &str, call: &str| flow(&world(head, queue, call)).throughput_bps;
    let close = |got: Option<f64>, mbps: f64| {
        let got = got.unwrap() / 1e6;
        assert!((got - mbps).abs() < 0.01 * mbps, "{got} {mbps}");
    };
    let minute = "duration = \"60 s\"";
    close(of(minute, &format!("{CALL}, lasts = \"5 s\" }}\n")), 1.0);
    let late = format!("start = \"50 s\"\n{CALL} }}\n");
    close(of(minute, &late), 1.0);
    // It would outlast the run.
    close(
        of(
            "duration = \"8 s\"",
            &format!("{CALL}, lasts = \"1 h\" }}\n").replace("1 h", "60 min"),
        ),
        1.0,
    );
    let slow = format!("{CALL}, lasts = \"5 s\" }}\n").replace("2 Mbit/s", "500 kbit/s");
    close(of(minute, &slow), 0.5);
    let never = format!("start = \"70 s\"\n{CALL} }}\n");
    assert_eq!(of(minute, &never), None);
}

#[test]
fn endless_flows_are_measured_to_the_stop() {
    let head = "duration = \"60 s\"";
    let gone = "outages = [{ from = \"5 s\", to = \"1000 s\" }]";
    for (kind, text) in kinds() {
        let whole = flow(&of_kind(kind, head, "", &text))
            .throughput_bps
            .unwrap();
        assert!(whole <= 1e6, "{kind}: {whole}");
        let cut = flow(&of_kind(kind, head, gone, &text))
            .throughput_bps
            .unwrap();
        assert!(cut <= 1e6 * 5.0 / 60.0, "{kind}: {cut}");
        assert!(cut > 0.25e6 * 5.0 / 60.0, "{kind}: {cut}");
    }
}

/// The capacity is that of the opportunities that have passed, not their long-term average.
#[test]
fn utilisation_of_opportunities_counts_only_past_ones() {
    let used = |times: &str, rate: &str| {
        let call = format!("{CALL} }}\n").replace("2 Mbit/s", rate);
        let text = world("duration = \"10 s\"", "", &call).to_toml();
        let link = "links.l.rate={ kind = 'opportunities', file = 'times', size = '1000 B' }";
        let mut scenario = Scenario::from_toml_with(&text, "trace", &[link]).unwrap();
        let trace = |_: &std::path::Path| Ok(times.as_bytes().to_vec());
        scenario.load_traces(trace).unwrap();
        play(&scenario).links[0].down.utilisation_ratio
    };
    // A packet each 10 ms, 800 kbit/s.
    assert!((used("10\n", "392 kbit/s") - 0.49).abs() < 0.002);
    assert_eq!(used("10\n", "2 Mbit/s"), 1.0);
    // Three of them in a minute.
    assert_eq!(used("5\n6\n70\n60000\n", "2 Mbit/s"), 1.0);
}

/// 2 Mbit/s over a link that alternates between 0.2 and 20 Mbit/s: the backlog leaves at once after the step up. At
/// the rate of its hand-over it would have taken the next second, too.
#[test]
fn a_queue_leaves_at_the_rate_after_a_step() {
    let call = format!("{CALL} }}\n");
    let text = world("duration = \"10 s\"", "", &call).to_toml();
    let link =
        "links.l.rate={ kind = 'steps', every = '1 s', rates = ['200 kbit/s', '20 Mbit/s'] }";
    let result = play(&Scenario::from_toml_with(&text, "steps", &[link]).unwrap());
    let flow = &result.flows[0];
    assert!(flow.delay_p99_s.unwrap() < 1.05, "{:?}", flow.delay_p99_s);
    let could = 5.0 * 0.2e6 + 5.0 * 20e6;
    // All of the slow seconds, 2 Mbit in each fast one, and a queue of 50 packets at its beginning.
    let left = 5.0 * 0.2e6 + 5.0 * 2e6 * 1.028 + 5.0 * 50.0 * 8_224.0;
    let used = result.links[0].down.utilisation_ratio;
    assert!((used - left / could).abs() < 0.005, "{used}");
}

/// Such a flow over CLAP once had a deadline that was never met: the run did not end.
#[test]
fn a_flow_starting_after_the_stop_does_nothing() {
    for (kind, text) in kinds() {
        let head = "duration = \"2 s\"\ndrain = \"10 s\"";
        let late = flow(&of_kind(
            kind,
            head,
            "",
            &format!("start = \"3 s\"\n{text}"),
        ));
        assert_eq!((late.packets_sent, late.packets_received), (0, 0), "{kind}");
    }
}

#[test]
fn a_goodput_of_zero_is_not_unmeasured() {
    let lost = "errors = { kind = \"uniform\", rate = 1.0 }";
    for (kind, text) in kinds() {
        let scenario = of_kind(kind, "duration = \"20 s\"", lost, &text);
        let results = repeat(&scenario, 1, 4, 1, |_, _| {}).unwrap();
        for result in &results {
            assert_eq!(result.flows[0].throughput_bps, Some(0.0), "{kind}");
        }
        let summary = summary(&results).unwrap();
        let estimate = summary.flows[0].get("throughput_bps").unwrap();
        assert_eq!((estimate.n, estimate.mean), (4, 0.0), "{kind}");
        // Packets that did not arrive have no delay.
        assert!(summary.flows[0].get("delay_mean_s").is_none(), "{kind}");
    }
}

#[test]
fn a_mean_includes_runs_without_deliveries() {
    let lossy = "errors = { kind = \"uniform\", rate = 0.6 }";
    let file = format!("{TCP}app = {{ kind = \"bulk\", size = \"1 MB\", packet = \"1000 B\" }}\n");
    let scenario = world("duration = \"60 s\"", lossy, &file);
    let results = repeat(&scenario, 1, 20, 0, |_, _| {}).unwrap();
    let delivered: u64 = results.iter().map(|r| r.flows[0].delivered_bytes).sum();
    let mean = summary(&results).unwrap().flows[0]
        .get("throughput_bps")
        .copied()
        .unwrap();
    assert_eq!(mean.n, 20);
    // Nearly 60 s each; unacknowledged data does not count.
    let bps = delivered as f64 * 8.0 / (60.0 * 20.0);
    assert!(
        mean.mean <= bps * 1.05 && mean.mean >= bps * 0.5,
        "{mean:?} {bps}"
    );
    let comparison = compare(&[results.clone(), results]).unwrap();
    let row = comparison
        .metrics
        .iter()
        .find(|m| m.metric == "throughput_bps")
        .unwrap();
    assert_eq!(row.rows[1].value.unwrap().n, 20);
}

#[test]
fn a_longer_drain_changes_no_number_of_a_flow() {
    for (kind, text) in kinds() {
        let at = |drain: u32| {
            let head = format!("duration = \"7 s\"\ndrain = \"{drain} s\"");
            let lossy = "queue = \"500 packets\"\nerrors = { kind = \"uniform\", rate = 0.05 }";
            play(&of_kind(kind, &head, lossy, &text))
        };
        let [none, some, long] = [0, 2, 200].map(at);
        assert_eq!(none.flows, some.flows, "{kind}");
        assert_eq!(none.flows, long.flows, "{kind}");
        assert_eq!(none.events, long.events, "{kind}");
    }
}

/// A link that returns wakes a stalled sender, which may reduce its window: not after the stop.
#[test]
fn link_events_after_the_stop_change_nothing() {
    let at = |drain: u32| {
        let text = format!(
            "schema = 1\nname = \"hint\"\nduration = \"2 s\"\ndrain = \"{drain} s\"\n[nodes.n0]\n[nodes.n1]\n[nodes.n2]\n\
             [links.l0]\nends = [\"n0\", \"n1\"]\nrate = {{ down = \"348 kbit/s\", up = \"931 kbit/s\" }}\ndelay = \"0 s\"\n\
             frame = \"531 B\"\nqueue = \"0 packets\"\nerrors = {{ kind = \"byte-exponential\", mean = \"7087 B\" }}\n\
             outages = [{{ from = \"1608 ms\", to = \"1808 ms\" }}]\n\
             [links.l1]\nends = [\"n1\", \"n2\"]\nrate = {{ down = \"10 kbit/s\", up = \"495 kbit/s\" }}\ndelay = \"193 ms\"\n\
             frame = \"471 B\"\nerrors = {{ kind = \"byte-exponential\", mean = \"7832 B\" }}\nheader = \"study\"\n\
             services = [{{ number = 0, name = \"all\", rate = 1, scheme = {{ kind = \"default\" }} }}]\n\
             [[flows]]\nname = \"f0\"\nends = [\"n2\", \"n0\"]\nstart = \"618550487 ns\"\n\
             transport = {{ kind = \"tcp\", freeze = true }}\napp = {{ kind = \"bulk\" }}\n"
        );
        let scenario = Scenario::from_toml(&text, "hint").unwrap_or_else(|e| panic!("{e}"));
        run(&scenario, 23_206, 0).unwrap().flows
    };
    assert_eq!(at(0), at(10));
}

#[test]
fn packets_waiting_for_a_returning_link_are_in_flight() {
    let call = format!("{CALL} }}\n").replace("2 Mbit/s", "80 kbit/s");
    let of = |to: &str| {
        let services = format!(
            "frame = \"1500 B\"\nservices = [{{ number = 0, name = \"all\", rate = 1, scheme = {{ kind = \"sr-m2\" }} }}]\n\
             outages = [{{ from = \"4 s\", to = \"{to}\" }}]"
        );
        flow(&world(
            "duration = \"10 s\"\ndrain = \"1 s\"",
            &services,
            &call,
        ))
    };
    let back = of("20 s");
    assert_eq!(back.packets_sent, 101);
    assert!(back.packets_under_way > 40, "{back:?}");
    assert_eq!(back.packets_received + back.packets_under_way, 101);
    assert_eq!(back.loss_ratio, Some(0.0));
    // Packets that do not arrive within an hour are lost.
    let gone = of("3600 s");
    assert_eq!(gone.packets_under_way, 0);
    assert!(gone.loss_ratio.unwrap() > 0.5, "{gone:?}");
}

#[test]
fn undelivered_tcp_segments_are_in_flight() {
    let file = format!("{TCP}app = {{ kind = \"bulk\", packet = \"1000 B\" }}\n");
    let whole =
        format!("{TCP}app = {{ kind = \"bulk\", packet = \"1000 B\", size = \"50 kB\" }}\n");
    let lossy = "errors = { kind = \"uniform\", rate = 0.1 }";
    let open = flow(&world("duration = \"10 s\"", "", &file));
    assert!(open.packets_under_way > 0);
    // Packets dropped by the full queue are retransmitted, and count once.
    assert!(open.packets_under_way <= open.packets_sent - open.packets_received);
    for link in ["", lossy] {
        let done = flow(&world("duration = \"60 s\"", link, &whole));
        assert_eq!(done.finished, Some(true));
        assert_eq!(done.packets_under_way, 0, "{link}");
    }
}

#[test]
fn custom_pieces_are_measured_like_built_in_applications() {
    let call = format!("{CALL} }}\n");
    let of = |link: &str| {
        let scenario = world("duration = \"60 s\"\ndrain = \"0 s\"", link, &call);
        let mut pieces = Pieces::default();
        let make = |_: Rng| -> Box<dyn Application> {
            Box::new(Pinger {
                every: Duration::from_millis(4),
            })
        };
        pieces
            .applications
            .insert("flow".to_owned(), Box::new(make));
        let prepared = Prepared::new(&scenario).unwrap();
        prepared
            .run_custom(1, 0, pieces, &mut Nobody)
            .unwrap()
            .flows
            .remove(0)
    };
    let full = of("queue = \"1000 packets\"");
    let bps = full.throughput_bps.unwrap();
    assert!((bps / 1e6 - 1.0).abs() < 0.005, "{bps}");
    assert!((1000..=1003).contains(&full.packets_under_way), "{full:?}");
    let gone = of("outages = [{ from = \"5 s\", to = \"1000 s\" }]");
    let bps = gone.throughput_bps.unwrap();
    assert!(bps < 1e6 * 5.1 / 60.0, "{bps}");
    let none = of("errors = { kind = \"uniform\", rate = 1.0 }");
    assert_eq!(none.throughput_bps, Some(0.0));
    assert_eq!(none.loss_ratio, Some(1.0));
}

#[test]
fn intervals_sum_to_what_was_delivered_and_change_nothing() {
    for (kind, text) in kinds() {
        for head in [
            "duration = \"7 s\"",
            "duration = \"60 s\"\nuntil = \"flow\"",
        ] {
            let text = text.replace("1 GB", "300 kB");
            if head.contains("until") && !text.contains("300 kB") {
                continue;
            }
            let lossy = "queue = \"500 packets\"\nerrors = { kind = \"uniform\", rate = 0.05 }";
            let scenario = of_kind(kind, head, lossy, &text);
            let interval = Duration::from_millis(300);
            let prepared = Prepared::new(&scenario).unwrap();
            let plain = prepared.run(1, 0);
            let mut kept = prepared.over_time(interval, 1).unwrap().run(1, 0);
            let over_time = kept.flows[0].over_time.take().unwrap();
            assert_eq!(kept, plain, "{kind}");
            assert_eq!(over_time.interval_s, 0.3);
            let bps = over_time.throughput_bps;
            let whole = (plain.stopped_s / 0.3).floor() as usize;
            assert!(bps.len() == whole || bps.len() == whole + 1, "{kind}");
            let length = |at: usize| (plain.stopped_s - 0.3 * at as f64).min(0.3);
            let bits: f64 = bps
                .iter()
                .enumerate()
                .map(|(at, bps)| bps * length(at))
                .sum();
            let delivered = plain.flows[0].delivered_bytes as f64 * 8.0;
            assert!(delivered > 1e5, "{kind}");
            assert!(
                (bits / delivered - 1.0).abs() < 1e-9,
                "{kind}: {bits} {delivered}"
            );
            // Delivered in order at once, packets that waited for a repair may exceed the link's rate.
            assert!(bps.iter().all(|bps| *bps < 3e6), "{kind}: {bps:?}");
        }
    }
}

#[test]
fn an_outage_is_seen_over_time() {
    let call = format!("{CALL} }}\n").replace("2 Mbit/s", "800 kbit/s");
    let gone = "outages = [{ from = \"4 s\", to = \"7 s\" }]";
    let scenario = world("duration = \"9.5 s\"", gone, &call);
    let prepared = Prepared::new(&scenario).unwrap();
    let kept = prepared.over_time(Duration::from_secs(1), 1).unwrap();
    let bps = kept.run(1, 0).flows[0]
        .over_time
        .clone()
        .unwrap()
        .throughput_bps;
    assert_eq!(bps.len(), 10);
    for (at, bps) in bps.iter().enumerate() {
        match at {
            // Packets sent before still arrive.
            4 => assert!(*bps <= 3.0 * 8e3, "{bps}"),
            5 | 6 => assert_eq!(*bps, 0.0, "{at}"),
            _ => assert!((bps / 800e3 - 1.0).abs() < 0.1, "{at}: {bps}"),
        }
    }
}

#[test]
fn as_many_numbers_are_kept_as_there_is_room_for() {
    let scenario = world("duration = \"1000 s\"", "", &format!("{CALL} }}\n"));
    assert_eq!(
        airlane_sim::usual_interval(&scenario),
        Duration::from_secs(50)
    );
    let of = |interval: Duration, runs: u64| {
        let prepared = Prepared::new(&scenario).unwrap();
        prepared
            .over_time(interval, runs)
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(of(Duration::from_millis(1), 16), Ok(()));
    for (interval, runs) in [(Duration::from_millis(1), 17), (Duration::ZERO, 1)] {
        let error = of(interval, runs).unwrap_err();
        assert!(
            error.contains("too short") && error.contains("16777216"),
            "{error}"
        );
    }
}

/// RFC 3550, appendix A.8, over the packets of a run in the order of their arrival.
#[derive(Default)]
struct Rfc3550 {
    before: Option<f64>,
    jitter: f64,
    all: Vec<f64>,
}

impl Watcher for Rfc3550 {
    fn on_event(&mut self, now: Instant, event: &Event) {
        if let Event::PacketReceived(packet) = event {
            let transit = now.saturating_since(packet.created).as_secs_f64();
            if let Some(before) = self.before.replace(transit) {
                self.jitter += ((transit - before).abs() - self.jitter) / 16.0;
                self.all.push(self.jitter);
            }
        }
    }
}

#[test]
fn jitter_is_that_of_the_packets() {
    let call = format!("{CALL} }}\n").replace("2 Mbit/s", "80 kbit/s");
    let services = "frame = \"1500 B\"\nerrors = { kind = \"uniform\", rate = 0.2 }\n\
         services = [{ number = 0, name = \"all\", rate = 1, scheme = { kind = \"sr-m2\" } }]";
    let scenario = world("duration = \"30 s\"", services, &call);
    let mut heard = Rfc3550::default();
    let result = Prepared::new(&scenario)
        .unwrap()
        .run_watched(1, 0, &mut heard);
    let mean = heard.all.iter().sum::<f64>() / heard.all.len() as f64;
    let jitter = result.flows[0].jitter_mean_s.unwrap();
    assert!(heard.all.len() > 200 && mean > 1e-3, "{mean}");
    assert!((jitter / mean - 1.0).abs() < 0.02, "{jitter} {mean}");
    // If all delays are equal there is no jitter, and a single packet has none defined.
    let even = flow(&world("duration = \"30 s\"", "", &call));
    assert_eq!(even.jitter_mean_s, Some(0.0));
    let lost = "errors = { kind = \"uniform\", rate = 1.0 }";
    assert_eq!(
        flow(&world("duration = \"30 s\"", lost, &call)).jitter_mean_s,
        None
    );
}
