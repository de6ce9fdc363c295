//! Finds the maximum-likelihood model of a family.

use airlane_channel::blocks::{Blocks, Geometrics};

use crate::family::{Family, Point, Shape, model};
use crate::likelihood::log_likelihood;
use crate::{mixture, simplex};

pub(crate) fn best(blocks: &Blocks, family: Family) -> Point {
    match family {
        Family::Bernoulli => Point::bernoulli(blocks.erasure_rate()),
        Family::Gilbert => gilbert(blocks),
        Family::GilbertElliott => hidden(blocks, 2),
        Family::Hidden(states) => hidden(blocks, states),
        Family::OnOff => {
            let any = || Geometrics::new(vec![[1.0, 1.0]]).expect("a mean of 1 is one");
            let bursts = mixture::best(&blocks.burst_lengths()).unwrap_or_else(any);
            let gaps = mixture::best(&blocks.gap_lengths()).unwrap_or_else(any);
            Point::on_off(&bursts, &gaps)
        }
    }
}

/// Counts transitions within parts.
fn gilbert(blocks: &Blocks) -> Point {
    let (mut from, mut left) = ([0.0f64; 2], [0.0f64; 2]);
    for rows in blocks.rows() {
        let last = rows.len().saturating_sub(1);
        for (at, (erased, len)) in rows.into_iter().enumerate() {
            let state = usize::from(erased);
            let inner = at < last;
            from[state] += f64::from(len - u32::from(!inner));
            left[state] += f64::from(u8::from(inner));
        }
    }
    let leave = |state: usize| left[state] / from[state].max(1.0);
    Point::gilbert([leave(0), leave(1)])
}

/// From several starting points, because the likelihood of a hidden chain has several maxima.
fn hidden(blocks: &Blocks, states: usize) -> Point {
    let burst = f64::from(blocks.erased()) / blocks.bursts().len().max(1) as f64;
    let gap = f64::from(blocks.len() - blocks.erased()) / blocks.bursts().len().max(1) as f64;
    let starts = [(1.0, 0.9), (4.0, 0.5), (50.0, 0.2)].map(|(longer, worst)| {
        let moves: Vec<Vec<f64>> = (0..states)
            .map(|i| {
                // Good states last as long as gaps, bad ones as long as bursts.
                let place = i as f64 / (states - 1) as f64;
                let mean = longer * gap * libm::pow(burst / gap, place);
                let leave = (1.0 / mean.max(1.2)).min(0.8) / (states - 1) as f64;
                let row = (0..states).map(|j| if i == j { 0.0 } else { leave });
                let mut row: Vec<f64> = row.collect();
                row[i] = 1.0 - row.iter().sum::<f64>();
                row
            })
            .collect();
        let worse = |i: usize| i as f64 / (states - 1) as f64;
        let loss = |i: usize| {
            let least = blocks.erasure_rate() / 20.0;
            least * libm::pow(worst / least, worse(i))
        };
        let losses: Vec<f64> = (0..states).map(loss).collect();
        Point::hidden(&moves, &losses).point
    });
    let shape = Shape::Hidden(states);
    let climbed = starts.map(|start| climb(blocks, shape, start));
    let best = climbed.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let (x, _) = best.expect("there are starts");
    let (moves, losses) = Point::chain(states, &x);
    Point::hidden(&moves, &losses)
}

/// Several simplex searches, each starting from a smaller simplex than the one before, because a
/// simplex may stop short of the maximum.
fn climb(blocks: &Blocks, shape: Shape, start: Vec<f64>) -> (Vec<f64>, f64) {
    let mut best = (start, f64::MAX);
    for size in [1.5, 0.5, 0.1] {
        let mut corners = vec![best.0.clone()];
        for at in 0..best.0.len() {
            let mut corner = best.0.clone();
            corner[at] += size;
            corners.push(corner);
        }
        let steps = 150 * best.0.len() as u64;
        best = simplex::descend(corners, 1e-5, steps, |x| {
            // Far out the likelihood is flat, and a simplex that gets there would not return.
            let far: f64 = x.iter().map(|x| (x.abs() - 20.0).max(0.0)).sum();
            let cost = far - log_likelihood(&model(shape, x), blocks);
            if cost.is_finite() { cost } else { f64::MAX }
        });
    }
    best
}
