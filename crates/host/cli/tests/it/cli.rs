//! The program as users meet it: text, exit codes, files.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use airlane_testkit::netns::Process;

fn airlane(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_airlane"))
        .args(arguments)
        .env_remove("CLICOLOR_FORCE")
        .output()
        .expect("the program was built for this test")
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// Every scenario file in the repository.
fn shipped() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["scenarios", "demo"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "toml") {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    files
}

/// A scenario that takes no noticeable time to simulate.
const SMALL: &str = r#"schema = 1
name = "small"
duration = "20 s"
nodes = { a = {}, b = {} }
[links.radio]
ends = ["a", "b"]
rate = "64 kbit/s"
delay = "10 ms"
frame = "100 B"
header = "study"
errors = { kind = "uniform", rate = 0.05 }
[[links.radio.services]]
number = 1
name = "all"
rate = 1
scheme = { kind = "sr-m2" }
[[links.radio.classes]]
match = { protocol = "tcp" }
service = "all"
[[flows]]
name = "file"
ends = ["a", "b"]
transport = { kind = "tcp", profile = "ns2-1999" }
app = { kind = "bulk" }
"#;

struct File {
    folder: tempfile::TempDir,
    path: String,
}

fn file(text: &str) -> File {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.toml");
    std::fs::write(&path, text).unwrap();
    File {
        path: path.to_str().unwrap().to_owned(),
        folder,
    }
}

#[test]
fn help_shows_examples_and_exit_codes() {
    let output = airlane(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("Exit codes: 0"));
    for verb in [
        &["sim", "run"][..],
        &["sim", "compare"],
        &["explain"],
        &["up"],
        &["air"],
        &["status"],
        &["completions"],
    ] {
        let output = airlane(&[verb, &["--help"]].concat());
        let line = format!("airlane {}", verb.join(" "));
        let examples = stdout(&output).split_once("Examples:").unwrap().1;
        assert!(examples.contains(&line), "{line}: {examples}");
    }
}

#[test]
fn wrong_usage_exits_with_2() {
    for arguments in [
        &[][..],
        &["sim"],
        &["up"],
        &["fly"],
        &["sim", "run", "x.toml", "--runs", "0"],
        &["sim", "compare"],
        &["sim", "run", "x.toml", "--seed", "-1"],
    ] {
        assert_eq!(airlane(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn every_verb_refuses_a_file_that_is_not_there() {
    for verb in [
        &["sim", "run"][..],
        &["sim", "compare"],
        &["explain"],
        &["up"],
        &["air"],
    ] {
        let output = airlane(&[verb, &["no/such.toml"]].concat());
        assert_eq!(output.status.code(), Some(2), "{verb:?}");
        assert!(stderr(&output).starts_with("error: cannot read no/such.toml: "));
        assert!(stdout(&output).is_empty());
    }
}

#[test]
fn a_wrong_unit_is_shown_with_file_line_and_what_would_be_right() {
    let file = file(&SMALL.replace("64 kbit/s", "64 kb"));
    let output = airlane(&["sim", "run", &file.path]);
    assert_eq!(output.status.code(), Some(2));
    let expected = format!(
        "\
error: {}:7:8: \"64 kb\" has an unknown unit \"kb\"
  7 | rate = \"64 kb\"
    |        ^^^^^^^
  at links.radio.rate
  help: write a rate such as \"20 Mbit/s\" (units: bit/s, kbit/s, Mbit/s, Gbit/s)
",
        file.path
    );
    assert_eq!(stderr(&output), expected);
}

#[test]
fn a_link_that_cannot_work_is_refused_before_it_is_up() {
    let good = std::fs::read_to_string(root().join("demo/left.toml")).unwrap();
    for (from, to, what, right) in [
        (
            "scheme = { kind = \"rlp-oos\", retries = 3, copies = { after = \"10 ms\", share = 0.02 } }",
            "scheme = { kind = \"rlp-oos\", retries = 3, copies = { after = \"10 ms\", share = 0.02 } }\nqueue = { kind = \"none\" }",
            "error: {}:53:9: a live service without a queue loses every packet",
            "drop-tail",
        ),
        (
            "security",
            "header = \"study\"\nsecurity",
            "error: {}:14:1: a live link has live headers",
            "leave it out",
        ),
        (
            "{ kind = \"rlp-oos\", retries = 3, copies = { after = \"10 ms\", share = 0.02 } }",
            "{ kind = \"snoop\", base-station = \"second\" }",
            "error: {}:52:43: from one end there is no first and second",
            "\"here\"",
        ),
    ] {
        assert!(good.contains(from), "{from}");
        let file = file(&good.replacen(from, to, 1));
        let output = airlane(&["up", &file.path]);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(
            error.starts_with(&what.replace("{}", &file.path)),
            "{error}"
        );
        assert!(error.contains("help: ") && error.contains(right), "{error}");
    }
}

#[test]
fn every_kind_of_error_is_named() {
    for (good, bad, place, expected) in [
        (
            "delay",
            "dealy",
            ":8:1: unknown key `dealy`",
            "did you mean `delay`?",
        ),
        (
            "number = 1",
            "number = 16",
            ":13:10: service number 16",
            "0 to 15",
        ),
        ("rate = 1\n", "rate = 0\n", ":15:8: a rate of 0", "above 0"),
        (
            "sr-m2",
            "srm2",
            ":16:19: `kind` cannot be \"srm2\"",
            "did you mean `sr-m2`?",
        ),
        (
            "service = \"all\"",
            "service = \"al\"",
            ":19:11: there is no service \"al\"",
            "all",
        ),
        ("0.05", "1.05", ":11:", "between 0 and 1"),
        ("[\"a\", \"b\"]\nrate", "[\"a\", \"c\"]\nrate", ":6:", "c"),
        ("schema = 1", "schema = 9", ":1:10:", "1"),
    ] {
        let file = file(&SMALL.replacen(good, bad, 1));
        for verb in [&["sim", "run"][..], &["sim", "compare"], &["explain"]] {
            let output = airlane(&[verb, &[&file.path]].concat());
            let error = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{bad}: {error}");
            assert!(
                error.contains(place) && error.contains(expected),
                "{bad}: {error}"
            );
        }
    }
}

#[test]
fn assignments_are_checked_like_the_file() {
    let file = file(SMALL);
    let output = airlane(&["explain", &file.path, "--set", "links.radio.rate=fast"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--set:1:18: \"fast\" is not a rate"),
        "{}",
        stderr(&output)
    );
    let output = airlane(&[
        "explain",
        &file.path,
        "--set",
        "links.radio.rate=9600 bit/s",
    ]);
    assert!(
        stdout(&output).contains("rate = \"9.6 kbit/s\""),
        "{}",
        stdout(&output)
    );
}

#[test]
fn keygen_makes_a_key_once_and_prints_its_public_half() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("end.key");
    let path = path.to_str().unwrap();
    let made = airlane(&["keygen", path]);
    assert!(made.status.success(), "{}", stderr(&made));
    assert_eq!(stdout(&made).trim_end().len(), 44);
    let again = airlane(&["keygen", path]);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        stderr(&again).contains("it stays as it is"),
        "{}",
        stderr(&again)
    );
    let shown = airlane(&["keygen", "--public", path]);
    assert_eq!(stdout(&shown), stdout(&made));
}

#[test]
fn daemon_files_are_refused_before_anything_is_started() {
    let left = std::fs::read_to_string(root().join("demo/left.toml")).unwrap();
    for (good, bad, expected) in [
        ("19.95 Mbit/s", "0 bit/s", "at least 1 bit/s"),
        ("number = 2", "number = 1", "number 1 is taken"),
        ("service = \"voice\"", "service = \"vice\"", "voice"),
        ("security = \"none\"", "", "security = \"none\""),
        ("\"none\"", "{ peer-key = \"abc\" }", "44 characters"),
        ("retries", "retires", "did you mean `retries`?"),
    ] {
        assert!(left.contains(good));
        let file = file(&left.replacen(good, bad, 1));
        let output = airlane(&["up", &file.path]);
        assert_eq!(output.status.code(), Some(2), "{bad}: {}", stderr(&output));
        assert!(
            stderr(&output).contains(expected),
            "{bad}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_base_station_and_its_station_are_explained_and_a_peer_is_set_by_its_name() {
    let demo = |name: &str| root().join("demo").join(name).display().to_string();
    let base = airlane(&[
        "explain",
        &demo("base.toml"),
        "--set",
        "peers[farm].weight=3",
    ]);
    let text = stdout(&base);
    for part in [
        "[[peers]]",
        "name = \"farm\"",
        "weight = 3.0",
        "rate = \"4 Mbit/s\"",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    let again = file(text);
    assert_eq!(stdout(&airlane(&["explain", &again.path])), text);
    let station = airlane(&["explain", &demo("station.toml")]);
    assert!(
        stdout(&station).contains("peer-key"),
        "{}",
        stderr(&station)
    );
    let output = airlane(&["up", &demo("base.toml"), "--set", "peers[mill].prefixes=[]"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("peers[1].prefixes"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn schemes_that_cannot_work_live_are_refused_with_the_reason() {
    let left = std::fs::read_to_string(root().join("demo/left.toml")).unwrap();
    let good = "{ kind = \"rlp-oos\", retries = 3, copies = { after = \"10 ms\", share = 0.02 } }";
    assert!(left.contains(good));
    for (bad, expected) in [
        ("{ kind = \"gbn\", window = 20000 }", "1 to 16384 frames"),
        ("{ kind = \"sr\", window = 0 }", "1 to 16384 frames"),
        (
            "{ kind = \"sr-bitmap\", window = 16385 }",
            "1 to 16384 frames",
        ),
        ("{ kind = \"rlp\", retries = 256 }", "1 to 255 retries"),
        ("{ kind = \"xor\", block = 0 }", "a block has 1 to"),
        ("{ kind = \"xor-ad\" }", "silence"),
        ("{ kind = \"xor-ad\", silence = \"0 s\" }", "\"100 ms\""),
        (
            "{ kind = \"snoop\", base-station = \"first\" }",
            "\"here\" at the base station's end",
        ),
        ("{ kind = \"rse-ad\", initial = 5 }", "cannot come first"),
        ("{ kind = \"hybrid\" }", "hybrid"),
    ] {
        let file = file(&left.replacen(good, bad, 1));
        let output = airlane(&["up", &file.path]);
        assert_eq!(output.status.code(), Some(2), "{bad}: {}", stderr(&output));
        assert!(
            stderr(&output).contains(expected),
            "{bad}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_file_of_another_kind_is_refused() {
    let file = file("x = 1\n");
    let output = airlane(&["explain", &file.path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("a scenario has [nodes]"),
        "{}",
        stderr(&output)
    );
    // Not every key of it is called unknown.
    for (verb, of) in [("up", "air"), ("air", "left"), ("reload", "air")] {
        let path = format!("{}/../../../demo/{of}.toml", env!("CARGO_MANIFEST_DIR"));
        let output = airlane(&[verb, &path]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains(" file, not a"), "{said}");
        assert_eq!(said.matches("error").count(), 1, "{said}");
    }
}

#[test]
fn explain_explains_its_own_output_to_itself() {
    for path in shipped() {
        let once = airlane(&["explain", path.to_str().unwrap()]);
        assert_eq!(
            once.status.code(),
            Some(0),
            "{}: {}",
            path.display(),
            stderr(&once)
        );
        let file = file(stdout(&once));
        let twice = airlane(&["explain", &file.path]);
        assert_eq!(stdout(&once), stdout(&twice), "{}", path.display());
    }
}

#[test]
fn the_examples_of_the_readme_work() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let blocks = readme.split("```toml\n").skip(1);
    let blocks: Vec<&str> = blocks
        .filter_map(|b| Some(b.split_once("```")?.0))
        .collect();
    let scenario =
        "schema = 1\nname = \"x\"\nduration = \"1 s\"\nnodes = { left = {}, client = {} }\n";
    let daemon = "";
    assert_eq!(blocks.len(), 2);
    for (head, block) in [daemon, scenario].into_iter().zip(blocks) {
        let file = file(&format!("{head}{block}"));
        let output = airlane(&["explain", &file.path]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[test]
fn explain_fills_in_what_was_left_out() {
    let file = file(SMALL);
    let output = airlane(&["explain", &file.path]);
    for default in [
        "seed = 1",
        "queue = ",
        "window = 127",
        "timers = \"relaxed\"",
        "profile = ",
    ] {
        assert!(
            stdout(&output).contains(default),
            "{default}: {}",
            stdout(&output)
        );
    }
}

#[test]
fn json_is_the_same_on_any_number_of_threads_and_has_no_colours() {
    let file = file(SMALL);
    let run = |threads| {
        let common = [
            "sim",
            "run",
            &file.path,
            "--runs",
            "5",
            "--json",
            "--threads",
        ];
        airlane(&[&common[..], &[threads]].concat())
    };
    let (one, two, many) = (run("1"), run("2"), run("7"));
    assert_eq!(one.status.code(), Some(0), "{}", stderr(&one));
    assert!(one.stdout == two.stdout && one.stdout == many.stdout);
    let value: serde_json::Value = serde_json::from_slice(&one.stdout).unwrap();
    assert_eq!(value["runs"].as_array().unwrap().len(), 5);
    let throughput = &value["summary"]["flows"][0]["metrics"][0];
    assert_eq!(throughput["metric"], "throughput_bps");
    assert!(throughput["mean"].as_f64().unwrap() > 1000.0);
    assert_eq!(value["scenario"]["links"]["radio"]["queue"], "50 packets");
}

#[test]
fn a_seed_changes_the_run_and_is_printed() {
    let file = file(SMALL);
    let run = |seed| airlane(&["sim", "run", &file.path, "--json", "--seed", seed]);
    assert_eq!(run("5").stdout, run("5").stdout);
    assert_ne!(run("5").stdout, run("6").stdout);
    let text = airlane(&["sim", "run", &file.path, "--seed", "5"]);
    assert!(stdout(&text).contains("seed 5"), "{}", stdout(&text));
    assert!(stdout(&text).contains("throughput"));
}

#[test]
fn links_show_the_frames_of_a_run_and_not_of_all() {
    let file = file(&SMALL.replace("rate = 0.05", "rate = 0"));
    let links = |runs: &str| {
        let output = airlane(&["sim", "run", &file.path, "--runs", runs]);
        let text = stdout(&output);
        let rows = text.lines().skip_while(|line| !line.starts_with("  link "));
        let rows: Vec<&str> = rows.take_while(|line| !line.is_empty()).collect();
        assert!(rows.len() > 3, "{text}");
        // Means alone: several identical runs have an interval of zero.
        let means = rows[1..3].iter().flat_map(|row| {
            let mut words = row.split_whitespace().peekable();
            std::iter::from_fn(move || {
                let word = words.next()?;
                if words.next_if_eq(&"±").is_some() {
                    words.next();
                }
                Some(word)
            })
        });
        let means = means.filter_map(|word| word.parse::<f64>().ok());
        means.map(|mean| (mean * 10.0).round()).collect::<Vec<_>>()
    };
    assert_eq!(links("1"), links("3"));
}

#[test]
fn captures_are_written_and_change_no_result() {
    let file = file(SMALL);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("air.pcapng");
    let capture = format!("radio={}", path.display());
    let captured = airlane(&["sim", "run", &file.path, "--json", "--pcap", &capture]);
    assert!(captured.status.success(), "{}", stderr(&captured));
    let plain = airlane(&["sim", "run", &file.path, "--json"]);
    assert_eq!(stdout(&captured), stdout(&plain));
    // The magic number of a section header, in either byte order.
    let bytes = std::fs::read(path).unwrap();
    assert_eq!(bytes[..4], [0x0a, 0x0d, 0x0d, 0x0a]);
}

#[test]
fn empty_captures_are_refused_before_anything_is_written() {
    let file = file(SMALL);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("air.pcapng");
    let to = |point: &str| format!("{point}={}", path.display());
    for (arguments, needle) in [
        (vec!["--pcap".to_owned(), "radio".to_owned()], "LINK=FILE"),
        (
            vec!["--pcap".to_owned(), to("wire")],
            "there is no link or radio channel \"wire\"; there are: radio",
        ),
        (
            vec!["--pcap".to_owned(), to("radio@c")],
            "its ends are a and b",
        ),
        (vec!["--pcap".to_owned(), to("@a")], "LINK@NODE"),
        (
            vec![
                "--pcap".to_owned(),
                to("radio"),
                "--runs".to_owned(),
                "2".to_owned(),
            ],
            "one run",
        ),
        (
            vec![
                "--pcap".to_owned(),
                to("radio"),
                "--pcap".to_owned(),
                to("radio@a"),
            ],
            "twice",
        ),
    ] {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let output = airlane(&[&["sim", "run", &file.path], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(needle), "{}", stderr(&output));
        assert!(!path.exists(), "{arguments:?}");
    }
}

#[test]
fn compare_shows_each_value_with_intervals_and_paired_ratios() {
    let (raw, repaired) = (file(&SMALL.replace("sr-m2", "default")), file(SMALL));
    let svg = raw.folder.path().join("picture.svg");
    let output = airlane(&[
        "sim",
        "compare",
        &raw.path,
        &repaired.path,
        "--runs",
        "6",
        "--vary",
        "links.radio.errors.rate=0.02,0.1",
        "--svg",
        svg.to_str().unwrap(),
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(
        text.contains("6 runs each") && text.contains("95 %"),
        "{text}"
    );
    let rows: Vec<&str> = text.lines().filter(|l| l.contains("kbit/s")).collect();
    assert_eq!(rows.len(), 2, "{text}");
    assert!(
        rows[0].contains("0.02") && rows[1].contains("0.1"),
        "{text}"
    );
    // Two values and their ratio, each with its interval.
    assert_eq!(rows[0].matches('±').count(), 3, "{text}");
    let picture = std::fs::read_to_string(&svg).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("links.radio.errors.rate = 0.1"));

    let json = airlane(&[
        "sim",
        "compare",
        &raw.path,
        &repaired.path,
        "--runs",
        "6",
        "--json",
    ]);
    let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let row = &value["comparisons"][0]["comparison"]["metrics"][0]["rows"][1];
    assert!(row["ratio"]["mean"].as_f64().unwrap() > 1.0, "{row}");
}

#[test]
fn shares_of_a_flow_by_service_are_shown() {
    let set = |value: &'static str| ["--set", "duration=4 s", "--set", value];
    let behaviour = set("links.radio.errors.rate=0.02");
    let run = airlane(&[&["sim", "run", "unlabelled"][..], &behaviour].concat());
    let text = stdout(&run);
    let line = text
        .lines()
        .find(|line| line.contains(" %, pages "))
        .unwrap();
    assert!(
        line.contains("files 8") && line.ends_with("on radio"),
        "{text}"
    );
    assert!(!text.contains("default on radio"), "{text}");
    let both = [
        "sim",
        "compare",
        "unlabelled-raw",
        "unlabelled",
        "--runs",
        "2",
    ];
    let compared = airlane(&[&both[..], &behaviour].concat());
    let text = stdout(&compared);
    let line = text
        .lines()
        .find(|line| line.contains(" %, pages "))
        .unwrap();
    let words: Vec<&str> = line.split_whitespace().take(3).collect();
    assert_eq!(words, ["file", "service", "-"], "{text}");
    // By port, each of the two kinds of TCP has a service of its own.
    let by_port = set("links.radio.classes=heuristic");
    let run = airlane(&[&["sim", "run", "unlabelled"][..], &by_port].concat());
    let text = stdout(&run);
    assert!(
        text.contains("files on radio") && text.contains("pages on radio"),
        "{text}"
    );
}

#[test]
fn services_that_no_traffic_reaches_are_named() {
    let classes = "[[links.radio.classes]]\nmatch = { protocol = \"tcp\" }\nservice = \"all\"\n";
    let forgotten = file(&SMALL.replace(classes, ""));
    let other = file(&SMALL.replace("\"tcp\" }\nservice", "\"udp\" }\nservice"));
    for (file, why) in [
        (&forgotten, "no class leads to it"),
        (&other, "classes lead to it"),
    ] {
        for verb in [
            &["sim", "run"][..],
            &["sim", "compare", "--runs", "2"],
            &["explain"],
        ] {
            let output = airlane(&[verb, &[file.path.as_str()]].concat());
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            let expected = format!("link \"radio\": service \"all\" matches no traffic: {why}");
            let said = stderr(&output);
            assert_eq!(said.matches(&expected).count(), 1, "{verb:?}: {said}");
        }
        let output = airlane(&["sim", "run", &file.path]);
        assert!(
            stdout(&output).contains("default on radio"),
            "{}",
            stdout(&output)
        );
    }
    let reached = file(SMALL);
    let output = airlane(&["sim", "run", &reached.path]);
    assert_eq!(stderr(&output), "");
    assert!(
        stdout(&output).contains("all on radio"),
        "{}",
        stdout(&output)
    );
    let live = forgotten.folder.path().join("live.toml");
    let text = std::fs::read_to_string(root().join("demo/left.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    assert!(
        table["link"].get("classes").is_some(),
        "the file has classes to take away"
    );
    std::fs::write(&live, text).unwrap();
    let classes = airlane(&["explain", live.to_str().unwrap()]);
    assert_eq!(stderr(&classes), "");
    let none = airlane(&[
        "explain",
        live.to_str().unwrap(),
        "--set",
        "link.classes=[]",
    ]);
    assert!(
        stderr(&none).contains("match no traffic"),
        "{}",
        stderr(&none)
    );
}

#[test]
fn losses_invisible_to_a_service_are_not_shown_as_zero() {
    let raw = file(&SMALL.replace("sr-m2", "default"));
    let output = airlane(&["sim", "run", &raw.path]);
    let offers = stdout(&output).split("path  ").nth(1).unwrap();
    let offer = offers.lines().find(|line| line.contains("kbit/s")).unwrap();
    assert!(offer.contains(" - ") && !offer.contains('%'), "{offers}");
    assert!(
        offers.contains("smoothed over its last seconds"),
        "{offers}"
    );
    let repaired = file(SMALL);
    let output = airlane(&["sim", "run", &repaired.path]);
    let offers = stdout(&output).split("path  ").nth(1).unwrap();
    assert!(offers.contains("0.00 %"), "{offers}");
}

#[test]
fn compare_names_unpaired_flows_and_refuses_unrelated_files() {
    let one = file(SMALL);
    let talk = "[[flows]]\nname = \"talk\"\nends = [\"a\", \"b\"]\ntransport = { kind = \"udp\" }\n\
                app = { kind = \"conferencing\", rate = \"8 kbit/s\", talk = \"1 s\", silence = \"1 s\" }\n";
    let two = file(&(SMALL.to_owned() + talk));
    let compare =
        |a: &File, b: &File| airlane(&["sim", "compare", &a.path, &b.path, "--runs", "2"]);
    let more = compare(&one, &two);
    assert_eq!(more.status.code(), Some(0), "{}", stderr(&more));
    assert!(
        stderr(&more).contains("has a flow \"talk\"") && stderr(&more).contains("it is left out"),
        "{}",
        stderr(&more)
    );
    let less = compare(&two, &one);
    assert!(
        stderr(&less).contains("it has no value there"),
        "{}",
        stderr(&less)
    );
    let renamed = file(&SMALL.replace("\"file\"", "\"other\""));
    let pages = "app = { kind = \"pages\", request = \"50 B\", reply = \"500 B\" }";
    let kind = file(&SMALL.replace("app = { kind = \"bulk\" }", pages));
    for (other, why) in [
        (&renamed, "no flow in common"),
        (
            &kind,
            "the flow \"file\" is bulk in one and pages in the other",
        ),
    ] {
        let refused = compare(&one, other);
        assert_eq!(refused.status.code(), Some(2), "{}", stdout(&refused));
        assert!(stderr(&refused).contains(why), "{}", stderr(&refused));
    }
}

#[test]
fn one_run_can_be_captured_and_its_events_written() {
    let file = file(SMALL);
    let at = |name: &str| file.folder.path().join(name).display().to_string();
    let run = |options: &[&str]| {
        let output = airlane(&[&["sim", "run", &file.path, "--json"], options].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        output.stdout
    };
    let capture = |name: &str| format!("radio={}", at(name));
    let plain = run(&[]);
    let (both, events) = (capture("both.pcapng"), at("both.jsonl"));
    assert_eq!(run(&["--pcap", &both, "--events", &events]), plain);
    run(&["--pcap", &capture("alone.pcapng")]);
    run(&["--events", &at("alone.jsonl")]);
    for kind in ["pcapng", "jsonl"] {
        let [both, alone] =
            ["both", "alone"].map(|name| std::fs::read(at(&format!("{name}.{kind}"))));
        assert!(both.unwrap() == alone.unwrap(), "{kind}");
    }
    let same = format!("radio={events}");
    let output = airlane(&[
        "sim", "run", &file.path, "--pcap", &same, "--events", &events,
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("is named twice"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn conflicts_are_blamed_on_the_setting_that_was_given() {
    for (there, instead, needles) in [
        (
            "{ kind = \"tcp\", profile = \"ns2-1999\" }",
            "{ kind = \"tcp\", profile = \"ns2-1999\", min-rto = \"70 s\" }",
            &[
                "min-rto = ",
                "longer than max-rto",
                "at flows[0].transport.min-rto",
            ][..],
        ),
        (
            "{ kind = \"uniform\", rate = 0.05 }",
            "{ down = { kind = \"trace\", file = \"none.down\" } }",
            &[
                "small.toml:",
                "none.down cannot be used",
                "at links.radio.errors",
                "beside the scenario",
            ],
        ),
    ] {
        let file = file(&SMALL.replace(there, instead));
        let output = airlane(&["sim", "run", &file.path]);
        assert_eq!(output.status.code(), Some(2));
        for needle in needles {
            let said = stderr(&output);
            assert!(said.contains(needle), "no {needle:?} in {said}");
        }
    }
}

#[test]
fn compare_shows_all_measures_or_those_that_were_asked_for() {
    let file = file(SMALL);
    let compare = ["sim", "compare", &file.path, &file.path, "--runs", "2"];
    let text = stdout(&airlane(&compare)).to_owned();
    for measure in [
        "throughput",
        "goodput",
        "mean delay",
        "retransmissions",
        "longest pause",
        "utilisation",
        "lost on the air",
    ] {
        assert!(text.contains(measure), "no {measure} in {text}");
    }
    let chosen = [&compare[..], &["--measure", "timeouts,lost_frames"]].concat();
    let text = stdout(&airlane(&chosen)).to_owned();
    let measures: Vec<&str> = text.lines().skip(3).collect();
    assert_eq!(measures.len(), 3, "{text}");
    assert!(
        measures[0].contains("file") && measures[0].contains("TCP timeouts"),
        "{text}"
    );
    assert!(
        measures[1..]
            .iter()
            .all(|line| line.contains("lost on the air")),
        "{text}"
    );
    let wrong = airlane(&[&compare[..], &["--measure", "timeout"]].concat());
    assert_eq!(wrong.status.code(), Some(2));
    let said = stderr(&wrong);
    assert!(
        said.contains("--measure timeout: there is no such") && said.contains("timeouts"),
        "{said}"
    );
}

#[test]
fn compare_varies_several_keys() {
    let file = file(SMALL);
    let rates = "links.radio.errors.rate=0.02,0.1";
    let delays = "links.radio.delay=10 ms,50 ms,90 ms";
    let compare = [
        "sim", "compare", &file.path, "--runs", "2", "--vary", rates, "--vary", delays,
    ];
    let text = stdout(&airlane(
        &[&compare[..], &["--measure", "throughput_bps"]].concat(),
    ))
    .to_owned();
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("kbit/s"))
        .collect();
    assert_eq!(rows.len(), 6, "{text}");
    let head = text.lines().nth(2).unwrap();
    assert!(head.contains("rate  delay"), "{text}");
    assert!(
        rows[0].contains("0.02") && rows[0].contains("10 ms"),
        "{text}"
    );
    assert!(
        rows[1].contains("0.02") && rows[1].contains("50 ms"),
        "{text}"
    );
    assert!(
        rows[3].contains("0.1") && rows[3].contains("10 ms"),
        "{text}"
    );
    let json = airlane(&[&compare[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        json["vary"],
        serde_json::json!(["links.radio.errors.rate", "links.radio.delay"])
    );
    let points = json["comparisons"].as_array().unwrap();
    assert_eq!(points.len(), 6);
    assert_eq!(points[4]["values"], serde_json::json!(["0.1", "50 ms"]));
    // A point gives the same results as its values do without variation.
    let mean =
        |of: &serde_json::Value| of["comparison"]["metrics"][0]["rows"][0]["value"]["mean"].clone();
    let set = [
        "--set",
        "links.radio.errors.rate=0.1",
        "--set",
        "links.radio.delay=50 ms",
    ];
    let alone = airlane(&[&compare[..5], &set, &["--json"]].concat());
    let alone: serde_json::Value = serde_json::from_slice(&alone.stdout).unwrap();
    assert_eq!(mean(&points[4]), mean(&alone["comparisons"][0]));
    let many = "1,".repeat(40) + "1";
    let [first, second] = ["seed", "links.radio.frame"].map(|key| format!("{key}={many}"));
    let refused = airlane(&[
        "sim", "compare", &file.path, "--vary", &first, "--vary", &second,
    ]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("41 x 41 combinations"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn throughput_over_time_is_shown_by_interval() {
    let file = file(SMALL);
    let run = ["sim", "run", &file.path, "--runs", "3"];
    let text = stdout(&airlane(&[&run[..], &["--over-time=6s"]].concat())).to_owned();
    let table = text
        .split("throughput over time, in intervals of 6 s")
        .nth(1)
        .unwrap();
    let starts: Vec<&str> = table
        .lines()
        .filter_map(|line| line.trim().split("  ").next())
        .collect();
    assert_eq!(
        starts[2..],
        ["from", "0 s", "6 s", "12 s", "18 s"],
        "{text}"
    );
    assert_eq!(table.matches('±').count(), 4, "{text}");
    let json = airlane(&[&run[..], &["--over-time", "--json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    for run in json["runs"].as_array().unwrap() {
        let flow = &run["flows"][0];
        assert_eq!(flow["over_time"]["interval_s"], 1.0);
        let bps = flow["over_time"]["throughput_bps"].as_array().unwrap();
        let bits: f64 = bps.iter().map(|bps| bps.as_f64().unwrap()).sum();
        let delivered = flow["delivered_bytes"].as_f64().unwrap() * 8.0;
        assert!(
            bps.len() == 20 && (bits / delivered - 1.0).abs() < 1e-9,
            "{flow}"
        );
    }
    let plain = airlane(&[&run[..], &["--json"]].concat());
    assert!(!stdout(&plain).contains("over_time"));
    let refused = airlane(&[&run[..], &["--over-time=1us"]].concat());
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        stderr(&refused).contains("--over-time: intervals of 1 us are too short"),
        "{}",
        stderr(&refused)
    );
}

#[test]
fn compare_refuses_an_odd_list_of_values() {
    let file = file(SMALL);
    let output = airlane(&[
        "sim",
        "compare",
        &file.path,
        "--vary",
        "links.radio.rate=1 Mbit/s,",
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("a value is empty"),
        "{}",
        stderr(&output)
    );
    let output = airlane(&[
        "sim",
        "compare",
        &file.path,
        "--vary",
        "links.radio.rate=1 Mbit/s,2",
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("--set:1:18: `rate` cannot be 2"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn status_without_a_node_names_the_socket_and_exits_with_1() {
    let output = airlane(&["status", "/nowhere/at-all.sock"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("/nowhere/at-all.sock"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn completions_know_the_verbs() {
    for shell in ["bash", "fish", "zsh"] {
        let output = airlane(&["completions", shell]);
        assert!(stdout(&output).contains("compare"), "{shell}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let path = root().join("scenarios");
    let file = std::fs::read_dir(path)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let program = env!("CARGO_BIN_EXE_airlane");
    let command = format!(
        "{program} explain {} | true; exit ${{PIPESTATUS[0]}}",
        file.display()
    );
    let output = Command::new("bash")
        .args(["-c", &command])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).is_empty());
}

#[test]
fn damaged_files_never_make_the_program_panic() {
    // The loader has its own property test; this one goes through every type that files have.
    for path in shipped() {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        // Leaves out ten lines, evenly spread, one at a time.
        for skip in (0..lines.len()).step_by(lines.len() / 10 + 1) {
            let mut damaged = lines.clone();
            damaged.remove(skip);
            let file = file(&damaged.join("\n"));
            let output = airlane(&["explain", &file.path]);
            let code = output.status.code();
            assert!(
                matches!(code, Some(0 | 2)),
                "{} line {skip}: {}",
                path.display(),
                stderr(&output)
            );
        }
    }
}

/// A recording of the right end: a frame every 2 ms, of which one in ten is lost.
fn trace(folder: &Path) -> String {
    use airlane_channel::trace::{FrameId, Trace, TraceHeader, TraceRecord};
    let received = (0..5_000).filter(|number| number % 10 != 3);
    let record = |number| TraceRecord::Received {
        at: airlane_base::Duration::from_millis(2 * number),
        frame: FrameId { key: 1, number },
        len: 100,
    };
    let trace = Trace {
        header: TraceHeader {
            name: "right".to_owned(),
            ..TraceHeader::default()
        },
        near: received.map(record).collect(),
        ..Trace::default()
    };
    let path = folder.join("right.trace");
    std::fs::write(&path, trace.to_bytes()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_trace_replaces_the_errors_of_a_link() {
    let file = file(SMALL);
    let trace = trace(file.folder.path());
    let run = |arguments: &[&str]| airlane(&[&["sim", "run", &file.path], arguments].concat());
    let channel = format!("trace:{trace}");
    let output = run(&["--json", "--channel", &channel]);
    assert!(
        stderr(&output).contains("only the frames to \"right\""),
        "{}",
        stderr(&output)
    );
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let down = &result["runs"][0]["links"][0]["down"]["channel"];
    let frames = |key: &str| down[key]["frames"].as_f64().unwrap();
    let loss = frames("lost_air") / frames("offered");
    // 1,500 frames: a standard error of 0.008.
    assert!((loss - 0.1).abs() < 0.032, "{loss}");
    // The same result from the scenario file, with a trace in its directory.
    let set = "links.radio.errors={ kind = 'trace', file = 'right.trace', start = 'random' }";
    let [one, two] = [1, 2].map(|seed| run(&["--set", set, "--seed", &seed.to_string()]));
    assert!(one.status.success(), "{}", stderr(&one));
    assert_ne!(one.stdout, two.stdout, "they begin elsewhere");
    let explained = airlane(&["explain", &file.path, "--set", set]);
    assert!(
        stdout(&explained).contains("start = \"random\""),
        "{}",
        stdout(&explained)
    );

    for (arguments, needles) in [
        (&["--channel", "x.trace"][..], &["trace:FILE"][..]),
        (&["--channel", "trace:none"], &["cannot read none"]),
        (
            &["--channel", "raido=trace:x"],
            &["\"raido\"", "one of: radio"],
        ),
        (
            &[
                "--set",
                "links.radio.errors={ kind = 'trace', file = 'small.toml' }",
            ],
            &["small.toml", "no trace"],
        ),
        (
            &[
                "--set",
                "links.radio.errors.up={ kind = 'trace', file = 'right.trace', direction = 'out' }",
                "--set",
                "links.radio.errors.down={ kind = 'none' }",
            ],
            &["sent by \"right\"", "trace join"],
        ),
    ] {
        let plain = SMALL.replace("errors = { kind = \"uniform\", rate = 0.05 }\n", "");
        std::fs::write(&file.path, plain).unwrap();
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        for needle in needles {
            let said = stderr(&output);
            assert!(said.contains(needle), "no {needle:?} in {said}");
        }
    }
    let shown = airlane(&["trace", "show", &trace]);
    assert!(stdout(&shown).contains("to right") && stdout(&shown).contains("10"));
    let output = airlane(&["trace", "join", &trace, &trace, "/dev/null"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("in common") || stderr(&output).contains("no frame"));
}

#[test]
fn services_are_parsed_before_the_node_is_asked() {
    let inline = "{ number = 4, name = \"games\", goal = \"interactive\" }";
    let nowhere = ["/nowhere/node.sock"];
    let fragment = file(
        "[[services]]\nnumber = 4\nname = \"games\"\nrate = 0.1\nscheme = { kind = \"rlp\" }\n\
         [[classes]]\nmatch = { port = 5004 }\nservice = \"games\"\n",
    );
    for (arguments, code, said) in [
        (vec!["add", inline], 1, "no node answers"),
        (
            vec!["add", inline, "--match", "{ port = 5004 }"],
            1,
            "no node answers",
        ),
        (vec!["add", &fragment.path], 1, "no node answers"),
        (vec!["remove", "games"], 1, "no node answers"),
        (vec!["set", "games", "rate=0.2"], 1, "no node answers"),
        (
            vec!["add", &inline.replace("interactive", "speech")],
            2,
            "choices: voice",
        ),
        (
            vec!["add", inline, "--match", "{ prot = 5004 }"],
            2,
            "did you mean `port`",
        ),
        (
            vec!["add", &fragment.path, "--match", "{ port = 1 }"],
            2,
            "[[classes]]",
        ),
        (vec!["add", "services.toml"], 2, "cannot read"),
        (vec!["set", "games", "queue=0.2"], 2, "write rate=SHARE"),
        (vec!["set", "games", "rate=much"], 2, "write rate=SHARE"),
    ] {
        let all: Vec<_> = ["service"]
            .into_iter()
            .chain(arguments)
            .chain(nowhere)
            .collect();
        let output = airlane(&all);
        assert!(
            stderr(&output).contains(said),
            "{all:?}: {}",
            stderr(&output)
        );
        assert_eq!(output.status.code(), Some(code), "{all:?}");
    }
}

#[test]
fn a_path_without_a_link_can_be_tested() {
    // Ports that are free now; it is unlikely that another process takes them before the test does.
    let free = [(); 4].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let ports = free.map(|listener| listener.local_addr().unwrap().port().to_string());
    let [control, file, pages, voice] = ports.each_ref().map(String::as_str);
    let serve = [
        ["test", "--serve", "127.0.0.1"],
        ["--port", control, "--for=60s"],
        ["--file-port", file, "--max-size=1GB"],
        ["--pages-port", pages, "--voice-port"],
    ];
    let mut command = Command::new(env!("CARGO_BIN_EXE_airlane"));
    command.args(serve.as_flattened()).arg(voice);
    let mut serving = Process::start(command.stdout(Stdio::piped())).unwrap();
    let mut heard = BufReader::new(serving.child().stdout.take().unwrap());
    let mut line = String::new();
    heard.read_line(&mut line).unwrap();
    assert!(line.contains("any host that reaches 127.0.0.1"), "{line}");

    let client = [
        ["test", "127.0.0.1", "--before"],
        ["--port", control, "--duration=500ms"],
        ["--warmup=0s", "--only", "pages,file"],
    ];
    let client = client.as_flattened();
    let table = airlane(client);
    assert!(table.status.success(), "{}", stderr(&table));
    let text = stdout(&table);
    assert!(text.contains("throughput, with the others"), "{text}");
    assert!(
        !text.contains("  after") && !text.contains("voice"),
        "{text}"
    );
    let json = airlane(&[client, &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let number = |path: &str| json.pointer(path).and_then(serde_json::Value::as_f64);
    assert!(
        number("/before/alone/file/file/goodput_bps") > Some(1e6),
        "{json}"
    );
    assert!(
        number("/before/together/pages/completed") > Some(1.0),
        "{json}"
    );
    assert_eq!(json["after"], serde_json::Value::Null);

    let ended = serving.stop(Duration::from_secs(5));
    assert!(ended.is_some_and(|status| status.success()));
    let mut rest = String::new();
    heard.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.matches("127.0.0.1: done").count(), 6, "{rest}");

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().port().to_string();
    let taken = taken.as_str();
    for (arguments, code, said) in [
        (
            &["127.0.0.1"][..],
            2,
            "no running link of this machine leads to",
        ),
        (
            &["here", "--link", "there"],
            2,
            "\"here\" is not an address",
        ),
        (&["/nowhere/node.sock"], 1, "no node answers"),
        (&["--serve", "/nowhere/node.sock"], 1, "no node answers"),
        (
            &[
                "--serve",
                "127.0.0.1",
                "--for=1s",
                "--voice-port",
                voice,
                "--file-port",
                taken,
            ],
            1,
            "treat alike: --file-port",
        ),
        (&["--before", "--after"], 2, "cannot be used with"),
        (&["--serve", "--json"], 2, "cannot be used with"),
        (&["--for", "1s"], 2, "--serve"),
        (&["--only", "files"], 2, "possible values: file"),
        (
            &["--duration", "0s", "127.0.0.1", "--before"],
            2,
            "--duration",
        ),
        (
            &["127.0.0.1", "--before", "--port", control],
            1,
            "serve 127.0.0.1` there",
        ),
    ] {
        let output = airlane(&[&["test"], arguments].concat());
        assert!(
            stderr(&output).contains(said),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn every_verb_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let output = airlane(&["manual", pages.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    for verb in ["", "-up", "-sim-run", "-service-add"] {
        let page = std::fs::read_to_string(pages.join(format!("airlane{verb}.1"))).unwrap();
        assert!(page.contains(".SH DESCRIPTION"), "{page}");
    }
    for verb in ["status", "flows", "pull", "record", "set", "service-set"] {
        let page = std::fs::read_to_string(pages.join(format!("airlane-{verb}.1"))).unwrap();
        assert!(page.contains("[\\fINODE\\fR]"), "{page}");
    }
}

/// Alternating bursts of four and gaps of sixty blocks are not random, so no model of ours makes
/// them.
#[test]
fn a_trace_is_fitted_and_a_poor_fit_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("radio.blocks");
    let path = file.to_str().unwrap();
    std::fs::write(&file, format!("r {}\n", "60 4 ".repeat(500))).unwrap();
    let output = airlane(&["trace", "fit", path, "--json", "--models", "gilbert,on-off"]);
    assert!(output.status.success());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["models"][0]["verdict"], "poor");
    assert_eq!(json["chosen"], serde_json::Value::Null);
    let summary = json["summary"].as_str().unwrap();
    assert!(summary.contains("No model fits; replay"), "{summary}");

    std::fs::write(&file, "0000\n").unwrap();
    let output = airlane(&["trace", "fit", path]);
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("0 of 4 blocks are erased"), "{error}");

    // A word that merely starts like a line of lengths is reported in full.
    std::fs::write(&file, "radio: 0101\n").unwrap();
    let error = String::from_utf8(airlane(&["trace", "fit", path]).stderr).unwrap();
    assert!(
        error.contains("line 1: \"radio:\" is neither 0 nor 1"),
        "{error}"
    );
}

#[test]
fn a_trace_without_erasures_is_made_with_a_warning() {
    let told = |p: &str| {
        let made = airlane(&["trace", "generate", p, "--blocks", "20"]);
        assert!(made.status.success() && stdout(&made).contains("parts = [20]"));
        stderr(&made).to_owned()
    };
    let clean = told("bernoulli 0.0001");
    assert!(
        clean.contains("none of the 20 blocks is erased; a longer --duration than 400 ms"),
        "{clean}"
    );
    assert_eq!(told("bernoulli 0.9"), "");
}

#[test]
fn block_traces_are_generated_converted_and_queried() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (rows, characters) = (path("rows.blocks"), path("characters.blocks"));
    let model = [
        "trace",
        "generate",
        "gilbert 0.006 0.12",
        "--blocks",
        "60000",
    ];
    let generated = airlane(&[&model[..], &["--seed", "3", "-o", &rows]].concat());
    assert!(generated.status.success(), "{}", stderr(&generated));
    // Converting it back gives the original.
    assert!(
        airlane(&["trace", "convert", &rows, "-o", &characters])
            .status
            .success()
    );
    let back = airlane(&["trace", "convert", &characters, "--to", "rows"]);
    assert_eq!(stdout(&back), std::fs::read_to_string(&rows).unwrap());

    let json = |arguments: &[&str]| -> serde_json::Value {
        let output = airlane(arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let stats = json(&["trace", "stats", &rows, "--json"]);
    let rate = stats["erasure_rate"].as_f64().unwrap();
    assert!((0.035..0.065).contains(&rate), "{rate}");
    assert_eq!(stats["minutes"].as_array().unwrap().len(), 20);
    assert!(stdout(&airlane(&["trace", "show", &rows])).contains("each minute"));

    let retrace = json(&[
        "trace", "retrace", &rows, "--json", "--frames", "1..20", "--mtu", "576",
    ]);
    let frames = retrace["frames"].as_array().unwrap();
    assert_eq!(frames.len(), 20);
    let lost = frames[0]["lost"].as_f64().unwrap();
    assert!(
        (lost - rate).abs() < 1e-9,
        "frames of one block are lost as blocks are: {lost}, {rate}"
    );
    let best = retrace["best_frame_blocks"].as_u64().unwrap() as usize;
    let goodput = |at: usize| frames[at]["goodput_bytes_per_s"].as_f64().unwrap();
    assert!((0..20).all(|at| goodput(at) <= goodput(best - 1)));

    // Nothing may be sent from 0 to 30 ms, nor from 60 to 80 ms.
    let times = path("lte.down");
    std::fs::write(&times, "0\n30\n35\n45\n90\n100\n").unwrap();
    let output = airlane(&[
        "trace", "convert", &times, "--from", "mahimahi", "--block", "10ms",
    ]);
    assert!(
        stdout(&output).ends_with("\n0110011110\n"),
        "{}",
        stdout(&output)
    );

    for (arguments, needle) in [
        (
            &["trace", "convert", &times, "--from", "mahimahi"][..],
            "--block 20ms",
        ),
        (
            &[
                "trace",
                "convert",
                &times,
                "--from",
                "recording",
                "--block",
                "20ms",
            ],
            "this is no trace",
        ),
        (&["trace", "generate", "gilbert 2"], "2 is no probability"),
        (
            &["trace", "retrace", &rows, "--frames", "99999..100000"],
            "no frame of 99999 fits",
        ),
        (
            &["trace", "retrace", &rows, "--frames", "0..3"],
            "write FROM..TO",
        ),
        (&["trace", "stats", "/nowhere"], "cannot read /nowhere"),
    ] {
        let output = airlane(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(needle), "{}", stderr(&output));
    }
}
