//! `airlane trace show`, `airlane trace join`, and `airlane sim run --channel`.

pub(crate) mod blocks;
pub(crate) mod fit;
pub(crate) mod link;
pub(crate) mod retrace;
pub(crate) mod stats;

use std::path::Path;

use airlane_base::config::{Document, key};
use airlane_channel::trace::{Trace, Way};
use airlane_sim::Scenario;
use anyhow::Context as _;

use crate::args::{TraceFitArgs, TraceJoinArgs, TraceShowArgs};
use crate::fault::BadInput;
use crate::output;
use crate::recording::{may_replace, print, read};

/// Runs `trace show`.
pub(crate) fn show(args: &TraceShowArgs) -> anyhow::Result<()> {
    if blocks::is_blocks(&args.file)? {
        return stats::stats(args);
    }
    print(&args.file, args.json)
}

/// Runs `trace fit`.
pub(crate) fn fit(args: &TraceFitArgs) -> anyhow::Result<()> {
    match blocks::is_blocks(&args.file)? {
        true => fit::run(args),
        false => link::fit(args),
    }
}

/// Runs `trace join`.
pub(crate) fn join(args: &TraceJoinArgs) -> anyhow::Result<()> {
    may_replace(&args.out)?;
    let joined = Trace::join(read(&args.near)?, read(&args.far)?)
        .map_err(|error| BadInput(error.to_string()))?;
    std::fs::write(&args.out, joined.to_bytes())
        .with_context(|| format!("cannot write {}", args.out.display()))?;
    print(&args.out, args.json)
}

/// Lets links of the scenario replay the traces that `--channel` names.
pub(crate) fn use_channels(document: &mut Document, channels: &[String]) -> anyhow::Result<()> {
    for channel in channels {
        let wrong = |what: String| BadInput(format!("--channel {channel}: {what}"));
        let (link, model) = match channel.split_once('=') {
            // A file name may contain the sign; a link's name in front of a model may not.
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
                "{file} has only the frames to \"{}\": the other direction of {link} replays the \
                 same losses, half the recording later; `airlane trace join` makes a trace of both ends",
                trace.header.name
            ));
        }
        // The path is relative to the working directory, while the scenario's own files are
        // relative to the scenario.
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
