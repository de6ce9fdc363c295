//! Scenarios made from other tools' configurations and from points of studies, as users meet them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use airlane_sim::Scenario;
use airlane_study::{Plan, RunRequest, Work};

fn airlane(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_airlane"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program was built for this test");
    // A program that does not read its input has closed the pipe.
    _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Throughput of the first flow, bit/s.
fn throughput_bps(folder: &Path, file: &str, changes: &[&str]) -> f64 {
    let mut arguments = vec!["sim", "run", file, "--json"];
    arguments.extend(changes.iter().flat_map(|change| ["--set", change]));
    let output = airlane(folder, &arguments, "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    result["runs"][0]["flows"][0]["throughput_bps"]
        .as_f64()
        .unwrap()
}

#[test]
fn the_output_of_tc_runs_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let shown = "qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 5ms  1ms rate 2Mbit\n";
    let arguments = ["scenario", "from-netem", "-", "--output", "eth0.toml"];
    let output = airlane(folder.path(), &arguments, shown);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!text(&output.stderr).contains("jitter"));
    let bps = throughput_bps(folder.path(), "eth0.toml", &["duration=20 s"]);
    assert!((1.8e6..=1.92e6).contains(&bps), "{bps}");

    // The same result from a file and from the command line, to standard output.
    std::fs::write(folder.path().join("shown.txt"), shown).unwrap();
    for input in ["shown.txt", shown] {
        let output = airlane(folder.path(), &["scenario", "from-netem", input], "");
        let file = std::fs::read(folder.path().join("eth0.toml")).unwrap();
        assert_eq!(text(&output.stdout), text(&file));
    }
}

#[test]
fn unsupported_input_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = ["scenario", "from-netem", "netem delay 5ms lass 3%"];
    let output = airlane(folder.path(), &wrong, "");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(
        said.contains("the command: line 1, column 17: \"lass\" is not known"),
        "{said}"
    );

    let wrong = ["scenario", "from-mahimahi", "mm-link UP DOWN"];
    let output = airlane(folder.path(), &wrong, "");
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("column 9: UP: No such file"), "{said}");
}

/// The paths of traces are relative to the scenario, wherever it is.
#[test]
fn shells_and_their_traces_run_from_another_folder() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    // 12.032 Mbit/s and a tenth of that.
    std::fs::write(folder.path().join("DOWN.trace"), "1\n").unwrap();
    std::fs::write(folder.path().join("UP.trace"), "10\n").unwrap();
    let queues = "--uplink-queue=droptail --uplink-queue-args=packets=100 \
                  --downlink-queue=droptail --downlink-queue-args=packets=100";
    let command = format!("mm-delay 10 mm-link UP.trace DOWN.trace {queues}");
    let arguments = [
        "scenario",
        "from-mahimahi",
        &command,
        "--output",
        "out/link.toml",
    ];
    let output = airlane(folder.path(), &arguments, "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    // Only the window differs, which Mahimahi does not have.
    let said = text(&output.stderr);
    assert!(said.starts_with("warning: window: "), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let bps = throughput_bps(&out, "link.toml", &["duration=20 s"]);
    assert!((11e6..=11.6e6).contains(&bps), "{bps}");
    let bps = throughput_bps(
        folder.path(),
        "out/link.toml",
        &["duration=20 s", "flows[0].ends=[\"client\", \"server\"]"],
    );
    assert!((1.05e6..=1.17e6).contains(&bps), "{bps}");
}

fn studies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../studies")
}

/// A point of a study, written as a scenario, gives the same results as the study.
#[test]
fn a_point_of_a_study_has_the_results_of_the_study() {
    let folder = tempfile::tempdir().unwrap();
    let studies = studies();
    let studies = studies.to_str().unwrap();
    let of = [
        "study",
        "scenario",
        "xylomenos-1999/F4.2",
        "level=L3",
        "scheme=rlp",
    ];
    let to = ["--studies", studies, "--output", "point.toml"];
    let set = ["--set", "links.*.services[*].scheme(kind=rlp).retries=2"];
    for extra in [&[][..], &set, &["--alternative", "tight"]] {
        let work = Work::load(&Path::new(studies).join("xylomenos-1999")).unwrap();
        let request = RunRequest {
            runs: Some(1),
            set: extra
                .iter()
                .filter(|text| text.starts_with("links"))
                .map(|t| t.to_string())
                .collect(),
            alternatives: extra
                .iter()
                .filter(|text| text.starts_with("tight"))
                .map(|t| t.to_string())
                .collect(),
            committed: !extra.contains(&"--alternative"),
            ..RunRequest::default()
        };
        if request
            .alternatives
            .iter()
            .any(|name| !work.alternatives.contains_key(name))
        {
            panic!("choose another alternative: {:?}", work.alternatives.keys());
        }
        let study = work.study("F4.2").unwrap();
        let place = (0..)
            .find(|index| {
                study.values(*index) == ["L3", "rlp"] || study.values(*index) == ["rlp", "L3"]
            })
            .unwrap();
        let plan = Plan::new(work, &["F4.2".to_owned()], &request).unwrap();
        let planned = &plan.variants[0].studies[0];
        let world = &plan.worlds[planned.worlds[place]];

        let arguments = [&of[..], &to, extra].concat();
        let output = airlane(folder.path(), &arguments, "");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let file = std::fs::read_to_string(folder.path().join("point.toml")).unwrap();
        assert!(
            file.starts_with("# xylomenos-1999/F4.2 level=L3 scheme=rlp\n"),
            "{file}"
        );
        let scenario = Scenario::from_toml(&file, "point.toml").unwrap();
        assert_eq!(scenario.hash(), world.hash());

        let output = airlane(folder.path(), &["sim", "run", "point.toml", "--json"], "");
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let expected = serde_json::to_value(world.run(plan.seed, 0)).unwrap();
        assert_eq!(result["runs"][0], expected);
    }
}

#[test]
fn an_unknown_point_is_refused_with_the_valid_values() {
    let studies = studies();
    let refusal = |arguments: &[&str]| {
        let arguments = [
            &["study", "scenario"],
            arguments,
            &["--studies", studies.to_str().unwrap()],
        ]
        .concat();
        let output = airlane(Path::new("."), &arguments, "");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        text(&output.stderr).to_owned()
    };
    for (arguments, part) in [
        (
            &["F4.2", "scheme=rlp"][..],
            "a point needs a value of level; its axes: scheme=default|",
        ),
        (&["F4.2", "scheme=rlp", "level=L9"], "level is never \"L9\""),
        (&["F4.2", "scheme=rlp", "scheme=sr"], "given twice"),
        (&["F4.2", "colour=red"], "no axis \"colour\""),
        (&["F4.2", "L3"], "no AXIS=VALUE"),
        (&["F4.99"], "there is no work or study \"F4.99\""),
        (&["xylomenos-1999"], "is a whole work"),
        (
            &["F4.2", "scheme=rlp", "level=L1", "--alternative", "x"],
            "there is no alternative \"x\"",
        ),
        (
            &[
                "F4.2",
                "scheme=rlp",
                "level=L1",
                "--set",
                "links.moon.rate=1 bit/s",
            ],
            "reaches no place",
        ),
    ] {
        let said = refusal(arguments);
        assert!(said.contains(part), "{arguments:?}: {said}");
    }
}

#[test]
fn a_listed_scenario_is_run_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| airlane(folder.path(), arguments, "");
    let (short, name) = (["--set", "duration=1 s", "--json"], "three-applications");
    for verb in [
        &["sim", "run", name][..],
        &["sim", "compare", name, "three-applications-raw"],
    ] {
        let output = run(&[verb, &short].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let written = run(&["scenario", "show", name]).stdout;
    std::fs::write(folder.path().join("file.toml"), &written).unwrap();
    assert_eq!(
        run(&["explain", name]).stdout,
        run(&["explain", "file.toml"]).stdout
    );
    // A file of that name takes precedence.
    std::fs::copy(
        folder.path().join("file.toml"),
        folder.path().join("wlan-lan1"),
    )
    .unwrap();
    assert_eq!(
        run(&["explain", "wlan-lan1"]).stdout,
        run(&["explain", name]).stdout
    );

    let said = |name: &str| text(&run(&["sim", "run", name]).stderr).to_owned();
    let misspelt = said("three-aplications");
    assert!(
        misspelt.contains("did you mean three-applications, which"),
        "{misspelt}"
    );
    assert!(said("nothing-such").contains("`airlane scenario list`"));
    assert!(!said("nothing.toml").contains("scenario list"));
}

#[test]
fn deterministic_runs_are_reported_as_identical() {
    let folder = tempfile::tempdir().unwrap();
    let clean = [
        "sim",
        "run",
        "cellular-lan1",
        "--set",
        "links.*.errors={ kind = \"none\" }",
        "--set",
        "duration=5 s",
    ];
    let run = |more: &[&str]| airlane(folder.path(), &[&clean[..], more].concat(), "");
    let told = run(&["--runs", "3"]);
    assert!(
        text(&told.stderr).contains("all 3 runs are the same"),
        "{}",
        text(&told.stderr)
    );
    assert!(!text(&run(&[]).stderr).contains("are the same"));
    let json = run(&["--runs", "3", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["summary"]["identical_runs"], true);
    let lossy = [
        "--runs",
        "3",
        "--set",
        "links.radio.errors={ kind = \"uniform\", rate = 0.1 }",
    ];
    assert!(!text(&run(&lossy).stderr).contains("are the same"));
}

#[test]
fn stations_have_rows_in_text_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["sim", "run", "wifi-hidden", "--set", "duration=2 s"];
    let output = airlane(folder.path(), &run, "");
    let shown = text(&output.stdout);
    let heads = [
        "channel", "station", "airtime", "frames", "collided", "retries", "given up",
    ];
    let head = shown
        .lines()
        .find(|line| line.trim_start().starts_with("channel"));
    let head = head.unwrap_or_else(|| panic!("{shown}"));
    assert!(heads.iter().all(|word| head.contains(word)), "{head}");
    // There are no links, and no table is shown without rows.
    assert!(!shown.contains("utilisation"), "{shown}");
    let row = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let left = shown
        .lines()
        .map(row)
        .find(|cells| cells.first().is_some_and(|n| n == "left"));
    let output = airlane(folder.path(), &[&run[..], &["--json"]].concat(), "");
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = &result["runs"][0]["radios"][0]["stations"][1];
    assert_eq!(counts["node"], "left");
    let count = |name: &str| counts[name].as_u64().unwrap();
    let frames =
        count("data_frames") + count("ack_frames") + count("rts_frames") + count("cts_frames");
    let collided = count("data_collided") + count("ack_collided");
    assert!(collided > 0 && count("retries") > 0 && count("airtime_ns") > 0);
    let airtime = format!("{:.1}", counts["airtime_ratio"].as_f64().unwrap() * 100.0);
    let whole = [
        frames,
        collided,
        count("retries"),
        count("retry_drops"),
        count("queue_drops"),
    ];
    let expected = [
        &["left".to_owned(), airtime, "%".to_owned()][..],
        &whole.map(|n| n.to_string()),
    ];
    assert_eq!(left.unwrap(), expected.concat(), "{shown}");
    let station = &result["summary"]["radios"][0]["stations"][1];
    let metrics = station["metrics"].as_array().unwrap();
    let retries = metrics.iter().find(|m| m["metric"] == "retries").unwrap();
    assert_eq!(retries["mean"].as_f64(), Some(count("retries") as f64));
}

/// A pair of captures of a simulated link shows the losses of the simulation.
#[test]
fn a_pair_of_captures_becomes_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let made = [
        "scenario",
        "from-netem",
        "delay 20ms loss 4% rate 5mbit",
        "--output",
        "w.toml",
    ];
    assert!(airlane(folder.path(), &made, "").status.success());
    let run = [
        "sim",
        "run",
        "w.toml",
        "--set",
        "duration=10 s",
        "--pcap",
        "link@sender=sent.pcapng",
        "--pcap",
        "link@receiver=got.pcapng",
        "--json",
    ];
    let output = airlane(folder.path(), &run, "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let channel = &result["runs"][0]["links"][0]["down"]["channel"];
    let lost = channel["lost_air"]["frames"].as_u64().unwrap();
    let convert = [
        "trace",
        "convert",
        "sent.pcapng",
        "--from",
        "captures",
        "--far",
        "got.pcapng",
        "-o",
        "link.trace",
    ];
    let output = airlane(folder.path(), &convert, "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = airlane(
        folder.path(),
        &["trace", "show", "link.trace", "--json"],
        "",
    );
    let shown: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let found = shown["out"]["frames_lost"].as_u64().unwrap();
    // Drops of the link's queue are lost between the captures, too; frames in flight at the end are
    // unknown.
    let dropped = channel["dropped_queue"]["frames"].as_u64().unwrap();
    assert!(
        lost > 20 && found.abs_diff(lost + dropped) <= 40,
        "{found}: {lost} {dropped}"
    );
    let alone = airlane(folder.path(), &convert[..5], "");
    assert!(
        text(&alone.stderr).contains("--far"),
        "{}",
        text(&alone.stderr)
    );
}

#[test]
fn tables_become_traces() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("rates.csv"),
        "s,Mbit/s\n0,12.032\n0.002,0\n0.004,6.016\n",
    )
    .unwrap();
    let output = airlane(
        folder.path(),
        &["trace", "convert", "rates.csv", "--from", "rates"],
        "",
    );
    assert_eq!(
        text(&output.stdout),
        "1\n2\n6\n",
        "{}",
        text(&output.stderr)
    );
    std::fs::write(folder.path().join("seq.csv"), "1\n2\n4\n").unwrap();
    let convert = [
        "trace", "convert", "seq.csv", "--from", "sequence", "--block", "20ms",
    ];
    let output = airlane(folder.path(), &convert, "");
    assert!(
        text(&output.stdout).ends_with("0010\n"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn rates_of_a_script_are_written_beside_the_scenario_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let script = "tc qdisc add dev eth0 root netem delay 5ms rate 4mbit\nsleep 10\n\
                  tc qdisc change dev eth0 root netem delay 5ms rate 1mbit\nsleep 20\ntc qdisc del dev eth0 root\n";
    let made = ["scenario", "from-netem", "-", "--output", "steps.toml"];
    let output = airlane(folder.path(), &made, script);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    assert!(
        said.contains("wrote the rates to") && said.contains("steps.down"),
        "{said}"
    );
    assert!(
        said.contains("4 Mbit/s, 1 Mbit/s from 0 s, 10 s on"),
        "{said}"
    );
    let run = ["sim", "run", "steps.toml", "--over-time=10s", "--json"];
    let output = airlane(folder.path(), &run, "");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let over_time = &result["runs"][0]["flows"][0]["over_time"]["throughput_bps"];
    let mbps: Vec<f64> = over_time
        .as_array()
        .unwrap()
        .iter()
        .map(|bps| bps.as_f64().unwrap() / 1e6)
        .collect();
    assert_eq!(mbps.len(), 3, "{mbps:?}");
    assert!((3.2..=4.0).contains(&mbps[0]), "{mbps:?}");
    assert!(
        mbps[1..].iter().all(|mbps| (0.8..=1.2).contains(mbps)),
        "{mbps:?}"
    );
    // Standard output has no directory for a second file.
    let output = airlane(folder.path(), &made[..3], script);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("--output FILE writes these rates"),
        "{}",
        text(&output.stderr)
    );
}
