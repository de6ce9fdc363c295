//! The open blocks of an erasure code at the receiver, and what has arrived of each.
//!
//! Study links keep frames in order, so only one block is open, and a position at or before the last one
//! received belongs to a later block with the same number. Live paths reorder and duplicate: there numbers
//! are wide, received positions are marked, and the last few blocks stay open. A frame of any other block is
//! refused, because its packet may have been delivered already.

use std::collections::VecDeque;

use airlane_base::Instant;

/// Maximum number of positions in a block.
pub(crate) const PLACES: u32 = u128::BITS;
/// The longest block of packets that one parity protects: the parity needs a position too.
pub(crate) const MOST_PACKETS: u32 = PLACES - 1;
/// Number of blocks that stay open on a live path.
const LIVE: usize = 8;

/// One block. `S` stores what is kept of its frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block<S> {
    number: u32,
    /// Positions received or recovered, one bit each.
    pub(crate) seen: u128,
    /// Number of packets that the sender put into it, where known; they take the first positions.
    pub(crate) packets: Option<u32>,
    /// Number of packets received or recovered.
    pub(crate) here: u32,
    /// When a loss was detected.
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

    /// Marks a position as received.
    pub(crate) fn mark(&mut self, place: u32, now: Instant) {
        self.seen |= 1 << place;
        let contiguous = self.seen & self.seen.wrapping_add(1) == 0;
        self.gap = if contiguous {
            None
        } else {
            self.gap.or(Some(now))
        };
    }

    /// Its number, modulo the number space.
    pub(crate) const fn number(&self) -> u32 {
        self.number
    }

    /// When a loss was detected.
    pub(crate) fn missing_since(&self, now: Instant) -> Instant {
        self.gap.unwrap_or(now)
    }

    /// The position after the last one received.
    pub(crate) const fn end(&self) -> u32 {
        PLACES - self.seen.leading_zeros()
    }

    /// Packets known to be missing from a block that is complete at the sender (`over`) or may continue.
    fn missing(&self, over: bool) -> u32 {
        let sent = match self.packets {
            Some(packets) if over => packets,
            // A block of which nothing arrived had at least one packet.
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
    /// Modulus of block numbers.
    numbers: u32,
    /// Packets per block, if all blocks are equal.
    packets: Option<u32>,
    ordered: bool,
    /// In order; the newest is last.
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

    /// The same with room for this many open blocks.
    pub(crate) fn keeping(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// `a - b` in the circular number space.
    const fn distance(&self, a: u32, b: u32) -> u32 {
        if a >= b {
            a - b
        } else {
            a + (self.numbers - b)
        }
    }

    /// The block of a frame, which is opened if it is new; none if it is too old. `lost` grows by the missing
    /// packets of blocks that are closed by this.
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
        let age = self.distance(self.newest()?, number) as usize;
        (self.open.len() - 1).checked_sub(age)
    }

    /// The number of the newest block.
    pub(crate) fn newest(&self) -> Option<u32> {
        self.open.back().map(Block::number)
    }

    /// All open blocks, the newest last.
    pub(crate) fn open_mut(&mut self) -> impl Iterator<Item = &mut Block<S>> {
        self.open.iter_mut()
    }

    /// The sender has reached this block: opens it, if it is newer than all open blocks. `lost` grows as with
    /// [`find`](Self::find).
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

    /// Opens the block `ahead` of `newest`, and as many of those in between as can stay open.
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

    /// Forgets all blocks and starts with the first; returns the number of packets known to be missing from
    /// them.
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

    /// The packets lost after frames at these blocks and positions.
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
    fn skipped_frames_count_as_lost() {
        let mut study = Blocks::new(28, Some(8), false);
        assert_eq!(lost(&mut study, &[(0, 0), (0, 1), (0, 7)]), 0);
        assert_eq!(lost(&mut study, &[(1, 0)]), 5);
        assert_eq!(lost(&mut study, &[(4, 0)]), 7 + 2 * 8);
        // Numbers wrap around, and the same one recurs in the next round.
        assert_eq!(lost(&mut study, &[(0, 3)]), 7 + 23 * 8);
        assert_eq!(lost(&mut study, &[(0, 3)]), 7 + 27 * 8);
        // Without a fixed length, only losses before the last received position are known.
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
        // A number far ahead shows that blocks 1 to 8 had three packets, and that 9 to 92 are complete as
        // well.
        assert_eq!(lost(&mut live, &[(100, 0)]), 8 * 8 - 3 + 84 * 8);
        // The end of block 100 may not have been sent yet.
        assert_eq!(lost(&mut live, &[(100, 2)]), 0);
        assert_eq!(live.restart(), 1);
    }
}
