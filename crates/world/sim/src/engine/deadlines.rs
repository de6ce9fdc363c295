//! Which component is due next.
//!
//! A component (one direction of a link, one port, one flow) has one next deadline, however many packets it holds, so
//! the calendar has few slots and never grows. Slots are grouped into blocks. A block is searched in full when its
//! earliest deadline is needed, which at this size costs less than keeping it sorted on every change; a winner tree
//! over the blocks serves large worlds.
//!
//! Ties go to the lower slot. Slots are numbered by kind, then by index, and a component emits in FIFO order; so
//! events are totally ordered by (time, kind, index, counter).

use airlane_base::Instant;

/// Slots per block.
const BLOCK: usize = 8;

/// The first slot of each kind of component; directions come first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    pub(super) ports: usize,
    pub(super) flows: usize,
    pub(super) agenda: usize,
    pub(super) radios: usize,
    pub(super) daemons: usize,
    pub(super) lives: usize,
}

impl Slots {
    /// `daemons`: whether there are any; all of them share one slot.
    pub(super) fn new([directions, ports, flows, radios]: [usize; 4], daemons: bool) -> Self {
        let agenda = directions + ports + flows;
        Self {
            ports: directions,
            flows: directions + ports,
            agenda,
            radios: agenda + 1,
            daemons: agenda + 1 + radios,
            lives: agenda + 1 + radios + usize::from(daemons),
        }
    }
}

/// The deadlines of a fixed number of components.
#[derive(Clone, Debug)]
pub(crate) struct Deadlines {
    /// By slot; `FAR_FUTURE` means none.
    due: Vec<[Instant; BLOCK]>,
    /// The earliest deadline and its slot by tree node: 1 is the root, which is not stored; `n` has the children `2n`
    /// and `2n + 1`; the second half are the blocks.
    winner: Vec<(Instant, usize)>,
    /// The block that was changed last and has not been searched since.
    open: usize,
}

impl Deadlines {
    pub(crate) fn new(components: usize) -> Self {
        let blocks = components.div_ceil(BLOCK).next_power_of_two();
        let mut tree = Self {
            due: vec![[Instant::FAR_FUTURE; BLOCK]; blocks],
            winner: vec![(Instant::FAR_FUTURE, 0); 2 * blocks],
            open: 0,
        };
        for block in 0..blocks {
            tree.open = block;
            tree.settle();
        }
        tree
    }

    /// The earliest deadline and its slot; `FAR_FUTURE` if there is none.
    #[inline]
    pub(crate) fn first(&mut self) -> (Instant, usize) {
        self.settle()
    }

    /// Sets or clears the deadline of a slot.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, due: Option<Instant>) {
        let block = slot / BLOCK;
        if block != self.open {
            self.turn_to(block);
        }
        self.due[block][slot % BLOCK] = due.unwrap_or(Instant::FAR_FUTURE);
    }

    /// Settles the open block before another one is changed.
    #[inline(never)]
    fn turn_to(&mut self, block: usize) {
        self.settle();
        self.open = block;
    }

    /// Searches the open block and updates the tree on its path to the root; returns the overall winner.
    #[inline(always)]
    fn settle(&mut self) -> (Instant, usize) {
        let due = &self.due[self.open];
        let place = earliest(due);
        let mut best = (due[place], self.open * BLOCK + place);
        let mut node = self.winner.len() / 2 + self.open;
        while node > 1 {
            self.winner[node] = best;
            let other = self.winner[node ^ 1];
            // The left subtree, with the even node, holds the lower slots: it wins ties.
            let wins = match node & 1 {
                0 => other.0 >= best.0,
                _ => best.0 < other.0,
            };
            best = if wins { best } else { other };
            node /= 2;
        }
        best
    }
}

/// Index of the earliest deadline, the first of equals: two branch-free searches in parallel.
#[inline]
fn earliest(due: &[Instant; BLOCK]) -> usize {
    const HALF: usize = BLOCK / 2;
    let mut place = [0, HALF];
    let mut at = [due[0], due[HALF]];
    for i in 1..HALF {
        for (side, here) in [i, HALF + i].into_iter().enumerate() {
            let earlier = due[here] < at[side];
            place[side] = if earlier { here } else { place[side] };
            at[side] = if earlier { due[here] } else { at[side] };
        }
    }
    place[usize::from(at[1] < at[0])]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_is_due_at_first() {
        for components in [0, 1, 4, 16, 17, 100] {
            assert_eq!(Deadlines::new(components).first().0, Instant::FAR_FUTURE);
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_search(
            components in 1usize..70,
            ops in prop::collection::vec(
                (0usize..70, prop::option::of(0u64..12), any::<bool>()),
                1..200,
            ),
        ) {
            let mut tree = Deadlines::new(components);
            let mut model = vec![Instant::FAR_FUTURE; components];
            for (slot, due, ask) in ops {
                let slot = slot % components;
                let due = due.map(Instant::from_nanos);
                tree.set(slot, due);
                model[slot] = due.unwrap_or(Instant::FAR_FUTURE);
                if !ask {
                    continue;
                }
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
