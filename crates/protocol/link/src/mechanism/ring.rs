//! Storage by sequence number.

use airlane_base::{Seq, SeqSpace};

/// Values stored under the numbers of a span no longer than its capacity.
///
/// The capacity is a power of two that divides the modulus, so two numbers of one span never share a slot,
/// also across the wrap; a window modulo an odd size would collide there (section 7.3 of
/// docs/spec/multi-service.md). Where no such power holds the span, each number of the space has a slot of
/// its own. Slots are allocated with the first value: a base station has hundreds of unused services.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Ring<T> {
    slots: Box<[Option<T>]>,
    capacity: usize,
    mask: usize,
}

impl<T> Ring<T> {
    /// Room for any span of `span` numbers, as far as the sequence space has them.
    pub(crate) fn for_span(span: u32, space: SeqSpace) -> Self {
        let (power, modulus) = (u64::from(span).next_power_of_two(), space.modulus());
        let (capacity, mask) = match modulus % power {
            0 => (power, power - 1),
            _ => (modulus, u64::MAX),
        };
        Self {
            slots: Box::default(),
            capacity: capacity as usize,
            mask: mask as usize,
        }
    }

    pub(crate) fn get(&self, seq: Seq) -> Option<&T> {
        self.slots.get(seq as usize & self.mask)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, seq: Seq) -> Option<&mut T> {
        self.slots.get_mut(seq as usize & self.mask)?.as_mut()
    }

    pub(crate) fn insert(&mut self, seq: Seq, value: T) {
        if self.slots.is_empty() {
            self.slots = (0..self.capacity).map(|_| None).collect();
        }
        self.slots[seq as usize & self.mask] = Some(value);
    }

    pub(crate) fn remove(&mut self, seq: Seq) -> Option<T> {
        self.slots.get_mut(seq as usize & self.mask)?.take()
    }

    pub(crate) fn clear(&mut self) {
        self.slots.fill_with(|| None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_exactly_the_room_of_its_window() {
        for (span, slots) in [(1, 1), (127, 128), (1_024, 1_024), (4_096, 4_096)] {
            let ring = Ring::<u8>::for_span(span, SeqSpace::new(1 << 16));
            assert_eq!(ring.capacity, slots);
        }
        let mut ring = Ring::<u8>::for_span(200, SeqSpace::new(1 << 7));
        assert_eq!(ring.capacity, 128, "there are no more numbers");
        assert!(ring.slots.is_empty(), "and nothing is stored");
        assert!(ring.get(7).is_none() && ring.remove(7).is_none());
        ring.insert(7, 1);
        assert_eq!((ring.slots.len(), ring.get(7)), (128, Some(&1)));
    }

    #[test]
    fn numbers_of_a_span_never_share_a_slot() {
        for modulus in [5, 62, 63, 64, 96, 100] {
            let space = SeqSpace::new(modulus);
            for span in 1..=modulus as u32 {
                for first in 0..modulus as u32 {
                    let mut ring = Ring::for_span(span, space);
                    (0..span).for_each(|n| ring.insert(space.add(first, n), n));
                    assert!((0..span).all(|n| ring.get(space.add(first, n)) == Some(&n)));
                }
            }
        }
    }
}
