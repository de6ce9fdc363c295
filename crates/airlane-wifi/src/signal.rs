//! Frames that come too weakly: how much stronger than the noise a station hears another, by distance and by what was
//! recorded, and which frames that costs.

use std::collections::BTreeMap;

use airlane_base::{Instant, Rng};

use crate::errors::ln_bit_success;
use crate::place::Places;
use crate::profile::Modulation;

/// Noise that is always there, and how signals change.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalConfig {
    /// Power of the noise, watts.
    pub noise_w: f64,
    /// Between which stations signals change, and how.
    pub changes: Vec<SignalChange>,
}

/// How the signal between two stations differs from what their distance gives, both ways.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalChange {
    /// The stations.
    pub between: [usize; 2],
    /// From each time on so many decibels more, in order of time.
    pub trace: Vec<(Instant, f64)>,
}

/// What signals are, and what they let through.
#[derive(Clone, Debug)]
pub(crate) struct Signal {
    config: SignalConfig,
    /// Which change is between two stations, by `from * stations + to`.
    change: Vec<Option<usize>>,
    stations: usize,
    /// The logarithm of a bit's chance, by modulation and SNR: few of either occur.
    known: BTreeMap<(u64, u64), f64>,
}

impl Signal {
    pub(crate) fn new(config: SignalConfig, stations: usize) -> Self {
        let mut change = vec![None; stations * stations];
        for (
            i,
            SignalChange {
                between: [a, b], ..
            },
        ) in config.changes.iter().enumerate()
        {
            for (from, to) in [(a, b), (b, a)] {
                change[from * stations + to] = Some(i);
            }
        }
        Self {
            config,
            change,
            stations,
            known: BTreeMap::new(),
        }
    }

    /// How much stronger than the noise a frame is.
    fn snr(&self, now: Instant, places: &Places, from: usize, to: usize) -> f64 {
        let change = self.change[from * self.stations + to].map_or(0.0, |i| {
            let trace = &self.config.changes[i].trace;
            let behind = trace.partition_point(|(at, _)| *at <= now);
            behind.checked_sub(1).map_or(0.0, |at| trace[at].1)
        });
        places.power(from, to) / self.config.noise_w * libm::pow(10.0, change / 10.0)
    }

    /// Whether a frame of so many bytes is lost that ends now.
    pub(crate) fn loses(
        &mut self,
        now: Instant,
        places: &Places,
        (from, to): (usize, usize),
        (modulation, bytes): (Modulation, usize),
        rng: &mut Rng,
    ) -> bool {
        let snr = self.snr(now, places, from, to);
        let key = (modulation.bits_per_second(), snr.to_bits());
        let bit = self.known.entry(key);
        let bit = bit.or_insert_with(|| ln_bit_success(modulation, snr));
        rng.chance(-libm::expm1(*bit * bytes as f64 * 8.0))
    }
}
