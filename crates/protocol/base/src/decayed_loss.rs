//! What part of what was sent is lost of late.

/// What part of the bytes is lost, of which old ones count less.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecayedLoss {
    /// So many were lost,
    pub lost: f64,
    /// of so many.
    pub all: f64,
}

impl DecayedLoss {
    /// Adds what was lost of so much; what came `memory` before counts about a third.
    pub fn add(&mut self, lost: f64, all: f64, memory: f64) {
        let keeps = memory / (memory + all);
        self.lost = (self.lost + lost) * keeps;
        self.all = (self.all + all) * keeps;
    }

    /// What part is lost, and none of nothing.
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
    fn what_is_lost_of_late_counts_most() {
        let mut loss = DecayedLoss::default();
        assert_eq!(loss.ratio(), 0.0);
        (0..100).for_each(|_| loss.add(100.0, 1_000.0, 10_000.0));
        assert!((loss.ratio() - 0.1).abs() < 1e-9, "{}", loss.ratio());
        (0..10).for_each(|_| loss.add(0.0, 1_000.0, 10_000.0));
        assert!((0.03..0.05).contains(&loss.ratio()), "{}", loss.ratio());
    }
}
