//! Progress measurements of a flow: in intervals, in windows of time, and in groups.

use std::collections::BTreeMap;

use airlane_base::Duration;
use airlane_base::config::{Problems, key};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// More intervals than a figure can show, within the memory of a run.
const MOST_INTERVALS: u64 = 1 << 20;

/// Measurement of a flow's progress at its receiver (Gopal 2007).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProgressConfig {
    /// New bytes are counted in intervals of this length, the first of which begins with the first packet. Source:
    /// Gopal 2007, section 2.3.
    #[serde(default = "tenth")]
    pub interval: Duration,
    /// Windows of time that are reported separately, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("examples" = [{ "noisy": { "from": "1 s", "every": "2 s", "lasts": "1 s" } }]))]
    pub windows: BTreeMap<String, WindowConfig>,
    /// The new bytes at the end of each interval are reported, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub curve: bool,
    /// It is reported together with the other flows of this group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

/// A window of simulated time, once or repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WindowConfig {
    /// It begins here.
    #[serde(default)]
    pub from: Duration,
    /// It ends here. Left out: at the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Duration>,
    /// It repeats with this period. Requires `lasts`. Left out: it does not repeat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Its duration each time. Requires `every`. Left out: until `to`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<Duration>,
}

/// Gopal 2007, section 2.3.1.
fn tenth() -> Duration {
    Duration::from_millis(100)
}

impl WindowConfig {
    /// Whether a time lies in it.
    pub(crate) fn holds(&self, at: Duration) -> bool {
        if at < self.from || self.to.is_some_and(|to| at >= to) {
            return false;
        }
        match self.every.zip(self.lasts) {
            None => true,
            Some((every, lasts)) => {
                at.saturating_sub(self.from).as_nanos() % every.as_nanos() < lasts.as_nanos()
            }
        }
    }

    /// How much of it lies before a time.
    pub(crate) fn until(&self, at: Duration) -> Duration {
        let end = self.to.map_or(at, |to| at.min(to));
        if end <= self.from {
            return Duration::ZERO;
        }
        let span = end.saturating_sub(self.from);
        match self.every.zip(self.lasts) {
            None => span,
            Some((every, lasts)) => {
                let (every, lasts) = (every.as_nanos(), lasts.as_nanos());
                let rounds = span.as_nanos() / every * lasts;
                Duration::from_nanos(rounds + (span.as_nanos() % every).min(lasts))
            }
        }
    }
}

impl ProgressConfig {
    /// Checks that it can be measured in a run of this length.
    pub(super) fn check(&self, duration: Duration, problems: &mut Problems) {
        let interval = self.interval.as_nanos();
        if interval == 0 || duration.as_nanos() / interval > MOST_INTERVALS {
            problems.add(
                "interval",
                format!("intervals of {} are too short", self.interval),
                format!("at most {MOST_INTERVALS} of them in a run"),
            );
        }
        for (name, window) in &self.windows {
            let path = format!("windows.{}", key(name));
            if window.to.is_some_and(|to| to <= window.from) {
                problems.add(
                    &path,
                    "the window is over before it begins",
                    "`to` later than `from`",
                );
            }
            let again = match (window.every, window.lasts) {
                (None, None) => true,
                (Some(every), Some(lasts)) => lasts.as_nanos() > 0 && lasts <= every,
                _ => false,
            };
            if !again {
                problems.add(
                    &path,
                    "a window that comes again says how often, and for how long",
                    "`every` and `lasts`, which is above zero and not longer; or neither",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_recur() {
        let ms = Duration::from_millis;
        let window = WindowConfig {
            from: ms(1_000),
            to: Some(ms(6_000)),
            every: Some(ms(2_000)),
            lasts: Some(ms(500)),
        };
        for (at, holds) in [
            (999, false),
            (1_000, true),
            (1_500, false),
            (3_499, true),
            (5_000, true),
        ] {
            assert_eq!(window.holds(ms(at)), holds, "{at} ms");
        }
        assert!(!window.holds(ms(6_000)));
        assert_eq!(window.until(ms(500)), Duration::ZERO);
        assert_eq!(window.until(ms(1_200)), ms(200));
        assert_eq!(window.until(ms(3_200)), ms(700));
        assert_eq!(window.until(ms(10_000)), ms(1_500));
        let once = WindowConfig {
            to: None,
            every: None,
            lasts: None,
            ..window
        };
        assert_eq!(once.until(ms(10_000)), ms(9_000));
    }
}
