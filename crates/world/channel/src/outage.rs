//! Periods in which a link is down: a tunnel, or the gap of a handoff. Frames that leave during one are lost.
//!
//! ```toml
//! outages = [{ from = "2 s", to = "3 s" }, { from = "10 s", to = "15 s" }]
//! ```

use airlane_base::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A period in which the link is down: a tunnel, or the gap of a handoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutageConfig {
    /// When the outage begins.
    pub from: Duration,
    /// When the outage is over.
    pub to: Duration,
}

impl OutageConfig {
    /// The index of the first outage that is not longer than zero.
    pub fn first_empty(outages: &[Self]) -> Option<usize> {
        outages.iter().position(|outage| outage.from >= outage.to)
    }

    /// The outages as [`Channel::with_outages`](crate::Channel::with_outages) takes them: in order and disjoint.
    pub fn windows(outages: &[Self]) -> Vec<[Instant; 2]> {
        let at = |time: Duration| Instant::ORIGIN + time;
        merged_windows(outages.iter().map(|o| [at(o.from), at(o.to)]).collect())
    }
}

/// Sorts windows and merges those that touch.
pub fn merged_windows(mut windows: Vec<[Instant; 2]>) -> Vec<[Instant; 2]> {
    windows.sort_unstable();
    let mut apart: Vec<[Instant; 2]> = vec![];
    for [down, up] in windows {
        match apart.last_mut() {
            Some([_, last]) if down <= *last => *last = up.max(*last),
            _ => apart.push([down, up]),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outages_that_touch_are_one_whatever_their_order() {
        let outage = |from, to| OutageConfig {
            from: Duration::from_secs(from),
            to: Duration::from_secs(to),
        };
        let at = |s| Instant::ORIGIN + Duration::from_secs(s);
        let written = [outage(8, 9), outage(1, 3), outage(2, 4), outage(4, 5)];
        assert_eq!(
            OutageConfig::windows(&written),
            [[at(1), at(5)], [at(8), at(9)]]
        );
        assert_eq!(OutageConfig::first_empty(&written), None);
        let empty = [outage(1, 2), outage(3, 3)];
        assert_eq!(OutageConfig::first_empty(&empty), Some(1));
    }
}
