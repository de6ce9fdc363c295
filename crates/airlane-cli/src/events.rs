//! `airlane sim run --events OUT.jsonl`: what happens in a run, a line each.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use airlane_base::Instant;
use airlane_sim::event::{Event, EventFilter, Names, Record, Watcher};
use airlane_sim::{Prepared, RunResult, Scenario, ScenarioError};
use anyhow::Context as _;

use crate::input::BadInput;

/// Which events go into which file.
pub(crate) struct Wanted<'a> {
    pub(crate) file: &'a Path,
    pub(crate) kinds: &'a [String],
    pub(crate) flows: &'a [String],
    pub(crate) links: &'a [String],
}

/// Runs repetition 0 and writes its events as they come.
pub(crate) fn run(scenario: &Scenario, seed: u64, wanted: &Wanted) -> anyhow::Result<RunResult> {
    let prepared = Prepared::new(scenario)?;
    let names = prepared.names();
    let filter = EventFilter::new(&names, wanted.kinds, wanted.flows, wanted.links);
    let filter = filter.map_err(|error: ScenarioError| BadInput(error.to_string()))?;
    let path = wanted.file.display();
    let file = File::create(wanted.file)
        .with_context(|| BadInput(format!("--events: cannot write {path}")))?;
    let mut lines = Lines {
        names: &names,
        filter,
        out: BufWriter::new(file),
        failed: None,
    };
    let result = prepared.run_watched(seed, 0, &mut lines);
    let written = lines.failed.map_or_else(|| lines.out.flush(), Err);
    written.with_context(|| format!("cannot write {path}"))?;
    Ok(result)
}

/// Events as lines of JSON.
struct Lines<'a, W: Write> {
    names: &'a Names,
    filter: EventFilter,
    out: W,
    failed: Option<io::Error>,
}

impl<W: Write> Watcher for Lines<'_, W> {
    fn on_event(&mut self, now: Instant, event: &Event) {
        if self.failed.is_some() || !self.filter.admits(event) {
            return;
        }
        let record = Record::new(self.names, now, event);
        let line = serde_json::to_writer(&mut self.out, &record).map_err(io::Error::from);
        self.failed = line.and_then(|()| self.out.write_all(b"\n")).err();
    }

    fn is_over(&self) -> bool {
        self.failed.is_some()
    }
}
