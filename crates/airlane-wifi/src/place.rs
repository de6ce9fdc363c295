//! Where stations stand, and how strongly they hear each other.
//!
//! Power falls with distance alone: free space up to the crossover distance, two-ray ground behind it. The constants are
//! those of ns-2, which made the numbers of Gopal 2007: antennas 1.5 m above ground with gain 1, 0.2818 W at 2.472 GHz.
//! With its thresholds a frame is decoded up to 250.0 m away and sensed up to 730.4 m away.

use std::f64::consts::PI;

/// Where a station stands, metres.
pub type Position = [f64; 2];

const TRANSMIT_W: f64 = 0.281_8;
const FREQUENCY_HZ: f64 = 2.472e9;
const LIGHT_M_PER_S: f64 = 299_792_458.0;
const HEIGHT_M: f64 = 1.5;
/// A frame is decoded from this power on, watts.
pub const RECEIVE_W: f64 = 3.652e-10;
/// A frame is sensed from this power on, watts.
pub const SENSE_W: f64 = 5.011_872e-12;

/// Power of a frame at this distance, watts. No distance at all counts as 1 cm.
pub fn received_w(distance_m: f64) -> f64 {
    let d = distance_m.max(0.01);
    let wavelength = LIGHT_M_PER_S / FREQUENCY_HZ;
    let crossover = 4.0 * PI * HEIGHT_M * HEIGHT_M / wavelength;
    if d < crossover {
        let loss = 4.0 * PI * d / wavelength;
        TRANSMIT_W / (loss * loss)
    } else {
        let heights = HEIGHT_M * HEIGHT_M / (d * d);
        TRANSMIT_W * heights * heights
    }
}

/// A power in watts.
pub fn watts(dbm: f64) -> f64 {
    libm::pow(10.0, dbm / 10.0) / 1_000.0
}

/// A power in dBm.
pub fn dbm(watts: f64) -> f64 {
    10.0 * libm::log10(watts * 1_000.0)
}

/// How far apart two positions are, metres.
pub fn distance_m(a: Position, b: Position) -> f64 {
    libm::hypot(a[0] - b[0], a[1] - b[1])
}

/// Who hears whom.
#[derive(Clone, Debug)]
pub struct Places {
    stations: usize,
    /// Power from one station at another, watts, by `from * stations + to`.
    power: Vec<f64>,
}

impl Places {
    /// Stations at these positions.
    pub fn new(positions: &[Position]) -> Self {
        let power = positions
            .iter()
            .flat_map(|a| positions.iter().map(|b| received_w(distance_m(*a, *b))));
        Self {
            stations: positions.len(),
            power: power.collect(),
        }
    }

    /// Power of a frame from one station at another, watts.
    pub fn power(&self, from: usize, to: usize) -> f64 {
        self.power[from * self.stations + to]
    }

    /// Whether one station can decode what another sends.
    pub fn receives(&self, from: usize, to: usize) -> bool {
        from != to && self.power(from, to) >= RECEIVE_W
    }

    /// Whether one station notices that another sends.
    pub fn senses(&self, from: usize, to: usize) -> bool {
        from != to && self.power(from, to) >= SENSE_W
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_thresholds() {
        let range = |threshold: f64| {
            let (mut near, mut far) = (1.0, 10_000.0);
            for _ in 0..60 {
                let middle = (near + far) / 2.0;
                if received_w(middle) >= threshold {
                    near = middle;
                } else {
                    far = middle;
                }
            }
            near
        };
        assert!((range(RECEIVE_W) - 250.0).abs() < 0.1);
        assert!((range(SENSE_W) - 730.4).abs() < 0.1);
    }

    #[test]
    fn the_grid_with_diagonals_hears_itself_from_corner_to_corner() {
        let grid = |spacing: f64| {
            let at = |i: usize| [(i % 4) as f64 * spacing, (i / 4) as f64 * spacing];
            Places::new(&(0..16).map(at).collect::<Vec<_>>())
        };
        let diagonal = grid(170.0);
        assert!(diagonal.receives(0, 5) && diagonal.senses(0, 15));
        let straight = grid(200.0);
        assert!(straight.receives(0, 1) && !straight.receives(0, 5));
        assert!(straight.senses(0, 11) && !straight.senses(0, 15));
        assert!(!straight.senses(3, 3));
    }
}
