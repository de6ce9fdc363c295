//! Planned changes of a scenario: hints to endpoints, links that come and go, and weight policies.
//!
//! All of these are rare, so they share one deadline. At the same instant, hints come first, then moves, then
//! policies.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use super::next_hops::NextHops;
use crate::custom::WeightPolicy;
use crate::hint::FlowHint;

/// Links come and go: routes change, and ports lose their link.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) at: Instant,
    pub(crate) next_hops: NextHops,
    /// Ports whose link goes away.
    pub(crate) disconnected: Vec<usize>,
    /// Directions whose circuits lose everything in flight.
    pub(crate) left: Vec<usize>,
    /// Directions of circuits, and those that take over what is in flight there.
    pub(crate) carried: Vec<[usize; 2]>,
}

/// A policy that changes the weights of a link's services at intervals.
#[derive(Debug)]
pub(crate) struct Policy {
    /// When it is called next.
    pub(crate) next: Instant,
    pub(crate) interval: Duration,
    /// The ports at the link's first end and at its second.
    pub(crate) ports: [usize; 2],
    pub(crate) link: String,
    pub(crate) policy: Box<dyn WeightPolicy>,
}

/// The next planned change.
pub(super) enum Planned {
    Hint(FlowHint),
    Move(Move),
    /// All policies that are due.
    Policies,
}

/// All planned changes that are still to come.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// In order of time.
    hints: VecDeque<FlowHint>,
    /// In order of time.
    moves: VecDeque<Move>,
    pub(super) policies: Vec<Policy>,
}

impl Agenda {
    /// Hints and moves must be in order of time.
    pub(crate) fn new(hints: Vec<FlowHint>, moves: Vec<Move>, policies: Vec<Policy>) -> Self {
        Self {
            hints: hints.into(),
            moves: moves.into(),
            policies,
        }
    }

    /// After the stop, no endpoint gets hints.
    pub(super) fn drop_hints(&mut self) {
        self.hints.clear();
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let hint = self.hints.front().map(|hint| hint.at);
        let moved = self.moves.front().map(|moved| moved.at);
        let policies = self.policies.iter().map(|policy| policy.next);
        hint.into_iter().chain(moved).chain(policies).min()
    }

    /// The next change due by `now`.
    pub(super) fn next(&mut self, now: Instant) -> Option<Planned> {
        if let Some(hint) = self.hints.pop_front_if(|hint| hint.at <= now) {
            return Some(Planned::Hint(hint));
        }
        if let Some(moved) = self.moves.pop_front_if(|moved| moved.at <= now) {
            return Some(Planned::Move(moved));
        }
        let due = self.policies.iter().any(|policy| policy.next <= now);
        due.then_some(Planned::Policies)
    }
}
