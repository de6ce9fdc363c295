//! Aggregation: small packets that share frames (docs/lab/choices.md).

use airlane_base::{Duration, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problem::Wrong;
use super::scheme::SchemeConfig;
use crate::pack::contents::LONGEST_TOGETHER;
use crate::wire::HeaderProfile;

/// A packet that waits longer for others arrives too late for its application.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Aggregation of small packets, such as `{ largest = "256 B", wait = "0 s" }`, or `"off"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "aggregate is \"off\" or a table such as { largest = \"256 B\", wait = \"0 s\" }"
)]
pub enum AggregateConfig {
    /// Packets share frames.
    Options(AggregateOptions),
    /// `"off"`: each packet has its own frame.
    Word(Off),
}

/// Which packets share frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AggregateOptions {
    /// Longer packets are sent in frames of their own.
    #[serde(default = "usual_largest")]
    pub largest: Size,
    /// How long a packet waits for others while the link is free.
    #[serde(default)]
    pub wait: Duration,
}

/// The word `"off"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Off {
    /// Packets never share frames.
    Off,
}

/// Covers acknowledgments, keystrokes, names and speech; the headers of longer packets are a small part of
/// them.
const fn usual_largest() -> Size {
    Size::from_bytes(256)
}

impl Default for AggregateConfig {
    fn default() -> Self {
        Self::Options(AggregateOptions {
            largest: usual_largest(),
            wait: Duration::ZERO,
        })
    }
}

impl AggregateConfig {
    /// The options, unless aggregation is off.
    pub const fn options(&self) -> Option<&AggregateOptions> {
        match self {
            Self::Options(options) => Some(options),
            Self::Word(Off::Off) => None,
        }
    }

    pub(super) fn check(
        &self,
        header: HeaderProfile,
        scheme: &SchemeConfig,
        budget: Option<Duration>,
        at: &str,
        wrong: Wrong<'_>,
    ) {
        let Some(options) = self.options() else {
            return;
        };
        if !header.is_live() {
            wrong(
                at.to_owned(),
                "the works send each packet in a frame of its own".to_owned(),
                "leave it out, or header = \"live\"",
            );
        } else if scheme.looks_into_packets() {
            let kind = scheme.kind();
            wrong(
                at.to_owned(),
                format!("{kind} looks into packets, and several in a frame it would not see"),
                "leave it out, or write aggregate = \"off\"",
            );
        }
        let largest = options.largest.as_bytes();
        if !(1..=LONGEST_TOGETHER as u64).contains(&largest) {
            wrong(
                format!("{at}.largest"),
                format!("packets of {largest} B cannot share frames"),
                "a length up to 32767 B, such as \"256 B\"",
            );
        }
        if options.wait > LONGEST_WAIT || budget.is_some_and(|budget| options.wait >= budget) {
            wrong(
                format!("{at}.wait"),
                format!(
                    "whoever sends these packets should not wait for {}",
                    options.wait
                ),
                "at most 100 ms and less than the budget; \"0 s\" waits for nothing",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ServiceConfig, check};
    use super::*;

    fn paths(header: HeaderProfile, scheme: &str, more: &str) -> Vec<String> {
        let service: ServiceConfig = toml::from_str(&format!(
            "number = 1\nname = \"one\"\nrate = 1.0\nscheme = {{ {scheme} }}\n{more}"
        ))
        .unwrap();
        let found = check(header, &[service], &[]);
        found.into_iter().map(|problem| problem.path).collect()
    }

    #[test]
    fn services_that_cannot_share_frames_are_refused() {
        use HeaderProfile::{Live, Sealed, Study};
        let sr = "kind = \"sr-m2\"";
        let snoop = "kind = \"snoop\", base-station = \"here\"";
        for (header, scheme, aggregate, field) in [
            (Live, sr, "{}", None),
            (Sealed, sr, "{ largest = \"1 kB\", wait = \"5 ms\" }", None),
            (Study, sr, "\"off\"", None),
            (Study, sr, "{}", Some("")),
            (Live, snoop, "{}", Some("")),
            (Live, snoop, "\"off\"", None),
            (Live, sr, "{ largest = \"0 B\" }", Some(".largest")),
            (Live, sr, "{ largest = \"33 kB\" }", Some(".largest")),
            (Live, sr, "{ wait = \"1 s\" }", Some(".wait")),
        ] {
            let found = paths(header, scheme, &format!("aggregate = {aggregate}"));
            let expected: Vec<_> = field
                .map(|field| format!("services[0].aggregate{field}"))
                .into_iter()
                .collect();
            assert_eq!(found, expected, "{header:?} {scheme} {aggregate}");
        }
    }

    #[test]
    fn live_services_share_frames_by_default_where_they_can() {
        let resolved = |header, scheme: &str| {
            let service: ServiceConfig = toml::from_str(&format!(
                "number = 1\nname = \"one\"\nrate = 1.0\nscheme = {{ {scheme} }}"
            ))
            .unwrap();
            service.resolve(header).aggregate
        };
        let usual = Some(AggregateConfig::default());
        assert_eq!(resolved(HeaderProfile::Sealed, "kind = \"rlp\""), usual);
        assert_eq!(resolved(HeaderProfile::Study, "kind = \"rlp\""), None);
        let snoop = "kind = \"snoop\", base-station = \"here\"";
        assert_eq!(resolved(HeaderProfile::Live, snoop), None);
    }
}
