//! `nodes.NAME.live` and `links.NAME.node`: live files, which may lack what the scenario implies.

use std::sync::Arc;

use airlane_base::random::fnv1a;
use airlane_node::config::LiveConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The default port of a live file.
pub(super) const USUAL_PORT: u16 = 7007;

/// The value for ends that run a live node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkNode {
    /// The software of `airlane up`.
    Live,
}

/// A live file, by name or in place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "live is the name of a live file, or its tables: { link = { rate = \"18 Mbit/s\" } }"
)]
pub enum LiveFile {
    /// A file, relative to the scenario.
    Named(String),
    /// Its tables.
    Here(toml::Table),
}

airlane_base::schema_of!(LiveFile, "LiveFile", {
    "anyOf": [{ "type": "string" }, { "type": "object" }],
    "examples": ["left.toml", { "link": { "rate": "18 Mbit/s" } }],
});

/// A live file that has been read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loaded {
    pub(super) config: Box<LiveConfig>,
    digest: u64,
}

impl LiveFile {
    /// Reads a live file.
    pub(super) fn load(text: &str) -> Result<Arc<Loaded>, String> {
        let table: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
        Ok(Arc::new(Loaded {
            config: Box::new(parse(table)?),
            digest: fnv1a(text.as_bytes()),
        }))
    }
}

impl Loaded {
    pub(super) const fn digest(&self) -> u64 {
        self.digest
    }
}

/// Reads the tables of a live file, which may lack what the scenario implies.
pub(super) fn parse(mut file: toml::Table) -> Result<LiveConfig, String> {
    fn within<'a>(table: &'a mut toml::Table, name: &str) -> Option<&'a mut toml::Table> {
        let empty = || toml::Value::Table(toml::Table::new());
        table.entry(name).or_insert_with(empty).as_table_mut()
    }
    let text = |text: &str| toml::Value::String(text.to_owned());
    file.entry("schema").or_insert(toml::Value::Integer(1));
    within(&mut file, "tun");
    if let Some(link) = within(&mut file, "link") {
        if let Some(underlay) = within(link, "underlay") {
            underlay.entry("kind").or_insert_with(|| text("udp"));
            let listen = format!("0.0.0.0:{USUAL_PORT}");
            underlay.entry("listen").or_insert_with(|| text(&listen));
        }
        let keys = || {
            toml::Value::Table(
                [("private-key".to_owned(), text("drawn"))]
                    .into_iter()
                    .collect(),
            )
        };
        link.entry("security").or_insert_with(keys);
    }
    if let Some(peers) = file.get_mut("peers").and_then(toml::Value::as_array_mut) {
        for peer in peers.iter_mut().filter_map(toml::Value::as_table_mut) {
            let none = || toml::Value::Array(Vec::new());
            peer.entry("prefixes").or_insert_with(none);
        }
    }
    LiveConfig::deserialize(file).map_err(|error| error.message().to_owned())
}
