//! Results compared with models of queues, of TCP, of contention and of fair shares.
//!
//! If both are random, the model must lie within 3.66 standard errors of the mean of 30 repetitions (the 99.9 %
//! interval of Student's t). Effects that a model omits are named, with the tolerance for them.

use airlane_sim::{Estimate, RunResult, Scenario, run, summary};
use airlane_wifi::profile::{Profile, ProfileName};

use crate::common::{SEED, runs};

#[path = "../../../wifi/tests/common/mod.rs"]
mod saturation;

const RUNS: u64 = 30;
const T_999: f64 = 3.66;

fn scenario(text: &str) -> Scenario {
    Scenario::from_toml(text, "model.toml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn play(text: &str) -> RunResult {
    run(&scenario(text), SEED, 0).unwrap()
}

fn estimate(text: &str, metric: &str) -> Estimate {
    let summary = summary(&runs(&scenario(text), RUNS)).unwrap();
    *summary.flows[0].get(metric).unwrap()
}

#[track_caller]
fn assert_within_interval(what: &str, measured: Estimate, model: f64) {
    let error = measured.sd / (measured.n as f64).sqrt();
    assert!(
        (measured.mean - model).abs() <= T_999 * error,
        "{what}: {} +- {error}, model {model}",
        measured.mean
    );
}

/// Two nodes, a link and a flow over it.
fn one_link(head: &str, link: &str, flow: &str) -> String {
    format!(
        "schema = 1\nname = \"model\"\n{head}\n[nodes.a]\n[nodes.b]\n[links.l]\nends = [\"a\", \"b\"]\n{link}\n\
         [[flows]]\nname = \"flow\"\nends = [\"a\", \"b\"]\n{flow}\n"
    )
}

/// In Bianchi 2000, a round ends with a success or a collision of equal length, all colliding frames are lost, and
/// there is no retry limit. His throughput is said to be within 1 to 2 % of simulations.
#[test]
fn stations_that_always_send_share_what_bianchi_says() {
    for n in [1, 2, 3, 4, 6, 8, 12, 16, 20, 25, 30, 35, 40, 45, 50] {
        let (mut places, mut nodes, mut flows) = (String::new(), String::new(), String::new());
        for i in 0..n {
            let angle = f64::from(i) * std::f64::consts::TAU / f64::from(n);
            let [x, y] = [libm::cos(angle) * 5.0, libm::sin(angle) * 5.0];
            places += &format!("s{i} = [{x:.3}, {y:.3}]\n");
            nodes += &format!("[nodes.s{i}]\n");
            flows += &format!(
                "[[flows]]\nname = \"f{i}\"\nends = [\"s{i}\", \"ap\"]\ntransport = {{ kind = \"udp\" }}\n\
                 app = {{ kind = \"conferencing\", rate = \"8 Mbit/s\", packet = \"1000 B\", talk = \"1000 s\", silence = \"0 s\" }}\n"
            );
        }
        let result = play(&format!(
            "schema = 1\nname = \"bianchi\"\nduration = \"10 s\"\ndrain = \"0 s\"\n[media.air]\nkind = \"wifi\"\n\
             profile = \"802.11b\"\nretries = \"unlimited\"\nsource-header = \"20 B\"\n[media.air.nodes]\nap = [0, 0]\n\
             {places}[nodes.ap]\n{nodes}{flows}"
        ));
        let printed: f64 = result.flows.iter().map(|f| f.throughput_bps.unwrap()).sum();
        let (mbps, _) = saturation::bianchi(&Profile::named(ProfileName::B, None), n as usize);
        let off = printed / 1e6 / mbps - 1.0;
        println!("{n}: {:.3} {mbps:.3} {:+.2} %", printed / 1e6, off * 100.0);
        assert!(off.abs() < 0.02, "{n}: {printed} against {mbps}");
    }
}

/// A call whose talk periods are one packet is a Poisson source, except for the 20 us that a packet takes to
/// generate: of 80 ms on the link that is 0.025 %.
fn poisson(load: f64) -> String {
    let silence_us = 80_000.0 / load - 20.0;
    let head = "duration = \"2000 s\"\ndrain = \"0 s\"\ntraffic-seed = \"each-run\"";
    let link = "rate = \"100 kbit/s\"\ndelay = \"10 ms\"\nqueue = \"100000 packets\"";
    let call = format!(
        "transport = {{ kind = \"udp\" }}\napp = {{ kind = \"conferencing\", rate = \"400 Mbit/s\", packet = \"1000 B\", \
         talk = \"1 us\", silence = \"{silence_us:.0} us\" }}"
    );
    one_link(head, link, &call)
}

/// M/D/1 (Pollaczek and Khinchine): a packet waits `load / (2 (1 - load))` times its service time.
#[test]
fn a_queue_of_equal_packets_that_come_at_random_waits_as_m_d_1_does() {
    for load in [0.2, 0.5, 0.7, 0.9] {
        let text = poisson(load);
        let delay = estimate(&text, "delay_mean_s");
        let model = 0.010 + 0.080 * (1.0 + load / (2.0 * (1.0 - load)));
        assert_within_interval(&format!("load {load}"), delay, model);
        let summary = summary(&runs(&scenario(&text), RUNS)).unwrap();
        let used = summary.link("l", true).unwrap().get("utilisation_ratio");
        assert_within_interval(&format!("use {load}"), *used.unwrap(), load);
    }
}

/// Losses of a Gilbert-Elliott chain, end to end.
#[test]
fn a_call_loses_what_gilbert_and_elliott_say() {
    for [good_to_bad, bad_to_good, loss_good, loss_bad] in [
        [0.02, 0.18, 0.001, 0.6],
        [0.05, 0.25, 0.0, 1.0],
        [0.3, 0.1, 0.02, 0.4],
        [0.001, 0.05, 0.0, 0.9],
    ] {
        let bad = good_to_bad / (good_to_bad + bad_to_good);
        let link = format!(
            "rate = \"1 Mbit/s\"\ndelay = \"10 ms\"\nerrors = {{ kind = \"gilbert-elliott\", good_to_bad = {good_to_bad}, \
             bad_to_good = {bad_to_good}, loss_good = {loss_good}, loss_bad = {loss_bad} }}"
        );
        let call = "transport = { kind = \"udp\" }\n\
            app = { kind = \"conferencing\", rate = \"400 kbit/s\", packet = \"500 B\", talk = \"9999 s\", silence = \"0 s\" }";
        let text = one_link("duration = \"200 s\"", &link, call);
        let model = (1.0 - bad) * loss_good + bad * loss_bad;
        let what = format!("{good_to_bad} {bad_to_good} {loss_good} {loss_bad}");
        assert_within_interval(&what, estimate(&text, "loss_ratio"), model);
    }
}

/// A file over a path of 100 ms with random losses that is never congested.
fn lossy_file(transport: &str, loss: f64, seconds: u32) -> f64 {
    let link = format!(
        "rate = {{ down = \"1 Gbit/s\", up = \"1 Gbit/s\" }}\ndelay = \"50 ms\"\nqueue = \"100000 packets\"\n\
         errors = {{ down = {{ kind = \"uniform\", rate = {loss} }}, up = {{ kind = \"none\" }} }}"
    );
    let flow = format!(
        "transport = {{ kind = \"tcp\", profile = \"ns2-1999\", window = 20000, timer = \"fine\", tick = \"1 ms\", {transport} }}\n\
         app = {{ kind = \"bulk\", packet = \"1000 B\" }}"
    );
    let head = format!("duration = \"{seconds} s\"\ndrain = \"0 s\"");
    estimate(&one_link(&head, &link, &flow), "throughput_bps").mean
}

/// Mathis et al. 1997: `MSS / RTT * C / sqrt(loss)`, with C = 1.31 for an acknowledgment of each segment and 0.93 for
/// one of two, if losses are random and fast recovery alone repairs them. This needs large windows: at a loss of
/// 0.3 %, the few windows with several losses already cost up to 15 %.
#[test]
fn a_file_over_random_losses_gets_what_mathis_says() {
    for (acks, c) in [
        ("", 1.31),
        ("delayed-ack = { within = \"200 ms\" }, ", 0.93),
    ] {
        for loss in [0.0003, 0.001, 0.003] {
            let transport = format!("{acks}recovery = \"sack\", min-rto = \"1 s\"");
            let got = lossy_file(&transport, loss, 600);
            let model = 8_000.0 / 0.1 * c / f64::sqrt(loss);
            let ratio = got / model;
            println!("{acks} {loss}: {got} {model} {ratio}");
            assert!((0.85..1.1).contains(&ratio), "{acks} {loss}: {got} {model}");
        }
    }
}

/// Padhye et al. 1998, equation 30, which includes timeouts: Reno with losses that take the rest of a round with
/// them. Most of the connections that they measured are within a quarter of it.
#[test]
fn a_file_over_many_losses_gets_what_padhye_says() {
    for loss in [0.003, 0.01, 0.03, 0.1] {
        let (rtt, rto, per_ack) = (0.1, 1.0, 1.0);
        let rounds = rtt * f64::sqrt(2.0 * per_ack * loss / 3.0);
        let timeouts = f64::min(1.0, 3.0 * f64::sqrt(3.0 * per_ack * loss / 8.0));
        let model = 8_000.0 / (rounds + rto * timeouts * loss * (1.0 + 32.0 * loss * loss));
        let got = lossy_file("recovery = \"reno\", min-rto = \"1 s\"", loss, 600);
        let ratio = got / model;
        println!("{loss}: {got} {model} {ratio}");
        assert!((0.85..1.15).contains(&ratio), "{loss}: {got} {model}");
    }
}

/// Weighted max-min shares of one link: no flow gets more than it asks for, and the rest goes to the others by
/// weight, until everything is allocated.
fn max_min(capacity: f64, asked: &[f64], weights: &[f64]) -> Vec<f64> {
    let mut got = vec![0.0; asked.len()];
    let mut open: Vec<usize> = (0..asked.len()).collect();
    loop {
        let left = capacity - got.iter().sum::<f64>();
        let weight: f64 = open.iter().map(|i| weights[*i]).sum();
        let share = |i: usize| left * weights[i] / weight;
        let (full, hungry): (Vec<_>, Vec<_>) = open.iter().partition(|i| asked[**i] <= share(**i));
        if full.is_empty() {
            hungry.iter().for_each(|i| got[*i] = share(*i));
            return got;
        }
        full.iter().for_each(|i| got[*i] = asked[*i]);
        open = hungry;
        if open.is_empty() {
            return got;
        }
    }
}

const CLASSES: [&str; 3] = ["EF", "AF41", "AF11"];

/// A link of 1 Mbit/s whose services have these weights, one for each class.
fn served(name: &str, ends: [&str; 2], weights: &[f64]) -> String {
    let mut text = format!(
        "[links.{name}]\nends = [\"{}\", \"{}\"]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\nframe = \"500 B\"\nheader = \"study\"\n",
        ends[0], ends[1]
    );
    for (i, weight) in weights.iter().enumerate() {
        text += &format!(
            "[[links.{name}.services]]\nnumber = {i}\nname = \"s{i}\"\nrate = {weight}\nscheme = {{ kind = \"default\" }}\n"
        );
    }
    for (i, class) in CLASSES.iter().enumerate().take(weights.len()) {
        text += &format!(
            "[[links.{name}.classes]]\nmatch = {{ dscp = \"{class}\" }}\nservice = \"s{i}\"\n"
        );
    }
    text
}

/// A call of packets that fill a frame, in one class.
fn call(name: &str, ends: [&str; 2], class: &str, bps: f64) -> String {
    format!(
        "[[flows]]\nname = \"{name}\"\nends = [\"{}\", \"{}\"]\ndscp = \"{class}\"\ntransport = {{ kind = \"udp\" }}\n\
         app = {{ kind = \"conferencing\", rate = \"{bps} bit/s\", packet = \"500 B\", talk = \"9999 s\", silence = \"0 s\" }}\n",
        ends[0], ends[1]
    )
}

/// 500 of the 501 bytes of a frame belong to the call.
const CARRIED: f64 = 1e6 * 500.0 / 501.0;

#[test]
fn services_of_one_link_get_their_max_min_shares() {
    for (asked, weights) in [
        ([2e6, 2e6, 2e6], [0.5, 0.3, 0.2]),
        ([1e5, 2e6, 2e6], [0.5, 0.3, 0.2]),
        ([1e5, 3e5, 2e6], [0.5, 0.3, 0.2]),
        ([8e5, 4e4, 9e5], [0.2, 0.4, 0.4]),
        ([2e5, 3e5, 4e5], [0.1, 0.1, 0.8]),
    ] {
        let mut text = "schema = 1\nname = \"shares\"\nduration = \"100 s\"\ndrain = \"0 s\"\n[nodes.a]\n[nodes.b]\n".to_owned();
        text += &served("l", ["a", "b"], &weights);
        for (i, class) in CLASSES.iter().enumerate() {
            text += &call(&format!("f{i}"), ["a", "b"], class, asked[i]);
        }
        let result = play(&text);
        let shares = max_min(CARRIED, &asked, &weights);
        for (flow, share) in result.flows.iter().zip(shares) {
            let off = flow.throughput_bps.unwrap() / share - 1.0;
            assert!(
                off.abs() < 0.01,
                "{asked:?} {weights:?} {}: {off}",
                flow.name
            );
        }
    }
}

/// Two links in a row, one flow across both: the link that gives this flow less determines its share, and the
/// remainder of the other link goes to the flow that uses only that one.
#[test]
fn a_flow_over_two_links_is_limited_by_the_narrower_share() {
    let weights = [[0.2, 0.8], [0.5, 0.5]];
    let mut text = "schema = 1\nname = \"row\"\nduration = \"100 s\"\ndrain = \"0 s\"\n[nodes.a]\n[nodes.b]\n[nodes.c]\n".to_owned();
    text += &served("l1", ["a", "b"], &weights[0]);
    text += &served("l2", ["b", "c"], &weights[1]);
    text += &call("both", ["a", "c"], CLASSES[0], 2e6);
    text += &call("first", ["a", "b"], CLASSES[1], 2e6);
    text += &call("second", ["b", "c"], CLASSES[1], 2e6);
    let result = play(&text);
    for (flow, share) in result.flows.iter().zip([0.2, 0.8, 0.8]) {
        let off = flow.throughput_bps.unwrap() / (share * CARRIED) - 1.0;
        assert!(off.abs() < 0.01, "{}: {off}", flow.name);
    }
}

/// Jain, Chiu and Hawe 1984: the square of the sum, over n times the sum of the squares.
#[test]
fn groups_are_as_fair_as_jains_index_of_what_their_flows_print() {
    for asked in [
        vec![1e5, 1e5, 1e5],
        vec![1e5, 2e5, 3e5],
        vec![1e4, 2e5],
        vec![3e5],
    ] {
        let mut text = "schema = 1\nname = \"jain\"\nduration = \"100 s\"\ndrain = \"0 s\"\n[nodes.a]\n[nodes.b]\n\
             [links.l]\nends = [\"a\", \"b\"]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n"
            .to_owned();
        for (i, bps) in asked.iter().enumerate() {
            let flow = call(&format!("f{i}"), ["a", "b"], "EF", *bps);
            text += &flow.replace("transport", "progress = { group = \"all\" }\ntransport");
        }
        let result = play(&text);
        let index = |x: &[f64]| {
            let sum: f64 = x.iter().sum();
            sum * sum / (x.len() as f64 * x.iter().map(|x| x * x).sum::<f64>())
        };
        let printed = result.groups[0].jain.unwrap();
        let flows = result.flows.iter();
        let good: Vec<f64> = flows
            .map(|f| f.progress.as_ref().unwrap().good_bps.unwrap())
            .collect();
        assert!((printed - index(&good)).abs() < 1e-12, "{asked:?}");
        assert!(
            (printed - index(&asked)).abs() < 1e-3,
            "{asked:?}: {printed}"
        );
    }
}
