//! Worlds whose stations contend for the air.

use airlane_sim::{RunResult, Scenario, run};

/// A chain of nodes `n0`, `n1` ... this many metres apart.
fn chain(hops: usize, spacing: u32, medium: &str, flow: &str) -> String {
    let mut text = format!(
        "schema = 1\nname = \"chain\"\nduration = \"40 s\"\ndrain = \"0 s\"\n[media.mesh]\nkind = \"wifi\"\n{medium}\n[media.mesh.nodes]\n"
    );
    for i in 0..=hops {
        text += &format!("n{i} = [{}, 0]\n", i as u32 * spacing);
    }
    for i in 0..=hops {
        text += &format!("[nodes.n{i}]\n");
    }
    text + &format!("[[flows]]\nname = \"flow\"\nends = [\"n0\", \"n{hops}\"]\n{flow}")
}

/// One packet of 1000 B each millisecond.
const SATURATING: &str = "transport = { kind = \"udp\" }\n\
     app = { kind = \"conferencing\", rate = \"8 Mbit/s\", packet = \"1000 B\", talk = \"1000 s\", silence = \"0 s\" }\n";

fn play(text: &str) -> RunResult {
    let scenario = Scenario::from_toml(text, "wifi").unwrap_or_else(|e| panic!("{e}"));
    run(&scenario, 1, 0).unwrap()
}

fn mbps(result: &RunResult) -> f64 {
    result.flows[0].throughput_bps.unwrap() / 1e6
}

#[test]
fn a_saturating_flow_gets_what_one_station_can_send() {
    // CLAP-D5 and D15.
    for (profile, expected) in [("802.11b", 4.91), ("802.11b-short", 5.80)] {
        let medium =
            format!("profile = \"{profile}\"\nretries = \"off\"\nsource-header = \"20 B\"");
        let got = mbps(&play(&chain(1, 200, &medium, SATURATING)));
        assert!((got - expected).abs() < 0.03, "{profile}: {got}");
    }
}

#[test]
fn each_hop_of_a_chain_costs_its_share() {
    // CLAP-D22, without capture: a model of the same rules, 200 m apart. The model is a forecast and 10 % is how far
    // chains of 7 and 8 hops are above it (7 and 9 %), so that this test guards what we have and judges nothing.
    let model = [5.78, 3.09, 2.10, 1.60, 1.16, 0.96, 0.86, 0.81];
    for (hops, expected) in (1..).zip(model) {
        let medium = "profile = \"802.11b-short\"\ncapture = false\nqueue = \"100 packets\"\nsource-header = \"20 B\"";
        let result = play(&chain(hops, 200, medium, SATURATING));
        let got = mbps(&result);
        println!("{hops}: {got:.3} {expected}");
        let off = (got / expected - 1.0).abs();
        assert!(off < 0.1, "{hops} hops: {got}");
    }
}

#[test]
fn a_file_goes_over_the_air_and_a_wire() {
    let text = "schema = 1\nname = \"wlan\"\nduration = \"60 s\"\nuntil = \"file\"\n\
        [nodes.station]\n[nodes.ap]\n[nodes.sink]\n\
        [media.air]\nkind = \"wifi\"\nnodes = { station = [7.2, 0], ap = [0, 0] }\nsource-header = \"20 B\"\n\
        [links.wire]\nends = [\"ap\", \"sink\"]\nrate = \"10 Mbit/s\"\ndelay = \"2 ms\"\n\
        [[flows]]\nname = \"file\"\nends = [\"station\", \"sink\"]\n\
        transport = { kind = \"tcp\", profile = \"ns2-1999\", variant = \"reno\", window = 1000 }\n\
        app = { kind = \"bulk\", size = \"1 MB\", packet = \"1000 B\" }\n";
    let result = play(text);
    assert!(result.finished);
    let [ap, station] = &result.radios[0].stations[..] else {
        panic!("two stations")
    };
    // What is taken is given up or delivered, and only what was sent at one time collides.
    assert_eq!(
        station.counts.accepted,
        ap.counts.delivered + station.counts.retry_drops
    );
    assert_eq!(station.counts.data_collided, ap.counts.data_collided);
    assert!(station.counts.data_collided > 0 && station.counts.queue_drops > 0);
    assert_eq!(
        station.counts.data_frames,
        station.counts.accepted + station.counts.data_collided
    );
}

/// The grid of 16 nodes, `n00` to `n15` row by row.
fn grid(spacing: u32, extra: &str, ends: [u32; 2]) -> RunResult {
    let mut text = format!(
        "schema = 1\nname = \"grid\"\nduration = \"20 s\"\ndrain = \"0 s\"\n[media.mesh]\nkind = \"wifi\"\n\
         profile = \"802.11b-short\"\nretries = \"off\"\nsource-header = \"20 B\"\n{extra}\n[media.mesh.nodes]\n"
    );
    for i in 0..16 {
        text += &format!("n{i:02} = [{}, {}]\n", i % 4 * spacing, i / 4 * spacing);
    }
    for i in 0..16 {
        text += &format!("[nodes.n{i:02}]\n");
    }
    let [from, to] = ends;
    play(
        &(text
            + &format!(
                "[[flows]]\nname = \"flow\"\nends = [\"n{from:02}\", \"n{to:02}\"]\n{SATURATING}"
            )),
    )
}

#[test]
fn a_flow_crosses_the_grid_on_the_way_that_the_file_says() {
    // CLAP-D21: 2.06 Mbit/s and 13 % lost of what the source sent; with noise 1.84 and 25 %. It is a forecast too, and
    // the bounds guard what we have.
    for (noise, expected, lost) in [
        ("", 2.06, 0.13),
        (
            "noise = [{ loss = 0.06, on = \"1 s\", off = \"0 s\" }]",
            1.84,
            0.25,
        ),
    ] {
        let extra = format!("routes = [[\"n01\", \"n06\", \"n11\", \"n14\"]]\n{noise}");
        let result = grid(170, &extra, [1, 14]);
        let stations = &result.radios[0].stations;
        let used: Vec<_> = stations
            .iter()
            .filter(|s| s.counts.delivered > 0)
            .map(|s| s.node.as_str())
            .collect();
        assert_eq!(used, ["n06", "n11", "n14"]);
        let sent = stations[1].counts.data_frames as f64;
        let got_lost = 1.0 - stations[14].counts.delivered as f64 / sent;
        println!("{:.3} {expected} {got_lost:.3} {lost}", mbps(&result));
        assert!((mbps(&result) / expected - 1.0).abs() < 0.1);
        assert!((got_lost - lost).abs() < 0.05);
    }
}

#[test]
fn without_diagonals_a_row_is_three_hops() {
    let result = grid(200, "", [4, 7]);
    let used = result.radios[0]
        .stations
        .iter()
        .filter(|s| s.counts.delivered > 0);
    let used: Vec<_> = used.map(|s| s.node.as_str()).collect();
    assert_eq!(used, ["n05", "n06", "n07"]);
    // A knight's move is no hop there.
    assert!(grid(200, "", [0, 5]).radios[0].stations[5].counts.delivered > 0);
}

#[test]
fn a_weak_signal_is_met_with_a_slower_rate() {
    let world = |more: &str| {
        let signal = "signal = { noise-dbm = -94, changes = [{ between = [\"n0\", \"n1\"], trace = [[20, -28]] }] }";
        let result = play(&chain(1, 200, &format!("{signal}\n{more}"), SATURATING));
        let sent = result.radios[0].stations[0].counts;
        (
            mbps(&result),
            sent.data_noise as f64 / sent.data_frames as f64,
        )
    };
    // 11 Mbit/s come for half of the time; a slower rate has the other half as well.
    let (fixed, lost) = world("");
    assert!((2.3..2.6).contains(&fixed) && lost > 0.05, "{fixed} {lost}");
    let (chosen, lost) = world("rate-control = \"arf\"");
    assert!(chosen > fixed + 0.4 && lost < 0.2, "{chosen} {lost}");
}

#[test]
fn a_radio_that_cannot_be_is_refused_with_its_place() {
    let flow = "transport = { kind = \"udp\" }\napp = { kind = \"conferencing\", rate = \"8 kbit/s\", talk = \"1 s\", silence = \"1 s\" }\n";
    let whole = chain(2, 200, "", flow);
    let cases = [
        (
            "[nodes.n1]\n",
            "",
            "media.mesh.nodes.n1",
            "there is no node",
        ),
        (
            "n2 = [400, 0]",
            "n2 = [600, 0]",
            "flows[0].ends",
            "no links join",
        ),
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nroutes = [[\"n0\", \"n2\"]]",
            "media.mesh.routes[0][0]",
            "does not reach",
        ),
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nstations = { n9 = { retries = \"off\" } }",
            "media.mesh.stations.n9",
            "there is no station",
        ),
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nprofile = \"802.11ax\"",
            "media.mesh",
            "802.11b-short",
        ),
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nsense-delay = \"1 ms\"",
            "media.mesh.sense-delay",
            "at most a slot",
        ),
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nsignal = { noise-dbm = 94 }",
            "media.mesh.signal.noise-dbm",
            "such as -94",
        ),
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nsignal = { noise-dbm = -94, changes = [{ between = [\"n0\", \"n1\"], trace = [[2, 0], [1, 0]] }] }",
            "media.mesh.signal.changes[0].trace",
            "in order of time",
        ),
    ];
    for (from, to, place, problem) in cases {
        let text = whole.replacen(from, to, 1);
        assert_ne!(text, whole);
        let error = Scenario::from_toml(&text, "wifi").unwrap_err().to_string();
        assert!(error.contains(place) && error.contains(problem), "{error}");
    }
}
