//! Explicit loss notification for data from the wireless host (Balakrishnan et al. 1997, section 3; ns-2's module): the
//! agent sees which segments the link lost, as others came after them, and marks the acknowledgments that ask for them.
//!
//! A segment that came after all, late or again, is none that was lost. Losses beyond the base station leave no hole
//! here, so their acknowledgments are not marked.

use std::collections::BTreeMap;

use airlane_base::Instant;

use super::connection::{CONNECTIONS, SILENCE};
use crate::flow::TcpView;

/// Maximum number of holes of one connection; the oldest give way.
const HOLES: usize = 256;

/// The holes of all connections, by segments from the wireless host.
#[derive(Clone, Debug)]
pub(super) struct Notices<K>(BTreeMap<K, Holes>);

#[derive(Clone, Debug)]
struct Holes {
    /// The number after the newest segment.
    next: u32,
    /// Half-open and apart, oldest first.
    missing: Vec<[u32; 2]>,
    active: Instant,
}

/// Whether `a` comes before `b`.
const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl<K> Default for Notices<K> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Copy + Ord> Notices<K> {
    /// A segment came over the link.
    pub(super) fn on_data(&mut self, now: Instant, key: K, segment: &TcpView) {
        if segment.rst || segment.syn {
            self.0.remove(&key);
        }
        if segment.rst || segment.seq == segment.end {
            return;
        }
        if self.0.len() >= CONNECTIONS && !self.0.contains_key(&key) {
            self.0.retain(|_, holes| holes.active + SILENCE > now);
            let oldest = self.0.iter().min_by_key(|(_, holes)| holes.active);
            if let Some(oldest) = oldest
                .map(|(key, _)| *key)
                .filter(|_| self.0.len() >= CONNECTIONS)
            {
                self.0.remove(&oldest);
            }
        }
        let holes = self.0.entry(key).or_insert_with(|| Holes {
            next: segment.seq,
            missing: vec![],
            active: now,
        });
        holes.active = now;
        holes.on_data(segment.seq, segment.end);
    }

    /// Whether the segment that acknowledgment `ack` asks for was lost on the link.
    pub(super) fn marks(&mut self, key: &K, ack: u32) -> bool {
        self.0.get_mut(key).is_some_and(|holes| holes.contain(ack))
    }
}

impl Holes {
    fn on_data(&mut self, seq: u32, end: u32) {
        if is_before(self.next, seq) {
            self.missing.push([self.next, seq]);
            if self.missing.len() > HOLES {
                self.missing.remove(0);
            }
        } else {
            let cut = |[from, to]: [u32; 2]| {
                let before = [from, if is_before(seq, to) { seq } else { to }];
                let after = [if is_before(from, end) { end } else { from }, to];
                [before, after]
            };
            let kept = self.missing.iter().flat_map(|hole| {
                let apart = !is_before(hole[0], end) || !is_before(seq, hole[1]);
                match apart {
                    true => [*hole, [0, 0]],
                    false => cut(*hole),
                }
            });
            self.missing = kept.filter(|[from, to]| is_before(*from, *to)).collect();
        }
        if is_before(self.next, end) {
            self.next = end;
        }
    }

    fn contain(&mut self, ack: u32) -> bool {
        self.missing.retain(|[_, to]| is_before(ack, *to));
        self.missing.iter().any(|[from, _]| !is_before(ack, *from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn empty(next: u32) -> Holes {
        Holes {
            next,
            missing: vec![],
            active: Instant::ORIGIN,
        }
    }

    proptest! {
        /// Against a set of numbers, over the wrap of 32 bits.
        #[test]
        fn what_came_and_what_did_not(
            segments in prop::collection::vec((0u32..40, 1u32..6), 1..40),
            asks in prop::collection::vec(0u32..50, 1..10),
        ) {
            let origin = u32::MAX - 20;
            let at = |n: u32| origin.wrapping_add(n);
            let mut holes = empty(at(0));
            let mut came = std::collections::BTreeSet::new();
            for (seq, len) in segments {
                holes.on_data(at(seq), at(seq + len));
                came.extend(seq..seq + len);
            }
            let newest = *came.last().unwrap();
            let mut asks = asks;
            asks.sort_unstable();
            for ack in asks {
                let lost = ack < newest && !came.contains(&ack);
                prop_assert_eq!(holes.contain(at(ack)), lost, "{}", ack);
            }
        }
    }

    #[test]
    fn the_oldest_hole_gives_way() {
        let mut holes = empty(0);
        (0..300).for_each(|n| holes.on_data(2 * n + 1, 2 * n + 2));
        assert_eq!(holes.missing.len(), HOLES);
        assert!(!holes.contain(0) && holes.contain(598));
    }
}
