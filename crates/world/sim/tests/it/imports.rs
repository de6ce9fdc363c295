//! Settings of other tools as scenarios: each scenario runs, and differences are noted.

use airlane_base::Probability;
use airlane_channel::{Distribution, ErrorModelConfig, JitterConfig};
use airlane_sim::import::{ImportedApp, ImportedScenario, NetemChoice, from_mahimahi, from_netem};
use airlane_sim::{Scenario, run};
use proptest::prelude::*;

const TRACE: &[u8] = b"1\n1\n2\n5\n5\n9\n10\n";

fn netem(text: &str) -> (Scenario, Vec<String>) {
    checked(from_netem(text, None, &NetemChoice::default(), &[ImportedApp::File]).unwrap())
}

fn mahimahi(text: &str) -> (Scenario, Vec<String>) {
    let read = |_: &str| Ok(TRACE.to_vec());
    checked(from_mahimahi(text, read, str::to_owned, &[ImportedApp::File]).unwrap())
}

fn checked(ImportedScenario { text, notes, .. }: ImportedScenario) -> (Scenario, Vec<String>) {
    let mut scenario = Scenario::from_toml(&text, "import.toml").unwrap();
    scenario.load_traces(|_| Ok(TRACE.to_vec())).unwrap();
    for note in &notes {
        assert!(text.contains(&format!("# - {note}\n")), "{note}\n{text}");
    }
    (scenario, notes)
}

fn refusal(text: &str) -> String {
    let error = from_netem(text, None, &NetemChoice::default(), &[]).unwrap_err();
    error.to_string()
}

fn noted(notes: &[String], part: &str) -> bool {
    notes.iter().any(|note| note.contains(part))
}

/// Each text is refused at its position, with a helpful message.
fn refused_at(refusal: impl Fn(&str) -> String, cases: &[(&str, &str, &str)]) {
    for (text, place, part) in cases {
        let said = refusal(text);
        assert!(
            said.starts_with(place) && said.contains(part),
            "{text:?}: {said}"
        );
    }
}

#[test]
fn exact_netem_settings_are_converted_exactly() {
    let (scenario, notes) =
        netem("tc qdisc add dev eth0 root netem delay 25ms rate 20mbit limit 100");
    let link = &scenario.links["link"];
    assert_eq!(link.rate.down.to_string(), "20 Mbit/s");
    assert_eq!(link.delay.to_string(), "25 ms down, 0 s up");
    assert_eq!(link.queue.unwrap().down.to_string(), "100 packets");
    assert_eq!(link.errors.down, ErrorModelConfig::None);
    assert!(scenario.to_toml().contains("profile = \"modern\""));
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(noted(&notes, "at most 82 segments"), "{notes:?}");

    let (scenario, _) = netem("loss gemodel 1% 10% 70% 0.1%");
    let ErrorModelConfig::GilbertElliott {
        good_to_bad,
        bad_to_good,
        loss_good,
        loss_bad,
    } = scenario.links["link"].errors.down
    else {
        panic!("{scenario:?}");
    };
    let values = [good_to_bad, bad_to_good, loss_good, loss_bad].map(|p| p.value());
    assert_eq!(values, [0.01, 0.1, 0.001, 0.7]);
}

/// What the author of a script looks for: each setting is in the file, or noted as left out.
#[test]
fn class_selectors_are_named_and_a_refusal_points_at_the_tree() {
    let script = "#!/bin/sh\n# two classes\ntc qdisc add dev e root handle 1: htb default 20\n\
                  tc class add dev e parent 1: classid 1:10 htb rate 5mbit prio 1\n\
                  tc class add dev e parent 1: classid 1:20 htb rate 1mbit prio 2\n\
                  tc filter add dev e protocol ip parent 1: prio 1 u32 match ip dport 80 0xffff flowid 1:10\n";
    let refused = refusal(script);
    assert!(refused.starts_with("line 3, column 35: "), "{refused}");
    assert!(refused.contains("--class: 1:10, 1:20"), "{refused}");
    let choice = NetemChoice {
        class: Some("1:10"),
        ..NetemChoice::default()
    };
    let (_, notes) = checked(from_netem(script, None, &choice, &[]).unwrap());
    for part in [
        "htb: default is left out",
        "htb: prio is left out",
        "filter: what it matches",
    ] {
        assert!(noted(&notes, part), "{part}: {notes:?}");
    }
    assert!(!noted(&notes, "window"), "no flow has one: {notes:?}");
    // An error about the whole text has no position.
    let two = refusal(
        "tc qdisc add dev a root netem delay 1ms\ntc qdisc add dev b root netem delay 2ms\n",
    );
    assert!(two.starts_with("more than one interface"), "{two}");
}

/// The defaults of `tc`.
#[test]
fn loss_models_have_the_defaults_of_tc() {
    let model = |text: &str| netem(text).0.links["link"].errors.down.clone();
    let same = [
        (
            "loss gemodel 20%",
            "loss gemodel p 20% r 80% 1-h 100% 1-k 0%",
        ),
        (
            "loss state 20%",
            "loss state p13 20% p31 80% p32 0% p23 100% p14 0%",
        ),
        ("loss state 20%", "loss gemodel 20%"),
        ("loss random 3", "loss 3%"),
        ("loss gemodel 0% 50%", "delay 0"),
        ("corrupt 5%", "loss 5%"),
    ];
    for (short, long) in same {
        assert_eq!(model(short), model(long), "{short}");
    }
}

/// The four states of `loss state` lose as many packets as the two states that replace them.
#[test]
fn four_states_lose_as_many_as_two() {
    let [p13, p31, p32, p23, p14] = [0.02, 0.1, 0.3, 0.4, 0.01];
    let (scenario, notes) = netem("loss state 2% 10% 30% 40% 1%");
    assert!(noted(&notes, "Gilbert-Elliott"), "{notes:?}");
    // States: received and lost in a gap, received and lost in a burst; by powers of the chain.
    let mut share = [1.0, 0.0, 0.0, 0.0];
    for _ in 0..10_000 {
        let [gap, isolated, received, lost] = share;
        share = [
            gap * (1.0 - p13 - p14) + isolated + lost * p31,
            gap * p14,
            received * (1.0 - p23) + lost * p32,
            gap * p13 + received * p23 + lost * (1.0 - p31 - p32),
        ];
    }
    let rate = airlane_base::Rate::from_bps(1_000).unwrap();
    let loss = scenario.links["link"].errors.down.loss_probability(rate, 1);
    assert!(
        (loss - share[1] - share[3]).abs() < 1e-9,
        "{loss} {share:?}"
    );
}

#[test]
fn jitter_and_reordering_are_those_of_netem() {
    for (text, delay, jitter, in_order) in [
        ("netem delay 25ms", "25 ms", None, false),
        (
            "netem delay 25ms 5ms distribution normal",
            "25 ms",
            Some(("5 ms", Distribution::Normal, "0 s", 0.0)),
            false,
        ),
        // One packet in ten is not delayed: the others are late.
        (
            "netem delay 20ms reorder 10%",
            "0 s",
            Some(("0 s", Distribution::Uniform, "20 ms", 0.9)),
            false,
        ),
        // With a rate, a packet waits for the one before it.
        (
            "netem rate 20mbit delay 25ms 5ms",
            "25 ms",
            Some(("5 ms", Distribution::Uniform, "0 s", 0.0)),
            true,
        ),
    ] {
        let (scenario, _) = netem(text);
        let link = &scenario.links["link"];
        assert_eq!(link.delay.down.to_string(), delay, "{text}");
        let found = link.jitter.and_then(|jitter| jitter.of(true));
        let shown = jitter.map(|(spread, distribution, late, share)| JitterConfig {
            spread: spread.parse().unwrap(),
            distribution,
            late: late.parse().unwrap(),
            share: Probability::new(share).unwrap(),
            in_order,
        });
        assert_eq!(found, shown, "{text}");
        assert!(link.jitter.is_none_or(|jitter| jitter.of(false).is_none()));
    }
}

#[test]
fn tc_output_is_read_and_differences_are_named() {
    let text = "qdisc noqueue 0: dev lo root refcnt 2 \n\
        qdisc netem 1: dev eth0 root refcnt 2 limit 500 delay 25ms  5ms 25% loss gemodel p 1% r 10% \
        1-h 70% 1-k 0.1% duplicate 1% reorder 2% 50% corrupt 0.1% rate 20Mbit packetoverhead 20 slot 10ms 20ms gap 5\n \
        Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n backlog 0b 0p requeues 0\n\
        qdisc tbf 2: dev eth0 parent 1: rate 10Mbit burst 4Kb lat 400ms \n";
    let (scenario, notes) = netem(text);
    let link = &scenario.links["link"];
    assert_eq!(link.rate.down.to_string(), "10 Mbit/s");
    assert_eq!(link.queue.unwrap().down.to_string(), "504.096 kB");
    for part in [
        "correlation of 25%",
        "duplicate 1%",
        "gap 5",
        "has jitter, too",
        "corrupt",
        "overhead",
        "slot",
        "burst",
        "lowest",
        "before they wait",
        "--reverse",
    ] {
        assert!(noted(&notes, part), "{part}: {notes:?}");
    }
    let two = format!("{text}qdisc netem 3: dev eth1 root limit 1000 loss 3%\n");
    assert!(
        refusal(&two).contains("--dev: eth0, eth1"),
        "{}",
        refusal(&two)
    );
    let one = from_netem(
        &two,
        Some("delay 7ms"),
        &NetemChoice {
            device: Some("eth1"),
            ..NetemChoice::default()
        },
        &[ImportedApp::Web, ImportedApp::Voice],
    )
    .unwrap();
    let (scenario, _) = checked(one);
    assert_eq!(
        scenario.links["link"].delay.to_string(),
        "0 s down, 7 ms up"
    );
    assert_eq!(scenario.flows.len(), 2);
}

#[test]
fn refusals_name_the_place_and_what_could_stand_there() {
    refused_at(
        refusal,
        &[
            ("", "line 1, column 1:", "tc qdisc show"),
            (
                "netem delay",
                "line 1, column 7:",
                "nothing comes after \"delay\"",
            ),
            (
                "netem delay 25 ms",
                "line 1, column 16:",
                "\"ms\" is not known here",
            ),
            ("netem delay 25mm", "line 1, column 13:", "a time"),
            ("netem loss 101%", "line 1, column 12:", "0% to 100%"),
            ("netem loss NaN", "line 1, column 12:", "gemodel"),
            ("netem rate 5mph", "line 1, column 12:", "20mbit"),
            (
                "netem\nqdisc foo 1: root",
                "line 2, column 7:",
                "a qdisc that tc knows",
            ),
            ("tc qdisc show dev x", "line 1, column 10:", "from-netem -"),
            ("netem loss state 1% 1% 1% 0%", "line 1, column 18:", "p23"),
            ("tbf burst 5", "line 1, column 5:", "no rate"),
            (
                "netem delay 99999999999s",
                "line 1, column 13:",
                "longer than any run",
            ),
            ("wifi loss 3%", "line 1, column 1:", "\"wifi\""),
            (
                "qdisc noqueue 0: root",
                "nothing here is shaped",
                "tc qdisc show",
            ),
        ],
    );
}

#[test]
fn shells_become_one_link() {
    let (scenario, notes) = mahimahi(
        "mm-delay 25 mm-loss uplink 0.05 mm-link UP.trace DOWN.trace --uplink-queue=droptail \
         --uplink-queue-args=packets=100 --downlink-queue codel --downlink-queue-args=\"bytes=3000, target=5\" \
         -- iperf -c 1",
    );
    let link = &scenario.links["link"];
    assert_eq!(link.rate.up.to_string(), "opportunities of UP.trace");
    assert_eq!(link.rate.down.to_string(), "opportunities of DOWN.trace");
    // 7 x 1504 B in 10 ms.
    assert_eq!(link.rate.down.mean().unwrap().as_bps(), 8_422_400);
    assert_eq!(link.delay.to_string(), "25 ms");
    assert_eq!(link.queue.unwrap().to_string(), "3 kB down, 100 packets up");
    assert_eq!(link.errors.down, ErrorModelConfig::None);
    assert!(matches!(link.errors.up, ErrorModelConfig::Uniform { rate } if rate.value() == 0.05));
    assert!(noted(&notes, "codel: drop-tail") && noted(&notes, "iperf: is not run"));
    assert_eq!(
        notes.len(),
        4,
        "an upward packet is lost behind mm-link: {notes:?}"
    );

    let (scenario, notes) =
        mahimahi("mm-link U D mm-loss uplink 0.1 mm-loss uplink 0.1 mm-onoff downlink 2 0.5");
    let link = &scenario.links["link"];
    assert!(matches!(link.errors.up, ErrorModelConfig::Uniform { rate }
        if (rate.value() - 0.19).abs() < 1e-12));
    assert!(matches!(
        link.errors.down,
        ErrorModelConfig::TwoStateArrival { .. }
    ));
    assert!(
        noted(&notes, "mm-loss uplink: there") && !noted(&notes, "mm-onoff"),
        "{notes:?}"
    );
}

#[test]
fn unsupported_queue_settings_are_named() {
    let (_, notes) = mahimahi(
        "mm-link --downlink-queue=codel --downlink-queue-args=packets=100,target=5,interval=100 \
         --uplink-queue-args=packets=7 U D",
    );
    assert!(
        noted(&notes, "--downlink-queue-args: target, interval left out"),
        "{notes:?}"
    );
    assert!(
        noted(&notes, "--uplink-queue-args: packets left out"),
        "{notes:?}"
    );
    let window = notes.iter().find(|note| note.starts_with("window: "));
    assert!(window.is_some(), "{notes:?}");
}

#[test]
fn shells_that_make_no_link_are_refused() {
    let refusal = |text: &str| {
        let read = |file: &str| match file {
            "bad" => Ok(b"5\n4\n".to_vec()),
            "none" => Err("no such file".to_owned()),
            _ => Ok(TRACE.to_vec()),
        };
        from_mahimahi(text, read, str::to_owned, &[])
            .unwrap_err()
            .to_string()
    };
    refused_at(
        refusal,
        &[
            ("", "line 1, column 1:", "mm-delay"),
            ("delay 25", "line 1, column 1:", "mm-link"),
            ("mm-delay 2.5", "line 1, column 10:", "milliseconds"),
            ("mm-delay", "line 1, column 1:", "nothing comes after"),
            ("mm-loss both 0.1", "line 1, column 9:", "\"uplink\""),
            ("mm-loss uplink 5%", "line 1, column 16:", "0 to 1"),
            ("mm-link a", "line 1, column 9:", "traces"),
            (
                "mm-link a bad",
                "line 1, column 11:",
                "line 2: 4 ms comes after 5 ms",
            ),
            ("mm-link none b", "line 1, column 9:", "no such file"),
            (
                "mm-link a b --colour",
                "line 1, column 13:",
                "--uplink-queue",
            ),
            (
                "mm-link a b --uplink-queue=droptail",
                "line 1, column 13:",
                "-queue-args",
            ),
            (
                "mm-link a b mm-link c d",
                "line 1, column 13:",
                "second mm-link",
            ),
            ("mm-delay 5 mm-meter", "line 1, column 12:", "\"mm-meter\""),
            (
                "mm-loss uplink 0.1 mm-onoff uplink 1 1",
                "line 1, column 36:",
                "one kind of loss",
            ),
        ],
    );
}

/// A link with opportunities carries as much as they allow, with and without services.
#[test]
fn a_transfer_fills_the_opportunities() {
    let (mut scenario, _) = mahimahi(
        "mm-delay 5 mm-link U D --downlink-queue=droptail --downlink-queue-args=packets=50 --uplink-queue=droptail --uplink-queue-args=packets=50",
    );
    let result = run(&scenario, 1, 0).unwrap();
    // 8.4224 Mbit/s, minus the beginning of slow start.
    let bps = result.flows[0].throughput_bps.unwrap();
    assert!((7.8e6..=8.12e6).contains(&bps), "{bps}");
    assert_eq!(run(&scenario, 1, 0).unwrap(), result);

    let services = "links.link.services=[{ number = 1, name = \"all\", rate = 1, scheme = { kind = \"sr-m2\" } }]";
    let changes = [
        services,
        "links.link.frame=1504 B",
        "links.link.header=live",
        "links.link.rate-limit=estimated",
    ];
    scenario = Scenario::from_toml_with(&scenario.to_toml(), "services.toml", &changes).unwrap();
    scenario.load_traces(|_| Ok(TRACE.to_vec())).unwrap();
    let result = run(&scenario, 1, 0).unwrap();
    let bps = result.flows[0].throughput_bps.unwrap();
    assert!((6e6..=8.4224e6).contains(&bps), "{bps}");
}

/// The same trace under another name makes another file of the same world; another trace makes another world.
#[test]
fn the_hash_knows_the_trace() {
    let of = |trace: &'static [u8]| {
        let (mut scenario, _) = mahimahi("mm-link U D");
        scenario.load_traces(|_| Ok(trace.to_vec())).unwrap();
        scenario.hash()
    };
    assert_eq!(of(TRACE), of(TRACE));
    assert_ne!(of(TRACE), of(b"1\n1\n2\n5\n5\n8\n10\n"));
}

#[test]
fn errors_that_count_bits_in_time_need_a_constant_rate() {
    let (scenario, _) = mahimahi("mm-link U D");
    let two = "links.link.errors={ kind = \"two-state\", good = \"1 s\", bad = \"1 s\", ber_good = 0, ber_bad = 1 }";
    let error = Scenario::from_toml_with(&scenario.to_toml(), "w", &[two]).unwrap_err();
    assert!(error.to_string().contains("two-state-arrival"), "{error}");
    let unread = Scenario::from_toml(&scenario.to_toml(), "w").unwrap();
    let error = run(&unread, 1, 0).unwrap_err().to_string();
    assert!(error.contains("load_traces"), "{error}");
}

/// Words that netem and Mahimahi know, and others.
fn words() -> impl Strategy<Value = String> {
    const KNOWN: &[&str] = &[
        "tc",
        "qdisc",
        "add",
        "show",
        "dev",
        "eth0",
        "eth1",
        "root",
        "parent",
        "1:",
        "handle",
        "netem",
        "tbf",
        "pfifo",
        "fq_codel",
        "noqueue",
        "limit",
        "delay",
        "loss",
        "random",
        "state",
        "gemodel",
        "p",
        "r",
        "1-h",
        "1-k",
        "p13",
        "p31",
        "p32",
        "p23",
        "p14",
        "corrupt",
        "duplicate",
        "reorder",
        "gap",
        "rate",
        "packetoverhead",
        "slot",
        "distribution",
        "normal",
        "ecn",
        "seed",
        "burst",
        "latency",
        "lat",
        "peakrate",
        "25ms",
        "5%",
        "25%",
        "0%",
        "100%",
        "20mbit",
        "1e9",
        "1000",
        "0",
        "32kb",
        "4Kb/8",
        "-1",
        "1000gb",
        "999999999s",
        "0.0001bit",
        "1000tbit",
        "\n",
        ";",
        "\\\n",
        "'",
        "mm-delay",
        "mm-loss",
        "mm-onoff",
        "mm-link",
        "uplink",
        "downlink",
        "0.05",
        "0.5",
        "2",
        "UP",
        "DOWN",
        "--once",
        "--uplink-queue=droptail",
        "--uplink-queue-args=packets=100",
        "--downlink-queue",
        "codel",
        "--",
        "bash",
        "ü",
        "\u{7}",
    ];
    prop::collection::vec(prop::sample::select(KNOWN).prop_map(str::to_owned), 0..14)
        .prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Any words are either refused or make a valid scenario.
    #[test]
    fn any_accepted_import_runs(
        text in words(),
        start in prop::sample::select(&["", "netem", "tc qdisc add dev eth0 root netem", "mm-link U D"][..]),
        reverse in prop::option::of(words()),
    ) {
        let apps = [ImportedApp::File, ImportedApp::Web, ImportedApp::Voice];
        let text = format!("{start} {text}");
        if let Ok(import) = from_netem(&text, reverse.as_deref(), &NetemChoice::default(), &apps) {
            checked(import);
        }
        if let Ok(import) = from_mahimahi(&text, |_| Ok(TRACE.to_vec()), str::to_owned, &apps) {
            checked(import);
        }
    }

    #[test]
    fn any_text_is_handled_without_panic(text in any::<String>()) {
        _ = from_netem(&text, None, &NetemChoice::default(), &[]);
        _ = from_mahimahi(&text, |_| Ok(TRACE.to_vec()), str::to_owned, &[]);
    }
}
