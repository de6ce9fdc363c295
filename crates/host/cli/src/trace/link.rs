//! The link of a recording, as `airlane trace fit` and `airlane advise` print it.

use std::fmt::Write as _;
use std::path::Path;

use airlane_advise::Link;
use airlane_base::Duration;
use airlane_channel::trace::Trace;
use airlane_fit::{Capacity, LinkFit, WayFit};
use serde::Serialize;
use toml::Table;

use crate::args::TraceFitArgs;
use crate::fault::BadInput;
use crate::output;
use crate::recorded::{describe, remarks};
use crate::recording::read;

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Fitted {
    schema: u32,
    name: String,
    duration_s: f64,
    round_trip_s: Option<f64>,
    out: Option<Way>,
    #[serde(rename = "in")]
    into: Option<Way>,
    /// The table of a scenario's link, without `ends`.
    link: Table,
    remarks: Vec<String>,
}

#[derive(Serialize)]
struct Way {
    frames: u64,
    frames_lost: u64,
    frames_lost_at_full_queue: u64,
    loss_ratio: f64,
    loss_ratio_ci95_half_width: f64,
    rate_mean_bps: u64,
    /// Whether a queue was observed, so that the rate is the capacity and not a lower bound.
    rate_seen: bool,
    queue_bytes: Option<u64>,
}

impl Way {
    fn of(fit: &WayFit) -> Self {
        Self {
            frames: fit.frames,
            frames_lost: fit.lost,
            frames_lost_at_full_queue: fit.lost_at_full_queue,
            loss_ratio: fit.loss.mean(),
            loss_ratio_ci95_half_width: 2.0 * fit.loss_error,
            rate_mean_bps: fit.capacity.mean().as_bps(),
            rate_seen: !matches!(fit.capacity, Capacity::AtLeast(_)),
            queue_bytes: fit.queue.map(|queue| queue.as_bytes()),
        }
    }
}

/// The recording of a link: one trace, or those of its two ends, joined.
pub(crate) fn joined(traces: Vec<Trace>) -> anyhow::Result<Trace> {
    let mut traces = traces.into_iter();
    match (traces.next(), traces.next(), traces.next()) {
        (Some(near), Some(far), None) => {
            Ok(Trace::join(near, far).map_err(|error| BadInput(error.to_string()))?)
        }
        (Some(one), None, None) => Ok(one),
        _ => Err(BadInput("one recording, or one of each end".to_owned()).into()),
    }
}

/// Fits a link to a recording.
pub(crate) fn fitted(trace: &Trace, shown: &Path) -> anyhow::Result<LinkFit> {
    if let Some(cut) = trace.cut_at {
        output::warn(&output::cut_off(shown, cut));
    }
    let fit = LinkFit::of(trace);
    Ok(fit.map_err(|error| BadInput(format!("{}: {error}", shown.display())))?)
}

/// Runs `trace fit` of a recording.
pub(crate) fn fit(args: &TraceFitArgs) -> anyhow::Result<()> {
    if !args.models.is_empty() {
        let wrong = "--models: these are models of erased blocks; of a recording `airlane trace convert --from recording` makes blocks";
        return Err(BadInput(wrong.to_owned()).into());
    }
    let trace = read(&args.file)?;
    let fit = fitted(&trace, &args.file)?;
    let link = Link::of(&fit, None);
    if args.json {
        let fitted = Fitted {
            schema: SCHEMA,
            name: trace.header.name.clone(),
            duration_s: fit.span.as_secs_f64(),
            round_trip_s: fit.round_trip.map(Duration::as_secs_f64),
            out: fit.out.as_ref().map(Way::of),
            into: fit.into.as_ref().map(Way::of),
            link: link.table(),
            remarks: remarks(&fit, &link),
        };
        return output::print(&format!("{}\n", serde_json::to_string_pretty(&fitted)?));
    }
    let mut text = describe(&trace.header.name, &fit, &link);
    text.push_str("\nA scenario replays it so:\n  [links.NAME]\n");
    for (key, value) in link.table() {
        let _ = writeln!(text, "  {key} = {value}");
    }
    output::print(&text)
}
