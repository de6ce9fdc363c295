//! Studies as their users run them: a small work, its verdicts, what they are compared with.

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

[[claims]]
id = "opposite"
published = "less is lost at the higher level"
check = "loss[high] < loss[low]"
"#;

/// `airlane study run` of small works in a folder, at 3 repetitions each. Every work has a seed of
/// its own, claims of its own and an alternative.
fn run(folder: &Path, works: &[&str], options: &[&str]) -> Output {
    for (seed, id) in (1..).zip(["small", "other"]) {
        let work = folder.join("studies").join(id);
        std::fs::create_dir_all(&work).unwrap();
        let head = format!("title = \"{id}\"\nruns = 3\nseed = {seed}\n");
        let study = match id {
            "small" => STUDY.to_owned(),
            id => STUDY.replace("id = \"", &format!("id = \"{id} ")),
        };
        let long = "[long]\ntitle = \"longer\"\nset = [\"duration=21 s\"]\n";
        for (name, text) in [
            ("work.toml", head.as_str()),
            ("loss.toml", &study),
            ("alternatives.toml", long),
        ] {
            std::fs::write(work.join(name), text).unwrap();
        }
    }
    Command::new(env!("CARGO_BIN_EXE_airlane"))
        .args(["study", "run"])
        .args(works)
        .args(options)
        .current_dir(folder)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The exit code, which is as expected, and what was said.
#[track_caller]
fn ends_with(code: i32, output: &Output) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    said(output)
}

#[test]
fn verdicts_that_got_worse_or_are_new_end_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let small = |options: &[&str]| run(folder, &["small"], options);
    ends_with(0, &small(&["--save", "verdicts.json"]));
    let text = std::fs::read_to_string(folder.join("verdicts.json")).unwrap();
    assert!(text.contains("\"order\": \"holds\""), "{text}");
    assert!(text.contains("\"opposite\": \"misses\""), "{text}");
    ends_with(0, &small(&["--check", "verdicts.json"]));

    let new = text.replace("\"opposite\": \"misses\",", "");
    std::fs::write(folder.join("none.json"), new).unwrap();
    let new = ends_with(1, &small(&["--check", "none.json"]));
    assert!(new.contains("opposite: not in it"), "{new}");

    // Compared with what stood there, not with what has just been written over it.
    let better = text.replace("misses", "holds");
    std::fs::write(folder.join("better.json"), better).unwrap();
    for options in [
        &["--check", "better.json"][..],
        &["--check", "better.json", "--save", "better.json"],
    ] {
        let worse = ends_with(1, &small(options));
        assert!(worse.contains("opposite: misses, was holds"), "{worse}");
        assert!(!worse.contains("order:"), "{worse}");
    }
    let saved = std::fs::read_to_string(folder.join("better.json")).unwrap();
    assert_eq!(saved, text);
}

#[test]
fn verdicts_of_all_works_and_of_an_alternative_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let both = |options: &[&str]| run(folder, &["small", "other", "--seed", "1"], options);
    ends_with(0, &both(&["--save", "verdicts.json"]));
    let text = std::fs::read_to_string(folder.join("verdicts.json")).unwrap();
    let better = text.replace("misses", "holds");
    std::fs::write(folder.join("better.json"), better).unwrap();
    for alternative in [&[][..], &["--alternative", "long"]] {
        let with = |file| both(&[&["--check", file], alternative].concat());
        ends_with(0, &with("verdicts.json"));
        let worse = ends_with(1, &with("better.json"));
        assert!(worse.contains("\nopposite: misses"), "{worse}");
        assert!(worse.contains("\nother opposite: misses"), "{worse}");
    }
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
    std::fs::write(
        folder.join("three.json"),
        r#"{"runs": 3, "seed": 1, "verdicts": {}}"#,
    )
    .unwrap();
    std::fs::write(folder.join("odd.json"), "[]").unwrap();
    let small = &["small"][..];
    for (works, options, expected) in [
        (
            small,
            &["--check", "missing.json"][..],
            "cannot read missing.json",
        ),
        (
            small,
            &["--check", "odd.json"],
            "has no verdicts; --save writes them",
        ),
        (
            small,
            &["--check", "two.json"],
            "was made with --runs 2 --seed 1; use the same for small, not --runs 3 --seed 1",
        ),
        (
            &["small", "other"],
            &["--check", "three.json"],
            "use the same for other, not --runs 3 --seed 2",
        ),
        (
            small,
            &[
                "--alternative",
                "long",
                "--alternative-runs",
                "2",
                "--check",
                "three.json",
            ],
            "use the same for small, not --runs 2 --seed 1",
        ),
        (
            &["small", "other"],
            &["--save", "new.json"],
            "other has --runs 3 --seed 2 and small has --runs 3 --seed 1; give both",
        ),
    ] {
        let refused = ends_with(2, &run(folder, works, options));
        assert!(refused.contains(expected), "{options:?}: {refused}");
        assert!(!folder.join("results").exists(), "{options:?}");
    }
}
