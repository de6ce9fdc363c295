//! Links without a stated rate: the estimate must neither starve senders nor harm other users of the path.
//!
//! Each world must satisfy the same laws with CUBIC, BBR and UDP: only a bounded share of the transmissions is
//! wasted, and a file gets nearly the capacity of the path.

use airlane_sim::{RunResult, Scenario, run};

/// Bound on the ratio of bytes sent to bytes delivered.
const MOST_SENT: f64 = 1.3;
/// A file's share of a full frame.
const PAYLOAD: f64 = 1370.0 / 1450.0;

/// A server beyond a gateway, and a client on the link with these settings, with the services by goal or without.
pub(crate) fn world(seconds: u32, link: &str, served: bool, flows: &[String]) -> Scenario {
    let goals = ["bulk", "web", "voice", "interactive", "video", "paced"];
    let services = goals.iter().enumerate().map(|(at, goal)| {
        format!(
            "{{ number = {}, name = \"{goal}\", goal = \"{goal}\" }}",
            at + 1
        )
    });
    let services = services.collect::<Vec<_>>().join(", ");
    let services = match served {
        true => format!(
            "header = \"sealed\"\nrate-limit = \"found\"\nclasses = \"behaviour\"\nservices = [{services}]\n"
        ),
        false => String::new(),
    };
    let text = format!(
        "schema = 1\nname = \"a link that nobody knows\"\nduration = \"{seconds} s\"\n\
         [nodes.server]\n[nodes.left]\n[nodes.client]\n\
         [links.wired]\nends = [\"server\", \"left\"]\nrate = \"10 Gbit/s\"\ndelay = \"0.1 ms\"\nqueue = \"9000 packets\"\n\
         [links.radio]\nends = [\"left\", \"client\"]\nframe = \"1500 B\"\n{link}\n{services}{}",
        flows.concat()
    );
    Scenario::from_toml(&text, "found.toml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

pub(crate) fn file(congestion: &str, more: &str) -> String {
    let pacing = congestion == "bbr";
    format!(
        "[[flows]]\nname = \"file\"\nends = [\"server\", \"client\"]\n{more}\
         transport = {{ kind = \"tcp\", profile = \"modern\", congestion = \"{congestion}\", pacing = {pacing} }}\n\
         app = {{ kind = \"bulk\", packet = \"1370 B\" }}\n"
    )
}

pub(crate) fn stream(name: &str, packet: u32, kbps: u64) -> String {
    format!(
        "[[flows]]\nname = \"{name}\"\nends = [\"server\", \"client\"]\ntransport = {{ kind = \"udp\" }}\n\
         app = {{ kind = \"conferencing\", packet = \"{packet} B\", rate = \"{kbps} kbit/s\", talk = \"1000 s\", silence = \"0 s\" }}\n"
    )
}

/// Bits of a flow that were delivered.
pub(crate) fn bits(result: &RunResult, name: &str) -> f64 {
    let flow = result.flows.iter().find(|flow| flow.name == name).unwrap();
    flow.delivered_bytes as f64 * 8.0
}

/// Bytes sent over the link, over bytes delivered.
fn sent(result: &RunResult) -> f64 {
    let radio = result.links.iter().find(|link| link.name == "radio");
    let way = radio.unwrap().down.channel;
    (way.offered.bytes - way.dropped_queue.bytes) as f64 / way.delivered.bytes as f64
}

/// Cases where the laws do not hold yet; `docs/lab/rate.md` names the causes.
const MISSES: [&str; 5] = [
    "2 Mbit/s, 600 ms, bbr",
    "2 Mbit/s, 600 ms, cubic",
    "30 Mbit/s, 600 ms, bbr",
    "30 Mbit/s, 600 ms, cubic",
    "GEO, bbr",
];

/// Fails with all violations that are not in `MISSES`.
fn none(wrong: &[String]) {
    let known = |cell: &&String| MISSES.iter().any(|miss| cell.starts_with(miss));
    let wrong: Vec<_> = wrong.iter().filter(|cell| !known(cell)).cloned().collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The only flow: a file, or a stream of one and a half times the link's capacity.
fn flow(kind: &str, kbps: u64) -> String {
    match kind {
        "udp" => stream("file", 1370, kbps * 3 / 2),
        congestion => file(congestion, ""),
    }
}

#[test]
fn a_policer_is_found_and_not_run_into() {
    let (seconds, mut wrong) = (30, vec![]);
    for (mbps, burst) in [(2, "30 kB"), (30, "60 kB")] {
        for round_trip_ms in [1, 50, 600] {
            for kind in ["cubic", "bbr", "udp"] {
                let link = format!(
                    "rate = \"1 Gbit/s\"\ndelay = \"{} ms\"\nqueue = \"1000 packets\"\npolice = {{ rate = \"{mbps} Mbit/s\", burst = \"{burst}\" }}",
                    f64::from(round_trip_ms) / 2.0
                );
                let flows = [flow(kind, mbps * 1_000)];
                let [raw, served] = [false, true]
                    .map(|served| run(&world(seconds, &link, served, &flows), 1, 0).unwrap());
                let could = mbps as f64 * 1e6 * f64::from(seconds) * PAYLOAD;
                let (had, has, sent) = (
                    bits(&raw, "file") / could,
                    bits(&served, "file") / could,
                    sent(&served),
                );
                let cell = format!(
                    "{mbps} Mbit/s, {round_trip_ms} ms, {kind}: sent {sent:.2}, has {has:.2}, had {had:.2}"
                );
                println!("{cell}");
                if sent > MOST_SENT || has < 0.9 {
                    wrong.push(cell);
                }
            }
        }
    }
    none(&wrong);
}

#[test]
fn no_number_of_outages_takes_the_rate() {
    let cuts: Vec<_> = (1..=9)
        .map(|cut| format!("{{ from = \"{}0 s\", to = \"{0}5 s\" }}", cut))
        .collect();
    let link = |outages: &str| {
        format!(
            "rate = \"20 Mbit/s\"\ndelay = \"25 ms\"\nqueue = \"125 kB\"\nerrors = {{ kind = \"uniform\", rate = 0.02 }}\noutages = [{outages}]"
        )
    };
    let mut wrong = vec![];
    for congestion in ["cubic", "bbr"] {
        let before = file(congestion, "")
            .replace("\"file\"", "\"before\"")
            .replace("packet = ", "size = \"10 MB\", packet = ");
        let flows = [
            before,
            stream("pings", 100, 4),
            file(congestion, "start = \"100 s\"\n"),
        ];
        let [with, without] = [cuts.join(", "), String::new()].map(|cuts| {
            let result = run(&world(110, &link(&cuts), true, &flows), 1, 0).unwrap();
            bits(&result, "file") / 10e6
        });
        let cell = format!("{congestion}: {with:.1} Mbit/s after nine cuts, {without:.1} without");
        println!("{cell}");
        if with < 0.9 * without {
            wrong.push(cell);
        }
    }
    none(&wrong);
}

#[test]
fn a_slow_link_and_a_satellite_are_no_worse_than_without() {
    let mut wrong = vec![];
    for (name, seconds, link) in [
        (
            "64 kbit/s",
            60,
            "rate = \"64 kbit/s\"\ndelay = \"50 ms\"\nqueue = \"16 kB\"",
        ),
        (
            "GEO",
            40,
            "rate = { down = \"40 Mbit/s\", up = \"5 Mbit/s\" }\ndelay = \"300 ms\"\nqueue = \"3 MB\"\nerrors = { kind = \"uniform\", rate = 0.003 }",
        ),
    ] {
        for congestion in ["cubic", "bbr"] {
            let flows = [file(congestion, "")];
            let [raw, served] = [false, true]
                .map(|served| run(&world(seconds, link, served, &flows), 1, 0).unwrap());
            let mbps = |result: &RunResult| bits(result, "file") / 1e6 / f64::from(seconds);
            let (had, has, sent) = (mbps(&raw), mbps(&served), sent(&served));
            let cell =
                format!("{name}, {congestion}: sent {sent:.2}, has {has:.3} Mbit/s, had {had:.3}");
            println!("{cell}");
            // Headers, and 3 %.
            if sent > MOST_SENT || has < 0.93 * had {
                wrong.push(cell);
            }
        }
    }
    none(&wrong);
}

/// Sending opportunities in Mahimahi's format: a sequence of rates in Mbit/s, each for some ms.
fn trace(rates: impl Iterator<Item = (f64, u32)>) -> Vec<u8> {
    let (mut text, mut packets, mut ms) = (String::new(), 0.0, 0u32);
    for (mbps, lasts) in rates {
        for _ in 0..lasts {
            ms += 1;
            packets += mbps * 1e3 / (1504.0 * 8.0);
            while packets >= 1.0 {
                packets -= 1.0;
                text += &format!("{ms}\n");
            }
        }
    }
    (text + &format!("{ms}\n")).into_bytes()
}

fn over_trace(
    seconds: u32,
    (down, up): (&[u8], &[u8]),
    delay_ms: u32,
    served: bool,
    flows: &[String],
) -> RunResult {
    let link = format!(
        "rate = {{ down = {{ kind = \"opportunities\", file = \"down\" }}, up = {{ kind = \"opportunities\", file = \"up\" }} }}\n\
         delay = \"{delay_ms} ms\"\nqueue = \"500 kB\""
    );
    let mut scenario = world(seconds, &link, served, flows);
    load_traces(&mut scenario, down, up);
    run(&scenario, 1, 0).unwrap()
}

pub(crate) fn load_traces(scenario: &mut Scenario, down: &[u8], up: &[u8]) {
    let read = |file: &_| Ok(if file == "down" { down } else { up }.to_vec());
    scenario.load_traces(read).unwrap();
}

#[test]
fn steps_of_the_rate_are_followed() {
    let mut wrong = vec![];
    for times in [2.0, 6.0, 20.0] {
        for congestion in ["cubic", "bbr"] {
            let (high, low) = (20.0, 20.0 / times);
            let steps = trace(
                [high, low]
                    .into_iter()
                    .cycle()
                    .take(4)
                    .map(|mbps| (mbps, 8_000)),
            );
            let flows = [file(congestion, ""), stream("call", 160, 64)];
            let results =
                [false, true].map(|served| over_trace(32, (&steps, &steps), 25, served, &flows));
            let [had, has] = results
                .each_ref()
                .map(|result| bits(result, "file") / (16e6 * (high + low) * PAYLOAD));
            let [waited, waits] = results.each_ref().map(|result| {
                result
                    .flows
                    .iter()
                    .find(|flow| flow.name == "call")
                    .unwrap()
                    .delay_p95_s
                    .unwrap()
            });
            let cell = format!(
                "by {times}, {congestion}: has {has:.2}, had {had:.2}; a call's 95 % {waits:.3} s, were {waited:.3} s"
            );
            println!("{cell}");
            if has < 0.85 || waits > waited {
                wrong.push(cell);
            }
        }
    }
    none(&wrong);
}
