//! Files over CLAP on 802.11b channels (Gopal 2007, chapters 4 and 5).

use airlane_sim::{FlowResult, RunResult, Scenario, run};

/// `flows` stations, each sending a file of 1 MB to a host of its own beyond the access point.
fn wlan(flows: usize, clap: &str) -> String {
    let mut text = "schema = 1\nname = \"wlan\"\nduration = \"100 s\"\n[media.air]\nkind = \"wifi\"\nretries = \"off\"\n\
         source-header = \"20 B\"\n[media.air.nodes]\nap = [0, 0]\n"
        .to_owned();
    // All 7.2 m from the access point, so that capture has no effect.
    let places = [
        (7.2, 0.0),
        (-7.2, 0.0),
        (0.0, 7.2),
        (0.0, -7.2),
        (4.32, 5.76),
    ];
    for (i, (x, y)) in places.iter().take(flows).enumerate() {
        text += &format!("s{i} = [{x}, {y}]\n");
    }
    text += "[nodes.ap]\n";
    for i in 0..flows {
        text += &format!("[nodes.s{i}]\n[nodes.d{i}]\n");
        text += &format!(
            "[links.wire{i}]\nends = [\"ap\", \"d{i}\"]\nrate = \"10 Mbit/s\"\ndelay = \"2 ms\"\n"
        );
    }
    for i in 0..flows {
        text += &format!(
            "[[flows]]\nname = \"f{i}\"\nends = [\"s{i}\", \"d{i}\"]\nstart = \"{} ms\"\n\
             transport = {{ kind = \"clap\", {clap} }}\n\
             app = {{ kind = \"bulk\", size = \"1 MB\", packet = \"1000 B\" }}\n\
             progress = {{ group = \"all\" }}\n",
            100 * i
        );
    }
    text
}

fn play(text: &str, seed: u64) -> RunResult {
    let scenario = Scenario::from_toml(text, "clap").unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, seed, 0).unwrap()
}

fn time_s(flow: &FlowResult) -> f64 {
    flow.progress.as_ref().and_then(|p| p.time_s).unwrap()
}

fn check(result: &RunResult) {
    for flow in &result.flows {
        assert_eq!(flow.finished, Some(true), "{}", flow.name);
        assert_eq!(flow.delivered_bytes, 1_000_000);
        let duplicates = flow.duplicates.unwrap();
        assert_eq!(flow.packets_received, 1_000 + duplicates);
    }
}

#[test]
fn one_file_takes_what_was_published_for_one_hop() {
    // CLAP-S4.1.2-r2 gives 1.7 s, the model of CLAP-D16 and D20 1.68 to 1.70 s.
    for version in ["beta", "final"] {
        for seed in 1..=8 {
            let result = play(&wlan(1, &format!("version = \"{version}\"")), seed);
            check(&result);
            let time = time_s(&result.flows[0]);
            println!(
                "{version} {seed}: {time:.3} s, {:?} duplicates, {:?} nacks",
                result.flows[0].duplicates, result.flows[0].nacks
            );
            assert!((1.65..=1.75).contains(&time), "{version} {seed}: {time}");
        }
    }
}

#[test]
fn five_files_of_beta_take_what_was_published() {
    // CLAP-S4.1.3-r2 gives 12 s, the model of CLAP-D20 11.1 s and 33 % duplicates. With SYNs the model gives 11.9 s,
    // without 11.2. A single run is published, which we take for the mean (CLAP-Z30): single runs here take 9 to
    // 13 s, and 17 s if a station loses four SYNs or the responses to them, and waits 15 s for the next.
    const RUNS: u64 = 20;
    let mut sum = 0.0;
    for seed in 1..=RUNS {
        let result = play(&wlan(5, "version = \"beta\""), seed);
        check(&result);
        let last = result.groups[0].last_s.unwrap();
        let duplicates: u64 = result.flows.iter().filter_map(|f| f.duplicates).sum();
        println!(
            "beta {seed}: {last:.2} s, {:.1} % duplicates",
            duplicates as f64 / 50.0
        );
        sum += last;
    }
    let mean = sum / RUNS as f64;
    println!("beta: {mean:.2} s");
    assert!((10.5..=13.0).contains(&mean), "{mean}");
}

#[test]
fn final_sends_nothing_twice_before_it_sweeps() {
    // CLAP-S5-r1; the model of CLAP-D20 gives 9.1 s for five files and 0 to 9 % duplicates.
    for seed in 1..=4 {
        let result = play(&wlan(5, "version = \"final\""), seed);
        check(&result);
        let last = result.groups[0].last_s.unwrap();
        for flow in &result.flows {
            let duplicates = flow.duplicates.unwrap();
            println!(
                "final {seed}: {last:.2} s, {} {duplicates} duplicates",
                flow.name
            );
            assert_eq!(flow.duplicates_before_sweep, Some(0));
            assert!(duplicates < 100, "{duplicates}");
        }
    }
}

#[test]
fn a_flow_that_clap_cannot_carry_is_refused_with_its_place() {
    let whole = wlan(2, "version = \"final\"");
    let cases = [
        (
            "size = \"1 MB\", ",
            "",
            "flows[0].app.size",
            "how long a file is",
        ),
        (
            "size = \"1 MB\", packet = \"1000 B\"",
            "size = \"1 GB\", packet = \"1 B\"",
            "flows[0].app.size",
            "numbers",
        ),
        (
            "[\"s0\", \"d0\"]",
            "[\"d0\", \"s0\"]",
            "flows[0].transport",
            "a station of a radio channel",
        ),
        (
            "kind = \"clap\", ",
            "kind = \"clap\", interval = \"50 ms\", ",
            "flows[0].transport.interval",
            "50 ms and of 100 ms",
        ),
        (
            "kind = \"clap\", ",
            "kind = \"clap\", queue-share = 2, ",
            "flows[0].transport",
            "queue-share = 2",
        ),
        (
            "version = \"final\"",
            "version = \"beta\", nack-threshold = 8",
            "flows[0].transport",
            "nack-threshold does nothing with version = \"beta\"",
        ),
        (
            "transport = ",
            "encrypted = true\ntransport = ",
            "flows[0].encrypted",
            "not encrypted",
        ),
        (
            "kind = \"bulk\", ",
            "kind = \"bulk\", windows = true, ",
            "flows[0].app.windows",
            "no windows",
        ),
        (
            "{ kind = \"bulk\", size = \"1 MB\", ",
            "{ kind = \"pages\", request = \"10 B\", reply = \"1 kB\", ",
            "flows[0].transport.kind",
            "pages does not run over clap",
        ),
    ];
    for (from, to, place, problem) in cases {
        let text = whole.replacen(from, to, 1);
        assert_ne!(text, whole);
        let error = Scenario::from_toml(&text, "clap").unwrap_err().to_string();
        assert!(error.contains(place) && error.contains(problem), "{error}");
    }
}
