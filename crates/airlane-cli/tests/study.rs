//! Studies as their users run them: a small work, its verdicts, what they are compared with.

#![expect(clippy::unwrap_used, reason = "a test may fail this way")]

use std::path::Path;
use std::process::{Command, Output};

const STUDY: &str = r#"title = "Loss of speech"
scenario.schema = 1
scenario.duration = "20 s"
axes.level.low = ["links.radio.errors.rate=0.01"]
axes.level.high = ["links.radio.errors.rate=0.3"]
metrics.loss = "talk.loss_ratio"

[scenario.nodes]
a = {}
b = {}

[scenario.links.radio]
ends = ["a", "b"]
rate = "64 kbit/s"
delay = "10 ms"
frame = "100 B"
errors = { kind = "uniform", rate = 0.01 }

[[scenario.flows]]
name = "talk"
ends = ["a", "b"]
transport = { kind = "udp" }
app = { kind = "conferencing", rate = "16 kbit/s", talk = "1 s", silence = "0 s" }

[[claims]]
id = "order"
published = "more is lost at the higher level"
check = "loss[high] > loss[low]"
"#;

/// `airlane study run small` in a folder that has the work, at 3 repetitions.
fn run(folder: &Path, options: &[&str]) -> Output {
    let work = folder.join("studies/small");
    std::fs::create_dir_all(&work).unwrap();
    std::fs::write(work.join("work.toml"), "title = \"small\"\nruns = 3\n").unwrap();
    std::fs::write(work.join("loss.toml"), STUDY).unwrap();
    Command::new(env!("CARGO_BIN_EXE_airlane"))
        .args(["study", "run", "small"])
        .args(options)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn verdicts_that_got_worse_or_are_new_end_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let saved = run(folder, &["--save", "verdicts.json"]);
    assert_eq!(saved.status.code(), Some(0), "{}", said(&saved));
    let text = std::fs::read_to_string(folder.join("verdicts.json")).unwrap();
    assert!(text.contains("\"order\": \"holds\""), "{text}");
    let same = run(folder, &["--check", "verdicts.json"]);
    assert_eq!(same.status.code(), Some(0), "{}", said(&same));

    std::fs::write(
        folder.join("none.json"),
        text.replace("\"order\": \"holds\"", ""),
    )
    .unwrap();
    let new = run(folder, &["--check", "none.json"]);
    assert_eq!(new.status.code(), Some(1), "{}", said(&new));
    assert!(said(&new).contains("order: not in it"), "{}", said(&new));
}

#[test]
fn verdicts_that_cannot_be_compared_are_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(
        folder.join("two.json"),
        r#"{"runs": 2, "seed": 1, "verdicts": {}}"#,
    )
    .unwrap();
    std::fs::write(folder.join("odd.json"), "[]").unwrap();
    for (file, expected) in [
        ("missing.json", "cannot read missing.json"),
        ("odd.json", "has no verdicts; --save writes them"),
        ("two.json", "was made with --runs 2 --seed 1; use the same"),
    ] {
        let output = run(folder, &["--check", file]);
        assert_eq!(output.status.code(), Some(2), "{file}: {}", said(&output));
        assert!(said(&output).contains(expected), "{}", said(&output));
        assert!(!folder.join("results").exists(), "{file}");
    }
}
