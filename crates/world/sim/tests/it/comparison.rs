//! Summaries of repetitions, and comparisons run by run.

use crate::common::load;
use airlane_sim::{Scenario, ScenarioError, compare, repeat, repeat_all, run, summary};

fn worlds() -> Vec<Scenario> {
    ["cellular-lan1", "cellular-lan1-rlp", "cellular-lan1-sr-m2"]
        .map(|name| {
            load(
                name,
                &[
                    "flows[file].app.size=100 kB",
                    "links.radio.errors.rate=0.05",
                ],
            )
        })
        .into()
}

#[test]
fn repetitions_are_the_single_runs_in_order() {
    let scenario = &worlds()[0];
    let all = repeat(scenario, 3, 4, 2, |_, _| {}).unwrap();
    for (k, result) in all.iter().enumerate() {
        assert_eq!(*result, run(scenario, 3, k as u64).unwrap());
    }
    assert!(repeat(scenario, 3, 0, 2, |_, _| {}).unwrap().is_empty());
    assert_eq!(summary(&[]), None);
}

#[test]
fn several_scenarios_at_once_are_the_same_as_each_alone() {
    let worlds = worlds();
    let together = repeat_all(&worlds, 3, 3, 2, |_, _| {}).unwrap();
    for (scenario, results) in worlds.iter().zip(&together) {
        assert_eq!(*results, repeat(scenario, 3, 3, 1, |_, _| {}).unwrap());
    }
}

#[test]
fn ratios_and_differences_are_taken_run_by_run() {
    let results = repeat_all(&worlds(), 3, 6, 0, |_, _| {}).unwrap();
    let compared = compare(&results).unwrap();
    assert_eq!(compared.scenarios.len(), 3);
    let throughput = compared
        .metrics
        .iter()
        .find(|m| m.flow == "file" && m.metric == "throughput_bps")
        .unwrap();
    assert_eq!(throughput.rows[0].ratio, None);
    let bps = |scenario: usize, run: usize| results[scenario][run].flows[0].throughput_bps.unwrap();
    for scenario in 1..3 {
        let row = &throughput.rows[scenario];
        let ratio = (0..6).map(|k| bps(scenario, k) / bps(0, k)).sum::<f64>() / 6.0;
        let difference = (0..6).map(|k| bps(scenario, k) - bps(0, k)).sum::<f64>() / 6.0;
        assert!((row.ratio.unwrap().mean - ratio).abs() < 1e-12);
        assert!((row.difference.unwrap().mean - difference).abs() < 1e-6);
        assert_eq!(row.value.unwrap().n, 6);
        // At 5 % loss, repair clearly helps.
        assert!(row.ratio.unwrap().ci95().unwrap().0 > 1.5, "{row:?}");
    }
}

/// Link counters are per run, as are those of flows: five runs do not have more frames than one.
#[test]
fn links_have_means_and_intervals_over_the_runs() {
    let results = repeat_all(&worlds(), 3, 5, 0, |_, _| {}).unwrap();
    let sums = summary(&results[0]).unwrap();
    let frames = |down: bool| sums.link("radio", down).unwrap().get("frames").unwrap();
    let offered = |run: usize| {
        let radio = results[0][run].links.iter().find(|l| l.name == "radio");
        radio.unwrap().down.channel.offered.frames as f64
    };
    let mean = (0..5).map(offered).sum::<f64>() / 5.0;
    assert!((frames(true).mean / mean - 1.0).abs() < 1e-12);
    assert!(frames(true).ci95_half_width.unwrap() > 0.0);
    assert!(frames(false).mean < frames(true).mean);
    let compared = compare(&results).unwrap();
    let used = compared.links.iter().find(|link| {
        (&*link.link, link.direction, link.metric) == ("radio", "down", "utilisation_ratio")
    });
    // With repair the radio is busy while TCP alone would wait.
    let ratio = used.unwrap().rows[1].ratio.unwrap();
    assert!(ratio.mean > 1.0, "{ratio:?}");
}

#[test]
fn a_baseline_of_zero_has_no_ratio() {
    // Tight timers leave no losses for TCP.
    let tight = "links.radio.services[all].scheme.timers=\"tight\"";
    let mut worlds = worlds();
    worlds.reverse();
    worlds[0] = load(
        "cellular-lan1-sr-m2",
        &[
            "flows[file].app.size=100 kB",
            "links.radio.errors.rate=0.05",
            tight,
        ],
    );
    let compared = compare(&repeat_all(&worlds, 3, 6, 0, |_, _| {}).unwrap()).unwrap();
    let timeouts = compared
        .metrics
        .iter()
        .find(|m| m.metric == "timeouts")
        .unwrap();
    assert_eq!(timeouts.rows[0].value.unwrap().mean, 0.0);
    assert_eq!(timeouts.rows[2].ratio, None);
    assert!(timeouts.rows[2].difference.unwrap().mean > 0.0);
}

#[test]
fn other_repetitions_are_not_compared() {
    let worlds = worlds();
    let a = repeat(&worlds[0], 3, 2, 0, |_, _| {}).unwrap();
    let b = repeat(&worlds[1], 4, 2, 0, |_, _| {}).unwrap();
    let e = compare(&[a, b]).unwrap_err();
    assert!(matches!(e, ScenarioError::Incomparable { .. }));
    assert!(e.to_string().contains("different seeds"), "{e}");
}
