//! Curves over time agree with the results of the run that they come from.

use std::collections::BTreeMap;
use std::path::Path;

use airlane_study::{Plan, RunRequest, Shard, Store, Work};

/// 100 segments of 1000 B, the last one of 500 B.
const WORLD: &str = r#"
title = "a file over a lossy link"
scenario.schema = 1
scenario.duration = "60 s"
scenario.until = "file"
[scenario.nodes.a]
[scenario.nodes.b]
[scenario.links.radio]
ends = ["a", "b"]
rate = "1 Mbit/s"
delay = "20 ms"
frame = "1100 B"
errors = { kind = "uniform", rate = 0.05 }
[[scenario.flows]]
name = "file"
ends = ["a", "b"]
transport = { kind = "tcp", profile = "bsd-1997" }
app = { kind = "bulk", size = "99500 B", packet = "1000 B" }
progress = {}
[axes.recovery]
reno = []
newreno = ["flows[file].transport.recovery=newreno"]
"#;

const METRICS: &str = r#"
metrics.timeouts = "file.timeouts"
metrics.again = "file.retransmissions"
metrics.peak = "file.peak_bps"
metrics.rtt = "file.rtt_max_s"
"#;

type Curves = BTreeMap<(String, String), Vec<(f64, f64)>>;

/// Runs a work of one study; its curves by line and quantity, and its metrics by line and name.
fn run(
    folder: &Path,
    metrics: &str,
    over_time: &str,
) -> Result<(String, u64, Vec<Vec<f64>>), String> {
    let of = folder.join("small");
    std::fs::create_dir_all(&of).unwrap();
    std::fs::write(of.join("work.toml"), "title = \"a small work\"\nruns = 2\n").unwrap();
    let (head, tables) = WORLD.split_at(WORLD.find("[scenario.nodes.a]").unwrap());
    let text = format!("{head}{metrics}over-time = {over_time}\n{tables}");
    std::fs::write(of.join("F1.toml"), text).unwrap();
    let work = Work::load(&of).map_err(|error| error.to_string())?;
    let request = RunRequest {
        committed: true,
        ..RunRequest::default()
    };
    let plan = Plan::new(work, &[], &request).map_err(|error| error.to_string())?;
    plan.check().map_err(|error| error.to_string())?;
    let results = folder.join("results");
    let mut store = Store::open(&results).unwrap();
    let done = plan.execute(&mut store, Shard::ALL, 1, &()).unwrap();
    plan.write_tables(&store, &results).unwrap();
    plan.record(&results).unwrap();
    let outcomes = plan.outcomes(&store).unwrap();
    let name = &outcomes[0].studies[0].over_time.as_ref().unwrap().name;
    let csv = std::fs::read_to_string(results.join(format!("small/{name}.csv"))).unwrap();
    let names = [
        "file.timeouts",
        "file.retransmissions",
        "file.peak_bps",
        "file.rtt_max_s",
    ];
    let first = plan.worlds.iter().map(|world| {
        let record = store.get(&(world.hash().to_owned(), plan.seed, 0));
        let value = |name| record.map_or(f64::NAN, |record| record.get(name));
        names.map(value).to_vec()
    });
    Ok((csv, done.run, first.collect()))
}

fn curves(csv: &str) -> Curves {
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("at,line,quantity,time_s,value"));
    let mut curves = Curves::new();
    for line in lines {
        let [at, line, quantity, time, value] = line.split(',').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        assert_eq!(at, "");
        let key = (line.to_owned(), quantity.to_owned());
        let point = (time.parse().unwrap(), value.parse().unwrap());
        curves.entry(key).or_default().push(point);
    }
    curves
}

#[test]
fn curves_agree_with_the_metrics_of_their_run() {
    let folder = tempfile::tempdir().unwrap();
    let all = r#"{ y = ["window", "sequence", "goodput", "duplicates", "round-trip"] }"#;
    let (csv, runs, metrics) = run(folder.path(), METRICS, all).unwrap();
    assert_eq!(runs, 4);
    let curves = curves(&csv);
    for (line, metrics) in ["reno", "newreno"].into_iter().zip(metrics) {
        let of = |quantity: &str| {
            let key = (line.to_owned(), quantity.to_owned());
            curves.get(&key).cloned().unwrap_or_default()
        };
        let [timeouts, again, peak, rtt] = metrics[..] else {
            panic!("four metrics");
        };
        assert!(again > 0.0, "{line}: something is lost");
        assert_eq!(of("timeout_bytes").len() as f64, timeouts, "{line}");
        assert_eq!(of("sent_again_bytes").len() as f64, again, "{line}");
        let sent = of("sent_bytes");
        assert_eq!((sent.len(), sent[99].1), (100, 99_000.0), "{line}");
        let goodput = of("goodput_bps");
        let mut rates: Vec<f64> = goodput.iter().map(|(_, rate)| *rate).collect();
        // The last interval, which the end of the file cuts short, is left out.
        let bytes = rates.iter().sum::<f64>() / 8.0 * 0.1;
        assert!(bytes <= 99_500.0 && bytes > 80_000.0, "{line}: {bytes}");
        rates.sort_by(f64::total_cmp);
        let three = rates.iter().rev().take(3).sum::<f64>() / 3.0;
        assert!((three / peak - 1.0).abs() < 1e-9, "{line}: {three} {peak}");
        let trips = of("round_trip_s").into_iter().map(|(_, trip)| trip);
        assert_eq!(trips.fold(0.0, f64::max), rtt, "{line}");
        assert!(
            of("window_bytes")
                .iter()
                .all(|(_, window)| *window >= 1000.0)
        );
    }
    let again = tempfile::tempdir().unwrap();
    assert_eq!(run(again.path(), METRICS, all).unwrap().0, csv);
}

#[test]
fn a_study_that_draws_over_time_alone_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let until = r#"{ y = ["goodput"], at = ["reno"], until = "300 ms" }"#;
    let (csv, runs, _) = run(folder.path(), "", until).unwrap();
    assert_eq!(runs, 0);
    let curves = curves(&csv);
    assert_eq!(curves.len(), 1);
    let [(key, points)] = curves.iter().collect::<Vec<_>>()[..] else {
        panic!("one curve");
    };
    // The chosen value of the axis is no line, so the flow is.
    assert_eq!(key.0, "file");
    assert!(!points.is_empty() && points.iter().all(|(time, _)| *time < 0.3));
}

#[test]
fn wrong_tables_are_refused_by_name() {
    for (table, problem) in [
        ("{ y = [] }", "over-time.y: it draws nothing"),
        (
            r#"{ y = ["goodput"], at = ["sack"] }"#,
            "no axis has the value \"sack\"",
        ),
        (
            r#"{ y = ["goodput"], lines = "x" }"#,
            "no axis \"x\" is left; there are: recovery",
        ),
        (
            r#"{ y = ["goodput"], flows = ["f"] }"#,
            "no flow \"f\"; there are: file",
        ),
        (
            r#"{ y = ["goodput"], levels = { window = 1 } }"#,
            "over-time.levels: window",
        ),
        (
            r#"{ y = ["goodput"], interval = "0 ms" }"#,
            "an interval of 0",
        ),
        (r#"{ y = ["rate"] }"#, "cannot be \"rate\""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let error = run(folder.path(), METRICS, table).unwrap_err();
        assert!(error.contains(problem), "{table}: {error}");
    }
}
