//! Studies as users run them: a small work, its verdicts, and the verdicts that they are compared
//! with.

use std::path::Path;
use std::process::{Command, Output};

/// One flow of speech over one lossy link.
macro_rules! world {
    () => {
        r#"[scenario.nodes]
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

"#
    };
}

const STUDY: &str = concat!(
    r#"title = "Loss of speech"
scenario.schema = 1
scenario.duration = "20 s"
axes.level.low = ["links.radio.errors.rate=0.01"]
axes.level.high = ["links.radio.errors.rate=0.3"]
metrics.loss = "talk.loss_ratio"

"#,
    world!(),
    r#"[[claims]]
id = "order"
published = "more is lost at the higher level"
check = "loss[high] > loss[low]"

[[claims]]
id = "opposite"
published = "a twentieth is lost at most at the higher level"
check = "loss[high] < 0.05"
"#
);

/// Runs `airlane study run` on small works in a folder, with 3 repetitions each. Every work has its
/// own seed, claims and alternative.
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

/// Checks the exit code and returns the output.
#[track_caller]
fn ends_with(code: i32, output: &Output) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", said(output));
    said(output)
}

#[test]
fn worse_or_new_verdicts_exit_with_1() {
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

    // It is compared with the previous file, not with the one just written over it.
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

/// A second study of the same work; its claim reads the first one.
const READER: &str = concat!(
    r#"title = "Twice the length"
scenario.schema = 1
scenario.duration = "40 s"
axes.level.low = ["links.radio.errors.rate=0.01"]
metrics.loss = "talk.loss_ratio"

"#,
    world!(),
    r#"[[claims]]
id = "own"
published = "some is lost"
check = "loss > 0"

[[claims]]
id = "reads"
published = "less is lost than over a bad link"
check = "loss[low] < F1.1.loss[high]"
"#
);

/// A folder with the studies F1.1, F1.2, which reads F1.1, and F1.3, which reads F1.2.
fn chain(folder: &Path) -> impl Fn(&[&str]) -> Output {
    let work = folder.join("studies/chain");
    std::fs::create_dir_all(&work).unwrap();
    let last = READER
        .replace("F1.1.loss[high]", "2 * F1.2.loss")
        .replace("id = \"", "id = \"last ");
    for (name, text) in [
        ("work.toml", "title = \"chain\"\nruns = 6\n"),
        ("F1.1.toml", STUDY),
        ("F1.2.toml", READER),
        ("F1.3.toml", &last),
    ] {
        std::fs::write(work.join(name), text).unwrap();
    }
    let folder = folder.to_owned();
    move |arguments| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airlane"));
        command.arg("study").args(arguments).current_dir(&folder);
        command.output().unwrap()
    }
}

#[test]
fn the_studies_to_run_are_named_and_can_be_one_figure() {
    let folder = tempfile::tempdir().unwrap();
    let study = chain(folder.path());
    let all = ends_with(
        0,
        &study(&[
            "run",
            "F1.2",
            "--runs",
            "2",
            "--out",
            "all",
            "--set",
            "duration=9 s",
        ]),
    );
    let expected = "chain/F1.2: 2 simulations, and 2 that only its claims read, of F1.1; --set changes these, too";
    assert!(all.contains(expected), "{all}");
    // One of the two worlds of F1.1 is also that of F1.2, now that both run equally long.
    assert!(all.contains("chain: 4 runs, 0 known before"), "{all}");
    // F1.3 does not depend on what F1.2 reads.
    let last = ends_with(0, &study(&["run", "F1.3", "--runs", "2", "--out", "last"]));
    assert!(last.contains("chain: 2 runs"), "{last}");

    let output = study(&[
        "run",
        "F1.2",
        "--runs",
        "2",
        "--out",
        "figure",
        "--figure-only",
        "--save",
        "v.json",
    ]);
    let figure = ends_with(0, &output);
    assert!(figure.contains("chain: 2 runs, 0 known before"), "{figure}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("not judged")
            && text.contains("why not:   it reads F1.1, which --figure-only leaves out"),
        "{text}"
    );
    assert!(
        text.contains("1 claims:") && text.contains("; 1 more are not judged"),
        "{text}"
    );
    let saved = std::fs::read_to_string(folder.path().join("v.json")).unwrap();
    assert!(saved.contains("own") && !saved.contains("reads"), "{saved}");
    let again = study(&["report", "figure", "--json"]);
    ends_with(0, &again);
    assert!(String::from_utf8_lossy(&again.stdout).contains("\"unjudged\""));
}

#[test]
fn a_miss_is_explained_where_it_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let study = chain(folder.path());
    let output = study(&["run", "F1.1", "--runs", "3"]);
    let said = ends_with(0, &output);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for needle in ["misses", "loss[high] < 0.05", " : 0.0500 no", " ± "] {
        assert!(text.contains(needle), "no {needle:?} in {text}");
    }
    assert!(
        said.contains("1 claims do not hold with 3 repetitions, where the work has 6"),
        "{said}"
    );
    let enough = ends_with(0, &study(&["run", "F1.1"]));
    assert!(!enough.contains("repetitions, where"), "{enough}");
}

#[test]
fn a_misspelt_study_gets_a_suggestion() {
    let folder = tempfile::tempdir().unwrap();
    let study = chain(folder.path());
    for (written, meant) in [
        ("F12", "F1.2"),
        ("f1.3", "F1.3"),
        ("chian", "chain"),
        ("chain/F13", "F1.3"),
    ] {
        let said = ends_with(2, &study(&["run", written]));
        assert!(said.contains(&format!("did you mean {meant}?")), "{said}");
    }
    let said = ends_with(2, &study(&["run", "something-else"]));
    assert!(
        said.contains("there are: chain, balakrishnan-1997, "),
        "{said}"
    );
}

#[test]
fn the_command_on_a_page_reproduces_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let options = [
        &["--set", "duration=22 s", "--runs", "2"][..],
        &["--alternative", "long", "--grid", "traffic-seed=1,2"],
        &["--alternatives", "--alternative-runs", "2", "--figure-only"],
    ];
    for options in options {
        let out = |name: &str| folder.join(name).join("small/outcome.json");
        ends_with(
            0,
            &run(
                folder,
                &["small/loss", "other"],
                &[options, &["--out", "first"]].concat(),
            ),
        );
        let first = std::fs::read_to_string(out("first")).unwrap();
        let written: serde_json::Value = serde_json::from_str(&first).unwrap();
        let words =
            |key: &str| -> Vec<String> { serde_json::from_value(written[key].clone()).unwrap() };
        assert_eq!(words("asked"), ["small/loss"]);
        let options = [words("options"), vec!["--out".into(), "again".into()]].concat();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        ends_with(0, &run(folder, &["small/loss"], &options));
        assert_eq!(std::fs::read_to_string(out("again")).unwrap(), first);
    }
}

#[test]
fn a_local_folder_does_not_hide_built_in_works() {
    let folder = tempfile::tempdir().unwrap();
    let list = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_airlane"));
        let output = command
            .args(["study", "list"])
            .current_dir(folder.path())
            .output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    };
    std::fs::create_dir(folder.path().join("studies")).unwrap();
    assert!(
        list().contains("\nxylomenos-1999: G. Xylomenos"),
        "{}",
        list()
    );
    // A work of the same name replaces that of the program.
    for name in ["mine", "xylomenos-1999"] {
        let work = folder.path().join("studies").join(name);
        std::fs::create_dir(&work).unwrap();
        std::fs::write(work.join("work.toml"), "title = \"of mine\"\nruns = 1\n").unwrap();
    }
    let all = list();
    assert!(
        all.contains("mine: of mine\n") && all.contains("\ngopal-2007: "),
        "{all}"
    );
    assert!(
        all.contains("\nxylomenos-1999: of mine\n") && !all.contains("G. Xylomenos, Multi"),
        "{all}"
    );
}
