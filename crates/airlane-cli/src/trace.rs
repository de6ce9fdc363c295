//! `airlane trace show`, `airlane trace join`, and `airlane sim run --channel`.

pub(crate) mod blocks;
pub(crate) mod fit;
pub(crate) mod retrace;
pub(crate) mod stats;

use std::path::Path;

use airlane_base::config::{Document, key};
use airlane_channel::trace::{FrameOutcome, Trace, Way};
use airlane_sim::Scenario;
use anyhow::Context as _;
use serde::Serialize;

use crate::args::{TraceJoinArgs, TraceShowArgs};
use crate::fault::BadInput;
use crate::output;
use crate::quantity::{Estimate, Unit};
use crate::table::{Align, Table};

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;

/// What `--json` prints of a trace.
#[derive(Serialize)]
struct Shown {
    schema: u32,
    name: String,
    started_unix_s: u64,
    duration_s: f64,
    rate_bps: u64,
    overhead_bytes: u32,
    /// Records that the recording missed, of both ends.
    records_missed: u64,
    /// Where the file is cut off, if it is.
    cut_at_byte: Option<u64>,
    /// Frames to the near end; absent if nothing is known.
    #[serde(rename = "in")]
    inwards: Option<Direction>,
    /// Frames from it.
    out: Option<Direction>,
}

#[derive(Serialize)]
struct Direction {
    frames_received: u64,
    frames_lost: u64,
    /// Nobody knows what became of them.
    frames_unknown: u64,
    loss_ratio: f64,
    /// Longest row of frames that were lost one after the other.
    longest_loss_frames: u64,
    mean_len_bytes: Option<f64>,
    mean_queue_bytes: Option<f64>,
    /// Delay beyond that of the fastest frame.
    delay_median_s: Option<f64>,
    delay_p99_s: Option<f64>,
}

impl Direction {
    fn of(trace: &Trace, way: Way) -> Option<Self> {
        let path = trace.path(way)?;
        let mut late = Vec::new();
        let (mut row, mut longest) = (0, 0);
        for sample in &path.samples {
            match sample.outcome {
                FrameOutcome::Lost => row += sample.frames,
                FrameOutcome::Received(delay) => {
                    late.extend(delay);
                    row = 0;
                }
            }
            longest = longest.max(row);
        }
        late.sort_unstable();
        let quantile = |q: f64| {
            let at = (late.len() as f64 * q) as usize;
            late.get(at.min(late.len().saturating_sub(1)))
                .map(|d| d.as_secs_f64())
        };
        let mean = |values: Vec<f64>| {
            let sum: f64 = values.iter().sum();
            (!values.is_empty()).then(|| sum / values.len() as f64)
        };
        let lens = path.samples.iter().filter(|s| s.len > 0);
        let queues = path.samples.iter().filter_map(|s| s.queue);
        Some(Self {
            frames_received: path.received,
            frames_lost: path.lost,
            frames_unknown: path.unknown,
            loss_ratio: path.loss(),
            longest_loss_frames: longest,
            mean_len_bytes: mean(lens.map(|s| f64::from(s.len)).collect()),
            mean_queue_bytes: mean(queues.map(f64::from).collect()),
            delay_median_s: quantile(0.5),
            delay_p99_s: quantile(0.99),
        })
    }

    fn row(&self) -> [String; 8] {
        let show = |value: Option<f64>, unit: Unit| match value {
            Some(value) => Estimate::single(value).show(unit).to_string(),
            None => "-".to_owned(),
        };
        [
            self.frames_received.to_string(),
            self.frames_lost.to_string(),
            show(Some(self.loss_ratio), Unit::Ratio),
            self.longest_loss_frames.to_string(),
            show(self.mean_len_bytes, Unit::Bytes),
            show(self.mean_queue_bytes, Unit::Bytes),
            show(self.delay_median_s, Unit::Seconds),
            show(self.delay_p99_s, Unit::Seconds),
        ]
    }
}

/// Runs `trace show`.
pub(crate) fn show(args: &TraceShowArgs) -> anyhow::Result<()> {
    if blocks::is_blocks(&args.file)? {
        return stats::stats(args);
    }
    print(&args.file, args.json)
}

/// Runs `trace join`.
pub(crate) fn join(args: &TraceJoinArgs) -> anyhow::Result<()> {
    let joined = Trace::join(read(&args.near)?, read(&args.far)?)
        .map_err(|error| BadInput(error.to_string()))?;
    std::fs::write(&args.out, joined.to_bytes())
        .with_context(|| format!("cannot write {}", args.out.display()))?;
    print(&args.out, args.json)
}

fn read(path: &Path) -> anyhow::Result<Trace> {
    let shown = path.display();
    let bytes = airlane_base::config::read_file(path, airlane_base::config::LONGEST_DATA)
        .with_context(|| BadInput(format!("cannot read {shown}")))?;
    let trace = Trace::read(&bytes).map_err(|error| BadInput(format!("{shown}: {error}")))?;
    Ok(trace)
}

/// Says what is in a trace.
pub(crate) fn print(path: &Path, json: bool) -> anyhow::Result<()> {
    let trace = read(path)?;
    let [inwards, out] = [Way::In, Way::Out].map(|way| Direction::of(&trace, way));
    let missed = trace.near.iter().chain(&trace.far).map(|record| {
        if let airlane_channel::trace::TraceRecord::Missed { records, .. } = record {
            *records
        } else {
            0
        }
    });
    let shown = Shown {
        schema: SCHEMA,
        name: trace.header.name.clone(),
        started_unix_s: trace.header.started_unix_s,
        duration_s: trace.span().as_secs_f64(),
        rate_bps: trace.header.rate_bps,
        overhead_bytes: trace.header.overhead_bytes,
        records_missed: missed.fold(0, u64::saturating_add),
        cut_at_byte: trace.cut_at,
        inwards,
        out,
    };
    if json {
        return output::print(&(serde_json::to_string(&shown)? + "\n"));
    }
    if let Some(cut) = shown.cut_at_byte {
        output::warn(&format!(
            "{} is cut off at byte {cut}; what is before it is good",
            path.display()
        ));
    }
    if shown.records_missed > 0 {
        let missed = shown.records_missed;
        output::warn(&format!(
            "{missed} records are missing: the disk was too slow"
        ));
    }
    let heads = [
        "received",
        "lost",
        "loss",
        "longest row",
        "mean size",
        "mean queue",
        "late, median",
        "late, 99 %",
    ];
    let heads = heads.map(|head| (head, Align::Right));
    let mut table = Table::new([("frames", Align::Left)].into_iter().chain(heads));
    // A joined trace has the names of both ends.
    let name = &trace.header.name;
    let (into, out) = match name.split_once(" and ").filter(|_| !trace.far.is_empty()) {
        Some((near, far)) => (
            format!("to {near} (from {far})"),
            format!("to {far} (from {near})"),
        ),
        None => (format!("to {name}"), format!("from {name}")),
    };
    for (name, direction) in [(into, &shown.inwards), (out, &shown.out)] {
        if let Some(direction) = direction {
            table.row([name].into_iter().chain(direction.row()));
        }
    }
    let mut text = format!(
        "{}: {:.1} s\n\n{}",
        shown.name,
        shown.duration_s,
        table.render()
    );
    if shown.out.is_none() {
        text.push_str(
            "\nwhat became of the frames sent from here the other end knows: record both ends and join \
             them\n",
        );
    }
    output::print(&text)
}

/// Lets links of the scenario replay the traces that `--channel` names.
pub(crate) fn use_channels(document: &mut Document, channels: &[String]) -> anyhow::Result<()> {
    for channel in channels {
        let wrong = |what: String| BadInput(format!("--channel {channel}: {what}"));
        let (link, model) = match channel.split_once('=') {
            // A file may have the sign in its name, a link that comes before a model not.
            Some((link, model)) if !link.contains(':') => (Some(link), model),
            _ => (None, channel.as_str()),
        };
        let file = model
            .strip_prefix("trace:")
            .filter(|file| !file.is_empty())
            .ok_or_else(|| {
                wrong("no trace is named; write trace:FILE, or LINK=trace:FILE".into())
            })?;
        let scenario: Scenario = document.read()?;
        let link = match link {
            Some(link) => link.to_owned(),
            None => only_link_with_errors(&scenario).map_err(wrong)?,
        };
        if !scenario.links.contains_key(&link) {
            let links: Vec<_> = scenario.links.keys().map(String::as_str).collect();
            let links = links.join(", ");
            return Err(wrong(format!("there is no link \"{link}\"; one of: {links}")).into());
        }
        let trace = read(Path::new(file))?;
        if trace.path(Way::Out).is_none() {
            output::warn(&format!(
                "{file} knows the frames to \"{}\" alone: the other direction of {link} replays the \
                 same losses, half the recording later; `airlane trace join` makes a trace of both ends",
                trace.header.name
            ));
        }
        // Not beside the scenario, where its own files are looked for.
        let file = std::path::absolute(file).map_err(|error| wrong(error.to_string()))?;
        let file = toml::Value::String(file.display().to_string());
        let errors = format!(
            "links.{}.errors={{ kind = \"trace\", file = {file} }}",
            key(&link)
        );
        document.set(&errors)?;
    }
    Ok(())
}

fn only_link_with_errors(scenario: &Scenario) -> Result<String, String> {
    let links = || scenario.links.iter();
    let lossy = links().filter(|(_, link)| link.errors != Default::default());
    let lossy: Vec<&String> = lossy.map(|(name, _)| name).collect();
    let all: Vec<&String> = links().map(|(name, _)| name).collect();
    match (lossy.as_slice(), all.as_slice()) {
        ([only], _) | ([], [only]) => Ok((*only).clone()),
        (several, _) => {
            let count = several.len();
            let among = if several.is_empty() { &all } else { several };
            let among: Vec<&str> = among.iter().map(|name| name.as_str()).collect();
            Err(format!(
                "{count} links have errors; write LINK=trace:FILE with one of: {}",
                among.join(", ")
            ))
        }
    }
}
