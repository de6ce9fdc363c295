//! When transport endpoints learn that a link of their path went down or came back (the
//! specification, 10.5).
//!
//! The nodes at a link's ends know at once. A host further away is told by a hint that travels along
//! the path and takes its propagation delays; hints need no bandwidth and are not lost.

use airlane_base::{Duration, Instant};
use airlane_link::mobility::Hint;

use crate::route::Hop;
use crate::scenario::{LinkConfig, Scenario};

/// A hint for one end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowHint {
    pub(crate) at: Instant,
    pub(crate) flow: usize,
    /// The flow's first or second end.
    pub(crate) end: usize,
    /// The path: the first of its links to go, or the last to come back.
    pub(crate) hint: Hint<()>,
}

/// Outages of a link as the channel takes them.
pub(crate) fn outages(link: &LinkConfig) -> Vec<[Instant; 2]> {
    let at = |time: Duration| Instant::ORIGIN + time;
    let windows = link.outages.iter().map(|o| [at(o.from), at(o.to)]);
    merged(windows.collect())
}

/// All hints for a flow with this path, main direction.
pub(crate) fn flow_hints(scenario: &Scenario, flow: usize, path: &[Hop]) -> Vec<FlowHint> {
    let links: Vec<&LinkConfig> = path
        .iter()
        .filter_map(|hop| scenario.links.values().nth(hop.link))
        .collect();
    let mut hints = vec![];
    for end in 0..2 {
        let mut windows = vec![];
        for (index, link) in links.iter().enumerate() {
            let between = if end == 0 {
                &links[..index]
            } else {
                &links[index + 1..]
            };
            let away = between.iter().fold(Duration::ZERO, |sum, l| sum + l.delay);
            windows.extend(outages(link).iter().map(|window| window.map(|t| t + away)));
        }
        for [down, up] in merged(windows) {
            for (at, hint) in [(down, Hint::Disconnected(())), (up, Hint::Connected(()))] {
                hints.push(FlowHint {
                    at,
                    flow,
                    end,
                    hint,
                });
            }
        }
    }
    hints
}

/// Windows in order; those that touch become one.
fn merged(mut windows: Vec<[Instant; 2]>) -> Vec<[Instant; 2]> {
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
