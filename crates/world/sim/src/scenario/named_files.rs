//! The files that a scenario names: tables of sizes, recorded errors, and sending opportunities.

use std::path::Path;
use std::sync::Arc;

use airlane_base::config::{Problems, key};
use airlane_channel::trace::TraceFileError;
use airlane_channel::{ErrorModelConfig, ErrorsConfig, LinkRate, load_traces};

use super::web::{TABLE_FILES, WebTables};
use super::{AppConfig, LiveFile, MediumConfig, Scenario};
use crate::error::ScenarioError;

impl Scenario {
    /// Reads the tables that flows name, and the live files of nodes, if any. `read` returns the text of a file;
    /// paths are those in the scenario.
    ///
    /// # Errors
    /// If a file cannot be read or is invalid.
    pub fn load_tables(
        &mut self,
        mut read: impl FnMut(&Path) -> Result<String, String>,
    ) -> Result<(), ScenarioError> {
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let AppConfig::Web(web) = &mut flow.app else {
                continue;
            };
            let Some(folder) = &web.distributions else {
                continue;
            };
            let paths = TABLE_FILES.map(|file| Path::new(folder).join(file));
            let names = paths.each_ref().map(|path| path.display().to_string());
            let mut texts = [const { String::new() }; 3];
            for (text, (path, name)) in texts.iter_mut().zip(paths.iter().zip(&names)) {
                *text = read(path).map_err(|reason| ScenarioError::Unreadable {
                    place: format!("flows[{index}].app.distributions"),
                    file: name.clone(),
                    reason,
                })?;
            }
            let texts = texts.each_ref().map(String::as_str);
            let names = names.each_ref().map(String::as_str);
            web.loaded = Some(Arc::new(WebTables::parse(texts, names)?));
        }
        for (name, node) in &mut self.nodes {
            let Some(LiveFile::Named(file)) = &node.live else {
                continue;
            };
            let unreadable = |reason| ScenarioError::Unreadable {
                place: format!("nodes.{}.live", key(name)),
                file: file.clone(),
                reason,
            };
            let text = read(Path::new(file)).map_err(unreadable)?;
            node.loaded = Some(LiveFile::load(&text).map_err(unreadable)?);
        }
        Ok(())
    }

    /// Reads the recorded errors and sending opportunities of links, if any. `read` returns the bytes of a file;
    /// paths are those in the scenario.
    ///
    /// # Errors
    /// If a file cannot be read, is not a trace, or has no data for the direction.
    pub fn load_traces(
        &mut self,
        mut read: impl FnMut(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<(), ScenarioError> {
        let at = |place: String| {
            |error: TraceFileError| ScenarioError::Trace {
                place,
                file: error.file,
                reason: error.reason,
            }
        };
        for (name, medium) in &mut self.media {
            let MediumConfig::Wifi(wifi) = medium else {
                continue;
            };
            for (i, errors) in wifi.errors.iter_mut().enumerate() {
                let loaded = load_traces(&mut errors.model, |file| read(Path::new(file)));
                loaded.map_err(at(format!("media.{}.errors[{i}].model", key(name))))?;
            }
        }
        for (name, link) in &mut self.links {
            let at = |setting: &str| at(format!("links.{}.{setting}", key(name)));
            let errors = load_traces(&mut link.errors, |file| read(Path::new(file)));
            errors.map_err(at("errors"))?;
            for down in [true, false] {
                let rate = link.rate.of_mut(down);
                let rate = rate.load(|file| read(Path::new(file)));
                rate.map_err(at("rate"))?;
            }
        }
        Ok(())
    }

    /// Checks that all named tables and recordings have been read: only a run needs them.
    pub(crate) fn check_tables(&self, problems: &mut Problems) {
        for (place, errors) in self.errors() {
            if !errors.each().iter().all(|model| model.is_loaded()) {
                problems.add(
                    &place,
                    "the recording has not been read",
                    "call Scenario::load_traces before the scenario is run",
                );
            }
        }
        for (name, link) in &self.links {
            if link.rate.each().map(LinkRate::mean).contains(&None) {
                problems.add(
                    &format!("links.{}.rate", key(name)),
                    "the trace has not been read",
                    "call Scenario::load_traces before the scenario is run",
                );
            }
        }
        for (name, node) in &self.nodes {
            if matches!(node.live, Some(LiveFile::Named(_))) && node.loaded.is_none() {
                problems.add(
                    &format!("nodes.{}.live", key(name)),
                    "the live file has not been read",
                    "call Scenario::load_tables before the scenario is run",
                );
            }
        }
        for (i, flow) in self.flows.iter().enumerate() {
            if let AppConfig::Web(web) = &flow.app
                && web.distributions.is_some()
                && web.loaded.is_none()
            {
                problems.add(
                    &format!("flows[{i}].app.distributions"),
                    "the tables have not been read",
                    "call Scenario::load_tables before the scenario is run",
                );
            }
        }
    }

    /// The error models of links, then of stations, with their places.
    fn errors(&self) -> impl Iterator<Item = (String, &ErrorsConfig)> {
        let links = self.links.iter();
        let links = links.map(|(name, link)| (format!("links.{}.errors", key(name)), &link.errors));
        let stations = self.wifis().flat_map(|(name, wifi)| {
            let errors = wifi.errors.iter().enumerate();
            let place = move |i| format!("media.{}.errors[{i}].model", key(name));
            errors.map(move |(i, errors)| (place(i), &errors.model))
        });
        links.chain(stations)
    }

    /// What tables and recordings add to the scenario's hash: nothing for built-in ones.
    pub(super) fn table_digests(&self) -> String {
        let mut text = String::new();
        let models = self.errors().flat_map(|(_, errors)| errors.each());
        for digest in models.filter_map(ErrorModelConfig::digest) {
            text.push_str(&format!("{digest:016x}"));
        }
        let rates = self.links.values().flat_map(|link| link.rate.each());
        for trace in rates.filter_map(LinkRate::trace) {
            text.push_str(&format!("{:016x}", trace.digest()));
        }
        for live in self.nodes.values().filter_map(|node| node.loaded.as_ref()) {
            text.push_str(&format!("{:016x}", live.digest()));
        }
        for flow in &self.flows {
            if let AppConfig::Web(web) = &flow.app
                && let Some(tables) = &web.loaded
            {
                let digests = tables.digests().map(|digest| format!("{digest:016x}"));
                text.push_str(&digests.concat());
            }
        }
        text
    }
}
