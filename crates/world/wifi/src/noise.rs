//! Frames lost without a collision: noise that is on and off in phases of fixed length.
//!
//! The phases depend on time alone, and each station draws from a random stream of its own. So two runs with the same
//! seed have the same phases, whatever is sent.

use airlane_base::{Duration, Instant, Probability, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Noise that switches on and off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NoiseConfig {
    /// A frame that arrives while the noise is on is lost with this probability, each by itself.
    pub loss: Probability,
    /// The noise is on for this long.
    pub on: Duration,
    /// The noise is off for this long; zero is for noise that never ends.
    pub off: Duration,
    /// Nothing is lost before this time; the first phase begins here.
    #[serde(default)]
    pub from: Duration,
    /// Nothing is lost from this time on. Left out: the noise never ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Duration>,
    /// Whether the first phase is one with noise. Source: Gopal 2007, section 2.5.2, does not say. Left
    /// out: it is one without.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_first: bool,
    /// Whether acknowledgments, RTS and CTS are lost, too. Left out: where frames are sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<bool>,
}

impl NoiseConfig {
    /// Whether the noise is on.
    pub fn is_on(&self, now: Instant) -> bool {
        let from = Instant::ORIGIN + self.from;
        let over = self.to.is_some_and(|to| now >= Instant::ORIGIN + to);
        if now < from || over {
            return false;
        }
        let period = self.on + self.off;
        if self.off == Duration::ZERO || period == Duration::ZERO {
            return self.on > Duration::ZERO;
        }
        let phase = now.saturating_since(from).as_nanos() % period.as_nanos();
        match self.on_first {
            true => phase < self.on.as_nanos(),
            false => phase >= self.off.as_nanos(),
        }
    }

    /// Whether a frame that ends now is lost.
    pub(crate) fn destroys(&self, now: Instant, rng: &mut Rng) -> bool {
        self.is_on(now) && rng.chance(self.loss.value())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_the_clock() {
        let mut noise = NoiseConfig {
            loss: Probability::new(0.4).unwrap(),
            on: Duration::from_millis(100),
            off: Duration::from_millis(300),
            from: Duration::from_secs(1),
            to: Some(Duration::from_secs(2)),
            on_first: false,
            control: None,
        };
        let on = |noise: &NoiseConfig, ms: u64| noise.is_on(Instant::from_nanos(ms * 1_000_000));
        assert!(!on(&noise, 999) && !on(&noise, 1_299) && on(&noise, 1_300));
        assert!(on(&noise, 1_399) && !on(&noise, 1_400) && !on(&noise, 2_100));
        noise.on_first = true;
        assert!(on(&noise, 1_000) && on(&noise, 1_099) && !on(&noise, 1_100));
    }
}
