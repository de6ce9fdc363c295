//! The positions of stations, and the power at which they receive each other.
//!
//! Path loss: free space up to the crossover distance, two-ray ground beyond it. The constants are those of ns-2,
//! with which Gopal 2007 was computed: antennas 1.5 m above ground with gain 1, 0.2818 W at 2.472 GHz. With its
//! thresholds a frame is decoded up to 250.0 m away and sensed up to 730.4 m away. Obstacles between two stations
//! change the power further, over time.

use std::f64::consts::PI;

use airlane_base::Instant;

/// Where a station stands, metres.
pub type Position = [f64; 2];

const TRANSMIT_W: f64 = 0.281_8;
const FREQUENCY_HZ: f64 = 2.472e9;
const LIGHT_M_PER_S: f64 = 299_792_458.0;
const HEIGHT_M: f64 = 1.5;

/// The thresholds of a station's receiver, watts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Thresholds {
    /// A frame is decoded from this power on, unless something else interferes.
    pub receive_w: f64,
    /// A frame is sensed from this power on: the channel is busy, and the frame may destroy others.
    pub sense_w: f64,
}

impl Default for Thresholds {
    /// Those of ns-2.
    fn default() -> Self {
        Self {
            receive_w: 3.652e-10,
            sense_w: 5.011_872e-12,
        }
    }
}

/// Extra gain or loss between two stations, in both directions.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalChange {
    /// The stations.
    pub between: [usize; 2],
    /// Gain in dB from each time on, in order of time.
    pub trace: Vec<(Instant, f64)>,
}

/// Received power at this distance, watts. Distances below 1 cm count as 1 cm.
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

/// Converts dBm to watts.
pub fn watts(dbm: f64) -> f64 {
    libm::pow(10.0, dbm / 10.0) / 1_000.0
}

/// Converts watts to dBm.
pub fn dbm(watts: f64) -> f64 {
    10.0 * libm::log10(watts * 1_000.0)
}

/// The distance between two positions, metres.
pub fn distance_m(a: Position, b: Position) -> f64 {
    libm::hypot(a[0] - b[0], a[1] - b[1])
}

/// The received power between all stations.
#[derive(Clone, Debug)]
pub struct Places {
    thresholds: Vec<Thresholds>,
    /// Received power by distance alone, watts, at index `from * stations + to`.
    power: Vec<f64>,
    /// The index in `factors` for each pair of stations; empty if no signal changes.
    change: Vec<Option<usize>>,
    /// Power factor from each time on.
    factors: Vec<Vec<(Instant, f64)>>,
}

impl Places {
    /// Stations at these positions, and the changes of signals between them.
    pub fn new(stations: &[(Position, Thresholds)], changes: &[SignalChange]) -> Self {
        let all = stations.len();
        let power = stations.iter().flat_map(|(a, _)| {
            let others = stations.iter();
            others.map(|(b, _)| received_w(distance_m(*a, *b)))
        });
        let mut change = vec![None; if changes.is_empty() { 0 } else { all * all }];
        for (
            i,
            SignalChange {
                between: [a, b], ..
            },
        ) in changes.iter().enumerate()
        {
            change[a * all + b] = Some(i);
            change[b * all + a] = Some(i);
        }
        let factor = |(at, db): &(Instant, f64)| (*at, libm::pow(10.0, db / 10.0));
        let factors = changes.iter();
        Self {
            thresholds: stations.iter().map(|(_, own)| *own).collect(),
            power: power.collect(),
            change,
            factors: factors
                .map(|change| change.trace.iter().map(factor).collect())
                .collect(),
        }
    }

    fn pair(&self, from: usize, to: usize) -> usize {
        from * self.thresholds.len() + to
    }

    /// Received power of a frame that another station began to send at this time, watts.
    pub fn power(&self, began: Instant, from: usize, to: usize) -> f64 {
        let pair = self.pair(from, to);
        let power = self.power[pair];
        let Some(&Some(change)) = self.change.get(pair) else {
            return power;
        };
        let trace = &self.factors[change];
        let begun = trace.partition_point(|(at, _)| *at <= began);
        begun.checked_sub(1).map_or(power, |at| power * trace[at].1)
    }

    /// Whether one station is near enough to decode the frames of another, obstacles aside.
    pub fn receives(&self, from: usize, to: usize) -> bool {
        from != to && self.power[self.pair(from, to)] >= self.thresholds[to].receive_w
    }

    /// Whether two stations are near enough for a frame and its answer.
    pub fn reach_each_other(&self, a: usize, b: usize) -> bool {
        self.receives(a, b) && self.receives(b, a)
    }

    /// Whether one station senses a frame that another began to send at this time.
    pub fn senses(&self, began: Instant, from: usize, to: usize) -> bool {
        from != to && self.power(began, from, to) >= self.thresholds[to].sense_w
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
        let usual = Thresholds::default();
        assert!((range(usual.receive_w) - 250.0).abs() < 0.1);
        assert!((range(usual.sense_w) - 730.4).abs() < 0.1);
    }

    fn usual(positions: impl Iterator<Item = Position>) -> Places {
        let stations: Vec<_> = positions.map(|at| (at, Thresholds::default())).collect();
        Places::new(&stations, &[])
    }

    #[test]
    fn the_grid_with_diagonals_hears_itself_from_corner_to_corner() {
        let now = Instant::ORIGIN;
        let grid = |spacing: f64| {
            usual((0..16).map(|i| [f64::from(i % 4) * spacing, f64::from(i / 4) * spacing]))
        };
        let diagonal = grid(170.0);
        assert!(diagonal.receives(0, 5) && diagonal.senses(now, 0, 15));
        let straight = grid(200.0);
        assert!(straight.receives(0, 1) && !straight.receives(0, 5));
        assert!(straight.senses(now, 0, 11) && !straight.senses(now, 0, 15));
        assert!(!straight.senses(now, 3, 3));
    }

    #[test]
    fn reception_is_decided_at_the_receiver_and_exchanges_need_both() {
        let deaf = Thresholds {
            receive_w: received_w(100.0),
            sense_w: received_w(150.0),
        };
        let stations = [
            ([0.0, 0.0], Thresholds::default()),
            ([120.0, 0.0], deaf),
            ([100.0, 0.0], deaf),
        ];
        let places = Places::new(&stations, &[]);
        assert!(places.receives(1, 0) && !places.receives(0, 1));
        assert!(!places.reach_each_other(0, 1) && !places.reach_each_other(1, 0));
        // The range is inclusive.
        assert!(places.reach_each_other(0, 2));
        assert!(places.senses(Instant::ORIGIN, 0, 1));
    }

    #[test]
    fn an_obstacle_attenuates_both_directions() {
        let at = |s| Instant::ORIGIN + airlane_base::Duration::from_secs(s);
        let change = SignalChange {
            between: [1, 0],
            trace: vec![(at(2), -30.0), (at(3), 0.0), (at(4), 3.0)],
        };
        let stations = [0.0, 200.0, 400.0].map(|x| ([x, 0.0], Thresholds::default()));
        let places = Places::new(&stations, &[change]);
        let bare = Places::new(&stations, &[]);
        for (from, to) in [(0, 1), (1, 0)] {
            let heard = [1, 2, 3].map(|s| places.senses(at(s), from, to));
            assert_eq!(heard, [true, false, true]);
            let gain = places.power(at(9), from, to) / bare.power(at(9), from, to);
            assert!((gain - 1.995).abs() < 0.001, "{gain}");
            // Stations that are near enough stay in range.
            assert!(places.receives(from, to));
        }
        assert_eq!(places.power(at(2), 0, 2), bare.power(at(2), 0, 2));
    }
}
