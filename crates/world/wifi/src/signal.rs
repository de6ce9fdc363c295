//! Frames with a weak signal: their SNR, and which of them are lost.

use std::collections::BTreeMap;

use airlane_base::Rng;

use crate::errors::ln_bit_success;
use crate::place::SignalChange;
use crate::profile::Modulation;

/// Constant noise, and changes of the signal.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalConfig {
    /// Power of the noise, watts.
    pub noise_w: f64,
    /// The pairs of stations whose signal changes, and how.
    pub changes: Vec<SignalChange>,
}

/// Decides which frames survive noise.
#[derive(Clone, Debug)]
pub(crate) struct Signal {
    noise_w: f64,
    /// Logarithm of a bit's success probability, by modulation and SNR: few of either occur.
    known: BTreeMap<(u64, u64), f64>,
}

impl Signal {
    pub(crate) fn new(noise_w: f64) -> Self {
        Self {
            noise_w,
            known: BTreeMap::new(),
        }
    }

    /// Whether a frame of this many bytes is lost that arrives with this power.
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
