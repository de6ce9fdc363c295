//! Questions and their answers.

use airlane_base::schema::FileSchema;
use airlane_base::{Duration, Instant};
use airlane_cli::chart::Better;
use airlane_cli::metric::{Metric, is_headline, metric};
use airlane_cli::quantity::{Estimate, Unit};
use airlane_sim::event::{Event, EventFilter, EventRecord, Names, Watcher};
use airlane_sim::{FlowResult, Prepared, Report, Row, RunResult, Scenario};
use serde::{Deserialize, Serialize};

use crate::figure::FigureOf;
use crate::series::{Kept, Series};
use crate::start::{LiveStart, Sent, TcStart};
use crate::world::{Fault, World};
use crate::{figure, start};

const GLOSSARY: &str = include_str!("../../../../docs/glossary.md");

/// Maximum number of events of an answer.
const MOST_EVENTS: usize = 20_000;
/// Maximum number of events of a glance, which take about a tenth of a second in a page.
const GLANCE_EVENTS: u64 = 30_000;

#[derive(Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
enum Question {
    /// The scenarios that come with the page, name and text, and the glossary: `Shipped`.
    Shipped,
    /// The scenario, resolved, with its flows and metrics: `Outline`.
    Outline { world: World },
    /// The file with its assignments applied: `Text`.
    Toml { world: World },
    /// Repetition `run`: `RunResult`.
    Run { world: World, run: u64 },
    /// Repetition 0, ended after this time or after `GLANCE_EVENTS`: `Glance`.
    Glance { world: World, until_s: f64 },
    /// A repetition with series over time: `Watched`.
    Watch {
        world: World,
        run: u64,
        stopped_s: f64,
    },
    /// Repetitions 0 to `runs - 1`, as `airlane sim run --json` prints them: `Text`.
    Report { world: World, runs: u64 },
    /// Estimates of metrics, each in several columns of runs: `Told` for each.
    Estimate { metrics: Vec<Columns> },
    /// Events between two times, of these flows and links: `Events`.
    Events {
        world: World,
        run: u64,
        from_ns: u64,
        to_ns: u64,
        flows: Vec<String>,
        links: Vec<String>,
        kinds: Vec<String>,
    },
    /// The JSON Schema of scenarios.
    Schema,
    /// A scenario of settings of `tc`, as of `airlane scenario from-netem`: `Start`.
    Tc(TcStart),
    /// A scenario of a live file at both ends of a link: `Start`.
    Live(LiveStart),
    /// A scenario of the link of a recording, or of one of each end; their bytes follow the question: `Start`.
    Recording { recordings: Vec<Sent> },
    /// The works that come with the page: `Works`.
    Works,
    /// What a figure runs and claims: `Figure`.
    Figure { figure: FigureOf },
    /// The numbers that figures keep of repetition `run` of a scenario: `Record`.
    Measure { world: World, run: u64 },
    /// What a figure draws over the time of one run, as CSV: text, or null for nothing.
    Curves { figure: FigureOf },
    /// The figure and the verdicts that come of the `Record`s that follow, as a list: `WorkOutcome`.
    Judge { figure: FigureOf, runs: u64 },
}

/// Values of one metric, run by run, of each column; the first is the baseline.
#[derive(Debug, Deserialize)]
struct Columns {
    metric: String,
    columns: Vec<Vec<Option<f64>>>,
}

/// A scenario at a glance.
#[derive(Serialize)]
struct Outline {
    name: String,
    hash: String,
    seed: u64,
    duration_s: f64,
    /// Every default filled in.
    scenario: Scenario,
    warnings: Vec<String>,
    flows: Vec<FlowOutline>,
}

/// A flow and its metrics.
#[derive(Serialize)]
struct FlowOutline {
    name: String,
    app: &'static str,
    metrics: Vec<MetricOutline>,
}

#[derive(Serialize)]
struct MetricOutline {
    name: &'static str,
    words: &'static str,
    unit: &'static str,
    /// Whether higher is better.
    higher: bool,
    /// Whether comparisons show it by default.
    headline: bool,
}

/// A metric in one column.
#[derive(Serialize)]
struct Told {
    /// As tables show it.
    shown: String,
    /// Ratio to the baseline, paired run by run.
    ratio: Option<String>,
    row: Row,
}

#[derive(Serialize)]
struct Shipped {
    scenarios: Vec<(&'static str, &'static str)>,
    glossary: &'static str,
}

#[derive(Serialize)]
struct Glance {
    result: RunResult,
    /// Whether the run would have gone on.
    cut: bool,
}

#[derive(Serialize)]
struct Watched {
    result: RunResult,
    series: Vec<Series>,
}

#[derive(Serialize)]
struct Events {
    events: Vec<serde_json::Value>,
    /// Whether there were more.
    cut: bool,
}

#[derive(Serialize)]
struct Failed {
    error: Fault,
}

/// Answers a question: a line of JSON, and the bytes that belong to it. The answer is JSON.
pub fn answer(question: &[u8]) -> String {
    let end = question.iter().position(|byte| *byte == b'\n');
    let (line, bytes) = question.split_at(end.unwrap_or(question.len()));
    let answered = match serde_json::from_slice(line) {
        Ok(question) => ask(question, bytes.get(1..).unwrap_or_default()),
        Err(error) => Err(format!("not a question: {error}").into()),
    };
    match answered {
        Ok(text) => text,
        Err(error) => json(&Failed { error }).unwrap_or_default(),
    }
}

fn json<T: Serialize>(value: &T) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| error.to_string().into())
}

fn ask(question: Question, bytes: &[u8]) -> Result<String, Fault> {
    match question {
        Question::Shipped => json(&Shipped {
            scenarios: airlane_study::shipped::scenarios().collect(),
            glossary: GLOSSARY,
        }),
        Question::Outline { world } => json(&outline(&world)?),
        Question::Toml { world } => json(&world.read()?.to_toml()),
        Question::Run { world, run } => {
            let prepared = world.prepare()?;
            json(&prepared.run(prepared.scenario().seed, run))
        }
        Question::Glance { world, until_s } => json(&glance(&world, until_s)?),
        Question::Watch {
            world,
            run,
            stopped_s,
        } => json(&watch(&world, run, stopped_s)?),
        Question::Report { world, runs } => report(&world, runs),
        Question::Estimate { metrics } => json(&metrics.iter().map(told).collect::<Vec<_>>()),
        Question::Events {
            world,
            run,
            from_ns,
            to_ns,
            flows,
            links,
            kinds,
        } => {
            let prepared = world.prepare()?;
            let names = prepared.names();
            let mut recorder = Recorder {
                filter: EventFilter::new(&names, &kinds, &flows, &links)?,
                names: &names,
                from_ns,
                to_ns,
                over: false,
                kept: Events {
                    events: vec![],
                    cut: false,
                },
            };
            prepared.run_watched(prepared.scenario().seed, run, &mut recorder);
            json(&recorder.kept)
        }
        Question::Schema => json(FileSchema::of::<Scenario>().json()),
        Question::Tc(tc) => json(&start::tc(&tc)?),
        Question::Live(live) => json(&start::live(&live)?),
        Question::Recording { recordings } => json(&start::recording(&recordings, bytes)?),
        Question::Works => json(&figure::works()?),
        Question::Figure { figure } => json(&figure.outline()?),
        Question::Measure { world, run } => json(&figure::measure(&world.prepare()?, run)),
        Question::Curves { figure } => json(&figure.curves()?),
        Question::Judge { figure, runs } => json(&figure.judge(runs, bytes)?),
    }
}

fn outline(world: &World) -> Result<Outline, Fault> {
    let scenario = world.read()?;
    let prepared = Prepared::new(&scenario)?;
    let metrics = |app: &str| -> Vec<MetricOutline> {
        let names = FlowResult::metric_names().into_iter();
        names
            .filter_map(|name| {
                let Metric {
                    words,
                    unit,
                    better,
                    ..
                } = metric(name)?;
                Some(MetricOutline {
                    name,
                    words,
                    unit: match unit {
                        Unit::BitsPerSecond => "bit/s",
                        Unit::Seconds => "s",
                        Unit::Ratio => "ratio",
                        Unit::Bytes => "B",
                        Unit::Count => "count",
                    },
                    higher: better == Some(Better::Higher),
                    headline: is_headline(app, name),
                })
            })
            .collect()
    };
    let resolved = scenario.resolved();
    let flows = resolved.flows.iter().map(|flow| FlowOutline {
        name: flow.name.clone(),
        app: flow.app.kind(),
        metrics: metrics(flow.app.kind()),
    });
    Ok(Outline {
        name: scenario.name.clone(),
        hash: prepared.hash().to_owned(),
        seed: scenario.seed,
        duration_s: scenario.duration.as_secs_f64(),
        warnings: scenario.warnings(),
        flows: flows.collect(),
        scenario: resolved,
    })
}

fn report(world: &World, runs: u64) -> Result<String, Fault> {
    let scenario = world.read()?;
    let prepared = Prepared::new(&scenario)?;
    let results: Vec<RunResult> = (0..runs)
        .map(|run| prepared.run(scenario.seed, run))
        .collect();
    let report = Report::new(&scenario, &results).ok_or("0 runs measure nothing".to_owned())?;
    let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
    json(&(text + "\n"))
}

/// The shortest interval of 1, 2 or 5 times a power of ten that divides the run into at most 100.
fn interval(stopped_s: f64) -> Duration {
    let stopped = Duration::from_secs_f64(stopped_s.clamp(1e-6, 1e9));
    let mut decade = 1;
    loop {
        for step in [1, 2, 5] {
            let interval = Duration::from_nanos(step * decade);
            if interval * 100 >= stopped {
                return interval;
            }
        }
        decade *= 10;
    }
}

fn glance(world: &World, until_s: f64) -> Result<Glance, Fault> {
    let prepared = world.prepare()?;
    let mut begin = Begin {
        until: Instant::ORIGIN + Duration::from_secs_f64(until_s.clamp(0.0, 1e9)),
        left: GLANCE_EVENTS,
        is_over: false,
    };
    let result = prepared.run_watched(prepared.scenario().seed, 0, &mut begin);
    Ok(Glance {
        result,
        cut: begin.is_over,
    })
}

fn watch(world: &World, run: u64, stopped_s: f64) -> Result<Watched, Fault> {
    let prepared = world.prepare()?;
    let interval = interval(stopped_s);
    let prepared = prepared.over_time(interval, 1)?;
    let names = prepared.names();
    let mut kept = Kept::new(&names, interval);
    let result = prepared.run_watched(prepared.scenario().seed, run, &mut kept);
    Ok(Watched {
        series: kept.series(result.stopped_s),
        result,
    })
}

fn told(asked: &Columns) -> Vec<Told> {
    let columns = asked.columns.iter().map(|column| {
        let values = column.iter().map(|value| value.unwrap_or(f64::NAN));
        values.collect::<Vec<f64>>()
    });
    let columns: Vec<_> = columns.collect();
    let told = |(at, column): (usize, &Vec<f64>)| {
        let base = columns.first().filter(|_| at > 0);
        let row = Row::of(column, base.map(Vec::as_slice));
        let shown = metric(&asked.metric).zip(row.value.as_ref());
        Told {
            shown: shown.map_or("-".to_owned(), |(metric, value)| metric.show(value.into())),
            ratio: row.ratio.as_ref().map(|ratio| {
                let ratio = Estimate::from(ratio);
                ratio.show(Unit::Count).to_string()
            }),
            row,
        }
    };
    columns.iter().enumerate().map(told).collect()
}

/// Ends a run at a time, or after so many events.
struct Begin {
    until: Instant,
    left: u64,
    is_over: bool,
}

impl Watcher for Begin {
    fn on_event(&mut self, now: Instant, _: &Event) {
        self.left = self.left.saturating_sub(1);
        self.is_over = now >= self.until || self.left == 0;
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

/// Records the events between two times.
struct Recorder<'a> {
    names: &'a Names,
    filter: EventFilter,
    from_ns: u64,
    to_ns: u64,
    over: bool,
    kept: Events,
}

impl Watcher for Recorder<'_> {
    fn on_event(&mut self, now: Instant, event: &Event) {
        let time = now.as_nanos();
        if time < self.from_ns || self.over {
            return;
        }
        self.over = time > self.to_ns;
        if self.over || !self.filter.admits(event) {
            return;
        }
        if self.kept.events.len() == MOST_EVENTS {
            (self.over, self.kept.cut) = (true, true);
            return;
        }
        let record = EventRecord::new(self.names, now, event);
        self.kept.events.extend(serde_json::to_value(record));
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
