//! Questions of the page and their answers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use airlane_sim::{Report, Scenario, repeat};
use airlane_web::answer;
use serde_json::{Value, json};

fn text(name: &str) -> String {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    std::fs::read_to_string(sources.join(format!("scenarios/{name}.toml"))).unwrap()
}

fn world(set: &[&str]) -> Value {
    json!({ "text": text("unlabelled"), "file": "unlabelled.toml", "set": set })
}

fn asked(question: &Value) -> Value {
    serde_json::from_str(&answer(question.to_string().as_bytes())).unwrap()
}

#[test]
fn a_report_is_what_the_program_prints() {
    let set = ["duration=3 s", "links.radio.errors.rate=0.02"];
    let told = asked(&json!({ "ask": "report", "world": world(&set), "runs": 2 }));
    let mut document =
        airlane_base::config::Document::parse(&text("unlabelled"), "unlabelled.toml").unwrap();
    set.iter().for_each(|set| document.set(set).unwrap());
    let scenario: Scenario = document.read().unwrap();
    let runs = repeat(&scenario, scenario.seed, 2, 1, |_, _| {}).unwrap();
    let report = Report::new(&scenario, &runs).unwrap();
    let text = serde_json::to_string_pretty(&report).unwrap() + "\n";
    assert_eq!(told.as_str().unwrap(), text);
}

#[test]
fn a_watched_run_equals_the_plain_run_and_has_a_time_series() {
    let set = ["duration=3 s"];
    let plain = asked(&json!({ "ask": "run", "world": world(&set), "run": 1 }));
    let watched =
        asked(&json!({ "ask": "watch", "world": world(&set), "run": 1, "stopped_s": 3.0 }));
    let mut result = watched["result"].clone();
    for flow in result["flows"].as_array_mut().unwrap() {
        let over_time = flow.as_object_mut().unwrap().remove("over_time").unwrap();
        let intervals = over_time["throughput_bps"].as_array().unwrap();
        assert_eq!(over_time["interval_s"], 0.05);
        assert_eq!(intervals.len(), 60);
    }
    assert_eq!(result, plain);
    let file = &watched["series"][0];
    assert_eq!(file["flow"], "file");
    let delays = file["delay_mean_s"].as_array().unwrap();
    assert!(delays.len() <= 60 && delays.iter().filter_map(Value::as_f64).count() > 40);
    // Of what arrives none is faster than the link.
    let fastest = delays.iter().filter_map(Value::as_f64);
    assert!(fastest.fold(f64::INFINITY, f64::min) >= 0.025);
    assert!(!file["cwnd_segments"].as_array().unwrap().is_empty());
    assert!(
        watched["series"][2]["cwnd_segments"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn errors_match_those_of_the_program() {
    let wrong = |world: Value| asked(&json!({ "ask": "outline", "world": world }))["error"].clone();
    let error = wrong(
        json!({ "text": text("unlabelled").replace("20 Mbit/s", "20 Mbits"), "file": "x.toml" }),
    );
    assert_eq!(error["problems"][0]["line"], 19);
    assert!(
        error["text"].as_str().unwrap().contains("x.toml:19:8: "),
        "{error}"
    );
    let error = wrong(world(&["links.radio.errors.rate=2"]));
    assert_eq!(error["problems"][0]["in_text"], false, "{error}");
    // A page has no files.
    let trace = r#"links.radio.errors={ kind = "trace", file = "hill-top.trace" }"#;
    let error = wrong(world(&[trace]));
    assert!(
        error["text"]
            .as_str()
            .unwrap()
            .contains("a page cannot read files"),
        "{error}"
    );
    for nonsense in ["", "{}", r#"{ "ask": "what" }"#, "\u{0}"] {
        let told: Value = serde_json::from_str(&answer(nonsense.as_bytes())).unwrap();
        assert!(told["error"]["text"].is_string(), "{told}");
    }
}

#[test]
fn an_outline_has_what_sliders_and_tables_need() {
    let outline = asked(&json!({ "ask": "outline", "world": world(&["links.radio.delay=40 ms"]) }));
    assert_eq!(outline["scenario"]["links"]["radio"]["delay"], "40 ms");
    assert_eq!(outline["flows"][2]["app"], "conferencing");
    // What a picture of `airlane sim compare` shows where it was measured: a conference's rate is its own choice.
    let headlines = |flow: usize| -> Vec<&str> {
        let metrics = outline["flows"][flow]["metrics"].as_array().unwrap();
        let headlines = metrics.iter().filter(|metric| metric["headline"] == true);
        headlines
            .map(|metric| metric["name"].as_str().unwrap())
            .collect()
    };
    assert_eq!(headlines(0)[0], "throughput_bps");
    assert_eq!(headlines(0)[1..], headlines(2)[..]);
    assert!(headlines(2).contains(&"loss_ratio"));
}

#[test]
fn estimates_are_paired_run_by_run() {
    let columns = json!([[2.0, 4.0], [1.0, 8.0], [null, null]]);
    let told = asked(
        &json!({ "ask": "estimate", "metrics": [{ "metric": "delay_mean_s", "columns": columns }] }),
    );
    assert_eq!(told[0][0]["row"]["value"]["mean"], 3.0);
    assert_eq!(told[0][1]["row"]["ratio"]["mean"], 1.25);
    assert_eq!(told[0][2]["shown"], "-");
}

#[test]
fn events_of_an_interval_are_those_of_the_run() {
    let question = json!({
        "ask": "events", "world": world(&["duration=3 s"]), "run": 0, "from_ns": 1_000_000_000_u64,
        "to_ns": 1_100_000_000_u64, "flows": ["file"], "links": [], "kinds": ["frame-lost"],
    });
    let told = asked(&question);
    let events = told["events"].as_array().unwrap();
    assert!(!events.is_empty() && told["cut"] == false);
    for event in events {
        assert_eq!(event["event"], "frame-lost");
        assert!((1_000_000_000..=1_100_000_000).contains(&event["time_ns"].as_u64().unwrap()));
    }
}
