//! When transport endpoints learn that a link of their path went down or came back (docs/spec/multi-service.md,
//! 10.5).
//!
//! The nodes at a link's ends know at once. A host further away gets a hint that travels along the path and takes its
//! propagation delays; hints use no bandwidth and are not lost.

use airlane_base::{Duration, Instant};
use airlane_channel::{OutageConfig, merged_windows};
use airlane_link::mobility::Hint;

use crate::scenario::{Epoch, LinkConfig};

/// A hint for one end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlowHint {
    pub(crate) at: Instant,
    pub(crate) flow: usize,
    /// The flow's first or second end.
    pub(crate) end: usize,
    /// The state of the path: down with the first of its links that fails, up with the last that returns.
    pub(crate) hint: Hint<()>,
}

/// All hints for a flow in its main direction: outages of the links that it crosses, and the periods in which a
/// handoff leaves it without a path.
pub(crate) fn flow_hints(links: &[&LinkConfig], flow: usize, epochs: &[Epoch]) -> Vec<FlowHint> {
    let paths: Vec<Vec<(usize, bool)>> = epochs
        .iter()
        .map(|epoch| {
            let hops = epoch.routes.links(flow);
            hops.map(|hop| (hop.link, hop.down)).collect()
        })
        .collect();
    let mut hints = vec![];
    for end in 0..2 {
        // Propagation delay from a link of the path to this end.
        let away = |path: &[(usize, bool)], link: usize| {
            let at = path.iter().position(|hop| hop.0 == link).unwrap_or(0);
            let between = if end == 0 {
                &path[..at]
            } else {
                &path[at + 1..]
            };
            // The first end lies against the direction of the path.
            let delays = between
                .iter()
                .map(|(link, down)| *links[*link].delay.of(*down == (end == 1)));
            delays.fold(Duration::ZERO, |sum, delay| sum + delay)
        };
        let mut windows = vec![];
        for (i, path) in paths.iter().enumerate() {
            let begin = epochs[i].begin;
            let over = epochs.get(i + 1).map_or(Instant::FAR_FUTURE, |e| e.begin);
            for (link, _) in path {
                let away = away(path, *link);
                for [down, up] in OutageConfig::windows(&links[*link].outages) {
                    let [down, up] = [down.max(begin), up.min(over)];
                    windows.extend((down < up).then(|| [down + away, up + away]));
                }
            }
            if path.is_empty() {
                // Links that go away are reported along the old path, new ones along the new path.
                let told = |neighbour: Option<usize>| {
                    let path = neighbour.and_then(|at| paths.get(at))?;
                    let changed = path.iter().find(|hop| !epochs[i].present[hop.0])?;
                    Some(away(path, changed.0))
                };
                let down = begin + told(i.checked_sub(1)).unwrap_or(Duration::ZERO);
                let up = over + told(Some(i + 1)).unwrap_or(Duration::ZERO);
                windows.extend((down < up).then_some([down, up]));
            }
        }
        for [down, up] in merged_windows(windows) {
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
    hints.retain(|hint| hint.at < Instant::FAR_FUTURE);
    hints
}
