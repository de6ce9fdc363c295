//! Settings of `kind = "web"`, and its tables of sizes.

use std::sync::{Arc, LazyLock};

use airlane_base::config::Problems;
use airlane_base::{Duration, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::empirical::{Empirical, TableError};

/// Web transactions by Mah's empirical model (docs/spec/multi-service.md, 5.2): a client at the second end fetches
/// pages with embedded objects from a server at the first, one page at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WebConfig {
    /// This many connections may carry objects at the same time. Source: Xylomenos 1999, figure 3.1.
    #[serde(default = "default_parallel")]
    #[schemars(extend("x-unit" = "connections"))]
    pub parallel: u32,
    /// Whether connections stay open, within a transaction and from one to the next, and keep their TCP state. If
    /// not, each transfer has fresh state.
    #[serde(default)]
    pub persistent: bool,
    /// One request asks for all objects of a page, and one reply has the sum of their lengths, as in the persistent
    /// mode of ns-2's HTTP module.
    #[serde(default, skip_serializing_if = "is_false")]
    pub bundle: bool,
    /// How a request is divided into packets.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub requests: RequestPackets,
    /// What counts for its throughput.
    #[serde(default, skip_serializing_if = "is_usual")]
    pub throughput: WebThroughput,
    /// Time from the end of a transaction to the start of the next.
    #[serde(default)]
    pub think: Duration,
    /// What the table of files per page counts.
    #[serde(default)]
    pub files: FilesPerPage,
    /// When a transfer is complete.
    #[serde(default)]
    pub completion: Completion,
    /// The folder of the tables to draw from: `HttpRequestLength.cdf`, `HttpReplyLength.cdf` and
    /// `HttpConnections.cdf`, in ns-2's format. Source: Mah 1997. Left out: the built-in ones of Mah 1997.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distributions: Option<String>,
    /// The number of transactions. Left out: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-unit" = "transactions"))]
    pub count: Option<u64>,
    /// User bytes of a packet. Left out: the smallest frame on the path, or `1500 B`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<Size>,
    /// The tables of `distributions`, after they have been read.
    #[serde(skip)]
    pub(crate) loaded: Option<Arc<WebTables>>,
}

/// As in the study; the maximum of ns-2's module is 4.
fn default_parallel() -> u32 {
    4
}

/// More connections than any browser has.
const MAX_PARALLEL: u32 = 64;

/// What the table of files per page counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilesPerPage {
    /// The objects in addition to the page, as ns-2's module reads it.
    #[default]
    Additional,
    /// All files, the page itself included, as measured.
    Total,
}

/// How a request is divided into packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RequestPackets {
    /// Into full packets, as a reply is, and a shorter last one.
    #[default]
    Segments,
    /// A single packet, as ns-2's module sends it. If the frames on the path are too small, the packet has the
    /// largest size that they can carry.
    One,
}

/// What counts for the throughput of web pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WebThroughput {
    /// All bytes that arrived, over the time to the end of the last transaction, or to the stop if one is in
    /// progress.
    #[default]
    Delivered,
    /// Completed transactions, over their time (5.2). A run that completes none has no throughput, and is left out of
    /// means.
    Completed,
    /// Likewise, but a run that completes none has a throughput of zero.
    CompletedOrZero,
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_usual<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// When a transfer is complete, so that the other side may act.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Completion {
    /// When its sender has received the last acknowledgment, as with the one-way agents of ns-2.
    #[default]
    Acknowledged,
    /// When its receiver has the last byte.
    Delivered,
}

/// File names of the tables, as in ns-2: bytes of a request, bytes of a reply, files of a page.
pub const TABLE_FILES: [&str; 3] = [
    "HttpRequestLength.cdf",
    "HttpReplyLength.cdf",
    "HttpConnections.cdf",
];

/// The distributions of one web application.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WebTables {
    pub(crate) request: Empirical,
    pub(crate) reply: Empirical,
    pub(crate) files: Empirical,
}

/// The largest size that a table may contain: no web page has 1 GB.
const MAX_DRAW: f64 = 1e9;

impl WebTables {
    pub(super) fn parse(texts: [&str; 3], names: [&str; 3]) -> Result<Self, TableError> {
        let table = |i: usize| {
            let table = Empirical::parse(texts[i], names[i])?;
            let largest = table.quantile(1.0);
            if largest > MAX_DRAW {
                return Err(TableError {
                    file: names[i].to_owned(),
                    line: texts[i].lines().count(),
                    problem: format!("a value of {largest} cannot be simulated"),
                    help: "at most 1000000000",
                });
            }
            Ok(table)
        };
        Ok(Self {
            request: table(0)?,
            reply: table(1)?,
            files: table(2)?,
        })
    }

    pub(super) fn digests(&self) -> [u64; 3] {
        [&self.request, &self.reply, &self.files].map(Empirical::digest)
    }
}

/// Mah's tables, compacted: `data/http-mah/README.md`.
static BUILT_IN: LazyLock<Arc<WebTables>> = LazyLock::new(|| {
    let texts = [
        include_str!("../../data/http-mah/HttpRequestLength.cdf"),
        include_str!("../../data/http-mah/HttpReplyLength.cdf"),
        include_str!("../../data/http-mah/HttpConnections.cdf"),
    ];
    let tables = WebTables::parse(texts, TABLE_FILES);
    Arc::new(tables.expect("the built-in tables are distributions: tested"))
});

impl WebConfig {
    /// The tables of sizes.
    pub(crate) fn tables(&self) -> Arc<WebTables> {
        self.loaded.clone().unwrap_or_else(|| BUILT_IN.clone())
    }

    pub(super) fn check(&self, problems: &mut Problems) {
        if !(1..=MAX_PARALLEL).contains(&self.parallel) {
            problems.add(
                "app.parallel",
                format!("{} parallel connections cannot be", self.parallel),
                format!("1 to {MAX_PARALLEL}"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean, population standard deviation, and the quantiles 0.1, 0.25, 0.5, 0.75, 0.9, 0.95 and
    /// 0.99 of the full tables (4100 requests, 4100 replies, 1444 pages).
    const FULL: [(f64, f64, [f64; 7]); 3] = [
        (
            337.345,
            293.491,
            [148.0, 204.0, 231.0, 282.0, 1_057.0, 1_079.0, 1_134.0],
        ),
        (
            7_230.97,
            44_065.5,
            [110.0, 560.0, 2_112.0, 4_797.0, 12_581.0, 23_332.0, 67_379.0],
        ),
        (2.83795, 4.11252, [1.0, 1.0, 1.0, 3.0, 6.0, 9.0, 19.0]),
    ];

    #[test]
    fn compact_tables_keep_moments_and_quantiles() {
        let tables = &*BUILT_IN;
        let compact = [&tables.request, &tables.reply, &tables.files];
        for ((mean, sd, quantiles), table) in FULL.iter().zip(compact) {
            let moment = |power: i32| -> f64 {
                let mut below = 0.0;
                let weighted = table.rows().iter().map(|(value, cumulative)| {
                    let weight = cumulative - std::mem::replace(&mut below, *cumulative);
                    weight * if power == 1 { *value } else { value * value }
                });
                weighted.sum()
            };
            let near = |what: &str, found: f64, full: f64| {
                assert!(
                    (found / full - 1.0).abs() < 0.01,
                    "{what}: {found}, not {full}"
                );
            };
            near("mean", moment(1), *mean);
            near("sd", (moment(2) - moment(1) * moment(1)).sqrt(), *sd);
            for (u, full) in [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99]
                .iter()
                .zip(quantiles)
            {
                // Asked just below u: the quantile is the smallest value whose probability reaches u.
                near(&format!("quantile {u}"), table.quantile(u - 1e-9), *full);
            }
        }
        // The tables contain sizes of zero.
        assert_eq!(tables.request.quantile(0.001), 0.0);
        assert_eq!(tables.reply.quantile(0.001), 0.0);
        assert_eq!(tables.reply.rows().len(), 354);
    }
}
