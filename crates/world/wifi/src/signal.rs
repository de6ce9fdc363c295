//! Frames that come too weakly: how much stronger than the noise they are, and which of them that costs.

use std::collections::BTreeMap;

use airlane_base::Rng;

use crate::errors::ln_bit_success;
use crate::place::SignalChange;
use crate::profile::Modulation;

/// Noise that is always there, and how signals change.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalConfig {
    /// Power of the noise, watts.
    pub noise_w: f64,
    /// Between which stations signals change, and how.
    pub changes: Vec<SignalChange>,
}

/// Which frames noise lets through.
#[derive(Clone, Debug)]
pub(crate) struct Signal {
    noise_w: f64,
    /// The logarithm of a bit's chance, by modulation and SNR: few of either occur.
    known: BTreeMap<(u64, u64), f64>,
}

impl Signal {
    pub(crate) fn new(noise_w: f64) -> Self {
        Self {
            noise_w,
            known: BTreeMap::new(),
        }
    }

    /// Whether a frame of so many bytes is lost that comes with this power.
    pub(crate) fn loses(
        &mut self,
        power_w: f64,
        modulation: Modulation,
        bytes: usize,
        rng: &mut Rng,
    ) -> bool {
        let snr = power_w / self.noise_w;
        let key = (modulation.bits_per_second(), snr.to_bits());
        let bit = self.known.entry(key);
        let bit = bit.or_insert_with(|| ln_bit_success(modulation, snr));
        rng.chance(-libm::expm1(*bit * bytes as f64 * 8.0))
    }
}
