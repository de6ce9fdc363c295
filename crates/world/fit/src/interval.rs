//! How precisely a trace determines the parameters of a model, from the curvature of the likelihood
//! at its maximum.

use airlane_channel::blocks::Blocks;

use crate::family::{Kind, Point, model, values};
use crate::likelihood::log_likelihood;

/// An interval whose ends differ by more than this factor does not determine a parameter.
pub const WIDEST: f64 = 4.0;

/// A parameter of a fitted model.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name in the text form of the model.
    pub name: String,
    /// Its maximum-likelihood estimate.
    pub value: f64,
    /// The 95 % confidence interval; `None` if the trace does not determine the parameter.
    pub interval: Option<[f64; 2]>,
    /// Whether it is at a bound of its range, such as a loss of 0 or 1, where the curvature is
    /// undefined.
    pub at_bound: bool,
}

/// A probability that differs from 0 or 1 by less than this expected number of blocks cannot be
/// told from 0 or 1.
const BOUND: f64 = 0.1;

impl Parameter {
    /// The factor by which the trace would have to be longer to determine it.
    pub(crate) fn longer(&self) -> f64 {
        match self.interval {
            _ if self.at_bound => 0.0,
            Some([low, high]) if low > 0.0 => {
                let width = libm::log(high / low) / libm::log(WIDEST);
                width * width
            }
            _ => f64::INFINITY,
        }
    }
}

/// The parameters at the maximum of the likelihood.
pub(crate) fn parameters(blocks: &Blocks, at: &Point) -> Vec<Parameter> {
    let best = at.model();
    let found = values(&best);
    let bound = BOUND / f64::from(blocks.len());
    let fixed: Vec<bool> = found
        .iter()
        .map(|(_, kind, value)| match kind {
            Kind::Probability => !(bound..=1.0 - bound).contains(value),
            Kind::Mean => *value < 1.0 + 1e-6,
        })
        .collect();
    let covariance = covariance(blocks, at);
    let free = |x: &[f64]| -> Vec<f64> {
        let all = values(&model(at.shape, x)).into_iter();
        all.map(|(_, kind, value)| kind.free(value)).collect()
    };
    let gradients = gradients(&at.point, free);
    let all = found.into_iter().zip(fixed).enumerate();
    all.map(|(which, ((name, kind, value), at_bound))| {
        let variance = covariance.as_ref().map(|covariance| {
            let gradient: Vec<f64> = gradients.iter().map(|of| of[which]).collect();
            let mut sum = 0.0;
            for (i, a) in gradient.iter().enumerate() {
                for (j, b) in gradient.iter().enumerate() {
                    sum += a * b * covariance[i][j];
                }
            }
            sum
        });
        let interval = variance
            .filter(|v| v.is_finite() && *v > 0.0)
            .map(|variance| {
                let half = 1.96 * libm::sqrt(variance);
                let x = kind.free(value);
                [x - half, x + half].map(|x| kind.bound(x))
            });
        Parameter {
            name,
            value,
            interval: interval.filter(|_| !at_bound),
            at_bound,
        }
    })
    .collect()
}

const STEP: f64 = 1e-3;

/// For each coordinate of the point, the derivatives of all values.
fn gradients(x: &[f64], values: impl Fn(&[f64]) -> Vec<f64>) -> Vec<Vec<f64>> {
    let moved = |at: usize, by: f64| {
        let mut x = x.to_vec();
        x[at] += by;
        values(&x)
    };
    let each = (0..x.len()).map(|at| {
        let pairs = moved(at, STEP).into_iter().zip(moved(at, -STEP));
        pairs
            .map(|(more, less)| (more - less) / (2.0 * STEP))
            .collect()
    });
    each.collect()
}

/// The inverse of the observed information. Coordinates that do not affect the likelihood, such as
/// those of a loss of zero, are left out.
fn covariance(blocks: &Blocks, at: &Point) -> Option<Vec<Vec<f64>>> {
    let n = at.point.len();
    let step = 1e-2;
    let value = |moves: &[(usize, f64)]| {
        let mut x = at.point.clone();
        for (at, by) in moves {
            x[*at] += by * step;
        }
        log_likelihood(&model(at.shape, &x), blocks)
    };
    let top = value(&[]);
    let second = |i: usize, j: usize| {
        if i == j {
            return (value(&[(i, 1.0)]) - 2.0 * top + value(&[(i, -1.0)])) / (step * step);
        }
        let corner = |a: f64, b: f64| value(&[(i, a), (j, b)]);
        (corner(1.0, 1.0) - corner(1.0, -1.0) - corner(-1.0, 1.0) + corner(-1.0, -1.0))
            / (4.0 * step * step)
    };
    let row = |i: usize| (0..n).map(|j| -second(i.max(j), i.min(j))).collect();
    let information: Vec<Vec<f64>> = (0..n).map(row).collect();
    let felt: Vec<usize> = (0..n).filter(|i| information[*i][*i] > 1e-3).collect();
    let part: Vec<Vec<f64>> = felt
        .iter()
        .map(|i| felt.iter().map(|j| information[*i][*j]).collect())
        .collect();
    let inverse = inverse(part)?;
    let mut covariance = vec![vec![0.0; n]; n];
    for (a, i) in felt.iter().enumerate() {
        for (b, j) in felt.iter().enumerate() {
            covariance[*i][*j] = inverse[a][b];
        }
    }
    Some(covariance)
}

/// Gauss-Jordan elimination; `None` if the matrix is not positive definite.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let n = matrix.len();
    let unit = |i: usize| (0..n).map(move |j| f64::from(u8::from(i == j)));
    for (i, row) in matrix.iter_mut().enumerate() {
        row.extend(unit(i));
    }
    for i in 0..n {
        let pivot = matrix[i][i];
        if pivot.is_nan() || pivot <= 1e-9 {
            return None;
        }
        matrix[i].iter_mut().for_each(|cell| *cell /= pivot);
        let row = matrix[i].clone();
        for (_, other) in matrix.iter_mut().enumerate().filter(|(at, _)| *at != i) {
            let factor = other[i];
            other
                .iter_mut()
                .zip(&row)
                .for_each(|(cell, by)| *cell -= factor * by);
        }
    }
    Some(matrix.into_iter().map(|row| row[n..].to_vec()).collect())
}
