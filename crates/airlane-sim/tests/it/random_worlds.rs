//! Any world that a file can describe either is refused or runs, twice the same, and loses nothing
//! without counting it.

use std::fmt::Write as _;

use airlane_sim::{Scenario, run};
use proptest::prelude::*;

#[derive(Clone, Debug)]
struct RandomLink {
    rate_kbps: u32,
    delay_ms: u32,
    frame: u32,
    queue: u32,
    errors: &'static str,
    schemes: Vec<&'static str>,
    scheduler: &'static str,
    header: &'static str,
    handed_over: &'static str,
    medium: &'static str,
}

const ERRORS: [&str; 5] = [
    "{ kind = \"none\" }",
    "{ kind = \"uniform\", rate = 0.2 }",
    "{ kind = \"uniform\", rate = 1.0 }",
    "{ kind = \"two-state\", good = \"1 s\", bad = \"300 ms\", ber_good = 1e-6, ber_bad = 0.01 }",
    "{ kind = \"gilbert-elliott\", good_to_bad = 0.05, bad_to_good = 0.3, loss_good = 0.01, \
     loss_bad = 0.8 }",
];
const MEDIA: [&str; 3] = ["", "medium = \"half\"\n", "medium = \"full\"\n"];
const SCHEMES: [&str; 5] = [
    "{ kind = \"default\" }",
    "{ kind = \"sr-m2\" }",
    "{ kind = \"sr-m2\", window = 3, timers = \"relaxed\", timer-origin = \"hand-over\" }",
    "{ kind = \"rlp\", retries = 2, timers = \"tight\" }",
    "{ kind = \"rlp-oos\", window = 8 }",
];
const APPS: [&str; 8] = [
    "transport = { kind = \"tcp\" }\napp = { kind = \"bulk\" }\n",
    "transport = { kind = \"tcp\", profile = \"ns2-1999\", window = 7 }\napp = { kind = \"bulk\", size = \"20 kB\" }\n",
    "transport = { kind = \"tcp\" }\n\
     app = { kind = \"pages\", request = \"200 B\", reply = \"1 kB\", pause = \"20 ms\" }\n",
    "transport = { kind = \"tcp\", profile = \"ns2-1999\" }\napp = { kind = \"web\" }\n",
    "transport = { kind = \"tcp\" }\n\
     app = { kind = \"web\", parallel = 2, persistent = true, completion = \"delivered\", \
     files = \"total\", think = \"20 ms\" }\n",
    "transport = { kind = \"tcp\", profile = \"ns2-1999\" }\n\
     app = { kind = \"telnet\", interval = \"50 ms\", keystroke = \"40 B\" }\n",
    "transport = { kind = \"tcp\" }\napp = { kind = \"mail\", pause = \"0 s\" }\n",
    "dscp = \"EF\"\ntransport = { kind = \"udp\" }\n\
     app = { kind = \"conferencing\", rate = \"32 kbit/s\", talk = \"1 s\", silence = \"0.5 s\" }\n",
];

fn random_link() -> impl Strategy<Value = RandomLink> {
    (
        10u32..2_000,
        0u32..200,
        // An acknowledgment of today's TCP has up to 80 bytes.
        80u32..1_500,
        0u32..60,
        prop::sample::select(&ERRORS[..]),
        prop::collection::vec(prop::sample::select(&SCHEMES[..]), 0..4),
        prop::sample::select(&["scfq", "fifo"][..]),
        prop::sample::select(&["study", "live"][..]),
        prop::sample::select(&["1", "3", "\"unlimited\""][..]),
        prop::sample::select(&MEDIA[..]),
    )
        .prop_map(
            |(
                rate_kbps,
                delay_ms,
                frame,
                queue,
                errors,
                schemes,
                scheduler,
                header,
                handed_over,
                medium,
            )| {
                RandomLink {
                    rate_kbps,
                    delay_ms,
                    frame,
                    queue,
                    errors,
                    schemes,
                    scheduler,
                    header,
                    handed_over,
                    medium,
                }
            },
        )
}

/// A line of nodes `n0 - n1 - ...` with these links between them.
fn world(links: &[RandomLink], flows: &[(&str, bool)], drain_ms: u32) -> String {
    let mut text = format!(
        "schema = 1\nname = \"random\"\nduration = \"20 s\"\ndrain = \"{drain_ms} ms\"\n\
         [media.half]\nkind = \"half-duplex\"\noverhead = \"1 ms\"\n\
         [media.full]\nkind = \"full-duplex\"\noverhead = \"1 ms\"\n"
    );
    let nodes = links.len();
    (0..=nodes).for_each(|n| writeln!(text, "[nodes.n{n}]").expect("text grows"));
    for (i, link) in links.iter().enumerate() {
        let RandomLink {
            rate_kbps,
            delay_ms,
            frame,
            queue,
            errors,
            medium,
            ..
        } = link;
        write!(
            text,
            "[links.l{i}]\nends = [\"n{i}\", \"n{}\"]\nrate = \"{rate_kbps} kbit/s\"\n\
             delay = \"{delay_ms} ms\"\nframe = \"{frame} B\"\nqueue = \"{queue} packets\"\n\
             errors = {errors}\n{medium}",
            i + 1
        )
        .expect("text grows");
        if link.schemes.is_empty() {
            continue;
        }
        write!(
            text,
            "scheduler = {{ kind = \"{}\" }}\nheader = \"{}\"\nhanded-over = {}\n",
            link.scheduler, link.header, link.handed_over
        )
        .expect("text grows");
        for (s, scheme) in link.schemes.iter().enumerate() {
            let number = s + 1;
            write!(
                text,
                "[[links.l{i}.services]]\nnumber = {number}\nname = \"s{number}\"\nrate = 0.{number}\n\
                 scheme = {scheme}\n"
            )
            .expect("text grows");
        }
        text += &format!(
            "[[links.l{i}.classes]]\nmatch = {{ protocol = \"tcp\" }}\nservice = \"s1\"\n\
             [[links.l{i}.classes]]\nmatch = {{ dscp = \"EF\" }}\nservice = \"s{}\"\n",
            link.schemes.len()
        );
    }
    for (f, (app, reversed)) in flows.iter().enumerate() {
        let (a, b) = if *reversed { (nodes, 0) } else { (0, nodes) };
        text += &format!("[[flows]]\nname = \"f{f}\"\nends = [\"n{a}\", \"n{b}\"]\n{app}");
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_worlds_run_and_account_for_every_frame(
        links in prop::collection::vec(random_link(), 1..4),
        flows in prop::collection::vec((prop::sample::select(&APPS[..]), any::<bool>()), 1..5),
        drain_ms in prop_oneof![Just(0), 0u32..2_000, Just(30_000)],
        seed in 0u64..1_000,
    ) {
        let text = world(&links, &flows, drain_ms);
        let scenario = Scenario::from_toml(&text, "random").unwrap_or_else(|e| panic!("{e}"));
        let result = run(&scenario, seed, 0).unwrap();
        prop_assert_eq!(&run(&scenario, seed, 0).unwrap(), &result);
        for flow in &result.flows {
            prop_assert!(flow.packets_received <= flow.packets_sent, "{:?}", flow);
            if let Some(loss) = flow.loss_ratio {
                prop_assert!((0.0..=1.0).contains(&loss));
            }
        }
        // One transmitter for all that share it: what one sends the others wait for.
        let shared = result.links.iter().zip(&links).filter(|(_, link)| link.medium.contains("half"));
        let ways = shared.flat_map(|(link, _)| [&link.down, &link.up]);
        let used: f64 = ways.map(|way| way.utilisation_ratio).sum();
        prop_assert!(used <= 1.0 + 1e-9, "{}", used);
        for link in &result.links {
            for direction in [&link.down, &link.up] {
                let c = direction.channel;
                let ends = [c.dropped_queue, c.lost_air, c.delivered, direction.under_way];
                prop_assert_eq!(ends.iter().map(|end| end.frames).sum::<u64>(), c.offered.frames);
                prop_assert_eq!(ends.iter().map(|end| end.bytes).sum::<u64>(), c.offered.bytes);
                prop_assert!((0.0..=1.0).contains(&direction.utilisation_ratio));
                for service in &direction.services {
                    let s = &service.sender;
                    let left = s.packets_sent + s.packets_dropped();
                    prop_assert_eq!(left + service.waiting_packets, s.packets_offered);
                    prop_assert!(service.receiver.packets_delivered <= s.packets_sent);
                }
            }
        }
    }
}
