//! A question to the adviser, from the command line.

use std::path::{Path, PathBuf};

use airlane_advise::{AdviceError, Goals, Link, Pace, Question, WhatIfs};
use airlane_base::config::read_text;
use airlane_channel::trace::{Trace, TraceRecord};
use airlane_fit::LinkFit;
use anyhow::Context as _;
use toml::Table;

use crate::args::QuestionArgs;
use crate::fault::BadInput;
use crate::output;
use crate::recording;
use crate::trace::link::{fitted, joined};

/// A question to the adviser, with the inputs it was made from. The recording itself is not kept: it may be larger than
/// all else.
pub(super) struct Asked {
    /// The names of the recorded ends.
    pub(super) name: String,
    pub(super) fit: LinkFit,
    /// Mean rate while the recorded link was in use.
    pub(super) busy_bps: f64,
    pub(super) question: Question,
    /// The text of the user's file.
    pub(super) text: Option<String>,
}

/// Reads recordings.
pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Trace>> {
    paths.iter().map(|path| recording::read(path)).collect()
}

impl Asked {
    /// Asks about the recording of one end or those of both, which were read from `paths`.
    pub(super) fn of(
        traces: Vec<Trace>,
        paths: &[PathBuf],
        args: &QuestionArgs,
        goals: Goals,
    ) -> anyhow::Result<Self> {
        let trace = joined(traces)?;
        let shown = paths.first().map_or(Path::new(""), PathBuf::as_path);
        let fit = fitted(&trace, shown)?;
        if args.round_trip.is_some() && fit.round_trip.is_some() {
            output::warn(
                "--round-trip overrides the round trip that the recording of both ends shows",
            );
        }
        let file = match &args.file {
            None => None,
            Some(path) => {
                let text = read_text(path)
                    .with_context(|| BadInput(format!("cannot read {}", path.display())))?;
                let table = text.parse::<Table>().map_err(|error| {
                    BadInput(format!("{}: {}", path.display(), error.message()))
                })?;
                Some((text, table))
            }
        };
        let (text, present) = file.map_or((None, None), |(text, table)| (Some(text), Some(table)));
        let question = Question {
            link: Link::of(&fit, args.round_trip),
            apps: args.apps.clone(),
            present,
            goals,
            what_ifs: WhatIfs::default(),
            search: 0,
            pace: Pace {
                length: args.length,
                runs: args.runs,
                seed: args.seed,
                threads: args.threads,
            },
        };
        let least = airlane_base::Duration::from_secs(5);
        if args.length < least {
            let wrong = format!("--for {}: a run takes at least {least}", args.length);
            return Err(BadInput(wrong).into());
        }
        Ok(Self {
            busy_bps: busy_bps(&trace),
            name: trace.header.name,
            fit,
            question,
            text,
        })
    }
}

pub(super) fn shown(error: AdviceError) -> anyhow::Error {
    match error {
        AdviceError::Scenario(error) => {
            BadInput(format!("this cannot be simulated: {error}")).into()
        }
        error => BadInput(error.to_string()).into(),
    }
}

/// The mean receive rate in bit/s over the seconds in which the link was in use: those with at
/// least half the bytes of the busiest second. Outgoing frames are used if their receiver was
/// recorded, otherwise incoming ones.
fn busy_bps(trace: &Trace) -> f64 {
    let received = [&trace.far, &trace.near]
        .into_iter()
        .find(|view| !view.is_empty());
    let mut seconds = std::collections::BTreeMap::<u64, u64>::new();
    for record in received.into_iter().flatten() {
        if let TraceRecord::Received { at, len, .. } = *record {
            let bytes = u64::from(len) + u64::from(trace.header.overhead_bytes);
            *seconds.entry(at.as_nanos() / 1_000_000_000).or_default() += bytes;
        }
    }
    let most = seconds.values().max().copied().unwrap_or(0);
    let busy = seconds.values().filter(|bytes| **bytes * 2 >= most);
    let (sum, count) = busy.fold((0, 0_u64), |(sum, count), bytes| (sum + bytes, count + 1));
    sum as f64 * 8.0 / count.max(1) as f64
}
