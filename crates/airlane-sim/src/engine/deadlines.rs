//! Which component is due next.
//!
//! A component (one direction of a link, one port, one flow) has one next deadline, however many
//! packets it holds, so the calendar has a handful of slots and never grows. It is a winner tree:
//! setting a slot replays the matches on its way to the root, finding the earliest costs nothing.
//!
//! Ties go to the lower slot. Slots are numbered by kind, then by index, and what one component
//! holds leaves it in order; so events are totally ordered by (time, kind, index, counter).

use airlane_base::Instant;

/// The deadlines of a fixed number of components.
#[derive(Clone, Debug)]
pub(crate) struct Deadlines {
    /// By slot; `FAR_FUTURE` means none. Padded to a power of two.
    due: Vec<Instant>,
    /// Winners by tree node: 1 is the root, `n` has the children `2n` and `2n + 1`, and node
    /// `slots + k` would be slot `k` itself, which needs no entry.
    winner: Vec<u32>,
}

impl Deadlines {
    pub(crate) fn new(components: usize) -> Self {
        let slots = components.next_power_of_two().max(2);
        let mut tree = Self {
            due: vec![Instant::FAR_FUTURE; slots],
            winner: vec![0; slots],
        };
        for node in (1..slots).rev() {
            tree.play(node);
        }
        tree
    }

    /// The earliest deadline and its slot; `FAR_FUTURE` if there is none.
    #[inline]
    pub(crate) fn first(&self) -> (Instant, usize) {
        let slot = self.winner[1] as usize;
        (self.due[slot], slot)
    }

    /// Sets or clears the deadline of a slot.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, due: Option<Instant>) {
        let due = due.unwrap_or(Instant::FAR_FUTURE);
        if self.due[slot] == due {
            return;
        }
        self.due[slot] = due;
        let mut node = (slot + self.due.len()) / 2;
        while node >= 1 {
            self.play(node);
            node /= 2;
        }
    }

    #[inline]
    fn play(&mut self, node: usize) {
        let slots = self.due.len();
        let contender = |child: usize| {
            if child >= slots {
                child - slots
            } else {
                self.winner[child] as usize
            }
        };
        let (left, right) = (contender(2 * node), contender(2 * node + 1));
        // The left subtree holds the lower slots: it wins ties.
        let winner = if self.due[right] < self.due[left] {
            right
        } else {
            left
        };
        self.winner[node] = winner as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_due_at_first() {
        for components in 0..5 {
            assert_eq!(Deadlines::new(components).first().0, Instant::FAR_FUTURE);
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_search(
            components in 1usize..20,
            ops in prop::collection::vec((0usize..20, prop::option::of(0u64..12)), 1..200),
        ) {
            let mut tree = Deadlines::new(components);
            let mut model = vec![Instant::FAR_FUTURE; components];
            for (slot, due) in ops {
                let slot = slot % components;
                let due = due.map(Instant::from_nanos);
                tree.set(slot, due);
                model[slot] = due.unwrap_or(Instant::FAR_FUTURE);
                let first = model.iter().enumerate().map(|(i, t)| (*t, i)).min().unwrap();
                let (time, slot) = tree.first();
                prop_assert_eq!(time, first.0);
                if time < Instant::FAR_FUTURE {
                    prop_assert_eq!(slot, first.1);
                }
            }
        }
    }
}
