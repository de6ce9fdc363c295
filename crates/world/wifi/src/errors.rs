//! The probability that a frame survives constant noise, by its modulation and the signal-to-noise ratio (SNR,
//! linear).
//!
//! - 802.11b: differential BPSK in closed form; differential QPSK by the bound of Ferrari and Corazza (2004);
//!   complementary code keying as biorthogonal symbols, after Pursley and Royster (2009). The noise bandwidth is 22
//!   MHz.
//! - 802.11g and n: bit errors of a BPSK, QPSK, 16-QAM or 64-QAM carrier, and the union bound over the distance
//!   spectrum of the convolutional code of constraint length 7 (Frenger, Orten and Ottosson 1999), hard decisions. The
//!   noise bandwidth is 20 MHz.

use std::f64::consts::{PI, SQRT_2};

use crate::profile::Modulation;

/// The noise bandwidth of 802.11b, twice its chip rate.
const SPREAD_HZ: f64 = 22e6;
const CCK_SYMBOLS_HZ: f64 = 1.375e6;
/// A lower success probability per bit counts as none.
const WORST: f64 = 0.5;

/// Natural logarithm of the probability that one bit is received correctly.
pub fn ln_bit_success(modulation: Modulation, snr: f64) -> f64 {
    match modulation {
        Modulation::Dsss { rate, .. } => match rate.as_bps() {
            0..=1_000_000 => libm::log1p(-differential_bpsk(snr * SPREAD_HZ / 1e6)),
            1_000_001..=2_000_000 => libm::log1p(-differential_qpsk(snr * SPREAD_HZ / 2e6)),
            2_000_001..=5_500_000 => cck_half(snr * SPREAD_HZ / CCK_SYMBOLS_HZ / 2.0) / 4.0,
            _ => 2.0 * cck_half(snr * SPREAD_HZ / CCK_SYMBOLS_HZ / 4.0) / 8.0,
        },
        Modulation::Ofdm { bits, .. } => {
            let (constellation, code) = ofdm(bits);
            libm::log1p(-code.errors(constellation.errors(snr)))
        }
    }
}

fn differential_bpsk(bit_to_noise: f64) -> f64 {
    0.5 * libm::exp(-bit_to_noise)
}

fn differential_qpsk(bit_to_noise: f64) -> f64 {
    let x = bit_to_noise.max(1e-9);
    let scale = (SQRT_2 + 1.0) / libm::sqrt(8.0 * PI * SQRT_2 * x);
    (scale * libm::exp(-(2.0 - SQRT_2) * x)).min(WORST)
}

/// Logarithm of the probability that one of 16 biorthogonal symbols is detected correctly.
fn cck_half(symbol_to_noise: f64) -> f64 {
    const STEPS: usize = 400;
    let beta = libm::sqrt(2.0 * symbol_to_noise);
    let density = |x: f64| {
        // None of the other seven pairs has a larger correlation.
        let quieter = 1.0 - libm::erfc((x + beta) / SQRT_2);
        libm::pow(quieter.max(0.0), 7.0) * libm::exp(-x * x / 2.0) / libm::sqrt(2.0 * PI)
    };
    let (from, to) = ((-beta).max(-9.0), 9.0);
    let step = (to - from) / STEPS as f64;
    let inner: f64 = (1..STEPS)
        .map(|i| density(from + step * i as f64) * if i % 2 == 1 { 4.0 } else { 2.0 })
        .sum();
    let mean = (density(from) + inner + density(to)) * step / 3.0;
    libm::log(mean.clamp(1.0 / 16.0, 1.0))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Constellation {
    Bpsk,
    Qpsk,
    Qam16,
    Qam64,
}

impl Constellation {
    /// Bit error rate before decoding.
    fn errors(self, snr: f64) -> f64 {
        let (scale, divisor) = match self {
            Self::Bpsk => (1.0, 1.0),
            Self::Qpsk => (1.0, 2.0),
            Self::Qam16 => (3.0 / 4.0, 10.0),
            Self::Qam64 => (7.0 / 12.0, 42.0),
        };
        0.5 * scale * libm::erfc(libm::sqrt(snr / divisor))
    }
}

/// The convolutional code, punctured to a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Half,
    TwoThirds,
    ThreeQuarters,
    FiveSixths,
}

impl Code {
    /// Bit error rate after decoding.
    fn errors(self, before: f64) -> f64 {
        // Data bits per period, free distance, distance step, and the number of bit errors over all paths of each
        // distance.
        let (period, least, step, weights): (f64, i32, i32, &[f64]) = match self {
            Self::Half => (
                1.0,
                10,
                2,
                &[36.0, 211.0, 1404.0, 11633.0, 77433.0, 502_690.0],
            ),
            Self::TwoThirds => (2.0, 6, 1, &[3.0, 70.0, 285.0, 1276.0, 6160.0, 27128.0]),
            Self::ThreeQuarters => (3.0, 5, 1, &[42.0, 201.0, 1492.0, 10469.0, 62935.0]),
            Self::FiveSixths => (5.0, 4, 1, &[92.0, 528.0, 8694.0, 79453.0, 792_114.0]),
        };
        let base = libm::sqrt(4.0 * before * (1.0 - before));
        let terms = weights.iter().zip(0..).map(|(weight, i)| {
            let distance = least + step * i;
            weight * libm::pow(base, f64::from(distance))
        });
        (terms.sum::<f64>() / (2.0 * period)).min(WORST)
    }
}

/// By the data bits per symbol, of 802.11g and of 802.11n in 20 MHz with one stream; values in between take the next
/// one.
fn ofdm(bits: u32) -> (Constellation, Code) {
    use Code::{FiveSixths, Half, ThreeQuarters, TwoThirds};
    use Constellation::{Bpsk, Qam16, Qam64, Qpsk};
    match bits {
        0..=26 => (Bpsk, Half),
        27..=36 => (Bpsk, ThreeQuarters),
        37..=52 => (Qpsk, Half),
        53..=78 => (Qpsk, ThreeQuarters),
        79..=104 => (Qam16, Half),
        105..=156 => (Qam16, ThreeQuarters),
        157..=208 => (Qam64, TwoThirds),
        209..=234 => (Qam64, ThreeQuarters),
        _ => (Qam64, FiveSixths),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Profile, ProfileName};

    /// The SNR in dB at which a tenth of 1,000-byte frames is lost.
    fn needs(modulation: Modulation) -> f64 {
        let lost = |db: f64| {
            let snr = libm::pow(10.0, db / 10.0);
            1.0 - libm::exp(8_000.0 * ln_bit_success(modulation, snr))
        };
        let (mut low, mut high) = (-20.0, 40.0);
        for _ in 0..50 {
            let middle = (low + high) / 2.0;
            if lost(middle) > 0.1 {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    #[test]
    fn faster_frames_need_more() {
        for name in [ProfileName::B, ProfileName::G, ProfileName::N] {
            let needs: Vec<f64> = Profile::ladder(name).into_iter().map(needs).collect();
            assert!(needs.is_sorted(), "{name:?}: {needs:?}");
        }
    }

    #[test]
    fn closed_forms_hold() {
        let dbpsk = Profile::ladder(ProfileName::B)[0];
        let lost = -libm::expm1(ln_bit_success(dbpsk, 0.1));
        assert!((lost - 0.5 * libm::exp(-2.2)).abs() < 1e-12, "{lost}");
        // Without signal, one of 16 symbols is guessed.
        assert!((libm::exp(cck_half(0.0)) - 1.0 / 16.0).abs() < 1e-3);
        // Uncoded BPSK at 9.6 dB has a BER of 1e-5.
        let bits = Constellation::Bpsk.errors(libm::pow(10.0, 0.96));
        assert!((bits / 1e-5 - 1.0).abs() < 0.05, "{bits}");
    }
}
