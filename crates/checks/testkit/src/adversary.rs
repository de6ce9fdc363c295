//! What a channel does to frames.

use airlane_base::{Duration, Instant, Rng, Streams};
use airlane_link::Frame;

use crate::TestPacket;

/// The fate of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fate {
    /// It is lost.
    Lose,
    /// It arrives, delayed by this much.
    Deliver(Duration),
    /// It arrives twice, with these delays.
    Twice(Duration, Duration),
}

impl Fate {
    /// It arrives on time.
    pub const ARRIVE: Self = Self::Deliver(Duration::ZERO);
}

/// A frame that leaves.
#[derive(Clone, Copy, Debug)]
pub struct FrameDeparture<'a> {
    /// The end that sends it, 0 or 1.
    pub from: usize,
    /// When it leaves.
    pub now: Instant,
    /// How many frames this end has sent before.
    pub ordinal: u64,
    /// The frame.
    pub frame: &'a Frame<TestPacket>,
}

/// Decides the fate of every frame. A closure is an adversary.
pub trait Adversary {
    /// The fate of a frame.
    fn fate(&mut self, departure: FrameDeparture<'_>) -> Fate;
}

impl<F: FnMut(FrameDeparture<'_>) -> Fate> Adversary for F {
    fn fate(&mut self, departure: FrameDeparture<'_>) -> Fate {
        self(departure)
    }
}

/// A fixed sequence of fates for both directions together; afterwards everything arrives.
#[derive(Clone, Debug)]
pub struct Scripted {
    script: Vec<Fate>,
    at: usize,
}

impl Scripted {
    /// Follows the script once.
    pub fn new(script: Vec<Fate>) -> Self {
        Self { script, at: 0 }
    }

    /// Whether everything arrives from now on.
    pub fn is_over(&self) -> bool {
        self.at >= self.script.len()
    }

    /// Lets everything arrive from now on.
    pub fn end(&mut self) {
        self.at = self.script.len();
    }
}

impl Adversary for Scripted {
    fn fate(&mut self, _: FrameDeparture<'_>) -> Fate {
        let fate = self.script.get(self.at).copied().unwrap_or(Fate::ARRIVE);
        self.at += 1;
        fate
    }
}

/// Loses, duplicates and delays at random until a given time; afterwards everything arrives.
#[derive(Clone, Debug)]
pub struct RandomAdversary {
    rng: Rng,
    loss: f64,
    twice: f64,
    jitter: Duration,
    until: Instant,
}

impl RandomAdversary {
    /// Loses frames with this probability, with no end, and does nothing else.
    pub fn losing(seed: u64, loss: f64) -> Self {
        Self {
            rng: Streams::new(seed, 0).stream("adversary"),
            loss,
            twice: 0.0,
            jitter: Duration::ZERO,
            until: Instant::FAR_FUTURE,
        }
    }

    /// Delivers everything from a given time on.
    #[must_use]
    pub fn until(mut self, until: Instant) -> Self {
        self.until = until;
        self
    }

    /// Also duplicates frames with this probability, and delays them by up to `jitter`.
    #[must_use]
    pub fn confusing(mut self, twice: f64, jitter: Duration) -> Self {
        (self.twice, self.jitter) = (twice, jitter);
        self
    }
}

impl Adversary for RandomAdversary {
    fn fate(&mut self, departure: FrameDeparture<'_>) -> Fate {
        let (lost, twice) = (self.rng.chance(self.loss), self.rng.chance(self.twice));
        let mut late = || self.jitter.mul_f64(self.rng.uniform());
        let (first, second) = (late(), late());
        if departure.now >= self.until {
            Fate::ARRIVE
        } else if lost {
            Fate::Lose
        } else if twice {
            Fate::Twice(first, second)
        } else {
            Fate::Deliver(first)
        }
    }
}
