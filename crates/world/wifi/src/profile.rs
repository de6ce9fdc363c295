//! Durations: slots, interframe spaces, and frames of each type.
//!
//! The bits of a frame are sent at one rate after a preamble of fixed length; OFDM pads them to whole symbols.
//! Durations are rounded up to the nanosecond. The 802.11b profiles are those of Gopal 2007 (where the text
//! contradicts itself, the ns-2 trace of figure 2.2 decides): the MAC header is sent at the data rate, and
//! acknowledgments at the basic rate.

use airlane_base::{Duration, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of the MAC header and the checksum of a data frame.
pub const DATA_HEADER: usize = 28;
/// Bytes of a MAC acknowledgment, and of a CTS.
pub const ACK: usize = 14;
/// Bytes of an RTS.
pub const RTS: usize = 20;

/// The timing of a radio channel, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProfileName {
    /// 802.11b with long preambles: 192 us in front of each frame, acknowledgments at 1 Mbit/s.
    #[default]
    #[serde(rename = "802.11b")]
    B,
    /// 802.11b with short preambles: 96 us in front of each frame, acknowledgments at 2 Mbit/s.
    #[serde(rename = "802.11b-short")]
    BShort,
    /// 802.11g without older stations: 20 us in front of each frame, slots of 9 us.
    #[serde(rename = "802.11g")]
    G,
    /// 802.11n in 20 MHz with one stream: 36 us in front of each frame, slots of 9 us.
    #[serde(rename = "802.11n")]
    N,
}

/// How a frame's duration follows from its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modulation {
    /// A preamble, then bits at a rate (DSSS).
    Dsss {
        /// Duration of the preamble and the header of the physical layer.
        preamble: Duration,
        /// Rate of the frame's bits.
        rate: Rate,
    },
    /// A preamble, then whole symbols of 4 us (OFDM).
    Ofdm {
        /// Duration of everything before the symbols.
        preamble: Duration,
        /// Data bits per symbol.
        bits: u32,
        /// Duration of the signal extension, a silence that belongs to the frame.
        extension: Duration,
    },
}

/// Duration of an OFDM symbol.
const SYMBOL: Duration = Duration::from_micros(4);
/// Bits that OFDM adds to each frame: service field and tail.
const OFDM_EXTRA_BITS: u64 = 16 + 6;

impl Modulation {
    /// Duration of a data frame with this many bytes of payload.
    pub fn frame(self, payload: usize) -> Duration {
        self.airtime(payload + DATA_HEADER)
    }

    /// The rate of the data bits, bit/s.
    pub fn bits_per_second(self) -> u64 {
        match self {
            Self::Dsss { rate, .. } => rate.as_bps(),
            Self::Ofdm { bits, .. } => u64::from(bits) * 1_000_000_000 / SYMBOL.as_nanos(),
        }
    }

    /// Duration of a frame of this many bytes.
    pub fn airtime(self, bytes: usize) -> Duration {
        match self {
            Self::Dsss { preamble, rate } => preamble + rate.transmission_time(bytes),
            Self::Ofdm {
                preamble,
                bits,
                extension,
            } => {
                let all = bytes as u64 * 8 + OFDM_EXTRA_BITS;
                preamble + SYMBOL * all.div_ceil(u64::from(bits.max(1))) + extension
            }
        }
    }
}

/// The parameters that all stations of a channel share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Duration of a backoff slot.
    pub slot: Duration,
    /// The interframe space before an answer.
    pub sifs: Duration,
    /// The contention window of a first attempt, slots: draws are from 0 to one less.
    pub cw_first: u32,
    /// The largest contention window, slots.
    pub cw_max: u32,
    /// The modulation of data frames.
    pub data: Modulation,
    /// The modulation of acknowledgments, RTS and CTS.
    pub control: Modulation,
    /// How much longer than the answer takes a sender waits for it.
    pub grace: Duration,
    /// Whether the interframe space is longer after a frame that could not be decoded.
    pub has_eifs: bool,
}

impl Profile {
    /// The profile of this name. `rate` is that of data frames, the name's own if left out.
    pub fn named(name: ProfileName, rate: Option<Rate>) -> Self {
        let mbps = |n: u64| Rate::from_bps(n * 1_000_000).expect("a rate above zero");
        let us = Duration::from_micros;
        let b = |preamble, basic| Self {
            slot: us(20),
            sifs: us(10),
            cw_first: 32,
            cw_max: 1024,
            data: Modulation::Dsss {
                preamble,
                rate: rate.unwrap_or(mbps(11)),
            },
            control: Modulation::Dsss {
                preamble,
                rate: basic,
            },
            grace: us(4),
            has_eifs: true,
        };
        let ofdm = |preamble, usual: u32| Self {
            slot: us(9),
            sifs: us(10),
            cw_first: 16,
            cw_max: 1024,
            data: Modulation::Ofdm {
                preamble,
                bits: rate.map_or(usual, symbol_bits),
                extension: us(6),
            },
            control: Modulation::Ofdm {
                preamble: us(20),
                bits: 96,
                extension: us(6),
            },
            grace: us(4),
            has_eifs: true,
        };
        match name {
            ProfileName::B => b(us(192), mbps(1)),
            ProfileName::BShort => b(us(96), mbps(2)),
            ProfileName::G => ofdm(us(20), 216),
            ProfileName::N => ofdm(us(36), 260),
        }
    }

    /// The same profile with answers and RTS at this rate.
    #[must_use]
    pub fn answering_at(mut self, answers: Rate) -> Self {
        match &mut self.control {
            Modulation::Dsss { rate, .. } => *rate = answers,
            Modulation::Ofdm { bits, .. } => *bits = symbol_bits(answers),
        }
        self
    }

    /// The standard's rates of this name, the slowest first.
    pub fn ladder(name: ProfileName) -> Vec<Modulation> {
        let kbps: &[u64] = match name {
            ProfileName::B | ProfileName::BShort => &[1_000, 2_000, 5_500, 11_000],
            ProfileName::G => &[6_000, 9_000, 12_000, 18_000, 24_000, 36_000, 48_000, 54_000],
            ProfileName::N => &[
                6_500, 13_000, 19_500, 26_000, 39_000, 52_000, 58_500, 65_000,
            ],
        };
        let rates = kbps.iter().map(|kbps| Rate::from_bps(kbps * 1_000));
        rates.map(|rate| Self::named(name, rate).data).collect()
    }

    /// The idle time before a backoff counts down.
    pub fn difs(&self) -> Duration {
        self.sifs + self.slot * 2
    }

    /// The idle time before a backoff counts down after a frame that could not be decoded.
    pub fn eifs(&self) -> Duration {
        match self.has_eifs {
            true => self.sifs + self.ack() + self.difs(),
            false => self.difs(),
        }
    }

    /// Duration of a data frame with this many bytes of payload.
    pub fn frame(&self, payload: usize) -> Duration {
        self.data.frame(payload)
    }

    /// Duration of an acknowledgment, and of a CTS.
    pub fn ack(&self) -> Duration {
        self.control.airtime(ACK)
    }

    /// Duration of an RTS.
    pub fn rts(&self) -> Duration {
        self.control.airtime(RTS)
    }

    /// How long after the end of its frame a sender waits for the answer.
    pub fn answer_timeout(&self) -> Duration {
        self.sifs + self.ack() + self.grace
    }

    /// The NAV that a data frame sets, from its end.
    pub fn data_nav(&self) -> Duration {
        self.sifs + self.ack()
    }

    /// The NAV that an RTS for a frame of this duration sets, from its end.
    pub fn rts_nav(&self, frame: Duration) -> Duration {
        self.sifs + self.ack() + self.cts_nav(frame)
    }

    /// The NAV that a CTS for a frame of this duration sets, from its end.
    pub fn cts_nav(&self, frame: Duration) -> Duration {
        self.sifs + frame + self.data_nav()
    }
}

/// Data bits of a symbol at this rate.
fn symbol_bits(rate: Rate) -> u32 {
    u32::try_from(rate.as_bps() * SYMBOL.as_nanos() / 1_000_000_000).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(d: Duration) -> f64 {
        d.as_nanos() as f64 / 1e3
    }

    fn near(d: Duration, expected: f64) {
        assert!((us(d) - expected).abs() < 0.01, "{} {expected}", us(d));
    }

    #[test]
    fn long_preambles_have_the_times_of_the_trace() {
        let p = Profile::named(ProfileName::B, None);
        assert_eq!(p.difs(), Duration::from_micros(50));
        assert_eq!(p.eifs(), Duration::from_micros(364));
        assert_eq!(p.ack(), Duration::from_micros(304));
        assert_eq!(p.rts(), Duration::from_micros(352));
        assert_eq!(p.answer_timeout(), Duration::from_micros(318));
        assert_eq!(p.data_nav(), Duration::from_micros(0x13a));
        // CLAP-D1: 983.296 us with 24 ns of propagation; 241.478 likewise.
        assert_eq!(p.frame(1060).as_nanos(), 983_273);
        assert_eq!(p.frame(40).as_nanos(), 241_455);
        near(p.frame(1020), 954.18);
        near(p.frame(60), 256.0);
        assert_eq!(
            p.rts_nav(p.frame(1020)),
            p.sifs * 3 + p.ack() + p.frame(1020) + p.ack()
        );
    }

    #[test]
    fn short_preambles_have_the_times_of_the_mesh() {
        let p = Profile::named(ProfileName::BShort, None);
        assert_eq!(p.ack(), Duration::from_micros(152));
        assert_eq!(p.rts(), Duration::from_micros(176));
        assert_eq!(p.eifs(), Duration::from_micros(212));
        let fast = p.answering_at(Rate::from_bps(11_000_000).unwrap());
        near(fast.ack(), 106.18);
        let same = Profile {
            has_eifs: false,
            ..p
        };
        assert_eq!(same.eifs(), p.difs());
        assert_eq!(p.answer_timeout(), Duration::from_micros(166));
        assert_eq!(p.data_nav(), Duration::from_micros(162));
        near(p.frame(1020), 858.18);
        near(p.frame(1060), 887.27);
        near(p.frame(40), 145.45);
        near(p.frame(60), 160.0);
    }

    #[test]
    fn table_2_1_adds_up() {
        let p = Profile::named(ProfileName::BShort, None);
        let long = Profile::named(ProfileName::B, None);
        let at_data_rate = |bytes: usize| us(p.data.airtime(bytes)) - 96.0;
        let backoff = us(p.slot) * f64::from(p.cw_first - 1) / 2.0;
        assert_eq!(us(p.difs()), 50.0);
        assert_eq!(backoff, 310.0);
        assert!((at_data_rate(34) - 24.73).abs() < 0.01);
        assert!((at_data_rate(16) - 11.64).abs() < 0.01);
        assert!((at_data_rate(40) - 29.10).abs() < 0.011);
        assert!((at_data_rate(1000) - 727.28).abs() < 0.011);
        // The mixture in the table: a short preamble, and an acknowledgment with a long one.
        let ack = us(p.sifs) + us(long.ack());
        assert_eq!(ack, 314.0);
        let total = 50.0 + backoff + 96.0 + at_data_rate(34) + at_data_rate(16) + ack;
        assert!((total + at_data_rate(40) - 835.47).abs() < 0.02);
        assert!((total - 806.37).abs() < 0.02);
    }

    #[test]
    fn ofdm_counts_whole_symbols() {
        let p = Profile::named(ProfileName::G, None);
        // 14 bytes at 24 Mbit/s: 134 bits in two symbols.
        assert_eq!(p.ack(), Duration::from_micros(20 + 8 + 6));
        // 1528 bytes at 54 Mbit/s: 12,246 bits in 57 symbols.
        assert_eq!(p.frame(1500), Duration::from_micros(20 + 57 * 4 + 6));
        let slow = Profile::named(ProfileName::G, Rate::from_bps(6_000_000));
        assert!(slow.frame(1500) > p.frame(1500) * 7);
    }
}
