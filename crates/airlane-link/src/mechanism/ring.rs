//! Storage under sequence numbers.

use airlane_base::{Seq, SeqSpace};

/// Values stored under the numbers of a span shorter than its capacity.
///
/// The capacity is a power of two that divides the modulus, so two numbers of one span never share
/// a slot, also across the wrap; a window modulo an odd size would collide there (section 7.3 of
/// the specification).
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    slots: Box<[Option<T>]>,
    mask: usize,
}

impl<T> Ring<T> {
    /// Room for any span of `window` numbers and as many again behind it, as far as the sequence
    /// space has them.
    pub(crate) fn for_window(window: u32, space: SeqSpace) -> Self {
        let capacity = (u64::from(window) * 2)
            .next_power_of_two()
            .min(space.modulus()) as usize;
        Self {
            slots: (0..capacity).map(|_| None).collect(),
            mask: capacity - 1,
        }
    }

    pub(crate) fn get(&self, seq: Seq) -> Option<&T> {
        self.slots[seq as usize & self.mask].as_ref()
    }

    pub(crate) fn get_mut(&mut self, seq: Seq) -> Option<&mut T> {
        self.slots[seq as usize & self.mask].as_mut()
    }

    pub(crate) fn insert(&mut self, seq: Seq, value: T) {
        self.slots[seq as usize & self.mask] = Some(value);
    }

    pub(crate) fn remove(&mut self, seq: Seq) -> Option<T> {
        self.slots[seq as usize & self.mask].take()
    }

    pub(crate) fn clear(&mut self) {
        self.slots.fill_with(|| None);
    }
}
