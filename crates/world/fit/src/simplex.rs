//! The downhill simplex method of Nelder and Mead (1965): minimises without derivatives.
//!
//! A simplex has one more corner than there are dimensions. Each step replaces the worst corner by
//! a better one on the line through the centroid of the others, or else shrinks all corners towards
//! the best, which is never discarded.

type Corner = (Vec<f64>, f64);

/// Positions on the line from the centroid of the others through the worst corner, in units of its
/// distance from the centroid.
const REFLECTED: f64 = -1.0;
const INSIDE: f64 = 0.5;
/// Relative to the reflected corner.
const EXPANDED: f64 = 2.0;
const OUTSIDE: f64 = 0.5;
/// Factor by which distances from the best corner shrink.
const SHRUNK: f64 = 0.5;

/// Returns the lowest point found and its cost. The search ends when the costs of the corners have
/// a standard deviation below `tolerance`, or after `steps` steps. Costs must not be NaN.
pub(crate) fn descend(
    corners: Vec<Vec<f64>>,
    tolerance: f64,
    steps: u64,
    cost: impl Fn(&[f64]) -> f64,
) -> Corner {
    let priced = |point: Vec<f64>| {
        let cost = cost(&point);
        (point, cost)
    };
    let mut corners: Vec<Corner> = corners.into_iter().map(priced).collect();
    sort(&mut corners);
    for _ in 0..steps {
        if spread(&corners) < tolerance {
            break;
        }
        let [.., (_, second_worst), (worst, worst_cost)] = corners.as_slice() else {
            break;
        };
        let centre = centre(&corners[..corners.len() - 1]);
        let reflected = priced(along(&centre, worst, REFLECTED));
        let better = if reflected.1 < corners[0].1 {
            let expanded = priced(along(&centre, &reflected.0, EXPANDED));
            Some(if expanded.1 < reflected.1 {
                expanded
            } else {
                reflected
            })
        } else if reflected.1 < *second_worst {
            Some(reflected)
        } else if reflected.1 < *worst_cost {
            let outside = priced(along(&centre, &reflected.0, OUTSIDE));
            (outside.1 <= reflected.1).then_some(outside)
        } else {
            let inside = priced(along(&centre, worst, INSIDE));
            (inside.1 < *worst_cost).then_some(inside)
        };
        match better {
            Some(better) => *corners.last_mut().expect("there are corners") = better,
            None => {
                let (best, others) = corners.split_first_mut().expect("there are corners");
                for corner in others {
                    *corner = priced(along(&best.0, &corner.0, SHRUNK));
                }
            }
        }
        sort(&mut corners);
    }
    corners.swap_remove(0)
}

/// Sorts by cost, lowest first; of equal costs, the older corner comes first.
fn sort(corners: &mut [Corner]) {
    corners.sort_by(|a, b| a.1.total_cmp(&b.1));
}

/// Standard deviation of costs.
fn spread(corners: &[Corner]) -> f64 {
    let n = corners.len() as f64;
    let costs = || corners.iter().map(|(_, cost)| *cost);
    let mean = costs().sum::<f64>() / n;
    let squares: f64 = costs().map(|cost| (cost - mean) * (cost - mean)).sum();
    libm::sqrt(1.0 / (n - 1.0) * squares)
}

fn centre(corners: &[Corner]) -> Vec<f64> {
    let share = 1.0 / corners.len() as f64;
    let at = |axis: usize| {
        let sum = corners.iter().map(|(point, _)| point[axis]);
        sum.reduce(|sum, x| sum + x).unwrap_or_default() * share
    };
    (0..corners[0].0.len()).map(at).collect()
}

/// The point at `times` the distance from `from` to `to`.
fn along(from: &[f64], to: &[f64], times: f64) -> Vec<f64> {
    let axes = from.iter().zip(to);
    axes.map(|(from, to)| from + (to - from) * times).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(start: &[f64], size: f64) -> Vec<Vec<f64>> {
        let corner = |at: usize| {
            let mut corner = start.to_vec();
            corner[at] += size;
            corner
        };
        let others = (0..start.len()).map(corner);
        [start.to_vec()].into_iter().chain(others).collect()
    }

    /// Rosenbrock's valley, whose minimum is at 1 in each dimension.
    fn valley(x: &[f64]) -> f64 {
        let part = |x: &[f64]| {
            let (off, along) = (x[1] - x[0] * x[0], 1.0 - x[0]);
            100.0 * off * off + along * along
        };
        x.windows(2).map(part).sum()
    }

    #[test]
    fn the_minimum_of_valleys_and_bowls_is_found() {
        let (low, cost) = descend(from(&[-1.2, 1.0], 0.5), 1e-12, 1000, valley);
        assert!(
            cost < 1e-10 && low.iter().all(|x| (x - 1.0).abs() < 1e-4),
            "{low:?}: {cost}"
        );
        for dimensions in 1..=6 {
            let bowl = |x: &[f64]| -> f64 {
                let all = x.iter().enumerate();
                all.map(|(i, x)| (1.0 + i as f64) * (x - i as f64) * (x - i as f64))
                    .sum()
            };
            let start = vec![4.0; dimensions];
            let (low, cost) = descend(from(&start, 1.0), 1e-14, 4000, bowl);
            assert!(cost < 1e-9, "{dimensions}: {low:?}: {cost}");
        }
    }

    #[test]
    fn more_steps_never_raise_the_cost() {
        let start = from(&[-1.2, 1.0, 0.3], 0.5);
        let best = start.iter().map(|x| valley(x)).fold(f64::MAX, f64::min);
        let costs: Vec<f64> = (0..200)
            .map(|steps| descend(start.clone(), 0.0, steps, valley))
            .map(|(point, cost)| {
                assert_eq!(valley(&point).to_bits(), cost.to_bits());
                cost
            })
            .collect();
        assert_eq!(costs[0].to_bits(), best.to_bits());
        assert!(costs.is_sorted_by(|a, b| a >= b), "{costs:?}");
        assert!(costs[199] < best);
    }

    #[test]
    fn it_stops_where_all_costs_are_equal() {
        let flat = |_: &[f64]| 7.0;
        assert_eq!(
            descend(from(&[3.0, 4.0], 1.0), 1e-5, 100, flat),
            (vec![3.0, 4.0], 7.0)
        );
    }
}
