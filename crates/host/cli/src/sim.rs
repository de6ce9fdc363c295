//! `airlane sim run` and `airlane sim compare`.

use std::path::Path;

use airlane_sim::scenario::HandoffKind;
use airlane_sim::{
    Prepared, REPORT_SCHEMA, Report, RetraceResult, RunResult, Scenario, ScenarioError, Summary,
    Unpaired, comparable, repeat_all, repeat_prepared, summary, usual_interval,
};
use anyhow::Context as _;
use serde::Serialize;

use crate::args::{CompareArgs, RepeatArgs, RunArgs};
use crate::fault::BadInput;
use crate::input;
use crate::metric::metric;
use crate::progress::ProgressLine;
use crate::table::{Align, Table};
use crate::vary::{self, Vary};
use crate::{capture, carried, compare, events, media, output, over_time, svg, trace, world};

/// Runs `sim run`.
pub(crate) fn run(args: &RunArgs) -> anyhow::Result<()> {
    let mut document = input::document(&args.file, &args.set.set)?;
    trace::use_channels(&mut document, &args.channel)?;
    let mut scenario = world::scenario(&document, &args.file)?;
    args.repeat.choose_traffic(&mut scenario);
    warn_choices(&args.file.display().to_string(), &scenario);
    let seed = args.repeat.seed.unwrap_or(scenario.seed);
    let runs = u64::from(args.runs.unwrap_or(1));
    let mut prepared = Prepared::new(&scenario).map_err(shown)?;
    if let Some(interval) = args.over_time {
        let interval = interval.unwrap_or_else(|| usual_interval(&scenario));
        let kept = prepared.over_time(interval, runs);
        prepared = kept.map_err(|error| BadInput(format!("--over-time: {error}")))?;
    }
    let results = if args.events.is_none() && args.pcap.is_empty() {
        let prepared = std::slice::from_ref(&prepared);
        let mut all = watched(runs, |progress| {
            repeat_prepared(prepared, seed, runs, threads(&args.repeat), progress)
        })?;
        all.pop().unwrap_or_default()
    } else {
        let option = if args.pcap.is_empty() {
            "--events"
        } else {
            "--pcap"
        };
        if runs > 1 {
            let wrong =
                format!("{option} is for one run; leave --runs out, and choose it by --seed");
            return Err(BadInput(wrong).into());
        }
        vec![written(&prepared, seed, args)?]
    };
    let report = Report::new(&scenario, &results).context("no repetition was run")?;
    if args.json {
        return output::print(&json(&report)?);
    }
    let summary = report.summary;
    warn_unfinished(&scenario, &summary);
    warn_identical(&scenario, &summary);
    let text = run_text(&scenario, &summary, &results);
    output::print(&(text + &over_time::text(&results)))
}

/// Runs repetition 0 and writes the files for `--pcap` and `--events`.
fn written(prepared: &Prepared, seed: u64, args: &RunArgs) -> anyhow::Result<RunResult> {
    let scenario = prepared.scenario();
    let Some(file) = &args.events else {
        let captures = capture::open(scenario, &args.pcap)?;
        let result = prepared.run_captured(seed, 0, captures, &mut ());
        return result.map_err(capture::bad_input);
    };
    let wanted = events::Wanted {
        file,
        kinds: &args.event,
        flows: &args.event_flow,
        links: &args.event_link,
    };
    let captured = args
        .pcap
        .iter()
        .filter_map(|capture| capture.split_once('='));
    if captured
        .into_iter()
        .any(|(_, path)| Path::new(path) == file)
    {
        let wrong = format!("--events and --pcap: {} is named twice", file.display());
        return Err(BadInput(wrong).into());
    }
    let names = prepared.names();
    let mut lines = events::Written::open(&names, &wanted)?;
    let captures = capture::open(scenario, &args.pcap)?;
    let result = prepared.run_captured(seed, 0, captures, &mut lines);
    lines.finish()?;
    result.map_err(capture::bad_input)
}

/// The output of `sim compare --json`.
#[derive(Serialize)]
struct CompareOutput {
    schema: u32,
    /// The varied keys.
    vary: Vec<String>,
    comparisons: Vec<CompareAt>,
}

#[derive(Serialize)]
struct CompareAt {
    /// The values of the varied keys, in the order of `vary`.
    values: Vec<String>,
    /// The files, in the order of `comparison.scenarios`.
    files: Vec<String>,
    comparison: airlane_sim::Comparison,
}

/// Runs `sim compare`.
pub(crate) fn compare(args: &CompareArgs) -> anyhow::Result<()> {
    let axes = Vary::all(&args.vary)?;
    compare::check_measures(&args.measure)?;
    let points = vary::points(&axes);
    // All files are read before any simulation starts.
    let mut scenarios: Vec<Scenario> = Vec::new();
    for values in &points {
        for file in &args.files {
            let mut document = input::document(file, &args.set.set)?;
            for (axis, value) in axes.iter().zip(values) {
                document.set(&format!("{}={value}", axis.key))?;
            }
            let mut scenario = world::scenario(&document, file)?;
            args.repeat.choose_traffic(&mut scenario);
            scenarios.push(scenario);
        }
    }
    let ways = compare::names(&args.files);
    for scenarios in scenarios.chunks(args.files.len()) {
        warn_unpaired(scenarios, &ways)?;
        for (way, scenario) in ways.iter().zip(scenarios) {
            warn_choices(way, scenario);
        }
    }
    let seed = args.repeat.seed.unwrap_or(scenarios[0].seed);
    let runs = u64::from(args.runs);
    let total = runs * scenarios.len() as u64;
    let results = watched(total, |progress| {
        repeat_all(&scenarios, seed, runs, threads(&args.repeat), progress)
    })?;
    for (scenario, results) in scenarios.iter().zip(&results) {
        if let Some(summary) = summary(results) {
            warn_unfinished(scenario, &summary);
            warn_identical(scenario, &summary);
        }
    }
    let mut comparisons = Vec::new();
    for results in results.chunks(args.files.len()) {
        comparisons.push(airlane_sim::compare(results)?);
    }
    let each = runs_text(runs);
    let all: Vec<compare::At<'_>> = points.iter().map(Vec::as_slice).zip(&comparisons).collect();
    if let Some(path) = &args.svg {
        let picture = |(values, comparison): &compare::At<'_>| {
            let title = match values {
                [] => format!("{each} each, mean and 95 % confidence interval"),
                values => vary::named(&axes, values),
            };
            compare::picture(title, &ways, &args.measure, comparison)
        };
        let pictures: Vec<_> = all.iter().map(picture).collect();
        write(path, &svg::picture(&pictures))?;
    }
    if args.json {
        let files = args.files.iter().map(|f| f.display().to_string());
        let files: Vec<String> = files.collect();
        let at = |(values, comparison)| CompareAt {
            values,
            files: files.clone(),
            comparison,
        };
        let output = CompareOutput {
            schema: REPORT_SCHEMA,
            vary: axes.into_iter().map(|axis| axis.key).collect(),
            comparisons: points.into_iter().zip(comparisons).map(at).collect(),
        };
        return output::print(&json(&output)?);
    }
    let table = compare::table(&ways, &axes, &args.measure, &all);
    output::print(&format!(
        "{each} each, seed {seed}; mean ± 95 % confidence interval; \"x\": ratio to {}, run by run\n\n{table}",
        ways[0],
    ))
}

/// JSON text of `value`, ending with a line feed.
fn json<T: Serialize>(value: &T) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(value)? + "\n")
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

impl RepeatArgs {
    /// Lets `--traffic-seed` override the scenario's traffic seed.
    fn choose_traffic(&self, scenario: &mut Scenario) {
        scenario.traffic_seed = self.traffic_seed.or(scenario.traffic_seed);
    }
}

/// 0 lets the library choose.
fn threads(repeat: &RepeatArgs) -> usize {
    repeat.threads.map_or(0, usize::from)
}

/// Runs `work` and shows its progress.
fn watched<T>(
    total: u64,
    work: impl FnOnce(&(dyn Fn(u64, u64) + Sync)) -> Result<T, ScenarioError>,
) -> anyhow::Result<T> {
    let progress = ProgressLine::new("simulated", total);
    let result = work(&|done, _| progress.at(done, total));
    progress.finish();
    result.map_err(shown)
}

/// Words an error for the author of the scenario.
fn shown(error: ScenarioError) -> anyhow::Error {
    match error {
        ScenarioError::Refused(error) => error.into(),
        error @ ScenarioError::Incomparable { .. } => BadInput(error.to_string()).into(),
        error => error.into(),
    }
}

/// `1 run`, `2 runs`.
fn runs_text(runs: u64) -> String {
    let plural = if runs == 1 { "" } else { "s" };
    format!("{runs} run{plural}")
}

/// Warns about flows that a comparison leaves out; refuses scenarios if it would leave out all of
/// them.
fn warn_unpaired(scenarios: &[Scenario], ways: &[String]) -> anyhow::Result<()> {
    let unpaired = comparable(scenarios).map_err(|error| BadInput(error.to_string()))?;
    for Unpaired {
        flow,
        here,
        missing,
    } in unpaired
    {
        let (has, lacks) = (&ways[here], &ways[missing]);
        let so = if missing == 0 {
            "it is left out"
        } else {
            "it has no value there"
        };
        output::warn_once(&format!(
            "{has} has a flow \"{flow}\" and {lacks} has not: {so}"
        ));
    }
    Ok(())
}

/// Warns about harmful choices, such as services that no flow reaches.
pub(crate) fn warn_choices(name: &str, scenario: &Scenario) {
    for warning in scenario.warnings() {
        output::warn_once(&format!("{name}: {warning}"));
    }
}

fn warn_unfinished(scenario: &Scenario, summary: &Summary) {
    if let Some(until) = &scenario.until
        && summary.finished_runs < summary.runs
    {
        let (missing, runs) = (summary.runs - summary.finished_runs, summary.runs);
        output::warn(&format!(
            "{}: in {missing} of {runs} runs \"{until}\" was not done after {}",
            scenario.name, scenario.duration
        ));
    }
}

/// Warns where an interval of 0 comes from identical runs, not from chance.
fn warn_identical(scenario: &Scenario, summary: &Summary) {
    if summary.identical_runs {
        let (name, runs) = (&scenario.name, summary.runs);
        output::warn_once(&format!(
            "{name}: all {runs} runs are the same, as nothing random had a part in them: \"± 0\" is no measure of chance, \
             and one run says as much"
        ));
    }
}

fn run_text(scenario: &Scenario, summary: &Summary, results: &[RunResult]) -> String {
    let mut flows = Table::new([
        ("flow", Align::Left),
        ("measure", Align::Left),
        ("mean ± 95 % interval", Align::Right),
    ]);
    for flow in &summary.flows {
        let mut name = flow.name.as_str();
        for (words, shares) in carried::rows(&flow.services) {
            flows.row([name, words, &shares]);
            name = "";
        }
        for measured in &flow.metrics {
            let Some(metric) = metric(measured.metric) else {
                continue;
            };
            let value = match &measured.estimate {
                Some(estimate) => metric.show(estimate.into()),
                None if metric.headline => "-".to_owned(),
                None => continue,
            };
            flows.row([name, metric.words, &value]);
            name = "";
        }
    }
    let (runs, seed) = (runs_text(summary.runs), summary.seed);
    let name = &scenario.name;
    let mut text = format!("{name}: {runs}, seed {seed}\n\n{}", flows.render());
    text.push_str(&media::links_text(summary));
    text.push_str(&media::radios_text(summary));
    text.push_str(&retraces_text(results));
    if let Some(run) = results.first() {
        text.push_str(&media::nodes_text(run));
        text.push_str(&handoffs_text(run));
        text.push_str(&paths_text(run));
    }
    text
}

/// What was computed from traces in addition to the simulation, as means over the runs.
fn retraces_text(results: &[RunResult]) -> String {
    let names = results.first().map_or(&[][..], |run| &run.retraces[..]);
    if names.is_empty() {
        return String::new();
    }
    let heads = ["goodput, byte/s", "lost", "best frame", "erased"];
    let heads = heads.map(|head| (head, Align::Right));
    let mut table = Table::new([("retrace", Align::Left)].into_iter().chain(heads));
    for (at, retrace) in names.iter().enumerate() {
        let shown = |of: fn(&RetraceResult) -> Option<f64>, digits: usize| {
            let values = results.iter().map(|run| of(&run.retraces[at]));
            let sum: Option<f64> = values.sum();
            sum.map_or("-".to_owned(), |sum| {
                format!("{:.digits$}", sum / results.len() as f64)
            })
        };
        table.row([
            retrace.name.clone(),
            shown(|of| of.goodput, 1),
            shown(|of| of.lost_ratio, 4),
            shown(|of| of.best_frame.map(f64::from), 0),
            shown(|of| Some(of.erased_ratio), 4),
        ]);
    }
    format!("\n{}", table.render())
}

/// The handoffs of a run and their cost.
fn handoffs_text(run: &RunResult) -> String {
    if run.handoffs.is_empty() {
        return String::new();
    }
    let words = ["handoff", "kind", "from", "to"].map(|head| (head, Align::Left));
    let numbers = ["at", "without a link"].map(|head| (head, Align::Right));
    let mut table = Table::new(words.into_iter().chain(numbers));
    for handoff in &run.handoffs {
        let kind = match handoff.kind {
            HandoffKind::Horizontal => "horizontal",
            HandoffKind::Vertical => "vertical",
        };
        table.row([
            handoff.node.clone(),
            kind.to_owned(),
            handoff.from.clone(),
            handoff.to.clone(),
            format!("{} s", handoff.at_s),
            format!("{} s", handoff.gap_s),
        ]);
    }
    let ways = run.links.iter().flat_map(|link| [&link.down, &link.up]);
    let (mut air, mut ports) = (0, 0);
    for way in ways {
        air += way.channel.lost_handoff.frames;
        let senders = way.services.iter().map(|service| &service.sender);
        ports += senders
            .map(|sender| sender.epoch_lost + sender.dropped_disconnected)
            .sum::<u64>();
    }
    format!(
        "\n{}lost with a link, run 0: {air} frames on it, {ports} packets that waited or were not \
         acknowledged; {} packets had no route\n",
        table.render(),
        run.unroutable.frames,
    )
}

/// What the paths offered at the end of a run; empty without services.
fn paths_text(run: &RunResult) -> String {
    if run.paths.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        ("path", Align::Left),
        ("services", Align::Left),
        ("capacity", Align::Right),
        ("loss", Align::Right),
        ("delay", Align::Right),
    ]);
    for path in &run.paths {
        let mut ends = path.ends.join(" to ");
        for offer in &path.offers {
            let services = offer.services.iter().zip(&path.links);
            let services = services.map(|(number, link)| {
                number.map_or("-".to_owned(), |number| service_name(run, link, number))
            });
            let services = services.collect::<Vec<_>>().join(", ");
            let loss = offer.loss_ratio;
            table.row([
                std::mem::take(&mut ends),
                services,
                format!("{:.1} kbit/s", offer.capacity_bps / 1e3),
                loss.map_or("-".to_owned(), |loss| format!("{:.2} %", loss * 1e2)),
                format!("{:.0} ms", offer.delay_s * 1e3),
            ]);
        }
    }
    let unseen = run.paths.iter().flat_map(|path| &path.offers);
    let unseen = if unseen.into_iter().any(|offer| offer.loss_ratio.is_none()) {
        "; \"-\": services that cannot see their losses"
    } else {
        ""
    };
    format!(
        "\n{}at the end of run 0, smoothed over its last seconds{unseen}\n",
        table.render()
    )
}

/// The name of a service of a link.
fn service_name(run: &RunResult, link: &str, number: u8) -> String {
    let link = run.links.iter().find(|result| result.name == link);
    let mut services = link.iter().flat_map(|link| &link.down.services);
    let found = services.find(|service| service.number == number);
    found.map_or_else(|| number.to_string(), |service| service.name.clone())
}
