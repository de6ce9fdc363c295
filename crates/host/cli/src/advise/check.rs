//! `airlane check`: whether goals are met on a recorded link, or on a running one, which is recorded first.

#[cfg(feature = "live")]
use std::path::Path;
use std::path::PathBuf;

use airlane_advise::{GoalState, Measure, Outcome};
use airlane_channel::trace::Trace;
#[cfg(feature = "live")]
use airlane_live::control;
use anyhow::bail;
use serde::Serialize;

use super::asked::{Asked, read, shown};
use super::words::show;
use crate::args::CheckArgs;
#[cfg(feature = "live")]
use crate::args::RecordArgs;
#[cfg(feature = "live")]
use crate::fault::BadInput;
use crate::output;
use crate::progress::ProgressLine;
use crate::recorded::remarks;
use crate::table::{Align, Table as Lines};

/// Version of the JSON that is printed.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Checked<'a> {
    schema: u32,
    /// The goals, whose states the outcome has as `goals`.
    wanted: Vec<String>,
    remarks: Vec<String>,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

/// Runs `check`.
pub(crate) fn check(args: &CheckArgs) -> anyhow::Result<()> {
    let mut question = args.question.clone();
    let traces = match recorded(args)? {
        None => read(&args.traces)?,
        Some((trace, file)) => {
            // What is judged is what the link has now.
            question.file = question.file.or(file);
            vec![trace]
        }
    };
    let asked = Asked::of(traces, &args.traces, &question, args.want.clone())?;
    let progress = ProgressLine::new("simulated", 1);
    let outcome = airlane_advise::check(&asked.question, |done, all| progress.at(done, all));
    drop(progress);
    let outcome = outcome.map_err(shown)?;
    let goals = &asked.question.goals.0;
    let remarks = remarks(&asked.fit, &asked.question.link);
    if args.question.json {
        let checked = Checked {
            schema: SCHEMA,
            wanted: goals.iter().map(ToString::to_string).collect(),
            remarks,
            outcome: &outcome,
        };
        output::print(&format!("{}\n", serde_json::to_string_pretty(&checked)?))?;
    } else {
        let heads = [
            ("goal", Align::Left),
            ("simulated", Align::Right),
            ("", Align::Left),
        ];
        let mut lines = Lines::new(heads);
        let measures = Measure::all(&asked.question.apps);
        for (goal, state) in goals.iter().zip(&outcome.goals) {
            let at = goal.measure(&asked.question.apps);
            let at = at.and_then(|measure| measures.iter().position(|other| *other == measure));
            let value = at.map_or("-".to_owned(), |at| {
                show(&measures[at], &outcome.values[at])
            });
            lines.row([goal.to_string(), value, word(*state).to_owned()]);
        }
        let remarks: String = remarks
            .iter()
            .map(|remark| format!("- {remark}\n"))
            .collect();
        output::print(&format!("{}{remarks}", lines.render()))?;
    }
    let fares = |state: GoalState| {
        let pairs = goals.iter().zip(&outcome.goals);
        let pairs = pairs.filter(move |(_, other)| **other == state);
        let all: Vec<String> = pairs.map(|(goal, _)| goal.to_string()).collect();
        (!all.is_empty()).then(|| all.join(", "))
    };
    match (fares(GoalState::Missed), fares(GoalState::Unsure)) {
        (Some(missed), _) => bail!("missed: {missed}"),
        (None, Some(unsure)) => {
            bail!("too near to tell, which is not met: {unsure}; --runs narrows the intervals")
        }
        (None, None) => Ok(()),
    }
}

const fn word(state: GoalState) -> &'static str {
    match state {
        GoalState::Met => "met",
        GoalState::Unsure => "too near to tell",
        GoalState::Missed => "missed",
    }
}

/// How long a running link is recorded.
#[cfg(feature = "live")]
const RECORDED: airlane_base::Duration = airlane_base::Duration::from_secs(60);

/// The recording of a running link, and its file where that names the link; none if recordings are given.
#[cfg(feature = "live")]
fn recorded(args: &CheckArgs) -> anyhow::Result<Option<(Trace, Option<PathBuf>)>> {
    let mut links = args.traces.iter().filter_map(|path| running(path));
    let Some((link, file)) = links.next() else {
        if args.record_for.is_some() || args.peer.is_some() {
            let wrong = "--record-for and --peer are for a running link, and these are recordings";
            return Err(BadInput(wrong.to_owned()).into());
        }
        let is_name =
            |path: &&PathBuf| path.components().count() == 1 && path.extension().is_none();
        let mut absent = args.traces.iter().filter(|path| !path.exists());
        if let Some(name) = absent.find(is_name) {
            let (name, running) = (name.display(), control::running());
            let wrong = format!("\"{name}\" is neither a recording nor a running link: {running}");
            return Err(BadInput(wrong).into());
        }
        return Ok(None);
    };
    if args.traces.len() > 1 {
        let wrong = "a running link is recorded by itself: name it alone, or give the recordings of both ends";
        return Err(BadInput(wrong.to_owned()).into());
    }
    let socket = crate::live::socket(Some(link))?;
    let time = args.record_for.unwrap_or(RECORDED);
    let bytes = crate::record::in_memory(&socket, args.peer.as_deref(), time, RecordArgs::MOST)?;
    let trace = crate::recording::of(&bytes, &socket)?;
    Ok(Some((trace, file.then(|| PathBuf::from(link)))))
}

/// The running link that is meant, and whether it is named by its file.
#[cfg(feature = "live")]
fn running(path: &Path) -> Option<(&str, bool)> {
    use std::os::unix::fs::FileTypeExt as _;

    let text = path.to_str()?;
    if path.extension().is_some_and(|end| end == "toml") {
        return Some((text, true));
    }
    let is_link = match path.metadata() {
        Ok(found) => found.file_type().is_socket(),
        Err(_) => !text.contains('/') && airlane_live::config::default_socket(text).exists(),
    };
    is_link.then_some((text, false))
}

#[cfg(not(feature = "live"))]
const fn recorded(_: &CheckArgs) -> anyhow::Result<Option<(Trace, Option<PathBuf>)>> {
    Ok(None)
}
