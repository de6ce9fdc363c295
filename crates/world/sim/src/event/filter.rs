//! Selects events.

use super::{Event, EventKind, Names};
use crate::error::{ScenarioError, known};

/// Selects events by kind, flow and link. An empty set admits all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventFilter {
    kinds: Vec<EventKind>,
    flows: Vec<u32>,
    links: Vec<u16>,
}

impl EventFilter {
    /// Events of the named kinds, flows and links; an empty list of names admits all. A list of flows excludes events
    /// that belong to no flow, and a list of links those on no link.
    ///
    /// # Errors
    /// If a name is unknown; the error lists the names.
    pub fn new<S: AsRef<str>>(
        names: &Names,
        kinds: &[S],
        flows: &[S],
        links: &[S],
    ) -> Result<Self, ScenarioError> {
        let all = EventKind::ALL.map(EventKind::name);
        let kinds = find("event", kinds, &all)?;
        let flows = find("flow", flows, names.flows())?;
        let links = find("link", links, names.links())?;
        Ok(Self {
            kinds: kinds.into_iter().map(|at| EventKind::ALL[at]).collect(),
            flows: flows.into_iter().map(|at| at as u32).collect(),
            links: links.into_iter().map(|at| at as u16).collect(),
        })
    }

    /// Whether the event is wanted.
    pub fn admits(&self, event: &Event) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&event.kind()))
            && (self.flows.is_empty() || event.flow().is_some_and(|f| self.flows.contains(&f)))
            && (self.links.is_empty() || event.way().is_some_and(|w| self.links.contains(&w.link)))
    }
}

fn find<S: AsRef<str>, T: AsRef<str>>(
    what: &'static str,
    wanted: &[S],
    all: &[T],
) -> Result<Vec<usize>, ScenarioError> {
    let places = wanted.iter().map(|name| known(what, name.as_ref(), all));
    places.collect()
}
