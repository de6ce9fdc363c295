//! Shows a trace of a link: frames, losses and delays of each direction.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use airlane_channel::trace::{FrameOutcome, MAGIC, Trace, Way};
use anyhow::Context as _;
use serde::Serialize;

use crate::fault::BadInput;
use crate::output;
use crate::quantity::{Estimate, Unit};
use crate::table::{Align, Table};

/// Refuses to replace a file that is there and no recording, such as a live file.
///
/// # Errors
/// If it is one, or cannot be read.
pub(crate) fn may_replace(path: &Path) -> anyhow::Result<()> {
    if !path.is_file() {
        return Ok(());
    }
    let mut head = Vec::new();
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    file.take(MAGIC.len() as u64).read_to_end(&mut head)?;
    anyhow::ensure!(
        MAGIC.starts_with(&head),
        BadInput(format!(
            "{}: this file is there, is no recording, and is not replaced; write another name, or remove it",
            path.display()
        ))
    );
    Ok(())
}

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;

/// The JSON output for a trace.
#[derive(Serialize)]
struct Shown {
    schema: u32,
    name: String,
    started_unix_s: u64,
    duration_s: f64,
    rate_bps: u64,
    overhead_bytes: u32,
    /// Records that the recordings of both ends missed.
    records_missed: u64,
    /// Where the file is truncated, if it is.
    cut_at_byte: Option<u64>,
    /// Frames to the near end; absent if nothing is known of them.
    #[serde(rename = "in")]
    inwards: Option<Direction>,
    /// Frames from the near end.
    out: Option<Direction>,
}

#[derive(Serialize)]
struct Direction {
    frames_received: u64,
    frames_lost: u64,
    /// Frames whose outcome is unknown.
    frames_unknown: u64,
    loss_ratio: f64,
    /// Longest run of consecutive lost frames.
    longest_loss_frames: u64,
    mean_len_bytes: Option<f64>,
    mean_queue_bytes: Option<f64>,
    /// Delay in excess of that of the fastest frame.
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

/// Reads a trace.
pub(crate) fn read(path: &Path) -> anyhow::Result<Trace> {
    let shown = path.display();
    let bytes = airlane_base::config::read_file(path, airlane_base::config::LONGEST_DATA)
        .with_context(|| BadInput(format!("cannot read {shown}")))?;
    of(&bytes, path)
}

/// The trace that these bytes of a file are.
pub(crate) fn of(bytes: &[u8], path: &Path) -> anyhow::Result<Trace> {
    let trace = Trace::read(bytes);
    Ok(trace.map_err(|error| BadInput(format!("{}: {error}", path.display())))?)
}

/// Prints a summary of a trace.
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
        output::warn(&output::cut_off(path, cut));
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
            "\nonly the other end knows what became of the frames sent from here: record both ends and join them\n",
        );
    }
    output::print(&text)
}
