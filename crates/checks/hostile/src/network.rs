//! The paths between the ends: the fate of each datagram.

use crate::draw::Draw;

/// Bytes of UDP and IP around a datagram.
const HEADERS: usize = 28;

/// One direction between two ends.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    /// Bits per second, and the propagation delay, ns.
    pub(crate) rate: u64,
    pub(crate) delay: u64,
    /// Queue limit, bytes.
    pub(crate) room: u64,
    pub(crate) loss: f64,
    pub(crate) copies: f64,
    /// Probability that a datagram is late, and its largest extra delay, ns.
    pub(crate) late: (f64, u64),
    pub(crate) damage: f64,
    /// Longest IP packet.
    pub(crate) mtu: usize,
    pub(crate) is_cut: bool,
    /// When the transmitter is free.
    free: u64,
}

impl Pipe {
    pub(crate) fn draw(draw: &mut Draw) -> Self {
        let rate = *draw.of(&[200_000, 1_000_000, 5_000_000, 20_000_000, 100_000_000]);
        let delay = draw.ms(1, 120);
        // At least ten packets, at most half a second.
        let room = (rate / 8 * draw.within(20, 500) / 1_000).max(15_000);
        let loss = *draw.of(&[0.0, 0.0, 0.001, 0.01, 0.05]);
        Self::new(rate, delay, room, loss)
    }

    /// A pipe without any other faults.
    pub(crate) const fn new(rate: u64, delay: u64, room: u64, loss: f64) -> Self {
        Self {
            rate,
            delay,
            room,
            loss,
            copies: 0.0,
            late: (0.0, 0),
            damage: 0.0,
            mtu: 1_500,
            is_cut: false,
            free: 0,
        }
    }

    /// Restores the usual settings; waiting datagrams keep waiting.
    pub(crate) fn restore(&mut self, usual: &Self) {
        *self = Self {
            free: self.free,
            ..usual.clone()
        };
    }

    /// When a datagram that leaves at `now` arrives: never, once, or twice.
    pub(crate) fn carry(&mut self, now: u64, length: usize, draw: &mut Draw) -> Vec<u64> {
        let length = length + HEADERS;
        let waits = self.free.saturating_sub(now);
        let backlog = u128::from(waits) * u128::from(self.rate) / 8_000_000_000;
        if self.is_cut || length > self.mtu || backlog > u128::from(self.room) {
            return Vec::new();
        }
        let takes = length as u64 * 8_000_000_000 / self.rate.max(1);
        self.free = self.free.max(now) + takes;
        let mut there = Vec::new();
        let copies = 1 + usize::from(draw.chance(self.copies));
        for _ in 0..copies {
            if draw.chance(self.loss) {
                continue;
            }
            let (often, most) = self.late;
            let late = match draw.chance(often) {
                true => draw.within(0, most.max(1)),
                false => 0,
            };
            there.push(self.free + self.delay + late);
        }
        there
    }
}
