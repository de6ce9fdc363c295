//! A token-bucket policer, as an operator uses to enforce a tariff: what exceeds it is dropped at once, and nothing is
//! queued.
//!
//! ```toml
//! police = { rate = "30 Mbit/s", burst = "60 kB" }               # in each direction
//! police = { down = { rate = "30 Mbit/s", burst = "60 kB" } }    # or one way
//! ```

use airlane_base::{Bucket, Duration, Rate, Size};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token bucket that pays for frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicerConfig {
    /// The bucket fills at this rate.
    pub rate: Rate,
    /// The bucket holds this much: a frame that is longer never passes.
    #[schemars(extend("examples" = ["60 kB"]))]
    pub burst: Size,
}

impl PolicerConfig {
    /// The token bucket, initially full.
    pub fn bucket(&self) -> Bucket {
        let burst = usize::try_from(self.burst.as_bytes()).unwrap_or(usize::MAX);
        Bucket::new(self.rate, Duration::ZERO, burst)
    }
}

/// The policers of a duplex link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "police has a `rate` and a `burst`, or these for `down`, `up` or both"
)]
pub enum PoliceConfig {
    /// The same each way.
    Both(PolicerConfig),
    /// One for each direction that is named.
    Each {
        /// From the first end to the second.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        down: Option<PolicerConfig>,
        /// From the second end to the first.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        up: Option<PolicerConfig>,
    },
}

impl PoliceConfig {
    /// The policer of one direction.
    pub const fn of(&self, down: bool) -> Option<PolicerConfig> {
        match self {
            Self::Both(both) => Some(*both),
            Self::Each { down: way, .. } if down => *way,
            Self::Each { up, .. } => *up,
        }
    }

    /// The first burst that a frame of `longest` bytes exceeds, if any.
    pub fn too_short(&self, longest: u64) -> Option<Size> {
        let ways = [true, false].into_iter().filter_map(|down| self.of(down));
        ways.map(|way| way.burst)
            .find(|burst| burst.as_bytes() < longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct File {
        police: PoliceConfig,
    }

    #[test]
    fn one_for_both_directions_or_one_for_each() {
        let read = |text: &str| toml::from_str::<File>(text).map(|file| file.police);
        let both = read("police = { rate = '2 Mbit/s', burst = '30 kB' }").unwrap();
        assert_eq!(both.of(true), both.of(false));
        let down = read("police.down = { rate = '2 Mbit/s', burst = '30 kB' }").unwrap();
        assert_eq!((down.of(true), down.of(false)), (both.of(true), None));
        assert_eq!(
            (down.too_short(30_000), down.too_short(30_001)),
            (None, Some(Size::from_bytes(30_000)))
        );
        let wrong = read("police = { rate = '2 Mbit/s', bursts = '30 kB' }").unwrap_err();
        assert!(wrong.to_string().contains("a `burst`"), "{wrong}");
    }
}
