//! The goodput on a trace of frames whose length adapts to the link ([`FrameLength`]), computed as in
//! [`retrace`](super::retrace): the bytes of a lost frame are split anew, and an outcome is known one loop later.

use std::collections::VecDeque;

use airlane_base::FrameLength;

use super::Blocks;
use super::retrace::Overhead;

/// The frame lengths of Ludwig et al., in blocks: up to the best one of their best link.
pub const LENGTHS: [u32; 2] = [1, 47];
/// Blocks until an outcome is known: one round trip, with interleaving in both directions.
pub const LOOP: u32 = 14;

impl Blocks {
    /// Goodput, in bytes per second, of frames whose length adapts to the trace.
    pub fn adaptive(&self, lengths: [u32; 2], overhead: Overhead, known_after: u32) -> f64 {
        let block = self.header.size.as_bytes() as f64;
        let [one, two] = [overhead.bytes(2), overhead.bytes(3)];
        // The overhead per block, and the part that does not depend on the length.
        let (each, fixed) = (two - one, 3.0 * one - 2.0 * two);
        let mut rule = FrameLength::new(lengths, fixed, block - each, 1.0);
        let mut pending: VecDeque<(u32, u32, bool)> = VecDeque::new();
        let mut bursts = self.bursts().iter().peekable();
        let (mut at, mut payload) = (0u32, 0.0);
        loop {
            while let Some((_, blocks, lost)) =
                pending.pop_front_if(|(end, ..)| *end + known_after <= at)
            {
                rule.outcome(blocks, lost);
            }
            let n = rule.length();
            if n > self.len() - at {
                break;
            }
            while bursts.next_if(|burst| burst.end() <= at).is_some() {}
            let lost = bursts.peek().is_some_and(|burst| burst.start < at + n);
            if !lost {
                payload += f64::from(n) * block - overhead.bytes(n);
            }
            at += n;
            pending.push_back((at, n, lost));
        }
        payload / (f64::from(at.max(1)) * self.header.block.as_secs_f64())
    }

    /// Goodput, in bytes per second, if the best length for each piece of `piece` blocks were known in advance: an upper
    /// bound for any rule that adapts only after a piece ends.
    pub fn oracle(&self, piece: u32, lengths: [u32; 2], overhead: Overhead) -> f64 {
        let piece = piece.max(lengths[1]);
        let (mut rest, mut sum, mut time) = (self.clone(), 0.0, 0.0);
        while rest.len() >= piece {
            let [now, tail] = rest.split(piece);
            rest = tail;
            let best = now.best_frame(lengths[0]..=lengths[1], overhead);
            let span = now.duration().as_secs_f64();
            sum += best.map_or(0.0, |best| best.goodput) * span;
            time += span;
        }
        sum / time
    }
}
