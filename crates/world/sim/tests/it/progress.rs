//! Progress measurements of flows.

use airlane_sim::{Scenario, run};

const FILE: &str = include_str!("../../../../../scenarios/wifi-one-hop.toml");
const GRID: &str = include_str!("../../../../../scenarios/wifi-grid.toml");

#[test]
fn a_file_is_complete_before_its_sender_knows() {
    let progress =
        "flows[file].progress={ windows = { first = { to = \"500 ms\" } }, group = \"all\" }";
    let scenario = Scenario::from_toml_with(FILE, "wifi-one-hop.toml", &[progress]).unwrap();
    let result = run(&scenario, 1, 0).unwrap();
    let flow = &result.flows[0];
    let progress = flow.progress.as_ref().unwrap();
    let time = progress.time_s.unwrap();
    assert!(
        time < result.stopped_s,
        "{time} against {}",
        result.stopped_s
    );
    assert_eq!(progress.unfinished, Some(0));
    assert_eq!(progress.thr_bps, Some(8e6 / time));
    assert_eq!(result.groups[0].last_s, Some(time));
    assert_eq!(result.groups[0].jain, Some(1.0));
    // 10 Mbit/s and 2 ms of wire, and a frame and its acknowledgment each way.
    assert!(progress.rtt_p05_s.unwrap() > 0.005);
    assert!(progress.windows["first"].good_bps.unwrap() > 1e6);
    // The measurement changes nothing in the simulation.
    let plain = run(
        &Scenario::from_toml(FILE, "wifi-one-hop.toml").unwrap(),
        1,
        0,
    )
    .unwrap();
    assert_eq!(plain.events, result.events);
    assert_eq!(plain.flows[0].throughput_bps, flow.throughput_bps);
    assert!(plain.groups.is_empty());
}

#[test]
fn a_flow_over_three_hops_loses_some_of_what_its_station_took() {
    let progress = "flows[primary].progress={}";
    let scenario = Scenario::from_toml_with(GRID, "wifi-grid.toml", &[progress]).unwrap();
    let result = run(&scenario, 1, 0).unwrap();
    let flow = &result.flows[0];
    let lost = flow.progress.as_ref().unwrap().lost_end_to_end.unwrap();
    // Its own station refuses most of the packets that it sends.
    assert!(lost < flow.loss_ratio.unwrap() / 2.0, "{lost}");
    let source = result.radios[0]
        .stations
        .iter()
        .find(|s| s.node == "n01")
        .unwrap();
    let came = flow.packets_received + flow.packets_under_way;
    let came = came as f64 / source.counts.accepted as f64;
    assert_eq!(lost, 1.0 - came);
}

#[test]
fn impossible_measures_are_refused() {
    for (progress, says) in [
        ("{ interval = \"0 s\" }", "intervals of 0 s are too short"),
        ("{ interval = \"1 us\" }", "are too short"),
        (
            "{ windows = { a = { from = \"2 s\", to = \"1 s\" } } }",
            "over before it begins",
        ),
        (
            "{ windows = { a = { every = \"2 s\" } } }",
            "how often, and for how long",
        ),
        (
            "{ windows = { a = { every = \"0 s\", lasts = \"0 s\" } } }",
            "how often",
        ),
    ] {
        let set = format!("flows[file].progress={progress}");
        let refused = Scenario::from_toml_with(FILE, "wifi-one-hop.toml", &[set]).unwrap_err();
        assert!(refused.to_string().contains(says), "{progress}: {refused}");
    }
}

#[test]
fn a_speaker_may_stop_before_the_run() {
    let lasts = "flows[beside].app.lasts=1 s";
    let scenario = Scenario::from_toml_with(GRID, "wifi-grid.toml", &[lasts]).unwrap();
    let result = run(&scenario, 1, 0).unwrap();
    assert_eq!(result.flows[1].packets_sent, 1_000);
    assert!(result.flows[0].packets_sent > 9_000);
}
