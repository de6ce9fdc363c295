//! Links that fail for a while, and transport that gets hints.

use crate::common::load;
use airlane_sim::{RunResult, Scenario, run};

/// One link is down for `seconds` from 10 s on.
fn outage(name: &str, link: &str, seconds: u32, extra: &[&str]) -> RunResult {
    let until = 10 + seconds;
    let down = format!("links.{link}.outages=[{{ from = \"10 s\", to = \"{until} s\" }}]");
    let mut assignments = vec![];
    if seconds > 0 {
        assignments.push(down.as_str());
    }
    assignments.extend(extra);
    run(&load(name, &assignments), 1, 0).unwrap()
}

/// 20 MB over an error-free WLAN: at least 80 s.
const FILE: [&str; 2] = [
    "flows[file].app.size=20 MB",
    "links.radio.errors={ kind = \"none\" }",
];

#[test]
fn freezing_saves_the_backoff_after_an_outage() {
    let clean = outage("wlan-lan1", "radio", 0, &FILE).stopped_s;
    for seconds in [5, 10, 20, 40] {
        let frozen = ["flows[file].transport.freeze=true"];
        let told = outage(
            "wlan-lan1",
            "radio",
            seconds,
            &[&FILE[..], &frozen].concat(),
        );
        let untold = outage("wlan-lan1", "radio", seconds, &FILE);
        let lost_s = |result: &RunResult| result.stopped_s - clean - f64::from(seconds);
        // The first timeout after the outage recovers the segments in flight: two seconds, the minimum RTO at such
        // round trips, and a slow start.
        assert!(lost_s(&told) < 3.0, "{seconds} s: {}", lost_s(&told));
        assert_eq!(told.flows[0].timeouts, Some(1), "{seconds} s");
        assert!(untold.flows[0].timeouts.unwrap() > 1, "{seconds} s");
        assert!(lost_s(&untold) >= 0.0);
        // A window in flight is lost either way; probes of the silent link are additional.
        let probes = |r: &RunResult| {
            let radio = r.links.iter().find(|l| l.name == "radio").unwrap();
            radio.down.channel.lost_outage.frames
        };
        assert!(probes(&told) <= 20, "{}", probes(&told));
        assert!(probes(&untold) > probes(&told), "{seconds} s");
    }
    // A timer that has backed off to 16 s may run that long after the link is back; over all outages that costs more
    // than hints do.
    let total = |extra: &[&str]| -> f64 {
        let all = [&FILE[..], extra].concat();
        let times = (5..50)
            .step_by(5)
            .map(|s| outage("wlan-lan1", "radio", s, &all).stopped_s - f64::from(s));
        times.sum()
    };
    let (told, untold) = (total(&["flows[file].transport.freeze=true"]), total(&[]));
    assert!(untold > told + 9.0 * 3.0, "{untold} {told}");
}

#[test]
fn a_distant_host_is_notified_later() {
    // Over the wide area the server learns of the outage 50 ms after the base station, and keeps sending meanwhile:
    // up to a window.
    let extra = [
        "flows[file].app.size=2 MB",
        "flows[file].transport.freeze=true",
    ];
    let result = outage("wlan-wan2", "radio-2", 20, &extra);
    assert!(result.finished, "{result:?}");
    let radio = result.links.iter().find(|l| l.name == "radio-2").unwrap();
    let lost = radio.down.channel.lost_outage.frames;
    assert!((1..=20).contains(&lost), "{lost}");
}

#[test]
fn pages_and_keys_wait_for_the_link_too() {
    for app in [
        "{ kind = \"web\" }",
        "{ kind = \"web\", persistent = true, completion = \"delivered\" }",
        "{ kind = \"pages\", request = \"300 B\", reply = \"3 kB\" }",
        "{ kind = \"telnet\" }",
        "{ kind = \"mail\", pause = \"0 s\" }",
    ] {
        let app = format!("flows[0].app={app}");
        let flow = |freeze: &str| {
            let extra = [
                "duration=200 s",
                "links.radio.errors={ kind = \"none\" }",
                &app,
                freeze,
                // A mark from before the outage, kept for the next transfer, would measure the outage.
                "flows[0].transport.keep-rtt-mark=false",
            ];
            let text = load("wlan-lan1", &[]).to_toml();
            let text = text.replace("until = \"file\"\n", "");
            let down = "links.radio.outages=[{ from = \"10 s\", to = \"13 s\" }, { from = \"40 s\", to = \"80 s\" }]";
            let all: Vec<&str> = extra.iter().copied().chain([down]).collect();
            let world =
                Scenario::from_toml_with(&text, "w", &all).unwrap_or_else(|e| panic!("{e}"));
            run(&world, 1, 0).unwrap().flows.remove(0)
        };
        let (told, untold) = (
            flow("flows[0].transport.freeze=true"),
            flow("flows[0].transport.freeze=false"),
        );
        let timeouts = (told.timeouts.unwrap(), untold.timeouts.unwrap());
        assert!(timeouts.0 < timeouts.1, "{app}: {timeouts:?}");
        assert!(told.delivered_bytes > untold.delivered_bytes, "{app}");
    }
}

#[test]
fn impossible_outages_are_refused() {
    let text = load("wlan-lan1", &[]).to_toml();
    let down = "links.radio.outages=[{ from = \"30 s\", to = \"30 s\" }]";
    let e = Scenario::from_toml_with(&text, "w", &[down])
        .unwrap_err()
        .to_string();
    assert!(e.contains("outages[0]") && e.contains("later than"), "{e}");
}
