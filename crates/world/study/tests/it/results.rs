//! A small work of two figures with claims of every form; its results have the same bytes however
//! it was run.

use std::collections::BTreeMap;
use std::path::Path;

use airlane_study::{Plan, Report, RunRequest, Shard, Store, Verdict, Work, markdown};

const PART: &str = r#"
scenario.schema = 1
scenario.duration = "20 s"
[scenario.nodes.a]
[scenario.nodes.b]
[scenario.links.radio]
ends = ["a", "b"]
rate = "14.4 kbit/s"
delay = "100 ms"
frame = "50 B"
errors = { kind = "uniform", rate = 0.1 }
header = "study"
services = [{ number = 0, name = "all", rate = 1, scheme = { kind = "default" } }]
[[scenario.flows]]
name = "conf"
ends = ["a", "b"]
transport = { kind = "udp" }
app = { kind = "conferencing", rate = "9.6 kbit/s", packet = "50 B", talk = "1 s", silence = "0 s" }
[axes.scheme]
default = ["links.radio.services[all].scheme={ kind = \"default\" }"]
rlp = ["links.radio.services[all].scheme={ kind = \"rlp\", retries = 3 }"]
[axes.level]
L1 = ["links.radio.errors.rate=0.05"]
L2 = ["links.radio.errors.rate=0.2"]
"#;

const F1: &str = r#"
title = "loss"
parts = ["world"]
axes.scheme = ["default", "rlp"]
axes.level = ["L1", "L2"]
metrics.loss = "conf.loss_ratio"
[[claims]]
id = "order"
published = "RLP loses far less"
check = ["loss[rlp] << loss[default]", "rises(loss[default])"]
[[claims]]
id = "wrong-order"
published = "Without repair less than 5 % is lost"
check = "loss[default, L2] < 0.05"
[[claims]]
id = "gain"
published = "Default loses 4 times as much at the higher level"
gain = { of = "loss[default, L2] / loss[default, L1]", range = [4, 4] }
[[claims]]
id = "value"
published = "20 % at L2"
value = { of = "loss[default, L2]", is = 0.2 }
[[claims]]
id = "bound"
published = "RLP loses less than 0.001 %"
below = { of = "loss[rlp]", is = 0.00001, at = ["L2"] }
[[claims]]
id = "set"
published = "three times"
class = "setting"
reason = "set"
setting = { path = "links.*.services[*].scheme(kind=rlp).retries", is = 3 }
[[claims]]
id = "quoted"
published = "elsewhere"
class = "background"
reason = "quoted"
"#;

const F2: &str = r#"
title = "delay"
parts = ["world"]
axes.scheme = ["default", "rlp"]
axes.level = ["L1", "L2"]
metrics.delay = "conf.delay_mean_s"
[[claims]]
id = "other"
published = "where more is lost, repairs take longer"
check = "delay[rlp, L2] / delay[rlp, L1] > F1.loss[default, L1] / F1.loss[default, L2]"
"#;

fn work(folder: &Path) -> Work {
    let folder = folder.join("small");
    std::fs::create_dir_all(folder.join("parts")).unwrap();
    for (name, text) in [
        ("work.toml", "title = \"a small work\"\nruns = 4\n"),
        ("parts/world.toml", PART),
        ("F1.toml", F1),
        ("F2.toml", F2),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    Work::load(&folder).unwrap()
}

fn plan(folder: &Path, set: &[&str]) -> Plan {
    let request = RunRequest {
        committed: true,
        set: set.iter().map(|s| (*s).to_owned()).collect(),
        ..RunRequest::default()
    };
    let plan = Plan::new(work(folder), &[], &request).unwrap_or_else(|e| panic!("{e}"));
    plan.check().unwrap_or_else(|e| panic!("{e}"));
    plan
}

/// Runs what is missing and reads all tables.
fn complete(plan: &Plan, out: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut store = Store::open(out).unwrap();
    plan.execute(&mut store, Shard::ALL, 2, &()).unwrap();
    tables(plan, &store, out)
}

fn tables(plan: &Plan, store: &Store, out: &Path) -> BTreeMap<String, Vec<u8>> {
    plan.write_tables(store, out).unwrap();
    let files = std::fs::read_dir(out.join("small")).unwrap();
    let files = files.map(|file| file.unwrap());
    files
        .map(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            (name, std::fs::read(file.path()).unwrap())
        })
        .collect()
}

#[test]
fn claims_are_judged_and_worlds_are_shared() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), &[]);
    assert_eq!(plan.jobs(), 16, "two figures of four worlds share them");
    let mut store = Store::open(&folder.path().join("out")).unwrap();
    plan.execute(&mut store, Shard::ALL, 0, &()).unwrap();
    let outcome = plan.outcome(&store, &plan.variants[0]).unwrap();
    let verdicts = outcome.verdicts();
    for (id, verdict) in [
        ("order", Verdict::Holds),
        ("wrong-order", Verdict::Misses),
        ("gain", Verdict::Holds),
        ("value", Verdict::Holds),
        ("bound", Verdict::Misses),
        ("other", Verdict::Holds),
        ("set", Verdict::Holds),
    ] {
        assert_eq!(verdicts.get(id), Some(&verdict), "{id}: {outcome:#?}");
    }
    assert!(!verdicts.contains_key("quoted"));
    assert_eq!(
        outcome.counts.total(),
        6,
        "settings and quotations are counted apart"
    );
    let report = Report::new(&[outcome]);
    assert_eq!((report.claims.len(), report.apart.len()), (6, 2));
}

#[test]
fn printed_values_are_marked_where_a_figure_shows_what_they_are_of() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), &[]);
    let mut store = Store::open(&folder.path().join("out")).unwrap();
    plan.execute(&mut store, Shard::ALL, 0, &()).unwrap();
    let outcome = plan.outcome(&store, &plan.variants[0]).unwrap();
    let figure = |at: usize| outcome.studies[at].figure.as_ref().unwrap();
    let low = figure(0).panels[0].values[0][0].unwrap().value;
    // Four times what is lost at the lower level, within a quarter of a gain of 300 %; and 20 %.
    let expected = [(4.0 * low, [3.25 * low, 4.75 * low]), (0.2, [0.18, 0.22])];
    let marks = &figure(0).marks;
    assert_eq!(marks.len(), expected.len(), "{marks:?}");
    for (mark, (value, band)) in marks.iter().zip(expected) {
        assert_eq!((mark.panel, mark.line, mark.x), (0, 0, 1), "{mark:?}");
        let apart = [
            mark.value - value,
            mark.band[0] - band[0],
            mark.band[1] - band[1],
        ];
        assert!(apart.iter().all(|by| by.abs() < 1e-12), "{mark:?}");
    }
    assert!(figure(1).marks.is_empty());
}

#[test]
fn interrupted_and_resumed_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), &[]);
    let whole = complete(&plan, &folder.path().join("whole"));
    assert_eq!(whole.len(), 2);

    // As after a power failure in the middle of a line.
    let out = folder.path().join("part");
    std::fs::create_dir_all(&out).unwrap();
    let lines = std::fs::read(folder.path().join("whole/runs.jsonl")).unwrap();
    std::fs::write(out.join("runs.jsonl"), &lines[..lines.len() * 2 / 3]).unwrap();
    let mut store = Store::open(&out).unwrap();
    let done = plan.execute(&mut store, Shard::ALL, 1, &()).unwrap();
    assert!(
        done.known > 0 && done.run > 0 && done.known + done.run == 16,
        "{done:?}"
    );
    assert_eq!(tables(&plan, &store, &out), whole);
}

#[test]
fn shards_that_are_merged_give_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(folder.path(), &[]);
    let whole = complete(&plan, &folder.path().join("whole"));
    let out = folder.path().join("shards");
    for index in 1..=3 {
        // Each shard runs on a machine of its own.
        let mut store = Store::open(&out.join(index.to_string())).unwrap();
        let shard = Shard { index, count: 3 };
        plan.execute(&mut store, shard, 1, &()).unwrap();
        let name = format!("runs-{index}-of-3.jsonl");
        std::fs::rename(out.join(index.to_string()).join(&name), out.join(&name)).unwrap();
    }
    let mut store = Store::open(&out).unwrap();
    store.merge().unwrap();
    let store = Store::open(&out).unwrap();
    assert_eq!(tables(&plan, &store, &out), whole);
}

#[test]
fn assignments_change_every_world_they_reach() {
    let folder = tempfile::tempdir().unwrap();
    let committed = plan(folder.path(), &[]);
    let changed = plan(
        folder.path(),
        &["links.*.services[*].scheme(kind=rlp).retries=1"],
    );
    let same = |i: usize| committed.worlds[i].hash() == changed.worlds[i].hash();
    assert_eq!(
        [same(0), same(1), same(2), same(3)],
        [true, true, false, false]
    );

    // The work's assignments come before the requested ones.
    let same = plan(folder.path(), &["traffic-seed=1"]);
    let file = folder.path().join("small/work.toml");
    let each = "title = \"a small work\"\nruns = 4\nset = [\"traffic-seed=each-run\"]\n";
    std::fs::write(file, each).unwrap();
    let own = Work::load(&folder.path().join("small")).unwrap();
    let planned = |set: &[&str]| {
        let request = RunRequest {
            set: set.iter().map(|&set| set.to_owned()).collect(),
            committed: true,
            ..RunRequest::default()
        };
        Plan::new(own.clone(), &[], &request).unwrap()
    };
    let hash = |plan: &Plan| plan.worlds[0].hash().to_owned();
    assert_ne!(hash(&planned(&[])), hash(&committed));
    assert_eq!(hash(&planned(&["traffic-seed=1"])), hash(&same));

    let request = RunRequest {
        set: vec!["links.*.services[*].scheme(kind=rpl).retries=1".to_owned()],
        committed: true,
        ..RunRequest::default()
    };
    let error = Plan::new(work(folder.path()), &[], &request)
        .unwrap_err()
        .to_string();
    assert!(error.contains("reaches no place"), "{error}");
}

#[test]
fn claims_that_cannot_be_judged_are_found_before_anything_runs() {
    for (check, problem) in [
        ("los[rlp] > 0", "no metric \"los\"; it has: loss"),
        ("loss[rpl] > 0", "no axis has the value \"rpl\""),
        ("F3.loss[rlp] > 0", "no study \"F3\""),
        ("loss > 0 at L9", "no open axis has the value \"L9\""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        work(folder.path());
        let text = format!(
            "title = \"t\"\nparts = [\"world\"]\naxes.scheme = [\"rlp\", \"default\"]\n\
             axes.level = [\"L1\"]\nmetrics.loss = \"conf.loss_ratio\"\n\
             [[claims]]\nid = \"c\"\npublished = \"p\"\ncheck = {check:?}\n"
        );
        std::fs::write(folder.path().join("small/F4.toml"), text).unwrap();
        let work = Work::load(&folder.path().join("small")).unwrap();
        let request = RunRequest {
            committed: true,
            ..RunRequest::default()
        };
        let found = Plan::new(work, &["F4".to_owned()], &request).and_then(|plan| plan.check());
        let error = found.unwrap_err().to_string();
        assert!(error.contains(problem), "{check}: {error}");
    }
}

#[test]
fn alternatives_with_fewer_repetitions_are_compared_with_as_few() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[halved]\ntitle = \"half the time\"\nset = ['duration=\"10 s\"']\n";
    work(folder.path());
    std::fs::write(folder.path().join("small/alternatives.toml"), text).unwrap();
    let work = Work::load(&folder.path().join("small")).unwrap();
    let request = RunRequest {
        committed: true,
        alternatives: vec!["halved".to_owned()],
        alternative_runs: Some(2),
        ..RunRequest::default()
    };
    let plan = Plan::new(work, &[], &request).unwrap_or_else(|e| panic!("{e}"));
    // Four worlds four times, and four others twice.
    assert_eq!(plan.jobs(), 24);
    assert_eq!(plan.keys().len(), 24);
    let mut store = Store::open(&folder.path().join("out")).unwrap();
    plan.execute(&mut store, Shard::ALL, 2, &()).unwrap();
    let outcomes = plan.outcomes(&store).unwrap();
    let runs: Vec<_> = outcomes
        .iter()
        .map(|o| (o.runs, o.alternative.as_deref()))
        .collect();
    assert_eq!(runs, [(4, None), (2, None), (2, Some("halved"))]);
    let report = Report::new(&outcomes);
    assert_eq!(
        report.counts, outcomes[0].counts,
        "what is committed counts once"
    );
    let moved = outcomes[2].moved(&outcomes[1].verdicts());
    assert_eq!(report.alternatives[0].moved.len(), moved.len());
    let page = &markdown(&outcomes, &[&plan.work], "page")[0].text;
    assert!(page.contains("2 repetitions of each"), "{page}");
}

#[test]
fn misses_are_grouped_by_cause() {
    let folder = tempfile::tempdir().unwrap();
    work(folder.path());
    let small = folder.path().join("small");
    let page = |notes: &str| {
        std::fs::write(small.join("notes.toml"), notes).unwrap();
        let request = RunRequest {
            committed: true,
            ..RunRequest::default()
        };
        let plan = Plan::new(Work::load(&small).unwrap(), &[], &request).unwrap();
        let mut store = Store::open(&folder.path().join("out")).unwrap();
        plan.execute(&mut store, Shard::ALL, 2, &()).unwrap();
        let outcomes = plan.outcomes(&store).unwrap();
        markdown(&outcomes, &[&plan.work], "page").remove(0).text
    };
    let note = |id: &str| {
        format!("[{id}]\ncause = \"silent\"\ntext = \"No timer is given here at all. More.\"\n")
    };
    let with = page(&(note("bound") + &note("gain")));
    assert!(
        with.contains("- **bound** (") && with.contains("): No timer is given here at all.\n"),
        "{with}"
    );
    // A claim that holds has no cause, even if it has a note.
    assert!(!with.contains("- **gain**"), "{with}");
    assert!(with.contains("### Silent"), "{with}");
    assert!(with.contains("![F1](figures/small/F1.svg)"), "{with}");
    let without = page("");
    assert!(without.contains("### Open"), "{without}");
    assert!(!without.contains("### Silent"), "{without}");
}

#[test]
fn a_study_without_claims_is_a_table() {
    let folder = tempfile::tempdir().unwrap();
    work(folder.path());
    let small = folder.path().join("small");
    let until = |text: &str| text[..text.find("[[claims]]").unwrap()].to_owned();
    for (name, text) in [("F1.toml", F1), ("F2.toml", F2)] {
        std::fs::write(small.join(name), until(text)).unwrap();
    }
    let request = RunRequest {
        committed: true,
        ..RunRequest::default()
    };
    let plan = Plan::new(Work::load(&small).unwrap(), &[], &request).unwrap();
    let mut store = Store::open(&folder.path().join("out")).unwrap();
    plan.execute(&mut store, Shard::ALL, 2, &()).unwrap();
    let outcomes = plan.outcomes(&store).unwrap();
    let page = markdown(&outcomes, &[&plan.work], "page").remove(0).text;
    let heads = [
        "| scheme | loss, %: L1 | L2 |\n|---|---|---|\n| default |",
        "| scheme | delay, ms: L1 | L2 |\n|---|---|---|\n| default |",
    ];
    for head in heads {
        assert!(page.contains(head), "{page}");
    }
    let loss = outcomes[0].studies[0].points[0].metrics["loss"].mean * 100.0;
    assert!(
        page.contains(&format!("| default | {loss:.2} |")),
        "{loss}: {page}"
    );
    assert!(page.starts_with("# Measured"), "{page}");

    // Next to a work with claims it is still a table.
    let other = tempfile::tempdir().unwrap();
    let mut claiming = self::plan(other.path(), &[]);
    claiming.work.id = "claiming".to_owned();
    let mut store = Store::open(&other.path().join("out")).unwrap();
    claiming.execute(&mut store, Shard::ALL, 2, &()).unwrap();
    let both = [outcomes, claiming.outcomes(&store).unwrap()].concat();
    let works = [&plan.work, &claiming.work];
    let pages = markdown(&both, &works, "page");
    let of: Vec<Option<&str>> = pages.iter().map(|page| page.of.as_deref()).collect();
    assert_eq!(of, [None, Some("small"), Some("claiming")]);
    let [over, table, claims] = [0, 1, 2].map(|at| &pages[at].text);
    assert!(over.starts_with("# Validation"), "{over}");
    assert!(over.contains("[claiming](page-claiming.md)"), "{over}");
    assert!(table.contains(heads[0]), "{table}");
    assert!(claims.contains("|order|"), "{claims}");
}

const F3: &str = r#"
title = "by a time"
parts = ["world"]
set = ["flows[conf].progress={ curve = true }"]
axes.scheme = ["default"]
axes.level = ["L1", "L2"]
metrics.early = "conf.good_bps until 5 * F2.delay[rlp]"
metrics.later = "conf.good_bps until 1000 * F2.delay[rlp]"
"#;

#[test]
fn a_run_time_from_another_study_uses_the_same_repetition() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    drop(work(dir));
    let load = |text: &str| {
        std::fs::write(dir.join("small/F3.toml"), text).unwrap();
        Work::load(&dir.join("small"))
    };
    let request = RunRequest {
        committed: true,
        ..RunRequest::default()
    };
    let plan = |work: Work| Plan::new(work, &["F3".to_owned()], &request);
    let planned = plan(load(F3).unwrap()).unwrap();
    planned.check().unwrap();
    let mut store = Store::open(&dir.join("out")).unwrap();
    planned.execute(&mut store, Shard::ALL, 0, &()).unwrap();
    let variant = &planned.variants[0];
    let outcome = planned.outcome(&store, variant).unwrap();
    let worlds = |id: &str| &variant.studies.iter().find(|s| s.id == id).unwrap().worlds;
    for (level, point) in outcome.studies[0].points.iter().enumerate() {
        let record = |world: usize, run| {
            let hash = planned.worlds[world].hash().to_owned();
            store.get(&(hash, planned.seed, run)).unwrap()
        };
        // Interval boundaries are whole tenths of a second.
        let by = |tenths: f64, run| {
            let name = format!("conf.bytes_by_{:014.9}", tenths / 10.0);
            record(worlds("F3")[level], run).get(&name)
        };
        let [mut least, mut most] = [0.0; 2];
        for run in 0..4 {
            let time = 5.0 * record(worlds("F2")[2 + level], run).get("conf.delay_mean_s");
            let tenths = (10.0 * time).floor();
            least += 8.0 * by(tenths, run) / time / 4.0;
            most += 8.0 * by(tenths + 1.0, run) / time / 4.0;
        }
        let early = point.metrics["early"].mean;
        assert!((least..=most).contains(&early), "{least} {early} {most}");
        // Nothing is known of the time after the end of a run.
        assert!(!point.metrics.contains_key("later"));
    }

    let wrong = |from: &str, to: &str| match load(&F3.replace(from, to)).and_then(plan) {
        Ok(planned) => planned.check().unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    for (from, to, says) in [
        ("F2.delay[rlp]", "F9.delay[rlp]", "F9"),
        ("F2.delay[rlp]", "F2.delay[arq]", "arq"),
        ("1000 * F2.delay[rlp]", "early", "until a time itself"),
        ("good_bps until 5 ", "loss_ratio until 5 ", "good_bps"),
        ("until 5 * F2.delay[rlp]", "until 5 *", "`5 *`"),
    ] {
        let error = wrong(from, to);
        assert!(error.contains(says), "{error}");
    }
}
