//! What a scenario has planned: hints for endpoints, links that go and come, and shares that somebody sets.
//!
//! All of it is rare, so it has one deadline among the components'. Of what is due at one instant hints come
//! first, then moves, then policies.

use std::collections::VecDeque;

use airlane_base::{Duration, Instant};

use super::next_hops::NextHops;
use crate::custom::WeightPolicy;
use crate::hint::FlowHint;

/// Links go and come: other routes, and ports that lose their link.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) at: Instant,
    pub(crate) next_hops: NextHops,
    /// Ports whose link goes.
    pub(crate) disconnected: Vec<usize>,
    /// Directions whose circuits lose what they have.
    pub(crate) left: Vec<usize>,
    /// Directions of circuits, and those that take over what they have.
    pub(crate) carried: Vec<[usize; 2]>,
}

/// Somebody who sets the shares of a link's services from time to time.
#[derive(Debug)]
pub(crate) struct Policy {
    /// When it is asked next.
    pub(crate) next: Instant,
    pub(crate) interval: Duration,
    /// The ports at the link's first end and at its second.
    pub(crate) ports: [usize; 2],
    pub(crate) link: String,
    pub(crate) policy: Box<dyn WeightPolicy>,
}

/// The next thing of an agenda.
pub(super) enum Planned {
    Hint(FlowHint),
    Move(Move),
    /// All policies whose time has come.
    Policies,
}

/// Everything that is planned, and has not come yet.
#[derive(Debug)]
pub(crate) struct Agenda {
    /// Hints stand in the order of time.
    hints: VecDeque<FlowHint>,
    /// Moves stand in the order of time.
    moves: VecDeque<Move>,
    pub(super) policies: Vec<Policy>,
}

impl Agenda {
    /// Hints and moves are in the order of time.
    pub(crate) fn new(hints: Vec<FlowHint>, moves: Vec<Move>, policies: Vec<Policy>) -> Self {
        Self {
            hints: hints.into(),
            moves: moves.into(),
            policies,
        }
    }

    /// Nobody hears of links any more.
    pub(super) fn drop_hints(&mut self) {
        self.hints.clear();
    }

    /// When the next thing comes.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let hint = self.hints.front().map(|hint| hint.at);
        let moved = self.moves.front().map(|moved| moved.at);
        let policies = self.policies.iter().map(|policy| policy.next);
        hint.into_iter().chain(moved).chain(policies).min()
    }

    /// What has come by `now`, one by one.
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
