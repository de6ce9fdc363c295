//! The number of a receiver's requests for a frame: fixed, or derived from the target for residual loss.
//!
//! A fraction p of all frames is missed, and a fraction q of all requests fails: after k requests p q^k are
//! lost. Both are measured, and k is the smallest number that meets the target. Requests in one burst fail
//! together, which q includes.

/// Shares are in units of 2^-32.
const ONE: u64 = 1 << 32;
/// Weights of one frame and of one request, as negative powers of two.
const FRAME: u32 = 10;
const REQUEST: u32 = 6;
/// Assumptions before anything is measured.
const MISSED: u64 = ONE / 32;
const IN_VAIN: u64 = ONE / 4;
/// Upper bound of requests: what fails so often is not a loss but an outage.
const MOST: u32 = 20;

/// The policy for the number of requests.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) enum Asks {
    Always(u32),
    /// As many as the target for residual loss requires.
    UntilLeft(Persistence),
}

impl Asks {
    /// Records that a frame has arrived for the first time, or is missed.
    pub(super) fn note_frame(&mut self, missed: bool) {
        if let Self::UntilLeft(persistence) = self {
            follow(&mut persistence.missed, missed, FRAME);
        }
    }

    /// Records that a request was answered, or not within its time.
    pub(super) fn note_request(&mut self, in_vain: bool) {
        if let Self::UntilLeft(persistence) = self {
            follow(&mut persistence.in_vain, in_vain, REQUEST);
        }
    }

    /// The present maximum number of requests.
    pub(super) fn at_most(&self) -> u32 {
        match self {
            Self::Always(often) => *often,
            Self::UntilLeft(persistence) => persistence.requests(),
        }
    }

    /// The maximum number of requests at any time.
    pub(super) fn ever(&self) -> u32 {
        match self {
            Self::Always(often) => *often,
            Self::UntilLeft(_) => MOST,
        }
    }
}

/// Measures the loss, and derives the number of requests.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Persistence {
    /// Target for the share of frames lost for good.
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

/// Updates an average with one outcome.
fn follow(share: &mut u64, happened: bool, weight: u32) {
    *share -= *share >> weight;
    *share += if happened { ONE >> weight } else { 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_repeated_until_the_residual_target() {
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
