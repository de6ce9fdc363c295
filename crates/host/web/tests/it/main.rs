//! Questions of the page and their answers.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;

use airlane_base::Duration;
use airlane_channel::trace::{FrameId, Trace, TraceHeader, TraceRecord};
use airlane_sim::{Report, Scenario, repeat};
use airlane_study::{Plan, RunRequest, Shard, Store, Work};
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

/// A question, with the bytes that follow it.
fn asked_with(question: &Value, bytes: &[u8]) -> Value {
    let question = [question.to_string().as_bytes(), b"\n", bytes].concat();
    serde_json::from_str(&answer(&question)).unwrap()
}

/// The scenario that these links and files become.
fn started(start: &Value) -> Scenario {
    Scenario::from_toml(start["text"].as_str().unwrap(), "start").unwrap()
}

#[test]
fn settings_of_tc_are_a_start_and_nonsense_is_named() {
    let of = |text: &str, device: &str, reverse: &str| {
        let question = json!({
            "ask": "tc", "text": text, "device": device, "reverse": reverse, "reverse_device": "",
        });
        asked(&question)
    };
    let scenario = started(&of("netem delay 25ms loss 5%", "", ""));
    assert_eq!(scenario.links["link"].delay.down.to_string(), "25 ms");
    assert_eq!(scenario.flows.len(), 3);
    let error = of("netem delay fast", "", "")["error"]["text"].clone();
    assert!(error.as_str().unwrap().contains("fast"), "{error}");
    let two = "tc qdisc add dev a root netem loss 1%\ntc qdisc add dev b root netem loss 2%";
    assert!(of(two, "", "")["error"].is_object());
    let one = of(two, "b", "");
    assert!(one["text"].as_str().unwrap().contains("0.02"), "{one}");
    let scenario = started(&of("netem delay 25ms", "", "netem delay 40ms"));
    assert_eq!(scenario.links["link"].delay.down.to_string(), "25 ms");
    assert_eq!(scenario.links["link"].delay.up.to_string(), "40 ms");
}

#[test]
fn a_live_file_is_a_start_on_the_link_that_is_given() {
    let ask = |text: &str| {
        let link = json!({
            "ask": "live", "text": text, "file": "hill.toml", "rate": "4 Mbit/s", "delay": "30 ms", "loss": 0.02,
        });
        asked(&link)
    };
    let file = "schema = 1\ntun = {}\n[link]\nunderlay = { kind = \"udp\", listen = \"0.0.0.0:7007\" }\n\
                security = \"none\"\n[[link.services]]\nnumber = 1\nname = \"mine\"\ngoal = \"voice\"\n";
    let start = ask(file);
    let scenario = started(&start);
    assert_eq!(scenario.links["radio"].delay.down.to_string(), "30 ms");
    assert!(start["text"].as_str().unwrap().contains("mine"), "{start}");
    let outline = asked(
        &json!({ "ask": "outline", "world": { "text": start["text"], "file": "live-file.toml" } }),
    );
    assert_eq!(outline["flows"].as_array().unwrap().len(), 4);
    let wrong = |text: &str| ask(text)["error"]["text"].as_str().unwrap().to_owned();
    assert!(
        wrong("schema = ").contains("hill.toml:1:"),
        "{}",
        wrong("schema = ")
    );
    let goal = wrong(&file.replace("voice", "noise"));
    assert!(
        goal.contains("hill.toml: ") && goal.contains("noise"),
        "{goal}"
    );
}

/// A recording of both ends: every 25th frame out is lost, none back.
fn recording() -> Vec<u8> {
    let at = |number: u64, late_us: u64| Duration::from_nanos(number * 4_000_000 + late_us * 1_000);
    let [mut near, mut far] = [vec![], vec![]];
    for (key, from, to) in [(1, 0, 1), (2, 1, 0)] {
        for number in 0..3_000 {
            let frame = FrameId { key, number };
            let (len, queue) = (1_000, 0);
            let ends: [&mut Vec<TraceRecord>; 2] = [&mut near, &mut far];
            let sent = at(number, 0);
            ends[from].push(TraceRecord::Sent {
                at: sent,
                frame,
                len,
                queue,
            });
            if key == 2 || number % 25 != 7 {
                let at = at(number, 20_000);
                let ends: [&mut Vec<TraceRecord>; 2] = [&mut near, &mut far];
                ends[to].push(TraceRecord::Received { at, frame, len });
            }
        }
    }
    near.sort_by_key(TraceRecord::at);
    far.sort_by_key(TraceRecord::at);
    let header = TraceHeader {
        name: "hill and farm".to_owned(),
        ..TraceHeader::default()
    };
    let cut_at = None;
    Trace {
        header,
        near,
        far,
        cut_at,
    }
    .to_bytes()
}

#[test]
fn a_recorded_link_is_a_start_with_what_is_assumed() {
    let bytes = recording();
    let question = |bytes: usize| json!({ "ask": "recording", "recordings": [{ "name": "a.trace", "bytes": bytes }] });
    let start = asked_with(&question(bytes.len()), &bytes);
    let scenario = started(&start);
    assert_eq!(scenario.name, "the recorded link of hill and farm");
    assert!(!start["notes"].as_array().unwrap().is_empty(), "{start}");
    let errors = serde_json::to_value(&scenario.links["radio"].errors).unwrap();
    let rate = errors["down"]["rate"].as_f64().unwrap();
    assert!((0.03..0.05).contains(&rate), "{errors}");
    for (question, bytes, part) in [
        (
            question(bytes.len() + 1),
            &bytes[..],
            "a.trace: it is cut off",
        ),
        (question(3), b"abc", "a.trace: "),
        (
            json!({ "ask": "recording", "recordings": [] }),
            b"",
            "choose one recording",
        ),
    ] {
        let said = asked_with(&question, bytes)["error"]["text"].clone();
        assert!(said.as_str().unwrap().contains(part), "{said}");
    }
}

#[test]
fn a_figure_of_the_page_is_that_of_the_program() {
    let of = json!({ "work": "balakrishnan-1997", "study": "peak", "set": ["duration=\"2 s\""] });
    let outline = asked(&json!({ "ask": "figure", "figure": of }));
    let worlds = outline["worlds"].as_array().unwrap();
    assert!(!worlds.is_empty() && !outline["claims"].as_array().unwrap().is_empty());
    let mut records = vec![];
    for run in 0..2 {
        for world in worlds {
            let text = json!({ "text": world["text"], "file": "peak.toml" });
            let record = asked(&json!({ "ask": "measure", "world": text, "run": run }));
            // The text that the page has is the very world of the figure.
            assert_eq!(record["hash"], world["hash"]);
            records.push(record);
        }
    }
    let records = Value::Array(records).to_string();
    let judge = json!({ "ask": "judge", "figure": of, "runs": 2 });
    let here = asked_with(&judge, records.as_bytes());

    let work = Work::shipped("balakrishnan-1997").unwrap();
    let request = RunRequest {
        runs: Some(2),
        set: vec!["duration=\"2 s\"".to_owned()],
        committed: true,
        ..RunRequest::default()
    };
    let plan = Plan::new(work, &["peak".to_owned()], &request).unwrap();
    let mut store = Store::default();
    plan.execute(&mut store, Shard::ALL, 1, &()).unwrap();
    let there = plan.outcome(&store, &plan.variants[0]).unwrap();
    assert_eq!(here, serde_json::to_value(&there).unwrap());

    let error = asked_with(&judge, b"[]")["error"]["text"].clone();
    assert!(error.as_str().unwrap().contains("missing"), "{error}");
    let no = json!({ "ask": "figure", "figure": { "work": "nobody-1999", "study": "F1" } });
    let error = asked(&no)["error"]["text"].clone();
    assert!(
        error.as_str().unwrap().contains("balakrishnan-1997"),
        "{error}"
    );
}

#[test]
fn every_figure_can_be_planned() {
    let works = asked(&json!({ "ask": "works" }));
    let published = works
        .as_array()
        .unwrap()
        .iter()
        .filter(|work| work["published"] == true);
    assert_eq!(published.count(), 5);
    for work in works.as_array().unwrap() {
        for figure in work["figures"].as_array().unwrap() {
            let of = json!({ "work": work["id"], "study": figure["id"] });
            let outline = asked(&json!({ "ask": "figure", "figure": of }));
            let worlds = outline["worlds"].as_array();
            assert!(worlds.is_some(), "{of}: {}", outline["error"]["text"]);
        }
    }
}
