//! Results of the flows with a progress probe, individually and in groups.

use std::collections::BTreeMap;

use airlane_base::Instant;

use crate::app::progress::Progress;
use crate::engine::Engine;
use crate::result::GroupResult;
use crate::scenario::Scenario;

/// One result per group, in the order of the groups' names.
pub(crate) fn group_results(scenario: &Scenario, engine: &Engine) -> Vec<GroupResult> {
    let mut groups: BTreeMap<&str, Vec<&Progress>> = BTreeMap::new();
    for (config, flow) in scenario.flows.iter().zip(&engine.flows) {
        let word = config.progress.as_ref().and_then(|p| p.group.as_deref());
        if let Some((word, progress)) = word.zip(flow.progress()) {
            groups.entry(word).or_default().push(progress);
        }
    }
    let groups = groups.into_iter();
    groups.map(|(word, flows)| group(word, &flows)).collect()
}

fn group(word: &str, flows: &[&Progress]) -> GroupResult {
    let begin = flows.iter().filter_map(|flow| flow.first()).min();
    let since = |at: Instant| Some(at.saturating_since(begin?).as_secs_f64());
    let ends: Vec<Instant> = flows.iter().filter_map(|flow| flow.end()).collect();
    let complete = flows.iter().filter(|flow| flow.is_complete());
    let completions: Vec<Instant> = complete.filter_map(|flow| flow.end()).collect();
    let last = completions.iter().max().copied();
    let bytes: u64 = flows.iter().map(|flow| flow.bytes()).sum();
    let time_s = ends.iter().max().copied().and_then(since);
    let goods = flows.iter().map(|flow| flow.good_bps().unwrap_or(0.0));
    let (sum, squares) = goods.fold((0.0, 0.0), |(s, q), good| (s + good, q + good * good));
    GroupResult {
        name: word.to_owned(),
        first_s: completions.iter().min().copied().and_then(since),
        last_s: last
            .filter(|_| completions.len() == flows.len())
            .and_then(since),
        agg_bps: time_s
            .filter(|time| *time > 0.0)
            .map(|time| bytes as f64 * 8.0 / time),
        jain: (squares > 0.0).then(|| sum * sum / (flows.len() as f64 * squares)),
    }
}
