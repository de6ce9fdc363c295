//! Worlds whose stations contend for the channel.

use airlane_sim::{RunResult, Scenario, run};

/// A chain of nodes `n0`, `n1` ... at this spacing in metres.
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

/// One packet of 1000 B per millisecond.
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
    // CLAP-D22, without capture: a model with the same rules, 200 m apart. The model is a prediction, and 10 % covers
    // the excess of chains of 7 and 8 hops (7 and 9 %), so this test guards the present behaviour and validates
    // nothing.
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
    // Accepted frames are given up or delivered, and only simultaneous transmissions collide.
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
    // CLAP-D21: 2.06 Mbit/s and 13 % loss of what the source sent; with noise 1.84 and 25 %. This is a prediction,
    // too, and the bounds guard the present behaviour.
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
    // A knight's move is too far for one hop.
    assert!(grid(200, "", [0, 5]).radios[0].stations[5].counts.delivered > 0);
}

#[test]
fn a_weak_signal_lowers_the_rate() {
    let world = |more: &str| {
        let signal = "sense-range-m = 1500\nsignal = { noise-dbm = -94, changes = [{ between = [\"n0\", \"n1\"], trace = [[20, -28]] }] }";
        let result = play(&chain(1, 200, &format!("{signal}\n{more}"), SATURATING));
        let sent = result.radios[0].stations[0].counts;
        (
            mbps(&result),
            sent.data_noise as f64 / sent.data_frames as f64,
        )
    };
    // 11 Mbit/s get through half of the time; a lower rate uses the other half as well.
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
            "do not reach each other: they are 400.0 m apart, \"n0\" decodes up to 250 m and \"n2\" up to 250 m",
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
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nsignal = { noise-dbm = -94, changes = [{ between = [\"n0\", \"n1\"], trace = [] }, { between = [\"n1\", \"n0\"], trace = [] }] }",
            "media.mesh.signal.changes[1].between",
            "each pair once",
        ),
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nreceive-range-m = 0",
            "media.mesh.receive-range-m",
            "metres, 0.01 to 1000000",
        ),
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nsense-range-m = nan",
            "media.mesh.sense-range-m",
            "metres, 0.01 to 1000000",
        ),
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nsense-range-m = 200",
            "media.mesh.sense-range-m",
            "250 or more, or a shorter receive-range-m",
        ),
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nstations.n1.receive-range-m = 800",
            "media.mesh.stations.n1.sense-range-m",
            "decodes up to 800 m senses no less far, and here up to 730.4 m",
        ),
        // A one-way connection is not a hop: n1 hears n0 and n2, and neither hears n1.
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nreceive-range-m = 150\nstations.n1.receive-range-m = 250",
            "flows[0].ends",
            "no links join",
        ),
        (
            "kind = \"wifi\"",
            "kind = \"wifi\"\nroutes = [[\"n0\", \"n1\"]]\nstations.n1.receive-range-m = 150",
            "media.mesh.routes[0][0]",
            "\"n0\" decodes up to 250 m and \"n1\" up to 150 m",
        ),
    ];
    for (from, to, place, problem) in cases {
        let text = whole.replacen(from, to, 1);
        assert_ne!(text, whole);
        let error = Scenario::from_toml(&text, "wifi").unwrap_err().to_string();
        assert!(error.contains(place) && error.contains(problem), "{error}");
    }
}

#[test]
fn an_invalid_number_of_attempts_is_one_problem_at_its_place() {
    for place in ["", "stations.n0."] {
        let text = chain(
            1,
            200,
            &format!("{place}retries = {{ limit = 0 }}"),
            SATURATING,
        );
        let text = text.replacen("retries = \"off\"\n", "", 1);
        let error = Scenario::from_toml(&text, "wifi").unwrap_err();
        let paths: Vec<&str> = error.problems().iter().map(|p| p.path.as_str()).collect();
        assert_eq!(
            paths,
            [format!("media.mesh.{place}retries.limit")],
            "{error}"
        );
    }
}

/// An access point with stations at equal distances, each receiving a file over a link with this service.
fn cell(stations: usize, scheme: &str, medium: &str, bytes: u64) -> String {
    let mut text = format!(
        "schema = 1\nname = \"cell\"\nduration = \"300 s\"\ndrain = \"5 s\"\n[media.air]\nkind = \"wifi\"\n{medium}\n[media.air.nodes]\nap = [0, 0]\n"
    );
    let places = [[7.2, 0.0], [0.0, 7.2], [-7.2, 0.0]];
    for (i, place) in places.iter().take(stations).enumerate() {
        text += &format!("s{i} = {place:?}\n");
    }
    text += "[nodes.ap]\n";
    for i in 0..stations {
        text += &format!(
            "[nodes.s{i}]\n[links.l{i}]\nends = [\"ap\", \"s{i}\"]\nmedium = \"air\"\nrate = \"5 Mbit/s\"\ndelay = \"2 ms\"\n\
             frame = \"1500 B\"\nheader = \"live\"\nservices = [{{ number = 0, name = \"all\", rate = 1.0, scheme = {{ {scheme} }} }}]\n\
             [[flows]]\nname = \"f{i}\"\nends = [\"s{i}\", \"ap\"]\ntransport = {{ kind = \"tcp\", profile = \"modern\", window = 100 }}\n\
             app = {{ kind = \"bulk\", size = \"{bytes} B\", packet = \"1000 B\" }}\n"
        );
    }
    text
}

#[test]
fn ports_get_the_fate_of_each_frame_from_their_station() {
    for scheme in ["default", "sr-m2", "rlp", "gbn"] {
        let scheme = format!("kind = \"{scheme}\"");
        let noise = "retries = \"off\"\nnoise = [{ loss = 0.05, on = \"1 s\", off = \"0 s\", control = true }]";
        let result = play(&cell(3, &scheme, noise, 200_000));
        let (mut offered, mut taken) = (0, 0);
        for link in &result.links {
            for way in [&link.down, &link.up] {
                let channel = way.channel;
                assert_eq!(
                    channel.offered.frames,
                    channel.delivered.frames + channel.lost_air.frames,
                    "{scheme}: every frame that a port gave is accounted for once"
                );
                assert!(
                    channel.lost_air.frames > 0,
                    "{scheme}: noise and collisions"
                );
                let sent = &way.services[0].sender;
                assert_eq!(
                    sent.frames_sent, channel.offered.frames,
                    "{scheme}: all are done"
                );
                offered += channel.offered.frames;
            }
        }
        let stations = &result.radios[0].stations;
        taken += stations.iter().map(|s| s.counts.accepted).sum::<u64>();
        assert_eq!(
            offered, taken,
            "{scheme}: nothing else went through the air"
        );
        assert!(
            stations.iter().all(|s| s.counts.queue_drops == 0),
            "{scheme}: nothing waits below a port"
        );
        let complete = result.flows.iter().all(|f| f.finished == Some(true));
        assert!(complete, "{scheme}");
    }
}

#[test]
fn services_informed_of_failed_frames_repair_as_stations_do() {
    let mean = |scheme: &str, medium: &str| {
        let text = cell(3, scheme, medium, 1_000_000);
        let result = play(&text);
        let times = result.flows.iter().map(|f| f.throughput_bps.unwrap());
        times.sum::<f64>() / 3.0
    };
    let noise = "noise = [{ loss = 0.1, on = \"1 s\", off = \"0 s\", control = true }]\nretries = ";
    let stations = mean("kind = \"default\"", &format!("{noise}\"on\""));
    let service = mean("kind = \"sr-m2\"", &format!("{noise}\"off\""));
    let nobody = mean("kind = \"default\"", &format!("{noise}\"off\""));
    println!("stations {stations:.0}, SR/M2 {service:.0}, nobody {nobody:.0} bit/s");
    assert!(service > 0.8 * stations, "{service} against {stations}");
    assert!(service > 2.0 * nobody, "{service} against {nobody}");
}

#[test]
fn ports_and_packets_share_a_station() {
    // Packets to s0 are sent directly, from a queue that UDP keeps full; those on s1's link use the same access
    // point.
    let mut text = cell(2, "kind = \"rlp\"", "queue = \"5 packets\"", 500_000);
    text += "[nodes.s9]\n[[flows]]\nname = \"flood\"\nends = [\"ap\", \"s9\"]\ntransport = { kind = \"udp\" }\n\
             app = { kind = \"conferencing\", rate = \"8 Mbit/s\", packet = \"1000 B\", talk = \"1000 s\", silence = \"0 s\" }\n";
    text = text.replace("ap = [0, 0]\n", "ap = [0, 0]\ns9 = [0, 3]\n");
    let result = play(&text);
    let done: Vec<_> = result.flows.iter().take(2).map(|f| f.finished).collect();
    assert_eq!(
        done,
        [Some(true); 2],
        "a queue that is always full keeps no port out"
    );
    let flood = &result.flows[2];
    assert!(flood.packets_received > 1_000, "{}", flood.packets_received);
}

#[test]
fn impossible_settings_of_a_radio_link_are_refused() {
    let good = cell(2, "kind = \"rlp\"", "", 1_000);
    for (setting, says) in [
        (
            "links.l0.errors={ kind = \"uniform\", rate = 0.1 }",
            "the radio channel says",
        ),
        (
            "links.l0.outages=[{ from = \"1 s\", to = \"2 s\" }]",
            "the radio channel says",
        ),
        ("links.l0.services=[]", "a link through it has services"),
        (
            "links.l0.rate-limit=estimated",
            "nothing waits below a port",
        ),
        ("media.air.source-header=20 B", "routing agent"),
        ("media.air.nodes.s0=[400, 0]", "reach each other"),
        (
            "media.air.stations.s0.receive-range-m=5",
            "they are 7.2 m apart, \"ap\" decodes up to 250 m and \"s0\" up to 5 m",
        ),
        (
            "flows[f0].transport={ kind = \"clap\" }",
            "the first hop of this flow is none",
        ),
    ] {
        let refused = Scenario::from_toml_with(&good, "cell", &[setting]).unwrap_err();
        assert!(refused.to_string().contains(says), "{setting}: {refused}");
    }
}

#[test]
fn a_recording_loses_frames_between_two_stations() {
    // A trace of blocks: 4 of 10 erased, in one burst.
    let blocks = "# airlane blocks 1\n# block = \"100 ms\"  size = \"30 B\"\n0000001111\n";
    let errors = "errors = [{ between = [\"n0\", \"n1\"], model = { down = { kind = \"blocks\", file = \"car.blocks\" } } }]";
    let text = chain(1, 200, &format!("retries = \"off\"\n{errors}"), SATURATING);
    let mut scenario = Scenario::from_toml(&text, "wifi").unwrap_or_else(|e| panic!("{e}"));
    let unread = run(&scenario, 1, 0).unwrap_err().to_string();
    assert!(unread.contains("media.mesh.errors[0].model"), "{unread}");
    scenario
        .load_traces(|file| {
            assert_eq!(file.to_str(), Some("car.blocks"));
            Ok(blocks.as_bytes().to_vec())
        })
        .unwrap();
    let result = run(&scenario, 1, 0).unwrap();
    let sender = &result.radios[0].stations[0].counts;
    let lost = sender.data_noise as f64 / sender.data_frames as f64;
    assert!((0.38..0.44).contains(&lost), "{lost}");
    let twice = text.replace(
        "errors = [",
        "errors = [{ between = [\"n1\", \"n0\"], model = { kind = \"none\" } }, ",
    );
    let refused = Scenario::from_toml(&twice, "wifi").unwrap_err().to_string();
    assert!(refused.contains("each pair once"), "{refused}");
}
