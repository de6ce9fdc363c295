//! Frame lengths that follow a link (after Ludwig et al. 1999, section 6, which asks for them and gives no rule).
//!
//! Where the loss of a frame of n blocks is about a + b n, goodput is largest at the root of f / (p b): f the bytes
//! that a frame costs whatever its length, p the user bytes of a block, and b the rate at which bursts begin, which is
//! estimated from what becomes of frames. A failure behind a failure is the same burst and says nothing.
//!
//! The rule takes outcomes and gives lengths; it is bound to neither traces nor time. What it is worth on a trace is
//! computed as in [`retrace`](super::retrace): bytes of a lost frame are cut anew, and an outcome is known one loop later.

use std::collections::VecDeque;

use super::Blocks;
use super::retrace::Overhead;

/// Chooses how many blocks the next frame has.
#[derive(Clone, Debug)]
pub struct FrameLength {
    shortest: u32,
    longest: u32,
    /// f / p.
    cost: f64,
    /// Estimate of b, per block.
    begins: f64,
    /// The frame before was lost.
    failed: bool,
}

/// Blocks over which the estimate forgets: 6 s of blocks of 20 ms.
const MEMORY: f64 = 300.0;
/// Before anything is known: a link of medium quality.
const FIRST: f64 = 0.004;
/// Below it no frame of a sensible length would notice.
const LEAST: f64 = 1e-9;

impl FrameLength {
    /// Between two lengths, where a frame costs `fixed` bytes and a block carries `block` bytes of a user.
    pub const fn new([shortest, longest]: [u32; 2], fixed: f64, block: f64) -> Self {
        Self {
            shortest,
            longest,
            cost: fixed / block,
            begins: FIRST,
            failed: false,
        }
    }

    /// How many blocks the next frame should have.
    pub fn length(&self) -> u32 {
        let best = libm::round(libm::sqrt(self.cost / self.begins.max(LEAST)));
        // A float beyond the largest number becomes that number.
        (best as u32).clamp(self.shortest, self.longest)
    }

    /// A frame of so many blocks was lost, or came.
    pub fn outcome(&mut self, blocks: u32, lost: bool) {
        let behind = std::mem::replace(&mut self.failed, lost);
        if lost && behind {
            return;
        }
        let blocks = f64::from(blocks.max(1));
        let begun = if lost { 1.0 / blocks } else { 0.0 };
        self.begins += -libm::expm1(-blocks / MEMORY) * (begun - self.begins);
    }
}

/// Lengths that Ludwig et al. have: up to the best one of their best link.
pub const LENGTHS: [u32; 2] = [1, 47];
/// Blocks until an outcome is known: a loop over interleaving both ways.
pub const LOOP: u32 = 14;

impl Blocks {
    /// Goodput, in bytes per second, of frames whose length follows the trace.
    pub fn adaptive(&self, lengths: [u32; 2], overhead: Overhead, known_after: u32) -> f64 {
        let block = self.header.size.as_bytes() as f64;
        let [one, two] = [overhead.bytes(2), overhead.bytes(3)];
        // What is not in proportion to the length.
        let (each, fixed) = (two - one, 3.0 * one - 2.0 * two);
        let mut rule = FrameLength::new(lengths, fixed, block - each);
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

    /// Goodput, in bytes per second, if somebody knew the best length of each piece of so many blocks: a bound that no rule which
    /// waits for a piece to end can reach.
    pub fn oracle(&self, piece: u32, lengths: [u32; 2], overhead: Overhead) -> f64 {
        let piece = piece.max(lengths[1]);
        let (mut rest, mut sum, mut time) = (self.clone(), 0.0, 0.0);
        while rest.len() >= piece {
            let [now, behind] = rest.split(piece);
            rest = behind;
            let best = now.best_frame(lengths[0]..=lengths[1], overhead);
            let span = now.duration().as_secs_f64();
            sum += best.map_or(0.0, |best| best.goodput) * span;
            time += span;
        }
        sum / time
    }
}
