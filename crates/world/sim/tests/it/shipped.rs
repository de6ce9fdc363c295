//! Every shipped scenario is a test: it loads, is explained completely, and runs.

use crate::common::shipped;
use airlane_sim::{Scenario, run};

#[test]
fn the_worlds_of_the_works_are_shipped() {
    let names: Vec<String> = shipped().into_iter().map(|(name, _)| name).collect();
    for needed in [
        "cellular-lan1.toml",
        "cellular-lan1-rlp.toml",
        "cellular-lan1-sr-m2.toml",
        "cellular-lan2.toml",
        "cellular-wan1.toml",
        "cellular-wan2.toml",
        "conferencing-cellular-lan1.toml",
        "conferencing-cellular-lan1-rlp.toml",
        "conferencing-cellular-lan1-rlp-oos.toml",
        "conferencing-cellular-lan1-sr-m2-storm.toml",
        "interactive-cellular-lan1.toml",
        "mixed-cellular-lan1.toml",
        "mixed-cellular-wan2.toml",
        "mixed-pcs-lan1.toml",
        "mixed-pcs-wan2.toml",
        "mixed-wlan-lan1.toml",
        "mixed-wlan-wan2.toml",
        "pcs-lan1.toml",
        "three-applications.toml",
        "three-applications-raw.toml",
        "three-applications-wlan.toml",
        "three-applications-wlan-raw.toml",
        "web-cellular-lan1.toml",
        "wlan-lan1.toml",
        "wlan-lan1-rlp.toml",
        "wlan-lan1-sr-m2.toml",
    ] {
        assert!(names.iter().any(|n| n == needed), "{needed} is missing");
    }
}

#[test]
fn what_a_scenario_explains_is_the_same_world() {
    for (name, text) in shipped() {
        let scenario = Scenario::from_toml(&text, &name).unwrap_or_else(|e| panic!("{e}"));
        let resolved = scenario.resolved();
        let again = Scenario::from_toml(&resolved.to_toml(), &name).unwrap();
        assert_eq!(again, resolved, "{name}");
        assert_eq!(again.hash(), scenario.hash(), "{name}");
    }
}

#[test]
fn shortened_scenarios_carry_traffic_for_every_flow() {
    for (name, text) in shipped() {
        let mut scenario = Scenario::from_toml(&text, &name).unwrap();
        scenario.duration = "300 s".parse().unwrap();
        scenario.until = None;
        let result = run(&scenario, 1, 0).unwrap();
        assert_eq!(result.stopped_s, 300.0, "{name}");
        for flow in &result.flows {
            assert!(flow.delivered_bytes > 0, "{name}: {}", flow.name);
            let measured = flow.throughput_bps.or(flow.response_time_mean_s);
            assert!(measured.is_some(), "{name}: {}", flow.name);
        }
        for link in &result.links {
            for direction in [&link.down, &link.up] {
                let c = &direction.channel;
                assert!(
                    c.offered.frames
                        >= c.dropped_queue.frames + c.lost_air.frames + c.delivered.frames,
                    "{name}: {}",
                    link.name
                );
            }
        }
    }
}
