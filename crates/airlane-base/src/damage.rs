//! What a link did to the bytes of a frame that arrives all the same.

/// Bytes of a frame that arrive changed: where, and what was added to them modulo 2.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// In ascending order of places, none twice, none unchanged.
    bytes: Vec<(usize, u8)>,
}

impl Damage {
    /// Changes one byte more, which lies behind all that are changed already.
    ///
    /// # Panics
    /// In debug builds, if it does not, or if nothing is changed.
    pub fn hit(&mut self, place: usize, change: u8) {
        debug_assert!(change != 0, "a byte is not changed by nothing");
        debug_assert!(self.bytes.last().is_none_or(|(last, _)| *last < place));
        self.bytes.push((place, change));
    }

    /// Places and changes, ascending.
    pub fn bytes(&self) -> &[(usize, u8)] {
        &self.bytes
    }

    /// Whether every byte arrives as it left.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Changes `bytes`, which begin at the byte `from` of the frame.
    pub fn apply(&self, from: usize, bytes: &mut [u8]) {
        let first = self.bytes.partition_point(|(place, _)| *place < from);
        for (place, change) in &self.bytes[first..] {
            match bytes.get_mut(place - from) {
                Some(byte) => *byte ^= change,
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_of_a_frame_gets_its_own_changes() {
        let mut damage = Damage::default();
        for (place, change) in [(0, 1), (3, 2), (4, 255), (9, 7)] {
            damage.hit(place, change);
        }
        let mut piece = [0; 4];
        damage.apply(3, &mut piece);
        assert_eq!(piece, [2, 255, 0, 0]);
        let mut behind = [5; 3];
        damage.apply(10, &mut behind);
        assert_eq!(behind, [5; 3]);
    }
}
