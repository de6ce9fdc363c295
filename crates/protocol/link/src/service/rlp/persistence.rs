//! How often a receiver asks for a frame: always the same, or as follows from how much may be lost for good.
//!
//! Of all frames p are missed, and of all requests q bring nothing: after k requests p q^k are lost. Both are measured, and k
//! is the least that leaves no more than shall be. What is asked for in one burst fails together, and q says so.

/// Shares are in units of 2^-32.
const ONE: u64 = 1 << 32;
/// Weights of one frame and of one request, as powers of two.
const FRAME: u32 = 10;
const REQUEST: u32 = 6;
/// Before anything is known.
const MISSED: u64 = ONE / 32;
const IN_VAIN: u64 = ONE / 4;
/// Nobody asks more often: what fails so often is no loss but an outage.
const MOST: u32 = 20;

/// How often to ask.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) enum Asks {
    Always(u32),
    /// Until no more than its share is left to be lost for good.
    UntilLeft(Persistence),
}

impl Asks {
    /// A frame has come for the first time, or is missed.
    pub(super) fn note_frame(&mut self, missed: bool) {
        if let Self::UntilLeft(persistence) = self {
            follow(&mut persistence.missed, missed, FRAME);
        }
    }

    /// A request was answered, or was not in its time.
    pub(super) fn note_request(&mut self, in_vain: bool) {
        if let Self::UntilLeft(persistence) = self {
            follow(&mut persistence.in_vain, in_vain, REQUEST);
        }
    }

    /// How often, at most, as it is now.
    pub(super) fn at_most(&self) -> u32 {
        match self {
            Self::Always(often) => *often,
            Self::UntilLeft(persistence) => persistence.requests(),
        }
    }

    /// How often it may ever be.
    pub(super) fn ever(&self) -> u32 {
        match self {
            Self::Always(often) => *often,
            Self::UntilLeft(_) => MOST,
        }
    }
}

/// Measures what is missed, and says how often to ask.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Persistence {
    /// Lost for good, at most.
    residual: u64,
    missed: u64,
    in_vain: u64,
}

impl Persistence {
    pub(super) fn new(residual: f64) -> Self {
        Self {
            // A float that is too large becomes the largest number.
            residual: (residual * ONE as f64) as u64,
            missed: MISSED,
            in_vain: IN_VAIN,
        }
    }

    fn requests(&self) -> u32 {
        let mut left = self.missed;
        for asked in 1..MOST {
            left = left * self.in_vain / ONE;
            if left <= self.residual {
                return asked;
            }
        }
        MOST
    }
}

/// Moves a share towards what has happened.
fn follow(share: &mut u64, happened: bool, weight: u32) {
    *share -= *share >> weight;
    *share += if happened { ONE >> weight } else { 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_requests_as_it_takes() {
        for (missed, in_vain, residual, requests) in [
            (10, 10, 0.02, 1),
            (10, 10, 0.002, 2),
            (10, 10, 0.000_2, 3),
            (5, 2, 0.001, 8),
            (2, 1, 0.001, MOST),
        ] {
            let mut asks = Asks::UntilLeft(Persistence::new(residual));
            for n in 0..20_000 {
                asks.note_frame(n % missed == 0);
                asks.note_request(n % in_vain == 0);
            }
            assert_eq!(asks.at_most(), requests, "{missed} {in_vain} {residual}");
        }
    }
}
