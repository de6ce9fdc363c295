//! Numbers of missing frames that wait to be requested.
//!
//! The works request them in the order in which their losses were detected, and repeated requests after all others.
//! Live, the oldest goes first: the window, and what is delivered in order, waits for it, and on a slow link each round
//! through a window of losses takes seconds.

use std::collections::VecDeque;

use airlane_base::{Seq, SeqSpace};

#[derive(Clone, Debug, Hash)]
pub(crate) struct Turns {
    waiting: VecDeque<Seq>,
    space: SeqSpace,
    oldest_first: bool,
}

impl Turns {
    pub(crate) fn new(window: u32, space: SeqSpace, oldest_first: bool) -> Self {
        Self {
            waiting: VecDeque::with_capacity(window as usize),
            space,
            oldest_first,
        }
    }

    pub(crate) fn push(&mut self, seq: Seq) {
        let is_after = |other: Seq| {
            let ahead = self.space.distance(other, seq);
            0 < ahead && ahead < self.space.half()
        };
        // Most are asked for in ascending order.
        let later = match self.oldest_first {
            true => (self.waiting.iter().rev())
                .take_while(|other| is_after(**other))
                .count(),
            false => 0,
        };
        self.waiting.insert(self.waiting.len() - later, seq);
    }

    pub(crate) fn pop(&mut self) -> Option<Seq> {
        self.waiting.pop_front()
    }

    pub(crate) fn first(&self) -> Option<Seq> {
        self.waiting.front().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(oldest_first: bool) -> Vec<Seq> {
        let mut turns = Turns::new(4, SeqSpace::new(256), oldest_first);
        for seq in [254, 1, 255, 2, 0] {
            turns.push(seq);
        }
        std::iter::from_fn(|| turns.pop()).collect()
    }

    #[test]
    fn the_oldest_goes_first_beyond_the_end_of_the_numbers() {
        assert_eq!(order(true), [254, 255, 0, 1, 2]);
        assert_eq!(order(false), [254, 1, 255, 2, 0]);
    }
}
