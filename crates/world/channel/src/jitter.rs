//! Delays that differ from frame to frame, as in netem: a frame with a short delay overtakes others.
//!
//! ```toml
//! jitter = { late = "20 ms", share = 0.1 }                    # a tenth of all frames is 20 ms late
//! jitter = { spread = "5 ms", distribution = "normal" }       # each frame is some milliseconds early or late
//! jitter = { down = { spread = "5 ms" } }                     # one direction only
//! ```
//!
//! The distributions are those of netem's tables, as formulas: `normal` and `pareto` are limited to four spreads,
//! `pareto` has the exponent 3 and the mean 0, and `pareto-normal` is three quarters `pareto` and one quarter `normal`.

use airlane_base::{Duration, Instant, Probability, Rng};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the delays of frames vary, in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct JitterConfig {
    /// Delays vary around the link's delay by about this much; no frame arrives before it has left. Left out: 0 s.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(extend("examples" = ["5 ms"]))]
    pub spread: Duration,
    /// How the spread is distributed. Left out: `uniform`.
    #[serde(default, skip_serializing_if = "Distribution::is_usual")]
    pub distribution: Distribution,
    /// Late frames take this much longer than others. Left out: 0 s.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(extend("examples" = ["20 ms"]))]
    pub late: Duration,
    /// This share of all frames is late, independently. Left out: none.
    #[serde(default, skip_serializing_if = "is_never")]
    pub share: Probability,
    /// Frames that would overtake others arrive right after them instead. Left out: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_order: bool,
}

/// How a spread is distributed around the delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// All delays within the spread are equally likely.
    #[default]
    Uniform,
    /// The spread is the standard deviation.
    Normal,
    /// A long tail of late frames.
    Pareto,
    /// A long tail and a rounder body.
    ParetoNormal,
}

impl Distribution {
    /// Draws are limited to this many spreads.
    const MOST: f64 = 4.0;

    fn is_usual(&self) -> bool {
        *self == Self::Uniform
    }

    /// Draws a deviation from the delay, in spreads.
    fn draw(self, random: &mut Rng) -> f64 {
        let pareto = |above: f64| (libm::pow(above, -1.0 / 3.0) - 1.5) * (4.0 / 3.0);
        let drawn = match self {
            Self::Uniform => return 2.0 * random.uniform() - 1.0,
            Self::Normal => random.normal(),
            Self::Pareto => pareto(1.0 - random.uniform()),
            Self::ParetoNormal => {
                let normal = random.normal();
                let above = 0.5 * libm::erfc(normal * std::f64::consts::FRAC_1_SQRT_2);
                0.25 * normal + 0.75 * pareto(above).min(Self::MOST)
            }
        };
        drawn.clamp(-Self::MOST, Self::MOST)
    }
}

fn is_zero(time: &Duration) -> bool {
    *time == Duration::ZERO
}

fn is_never(share: &Probability) -> bool {
    *share == Probability::ZERO
}

impl JitterConfig {
    /// What is wrong with it, and what would be right.
    fn problem(&self) -> Option<[&'static str; 2]> {
        if is_zero(&self.late) != is_never(&self.share) {
            return Some([
                "`late` and `share` mean something together only",
                "late = \"20 ms\", share = 0.1: a tenth of all frames is 20 ms late",
            ]);
        }
        (is_zero(&self.spread) && is_zero(&self.late)).then_some([
            "nothing makes delays differ",
            "a `spread`, or `late` with its `share`, or no jitter",
        ])
    }
}

/// How the delays of frames vary on a duplex link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "jitter has a `spread`, `distribution`, `late`, `share` and `in-order`, or these for `down`, `up` or both"
)]
pub enum LinkJitter {
    /// One for each direction that is named.
    Each {
        /// From the first end to the second.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        down: Option<JitterConfig>,
        /// From the second end to the first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        up: Option<JitterConfig>,
    },
    /// The same each way, drawn independently.
    Both(JitterConfig),
}

impl LinkJitter {
    /// The jitter of one direction.
    pub const fn of(&self, down: bool) -> Option<JitterConfig> {
        match self {
            Self::Both(both) => Some(*both),
            Self::Each { down: way, .. } if down => *way,
            Self::Each { up, .. } => *up,
        }
    }

    /// What is wrong in either direction, and what would be right.
    pub fn problem(&self) -> Option<[&'static str; 2]> {
        let ways = [true, false].into_iter().filter_map(|down| self.of(down));
        ways.clone().find_map(|way| way.problem()).or_else(|| {
            let none = ways.count() == 0;
            none.then_some(["no direction is named", "down, up, or no jitter"])
        })
    }
}

/// Draws the delays of one direction.
#[derive(Clone, Debug)]
pub(crate) struct Jitter {
    config: JitterConfig,
    random: Rng,
}

impl Jitter {
    pub(crate) const fn new(config: JitterConfig, random: Rng) -> Self {
        Self { config, random }
    }

    pub(crate) const fn keeps_order(&self) -> bool {
        self.config.in_order
    }

    /// When a frame arrives that left at `departs` and would arrive at `due` without jitter.
    pub(crate) fn arrival(&mut self, departs: Instant, due: Instant) -> Instant {
        let JitterConfig {
            spread,
            distribution,
            late,
            share,
            in_order: _,
        } = self.config;
        let is_late = !is_zero(&late) && self.random.chance(share.value());
        let due = if is_late { due + late } else { due };
        if is_zero(&spread) {
            return due;
        }
        let drawn = distribution.draw(&mut self.random);
        let by = spread.mul_f64(drawn.abs());
        match drawn < 0.0 {
            true => (due - by.min(due.saturating_since(departs))).max(departs),
            false => due + by,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::Streams;

    #[derive(Debug, Deserialize)]
    struct File {
        jitter: LinkJitter,
    }

    fn read(text: &str) -> Result<LinkJitter, String> {
        let file = toml::from_str::<File>(text);
        file.map(|file| file.jitter).map_err(|e| e.to_string())
    }

    #[test]
    fn one_for_both_directions_or_one_for_each() {
        let both = read("jitter = { late = '20 ms', share = 0.1 }").unwrap();
        assert_eq!(both.of(true), both.of(false));
        assert_eq!(both.problem(), None);
        let down = read("jitter.down = { spread = '5 ms', distribution = 'normal' }").unwrap();
        assert_eq!(down.of(true).unwrap().distribution, Distribution::Normal);
        assert_eq!((down.of(false), down.problem()), (None, None));
        for (text, problem) in [
            ("jitter = { late = '20 ms' }", "`late` and `share`"),
            ("jitter = { share = 0.1 }", "`late` and `share`"),
            ("jitter.up = { distribution = 'normal' }", "differ"),
            ("jitter = {}", "no direction"),
        ] {
            let [wrong, _] = read(text).unwrap().problem().unwrap();
            assert!(wrong.contains(problem), "{text}: {wrong}");
        }
        let wrong = read("jitter = { sprad = '5 ms' }").unwrap_err();
        assert!(wrong.contains("a `spread`"), "{wrong}");
    }

    /// Mean and standard deviation of netem's tables, in spreads, as `maketable` builds them.
    #[test]
    fn distributions_have_their_moments() {
        for (distribution, mean, deviation) in [
            (Distribution::Uniform, 0.0, 1.0 / 3f64.sqrt()),
            (Distribution::Normal, 0.0, 1.0),
            (Distribution::Pareto, -0.05, 0.87),
            (Distribution::ParetoNormal, -0.04, 0.84),
        ] {
            let mut random = Streams::new(1, 0).stream("jitter");
            let n = 200_000;
            let all: Vec<f64> = (0..n).map(|_| distribution.draw(&mut random)).collect();
            let got = all.iter().sum::<f64>() / f64::from(n);
            let squares = all.iter().map(|x| (x - got) * (x - got)).sum::<f64>();
            let spread = (squares / f64::from(n)).sqrt();
            assert!((got - mean).abs() < 0.03, "{distribution:?}: mean {got}");
            assert!(
                (spread - deviation).abs() < 0.05,
                "{distribution:?}: deviation {spread}"
            );
        }
    }

    #[test]
    fn no_frame_arrives_before_it_has_left() {
        let config = JitterConfig {
            spread: Duration::from_millis(50),
            distribution: Distribution::Normal,
            ..JitterConfig::default()
        };
        let mut jitter = Jitter::new(config, Streams::new(1, 0).stream("jitter"));
        let departs = Instant::ORIGIN + Duration::from_millis(3);
        let due = departs + Duration::from_millis(20);
        let all: Vec<_> = (0..1_000).map(|_| jitter.arrival(departs, due)).collect();
        assert!(all.iter().all(|at| *at >= departs));
        assert!(all.contains(&departs) && all.iter().any(|at| *at > due));
    }
}
