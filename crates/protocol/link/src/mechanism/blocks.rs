//! Which blocks of an erasure code are open at the receiver, and what has arrived of each.
//!
//! Study links keep the order of frames, so one block is open, and a place that does not lie
//! behind the last one belongs to a later block with the same number. Live paths reorder and
//! duplicate: there numbers are wide, the places seen are marked, and the last few blocks stay
//! open. A frame that belongs to none of them is refused: its packet may have gone up already.

use std::collections::VecDeque;

use airlane_base::Instant;

/// How many places a block can have.
pub(crate) const PLACES: u32 = u128::BITS;
/// The longest block of packets that one parity protects: the parity needs a place too.
pub(crate) const MOST_PACKETS: u32 = PLACES - 1;
/// How many blocks stay open on a live path.
const LIVE: usize = 8;

/// One block. `S` is what is kept of its frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block<S> {
    number: u32,
    /// Places from which a frame has arrived, or that were recovered.
    pub(crate) seen: u128,
    /// How many packets the sender put into it, where that is known; their places come first.
    pub(crate) packets: Option<u32>,
    /// How many packets are here.
    pub(crate) here: u32,
    /// When it was noticed that something is missing.
    gap: Option<Instant>,
    pub(crate) store: S,
}

/// What a block keeps of its frames.
pub(crate) trait Store: Default {
    /// Forgets everything; may keep the memory.
    fn clear(&mut self);
}

impl<S: Store> Block<S> {
    fn begin(&mut self, number: u32, packets: Option<u32>) {
        let mut store = std::mem::take(&mut self.store);
        store.clear();
        *self = Self {
            number,
            packets,
            store,
            ..Self::default()
        };
    }
}

impl<S> Block<S> {
    pub(crate) const fn has(&self, place: u32) -> bool {
        self.seen >> place & 1 == 1
    }

    /// Notes that something has arrived in this place.
    pub(crate) fn mark(&mut self, place: u32, now: Instant) {
        self.seen |= 1 << place;
        let contiguous = self.seen & self.seen.wrapping_add(1) == 0;
        self.gap = if contiguous {
            None
        } else {
            self.gap.or(Some(now))
        };
    }

    /// Its number, modulo the numbers there are.
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// When it was noticed that something is missing.
    pub(crate) fn missing_since(&self, now: Instant) -> Instant {
        self.gap.unwrap_or(now)
    }

    /// The place behind the last that was seen.
    pub(crate) const fn end(&self) -> u32 {
        PLACES - self.seen.leading_zeros()
    }

    /// Packets that are known to be missing from a block that is over, or may go on.
    fn missing(&self, over: bool) -> u32 {
        let sent = match self.packets {
            Some(packets) if over => packets,
            // A block that nobody saw had one packet at least.
            None if over => self.end().max(1),
            Some(packets) => packets.min(self.end()),
            None => self.end(),
        };
        sent - self.here
    }
}

/// The open blocks of a service.
#[derive(Clone, Debug)]
pub(crate) struct Blocks<S> {
    /// Block numbers count modulo this.
    numbers: u32,
    /// Packets of every block, if they are equal.
    packets: Option<u32>,
    ordered: bool,
    /// The newest is the last.
    open: VecDeque<Block<S>>,
    most: usize,
}

impl<S: Store> Blocks<S> {
    pub(crate) fn new(numbers: u32, packets: Option<u32>, live: bool) -> Self {
        let first = Block {
            packets,
            ..Block::default()
        };
        Self {
            numbers,
            packets,
            ordered: !live,
            open: VecDeque::from([first]),
            most: if live { LIVE } else { 1 },
        }
    }

    /// Gives this store with room for so many open blocks.
    pub(crate) fn keeping(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// `a - b` on the circle of numbers.
    const fn distance(&self, a: u32, b: u32) -> u32 {
        if a >= b {
            a - b
        } else {
            a + (self.numbers - b)
        }
    }

    /// The block to which a frame belongs, begun if it is new; none if it is too old. `lost` grows
    /// by the packets of blocks that are closed thereby and miss some.
    pub(crate) fn find(
        &mut self,
        number: u32,
        place: u32,
        lost: &mut u64,
    ) -> Option<&mut Block<S>> {
        let newest = self.open.back()?;
        let ahead = self.distance(number, newest.number);
        let newer = if self.ordered {
            ahead != 0 || place < newest.end()
        } else {
            (1..self.numbers / 2).contains(&ahead)
        };
        if newer {
            // The same number again: all others have been used in between.
            let ahead = if ahead == 0 { self.numbers } else { ahead };
            self.advance(newest.number, ahead, lost);
            return self.open.back_mut();
        }
        self.get_mut(number)
    }

    /// The block with this number, if it is open.
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Block<S>> {
        let at = self.place_of(number)?;
        self.open.get_mut(at)
    }

    /// The block with this number, if it is open.
    pub(crate) fn get(&self, number: u32) -> Option<&Block<S>> {
        self.open.get(self.place_of(number)?)
    }

    fn place_of(&self, number: u32) -> Option<usize> {
        let behind = self.distance(self.newest()?, number) as usize;
        (self.open.len() - 1).checked_sub(behind)
    }

    /// The number of the newest block.
    pub(crate) fn newest(&self) -> Option<u32> {
        self.open.back().map(Block::number)
    }

    /// All open blocks, the newest last.
    pub(crate) fn open_mut(&mut self) -> impl Iterator<Item = &mut Block<S>> {
        self.open.iter_mut()
    }

    /// The sender says that it has come to this block: begins it, if it is newer than all that are
    /// open. `lost` grows as with [`find`](Self::find).
    pub(crate) fn reach(&mut self, number: u32, lost: &mut u64) {
        if let Some(newest) = self.newest() {
            let ahead = self.distance(number, newest);
            let newer = self.ordered && self.place_of(number).is_none()
                || (1..self.numbers / 2).contains(&ahead);
            if newer {
                self.advance(newest, ahead, lost);
            }
        }
    }

    /// Begins the block that lies `ahead` of `newest`, and those between as far as they stay open.
    fn advance(&mut self, newest: u32, ahead: u32, lost: &mut u64) {
        let begun = ahead.min(self.most as u32);
        *lost += u64::from(ahead - begun) * u64::from(self.packets.unwrap_or(1));
        for back in (0..begun).rev() {
            let mut block = Block::default();
            if self.open.len() >= self.most
                && let Some(oldest) = self.open.pop_front()
            {
                *lost += u64::from(oldest.missing(true));
                block = oldest;
            }
            let number = u64::from(newest) + u64::from(ahead - back);
            block.begin((number % u64::from(self.numbers)) as u32, self.packets);
            self.open.push_back(block);
        }
    }

    /// Forgets all blocks and begins with the first; returns how many packets are known to be
    /// missing from them.
    pub(crate) fn restart(&mut self) -> u64 {
        let missing = self.open.iter().map(|b| u64::from(b.missing(false))).sum();
        self.open.truncate(1);
        for block in &mut self.open {
            block.begin(0, self.packets);
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Store for () {
        fn clear(&mut self) {}
    }

    const NOW: Instant = Instant::ORIGIN;

    /// The packets lost after frames at these blocks and places.
    fn lost(blocks: &mut Blocks<()>, frames: &[(u32, u32)]) -> u64 {
        let mut lost = 0;
        for (number, place) in frames {
            if let Some(block) = blocks.find(*number, *place, &mut lost)
                && !block.has(*place)
            {
                block.mark(*place, NOW);
                block.here += 1;
            }
        }
        lost
    }

    #[test]
    fn what_is_jumped_over_is_lost() {
        let mut study = Blocks::new(28, Some(8), false);
        assert_eq!(lost(&mut study, &[(0, 0), (0, 1), (0, 7)]), 0);
        assert_eq!(lost(&mut study, &[(1, 0)]), 5);
        assert_eq!(lost(&mut study, &[(4, 0)]), 7 + 2 * 8);
        // Numbers go around the circle, and the same one comes again in the next round.
        assert_eq!(lost(&mut study, &[(0, 3)]), 7 + 23 * 8);
        assert_eq!(lost(&mut study, &[(0, 3)]), 7 + 27 * 8);
        // Of a block without a fixed length only what lies before the last place is known.
        let mut adaptive = Blocks::new(8, None, false);
        assert_eq!(lost(&mut adaptive, &[(0, 0), (0, 2), (2, 0)]), 1 + 1);
        assert_eq!(adaptive.restart(), 0);
    }

    #[test]
    fn live_blocks_stay_open_for_a_while() {
        let mut live = Blocks::new(1 << 20, Some(8), true);
        assert_eq!(lost(&mut live, &[(0, 0), (7, 0), (3, 2), (0, 1)]), 0);
        assert_eq!(lost(&mut live, &[(8, 0)]), 6);
        let mut none = 0;
        assert!(live.find(0, 2, &mut none).is_none());
        assert!(live.find(1, 2, &mut none).is_some());
        assert!(live.find((1 << 20) - 1, 2, &mut none).is_none());
        assert_eq!(none, 0);
        // A number far ahead says that blocks 1 to 8 had three packets, and that 9 to 92 are over as well.
        assert_eq!(lost(&mut live, &[(100, 0)]), 8 * 8 - 3 + 84 * 8);
        // The end of block 100 may not have been sent yet.
        assert_eq!(lost(&mut live, &[(100, 2)]), 0);
        assert_eq!(live.restart(), 1);
    }
}
