//! `airlane sim run --events OUT`: writes the events of a run as lines of JSON or rows of a Parquet
//! table.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use airlane_base::Instant;
use airlane_sim::ScenarioError;
use airlane_sim::event::{Event, EventFilter, EventRecord, Names, Watcher};
use airlane_study::EventTable;
use anyhow::Context as _;

use crate::fault::BadInput;

/// Which events go to which file.
pub(crate) struct Wanted<'a> {
    pub(crate) file: &'a Path,
    pub(crate) kinds: &'a [String],
    pub(crate) flows: &'a [String],
    pub(crate) links: &'a [String],
}

/// The format of the file, chosen by its extension.
enum Form {
    Json(BufWriter<File>),
    Parquet(Box<EventTable<BufWriter<File>>>),
}

/// Writes events as they happen.
pub(crate) struct Written<'a> {
    names: &'a Names,
    filter: EventFilter,
    path: &'a Path,
    out: Form,
    failed: Option<io::Error>,
}

impl<'a> Written<'a> {
    /// Opens the file, after checking that such events exist.
    pub(crate) fn open(names: &'a Names, wanted: &Wanted<'a>) -> anyhow::Result<Self> {
        let filter = EventFilter::new(names, wanted.kinds, wanted.flows, wanted.links);
        let filter = filter.map_err(|error: ScenarioError| BadInput(error.to_string()))?;
        let path = wanted.file;
        let file = File::create(path)
            .with_context(|| BadInput(format!("--events: cannot write {}", path.display())))?;
        let out = BufWriter::new(file);
        let out = match path.extension().is_some_and(|e| e == "parquet") {
            true => Form::Parquet(Box::new(EventTable::new(out)?)),
            false => Form::Json(out),
        };
        Ok(Self {
            names,
            filter,
            path,
            out,
            failed: None,
        })
    }

    /// Writes the rest.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        let written = match (self.failed.take(), self.out) {
            (Some(error), _) => Err(error),
            (None, Form::Json(mut out)) => out.flush(),
            (None, Form::Parquet(table)) => table.finish().map_err(io::Error::other),
        };
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Watcher for Written<'_> {
    fn on_event(&mut self, now: Instant, event: &Event) {
        if self.failed.is_some() || !self.filter.admits(event) {
            return;
        }
        let record = EventRecord::new(self.names, now, event);
        let written = match &mut self.out {
            Form::Json(out) => serde_json::to_writer(&mut *out, &record)
                .map_err(io::Error::from)
                .and_then(|()| out.write_all(b"\n")),
            Form::Parquet(table) => table.push(&record).map_err(io::Error::other),
        };
        self.failed = written.err();
    }

    fn is_over(&self) -> bool {
        self.failed.is_some()
    }
}
