//! The table of known flows, both directions together: at most [`FLOWS`]. A flow may be stored in [`WAYS`]
//! entries, of which a new flow replaces the one silent for longest.
//!
//! A flow is identified by addresses, protocol and ports; without visible ports, as in IPsec, by the rest.

use airlane_base::Instant;

use super::behaviour::{Behaviour, Conduct, Way};
use crate::flow::FlowKey;

/// Capacity of the table.
const FLOWS: usize = 1024;
/// Entries that a flow may be stored in: the associativity.
const WAYS: usize = 4;

/// A known flow.
#[derive(Clone, Debug)]
pub(super) struct Known {
    hash: u64,
    /// The flow as this end sends it.
    pub(super) flow: FlowKey,
    pub(super) conduct: Conduct,
    /// The choice for its last packet.
    pub(super) chosen: Option<Chosen>,
    /// When that packet was sent.
    pub(super) sent_at: Instant,
    /// The service that last delivered a full packet of it.
    pub(super) brought: Option<u8>,
}

/// What the rules depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Generation of the rules.
    pub(super) generation: u32,
    pub(super) dscp: u8,
    pub(super) behaviour: Behaviour,
    /// For a flow of mere acknowledgments: the service of the data that they acknowledge.
    pub(super) answers: Option<u8>,
}

/// The cached result of the rules, valid while what they depend on stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) asked: Asked,
    pub(super) service: u8,
    /// Index of the deciding rule; none if no rule matched.
    pub(super) rule: Option<u16>,
}

impl Chosen {
    /// Whether it follows the data that it acknowledges.
    pub(super) fn answers(&self) -> bool {
        self.asked.answers == Some(self.service)
    }
}

/// The known flows.
#[derive(Clone, Debug)]
pub(super) struct Table {
    /// Each set is allocated when its first flow arrives.
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

    /// Records a packet of a flow, and returns the flow's entry.
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

    /// The entry of a flow.
    pub(super) fn get(&self, flow: &FlowKey) -> Option<&Known> {
        let hash = flow.hash_both_ways(self.salt);
        let set = &self.sets[hash as usize % (FLOWS / WAYS)];
        set.iter().find(|known| known.hash == hash)
    }

    /// All entries in table order.
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
    fn flows_are_judged_separately_in_bounded_memory() {
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
        // The latest flows are still known, whichever direction their next packet has.
        let known = table.add(now, Way::Received, &flow(29_999).reversed(), 1, || &[]);
        assert_eq!(known.conduct.courses[0].packets, 1);
    }
}
