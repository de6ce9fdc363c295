//! The recent loss rate.

/// The loss rate by bytes, with exponentially decaying weights.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecayedLoss {
    /// Weighted bytes lost.
    pub lost: f64,
    /// Weighted bytes sent.
    pub all: f64,
}

impl DecayedLoss {
    /// Adds `lost` out of `all` bytes; bytes sent `memory` bytes earlier weigh about a third.
    pub fn add(&mut self, lost: f64, all: f64, memory: f64) {
        let keeps = memory / (memory + all);
        self.lost = (self.lost + lost) * keeps;
        self.all = (self.all + all) * keeps;
    }

    /// The share of bytes lost; zero if nothing was sent.
    pub fn ratio(self) -> f64 {
        if self.all > 0.0 {
            self.lost / self.all
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_losses_count_most() {
        let mut loss = DecayedLoss::default();
        assert_eq!(loss.ratio(), 0.0);
        (0..100).for_each(|_| loss.add(100.0, 1_000.0, 10_000.0));
        assert!((loss.ratio() - 0.1).abs() < 1e-9, "{}", loss.ratio());
        (0..10).for_each(|_| loss.add(0.0, 1_000.0, 10_000.0));
        assert!((0.03..0.05).contains(&loss.ratio()), "{}", loss.ratio());
    }
}
