//! The flows that are known, whichever way their packets go: at most [`FLOWS`], and what was silent longest among the
//! [`WAYS`] places that a flow may have gives way.
//!
//! A flow is its addresses, protocol and ports; of what has no ports or hides them, such as IPsec, the addresses.

use airlane_base::Instant;

use super::behaviour::{Behaviour, Conduct, Way};
use crate::flow::FlowKey;

/// Flows that are known.
const FLOWS: usize = 1024;
/// Places that a flow may have.
const WAYS: usize = 4;

/// A flow that is known.
#[derive(Clone, Debug)]
pub(super) struct Known {
    hash: u64,
    /// The addresses are as this end sends it.
    pub(super) flow: FlowKey,
    pub(super) conduct: Conduct,
    /// What its last packet was led by.
    pub(super) chosen: Option<Chosen>,
    /// When that was sent.
    pub(super) sent_at: Instant,
    /// The service that last brought a full packet of it.
    pub(super) brought: Option<u8>,
}

/// What the rules may ask of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Which rules there are.
    pub(super) generation: u32,
    pub(super) dscp: u8,
    pub(super) behaviour: Behaviour,
    /// The service that brings what it does nothing but answer.
    pub(super) answers: Option<u8>,
}

/// What the rules said, as long as nothing changes that they ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) asked: Asked,
    pub(super) service: u8,
    /// The rule that decided; none did.
    pub(super) rule: Option<u16>,
}

impl Chosen {
    /// Whether it goes where what it answers comes from.
    pub(super) fn answers(&self) -> bool {
        self.asked.answers == Some(self.service)
    }
}

/// What is known of flows.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Memory is taken when flows come.
    sets: Box<[Vec<Known>]>,
    salt: u64,
}

impl Table {
    pub(super) fn new(salt: u64) -> Self {
        Self {
            sets: vec![Vec::new(); FLOWS / WAYS].into(),
            salt,
        }
    }

    /// A packet of a flow goes one way: what is known of that.
    #[inline]
    pub(super) fn add<'a>(
        &mut self,
        now: Instant,
        way: Way,
        flow: &FlowKey,
        len: usize,
        datagram: impl FnOnce() -> &'a [u8],
    ) -> &mut Known {
        let hash = flow.hash_both_ways(self.salt);
        let set = &mut self.sets[hash as usize % (FLOWS / WAYS)];
        let at = set.iter().position(|known| known.hash == hash);
        let at = at.unwrap_or_else(|| make_place(set, now, way, flow, hash));
        let known = &mut set[at];
        known.conduct.add(now, flow.protocol, way, len, datagram);
        known
    }

    /// What is known of a flow.
    pub(super) fn get(&self, flow: &FlowKey) -> Option<&Known> {
        let hash = flow.hash_both_ways(self.salt);
        let set = &self.sets[hash as usize % (FLOWS / WAYS)];
        set.iter().find(|known| known.hash == hash)
    }

    /// All that are known, by the places that they have.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Known> {
        self.sets.iter().flatten()
    }
}

#[cold]
fn make_place(set: &mut Vec<Known>, now: Instant, way: Way, flow: &FlowKey, hash: u64) -> usize {
    let known = Known {
        hash,
        flow: match way {
            Way::Sent => *flow,
            Way::Received => flow.reversed(),
        },
        conduct: Conduct::new(now, flow),
        chosen: None,
        sent_at: now,
        brought: None,
    };
    if set.len() < WAYS {
        set.push(known);
        return set.len() - 1;
    }
    let silent = set.iter().enumerate();
    let oldest = silent.min_by_key(|(_, known)| known.conduct.last);
    let at = oldest.map_or(0, |(at, _)| at);
    set[at] = known;
    at
}

#[cfg(test)]
mod tests {
    use airlane_base::Duration;

    use super::*;
    use crate::flow::UDP;
    use crate::sample;

    fn flow(port: u16) -> FlowKey {
        sample::flow(UDP, port, 40_000)
    }

    #[test]
    fn no_flow_is_judged_by_another_and_many_take_no_more_memory() {
        let mut table = Table::new(7);
        let mut now = Instant::ORIGIN;
        for n in 0..40_000u32 {
            now += Duration::from_micros(10);
            let port = 10_000 + (n % 20_000) as u16;
            let len = if port.is_multiple_of(2) { 100 } else { 1_300 };
            let known = table.add(now, Way::Sent, &flow(port), len, || &[]);
            let expected = match port % 2 {
                0 => Behaviour::Interactive,
                _ => Behaviour::Page,
            };
            assert_eq!(known.conduct.behaviour, expected);
        }
        assert!(table.iter().count() <= FLOWS);
        assert!(table.sets.iter().all(|set| set.len() <= WAYS));
        // Those that were there last are still known, whichever way their next packet goes.
        let known = table.add(now, Way::Received, &flow(29_999).reversed(), 1, || &[]);
        assert_eq!(known.conduct.courses[0].packets, 1);
    }
}
