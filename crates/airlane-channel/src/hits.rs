//! Which bytes of a damaged frame are hit, given that at least one is.
//!
//! Bit errors are independent, so the bytes that they hit are points of a process whose intensity
//! is known piece by piece: -8 ln(1 - BER) for each byte in the state that it meets. The first byte
//! is drawn under the condition that there is one, by inversion of the exponential distribution cut
//! off at the end of the frame, the others at free exponential distances. What a byte that was hit
//! becomes is drawn evenly from the other 255 values: codes of bytes and checks see no difference.

use airlane_base::{Damage, Rng};

/// Intensity of a byte that is certainly hit; a bit error rate of 1 would make it infinite.
const CERTAIN: f64 = 1e9;

/// A part of the frame with one intensity of errors.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Where it ends, bytes from the start of the frame.
    end: f64,
    /// Hits for each byte.
    rate: f64,
}

/// What a model knows about the frame that is being sent.
#[derive(Clone, Debug)]
pub(crate) struct Hits {
    rng: Rng,
    pieces: Vec<Piece>,
    /// Places that the model itself has drawn.
    known: Vec<f64>,
}

impl Hits {
    pub(crate) const fn new(rng: Rng) -> Self {
        Self {
            rng,
            pieces: Vec::new(),
            known: Vec::new(),
        }
    }

    /// A new frame.
    pub(crate) fn begin(&mut self) {
        self.pieces.clear();
        self.known.clear();
    }

    /// From where the last piece ended to `end`, bytes are hit with this intensity.
    pub(crate) fn piece(&mut self, end: f64, rate: f64) {
        let rate = rate.clamp(0.0, CERTAIN);
        self.pieces.push(Piece { end, rate });
    }

    /// The byte at this place is hit.
    pub(crate) fn at(&mut self, place: f64) {
        self.known.push(place);
    }

    /// Draws the bytes of a frame of `len` bytes that are hit; at least one.
    pub(crate) fn draw(&mut self, len: usize) -> Box<Damage> {
        let mut damage = Damage::default();
        let mut next = 0;
        let mut hit = |rng: &mut Rng, place: f64| {
            let place = (place as usize).min(len.saturating_sub(1));
            if place >= next {
                damage.hit(place, 1 + (rng.next_u64() % 255) as u8);
                next = place + 1;
            }
            next as f64
        };
        for place in &self.known {
            hit(&mut self.rng, *place);
        }
        if self.known.is_empty() {
            let all = self.before(len as f64);
            let mut at = -libm::log1p(self.rng.uniform() * libm::expm1(-all));
            while let Some(place) = self.place(at) {
                let next = hit(&mut self.rng, place);
                at = self.before(next) + self.rng.exponential(1.0);
            }
        }
        Box::new(damage)
    }

    /// Hits to be expected before a place.
    fn before(&self, place: f64) -> f64 {
        let mut start = 0.0;
        let mut sum = 0.0;
        for piece in &self.pieces {
            sum += (piece.end.min(place) - start).max(0.0) * piece.rate;
            start = piece.end;
        }
        sum
    }

    /// The place before which so many hits are to be expected; none behind the end.
    fn place(&self, mut expected: f64) -> Option<f64> {
        let mut start = 0.0;
        for piece in &self.pieces {
            let here = (piece.end - start) * piece.rate;
            if expected < here {
                return Some(start + expected / piece.rate);
            }
            expected -= here;
            start = piece.end;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::Streams;

    fn hits() -> Hits {
        Hits::new(Streams::new(3, 0).stream("test.damage"))
    }

    /// Bytes hit in frames of 100 bytes of which the last 20 meet ten times the intensity, under the
    /// condition that at least one is: the closed form for each byte.
    #[test]
    fn every_byte_is_hit_as_often_as_its_errors_say() {
        let mut hits = hits();
        let (mut count, mut damaged) = ([0u32; 100], 0);
        let frames = 40_000;
        for _ in 0..frames {
            hits.begin();
            hits.piece(80.0, 0.002);
            hits.piece(100.0, 0.02);
            let damage = hits.draw(100);
            assert!(!damage.is_empty());
            damaged += damage.bytes().len();
            damage.bytes().iter().for_each(|(at, _)| count[*at] += 1);
        }
        let any = -libm::expm1(-(80.0 * 0.002 + 20.0 * 0.02));
        let expect = |rate: f64| -libm::expm1(-rate) / any;
        for (part, rate) in [(&count[..80], 0.002), (&count[80..], 0.02)] {
            let mean =
                f64::from(part.iter().sum::<u32>()) / (part.len() as f64 * f64::from(frames));
            let expected = expect(rate);
            assert!((mean / expected - 1.0).abs() < 0.03, "{mean} of {expected}");
        }
        let all = damaged as f64 / f64::from(frames);
        assert!((all - 80.0 * expect(0.002) - 20.0 * expect(0.02)).abs() < 0.02);
    }

    #[test]
    fn certain_errors_hit_every_byte() {
        let mut hits = hits();
        hits.begin();
        hits.piece(3.0, 0.0);
        hits.piece(10.0, f64::INFINITY);
        let damage = hits.draw(10);
        let places: Vec<usize> = damage.bytes().iter().map(|(at, _)| *at).collect();
        assert_eq!(places, [3, 4, 5, 6, 7, 8, 9]);
    }
}
