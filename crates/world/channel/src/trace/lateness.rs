//! How late frames were, from two clocks that are not synchronised.
//!
//! Arrival less departure is the delay, plus the offset of the clocks, plus their drift. The highest line below all of
//! these differences is what a frame that did not wait would have shown: the edge of their lower convex hull at their
//! mean time (Moon, Skelly and Towsley, INFOCOM 1999). A frame is late by its distance above that line.

/// Largest credible drift between two clocks; a steeper line is a growing queue.
const MOST_DRIFT: f64 = 200e-6;

/// Maps departure times to the other end's clock, for frames that did not wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Baseline {
    from_ns: f64,
    offset_ns: f64,
    drift: f64,
}

impl Baseline {
    /// Fits departures and arrivals; `None` without frames.
    pub(super) fn of(frames: &[(u64, u64)]) -> Option<Self> {
        let difference = |&(left, came): &(u64, u64)| came as i64 - left as i64;
        let mut points: Vec<(u64, i64)> = frames.iter().map(|f| (f.0, difference(f))).collect();
        points.sort_unstable();
        let from = points.first()?.0;
        let x = |point: &(u64, i64)| (point.0 - from) as f64;
        let mean = points.iter().map(x).sum::<f64>() / points.len() as f64;
        let mut hull: Vec<(u64, i64)> = Vec::new();
        for point in points {
            while let [.., a, b] = hull[..] {
                // Whether b is on or above the line from a to the point. Exact in 128 bits.
                let (bx, by) = (i128::from(b.0 - a.0), i128::from(b.1 - a.1));
                let (px, py) = (i128::from(point.0 - a.0), i128::from(point.1 - a.1));
                if by * px < py * bx {
                    break;
                }
                hull.pop();
            }
            hull.push(point);
        }
        let edge = hull.windows(2).find(|edge| x(&edge[1]) >= mean);
        let drift = edge.map(|edge| (edge[1].1 - edge[0].1) as f64 / (x(&edge[1]) - x(&edge[0])));
        // A vertical edge, of frames that left at the same time, has no drift either.
        let line = edge
            .zip(drift)
            .filter(|(_, drift)| drift.abs() <= MOST_DRIFT);
        let flat = hull.iter().map(|point| point.1).min()?;
        Some(match line {
            Some((edge, drift)) => Self {
                from_ns: from as f64,
                offset_ns: edge[0].1 as f64 - drift * x(&edge[0]),
                drift,
            },
            None => Self {
                from_ns: from as f64,
                offset_ns: flat as f64,
                drift: 0.0,
            },
        })
    }

    /// When a frame that left at this time would have arrived without waiting; not before the start of the other
    /// recording.
    pub(super) fn soonest(&self, left_ns: u64) -> u64 {
        let x = left_ns as f64 - self.from_ns;
        (left_ns as f64 + self.offset_ns + self.drift * x).max(0.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::Streams;

    const MS: u64 = 1_000_000;

    fn lateness(frames: &[(u64, u64)]) -> Vec<f64> {
        let line = Baseline::of(frames).unwrap();
        let late = |&(left, came): &(u64, u64)| (came as f64 - line.soonest(left) as f64) / 1e6;
        frames.iter().map(late).collect()
    }

    #[test]
    fn clock_offset_and_drift_add_no_delay() {
        let mut waits = Streams::new(1, 0).stream("waits");
        for (offset_ms, drift) in [(5_000i64, 0.0), (-300, 40e-6), (0, -90e-6)] {
            // A minute of frames, most of which wait.
            let frames: Vec<(u64, u64, f64)> = (0..6_000u64)
                .map(|i| {
                    let left = 1_000 * MS + i * 10 * MS;
                    let wait = match i % 50 {
                        0 => 0.0,
                        _ => waits.exponential(8.0),
                    };
                    let there = left as f64 * (1.0 + drift) + wait * 1e6 + 25e6;
                    let came = (there as u64).wrapping_add_signed(offset_ms * MS as i64);
                    (left, came, wait)
                })
                .collect();
            let pairs: Vec<_> = frames.iter().map(|f| (f.0, f.1)).collect();
            for (late, (.., wait)) in lateness(&pairs).iter().zip(&frames) {
                assert!((late - wait).abs() < 0.05, "{late} ms, not {wait} ms");
            }
        }
    }

    #[test]
    fn a_growing_queue_is_not_drift() {
        let frames: Vec<_> = (0..1_000)
            .map(|i| (i * MS, i * MS + i * MS / 100))
            .collect();
        let late = lateness(&frames);
        assert!((late[999] - 9.99).abs() < 0.01, "{}", late[999]);
        assert_eq!(lateness(&[(5, 9)]), [0.0]);
        assert_eq!(lateness(&[(5, 9), (5, 1_000_009)]), [0.0, 1.0]);
        assert_eq!(Baseline::of(&[]), None);
    }
}
