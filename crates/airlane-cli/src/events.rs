//! `airlane sim run --events OUT.jsonl`: what happens in a run, a line each.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use airlane_base::Instant;
use airlane_sim::ScenarioError;
use airlane_sim::event::{Event, EventFilter, EventRecord, Names, Watcher};
use anyhow::Context as _;

use crate::fault::BadInput;

/// Which events go into which file.
pub(crate) struct Wanted<'a> {
    pub(crate) file: &'a Path,
    pub(crate) kinds: &'a [String],
    pub(crate) flows: &'a [String],
    pub(crate) links: &'a [String],
}

/// Events as lines of JSON, as they come.
pub(crate) struct Lines<'a> {
    names: &'a Names,
    filter: EventFilter,
    path: &'a Path,
    out: BufWriter<File>,
    failed: Option<io::Error>,
}

impl<'a> Lines<'a> {
    /// Opens the file, once it is known that there are such events.
    pub(crate) fn open(names: &'a Names, wanted: &Wanted<'a>) -> anyhow::Result<Self> {
        let filter = EventFilter::new(names, wanted.kinds, wanted.flows, wanted.links);
        let filter = filter.map_err(|error: ScenarioError| BadInput(error.to_string()))?;
        let path = wanted.file;
        let file = File::create(path)
            .with_context(|| BadInput(format!("--events: cannot write {}", path.display())))?;
        Ok(Self {
            names,
            filter,
            path,
            out: BufWriter::new(file),
            failed: None,
        })
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let written = self.failed.take().map_or_else(|| self.out.flush(), Err);
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Watcher for Lines<'_> {
    fn on_event(&mut self, now: Instant, event: &Event) {
        if self.failed.is_some() || !self.filter.admits(event) {
            return;
        }
        let record = EventRecord::new(self.names, now, event);
        let line = serde_json::to_writer(&mut self.out, &record).map_err(io::Error::from);
        self.failed = line.and_then(|()| self.out.write_all(b"\n")).err();
    }

    fn is_over(&self) -> bool {
        self.failed.is_some()
    }
}
