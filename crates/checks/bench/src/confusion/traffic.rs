//! The packets of a flow, and how models generate them.

use airlane_base::random::Rng;
use airlane_link::classify::Behaviour;

/// A packet of a flow.
#[derive(Clone, Debug)]
pub struct Sample {
    /// When its sender hands it to the link, microseconds.
    pub at_us: u64,
    /// Whether the end that opened the flow sends it.
    pub up: bool,
    /// Its length with IP header, bytes.
    pub len: usize,
    /// Which connection of its kind it belongs to.
    pub connection: u16,
    /// The first bytes after a UDP header.
    pub head: Vec<u8>,
    /// The classes that are right for it.
    pub may_be: &'static [Behaviour],
}

/// Traffic of one kind.
#[derive(Clone, Debug)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// Where it comes from: a published model, a standard, or a capture.
    pub source: &'static str,
    /// IP protocol number.
    pub protocol: u8,
    /// The port of the end that responds; 0 if there is none.
    pub port: u16,
    /// Its packets, by time.
    pub samples: Vec<Sample>,
}

/// Generates the packets of a kind.
pub(super) struct Writer {
    pub(super) rng: Rng,
    pub(super) samples: Vec<Sample>,
    /// The classes that are right for the next packets.
    pub(super) may_be: &'static [Behaviour],
    pub(super) connection: u16,
}

impl Writer {
    pub(super) fn new(rng: Rng, may_be: &'static [Behaviour]) -> Self {
        Self {
            rng,
            samples: Vec::new(),
            may_be,
            connection: 0,
        }
    }

    pub(super) fn add(&mut self, at_us: f64, up: bool, len: f64, head: &[u8]) {
        self.samples.push(Sample {
            at_us: at_us.max(0.0) as u64,
            up,
            len: (len as usize).clamp(28, 1_500),
            connection: self.connection,
            head: head.to_vec(),
            may_be: self.may_be,
        });
    }

    /// A draw of the normal distribution (Box and Muller).
    pub(super) fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.rng.uniform()));
        mean + deviation * radius * libm::cos(std::f64::consts::TAU * self.rng.uniform())
    }

    /// A draw of the extreme-value distribution.
    pub(super) fn extreme(&mut self, location: f64, scale: f64) -> f64 {
        location - scale * libm::log(-libm::log(1.0 - self.rng.uniform() * 0.999_999 - 1e-7))
    }

    /// `bytes` in one direction at a rate, in bursts as windows cause them, with an acknowledgment for every second
    /// packet. Returns when it ends.
    pub(super) fn transfer(&mut self, from_us: f64, up: bool, bytes: f64, shape: &Transfer) -> f64 {
        let (mut at, mut left, mut count) = (from_us, bytes, 0u32);
        while left > 0.0 {
            let burst = 2 + (self.rng.uniform() * 12.0) as u32;
            for _ in 0..burst {
                if left <= 0.0 {
                    break;
                }
                let len = (shape.largest).min(left + shape.header);
                left -= len - shape.header;
                self.add(at, up, len, shape.data);
                count += 1;
                if count.is_multiple_of(shape.acknowledged) {
                    let late = 500.0 * self.rng.uniform();
                    self.add(at + 25_000.0 + late, !up, shape.answer, shape.data);
                }
                at += 20.0;
            }
            let time = f64::from(burst) * shape.largest * 8.0 / shape.mbps;
            at += time * (0.7 + 0.6 * self.rng.uniform());
        }
        at
    }

    pub(super) fn done(mut self) -> Vec<Sample> {
        self.samples.sort_by_key(|sample| sample.at_us);
        self.samples
    }
}

/// How a protocol transfers bytes.
pub(super) struct Transfer {
    pub(super) mbps: f64,
    /// Lengths of data packets and of acknowledgments with all headers, and of the headers.
    pub(super) largest: f64,
    pub(super) answer: f64,
    pub(super) header: f64,
    /// Packets per acknowledgment.
    pub(super) acknowledged: u32,
    /// The first bytes of each packet after a UDP header.
    pub(super) data: &'static [u8],
}

impl Transfer {
    pub(super) const fn tcp(mbps: f64) -> Self {
        Self {
            mbps,
            largest: 1_435.0,
            answer: 52.0,
            header: 52.0,
            acknowledged: 2,
            data: &[],
        }
    }

    /// Short headers of QUIC, acknowledged as Chromium does.
    pub(super) const fn quic(mbps: f64) -> Self {
        Self {
            largest: 1_278.0,
            answer: 66.0,
            acknowledged: 10,
            data: &[0x43, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 1],
            ..Self::tcp(mbps)
        }
    }

    pub(super) const fn tunnel(mbps: f64, data: &'static [u8]) -> Self {
        Self {
            largest: 1_420.0,
            answer: 124.0,
            header: 112.0,
            data,
            ..Self::tcp(mbps)
        }
    }
}
