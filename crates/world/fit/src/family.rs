//! Families of models, and how their parameters map to unconstrained numbers.
//!
//! The search and the curvature need parameters that can take any value: a probability is
//! represented by its logit, a mean length by the logarithm of its excess over 1, and weights by
//! their logarithms relative to the last one.

use std::fmt;

use airlane_channel::blocks::{Chain, Generator, Geometrics};

/// A family of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Memoryless erasures.
    Bernoulli,
    /// Two observable states.
    Gilbert,
    /// Two hidden states.
    GilbertElliott,
    /// This many hidden states.
    Hidden(usize),
    /// Independent lengths of bursts and gaps, each a mixture of geometric distributions.
    OnOff,
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bernoulli => f.write_str("bernoulli"),
            Self::Gilbert => f.write_str("gilbert"),
            Self::GilbertElliott => f.write_str("gilbert-elliott"),
            Self::Hidden(states) => write!(f, "markov of {states} states"),
            Self::OnOff => f.write_str("on-off"),
        }
    }
}

/// What the coordinates of a point mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Bernoulli,
    Gilbert,
    /// Number of states.
    Hidden(usize),
    /// Numbers of components of bursts and gaps.
    OnOff(usize, usize),
}

/// A model as a point.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    pub(crate) shape: Shape,
    pub(crate) point: Vec<f64>,
}

/// The range of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Probability,
    /// At least 1.
    Mean,
}

impl Kind {
    pub(crate) fn free(self, value: f64) -> f64 {
        match self {
            Self::Probability => logit(value),
            Self::Mean => libm::log((value - 1.0).max(1e-12)),
        }
    }

    pub(crate) fn bound(self, x: f64) -> f64 {
        match self {
            Self::Probability => logistic(x),
            Self::Mean => 1.0 + libm::exp(x.min(30.0)),
        }
    }
}

pub(crate) fn logit(p: f64) -> f64 {
    let p = p.clamp(1e-12, 1.0 - 1e-12);
    libm::log(p / (1.0 - p))
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x.clamp(-40.0, 40.0)))
}

/// Weights that sum to 1, from their logarithms relative to the last one.
fn shares(x: &[f64]) -> Vec<f64> {
    let all = x.iter().map(|x| libm::exp(x.clamp(-40.0, 40.0)));
    let all: Vec<f64> = all.chain([1.0]).collect();
    let sum: f64 = all.iter().sum();
    all.iter().map(|share| share / sum).collect()
}

fn logarithms(shares: &[f64]) -> Vec<f64> {
    let last = shares.last().copied().unwrap_or(1.0).max(1e-12);
    let all = shares.iter().take(shares.len() - 1);
    all.map(|share| libm::log(share.max(1e-12) / last))
        .collect()
}

impl Point {
    pub(crate) fn bernoulli(p: f64) -> Self {
        Self {
            shape: Shape::Bernoulli,
            point: vec![logit(p)],
        }
    }

    pub(crate) fn gilbert(leave: [f64; 2]) -> Self {
        Self {
            shape: Shape::Gilbert,
            point: leave.map(logit).into(),
        }
    }

    /// A Markov chain given by its transitions, with the states in the order of their losses.
    pub(crate) fn hidden(moves: &[Vec<f64>], losses: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..losses.len()).collect();
        order.sort_by(|a, b| losses[*a].total_cmp(&losses[*b]));
        let mut point = Vec::new();
        for from in &order {
            let row: Vec<f64> = order.iter().map(|to| moves[*from][*to]).collect();
            point.extend(logarithms(&row));
        }
        point.extend(order.iter().map(|state| logit(losses[*state])));
        Self {
            shape: Shape::Hidden(losses.len()),
            point,
        }
    }

    pub(crate) fn on_off(bursts: &Geometrics, gaps: &Geometrics) -> Self {
        let mut point = Vec::new();
        for law in [bursts, gaps] {
            let weights: Vec<f64> = law.parts().iter().map(|[weight, _]| *weight).collect();
            point.extend(logarithms(&weights));
            point.extend(law.parts().iter().map(|[_, mean]| Kind::Mean.free(*mean)));
        }
        Self {
            shape: Shape::OnOff(bursts.parts().len(), gaps.parts().len()),
            point,
        }
    }

    /// The chain of a hidden shape: transitions and losses.
    pub(crate) fn chain(states: usize, x: &[f64]) -> (Vec<Vec<f64>>, Vec<f64>) {
        let (moves, losses) = x.split_at(states * (states - 1));
        let moves = moves.chunks(states - 1).map(shares).collect();
        (moves, losses.iter().map(|x| logistic(*x)).collect())
    }

    pub(crate) fn model(&self) -> Generator {
        model(self.shape, &self.point)
    }
}

/// The model at a point.
pub(crate) fn model(shape: Shape, x: &[f64]) -> Generator {
    let chain = |chain: Result<Chain, &'static str>| {
        Generator::Markov(chain.expect("shares and logistic values make a chain"))
    };
    match shape {
        Shape::Bernoulli => chain(Chain::new(vec![vec![1.0]], vec![logistic(x[0])])),
        Shape::Gilbert => chain(Chain::of_two([logistic(x[0]), logistic(x[1])], [0.0, 1.0])),
        Shape::Hidden(states) => {
            let (moves, losses) = Point::chain(states, x);
            chain(Chain::new(moves, losses))
        }
        Shape::OnOff(bursts, gaps) => {
            let (burst, gap) = x.split_at(2 * bursts - 1);
            let law = |x: &[f64], components: usize| {
                let (weights, means) = x.split_at(components - 1);
                let means = means.iter().map(|x| Kind::Mean.bound(*x));
                let parts = shares(weights).into_iter().zip(means);
                let parts = parts.map(|(weight, mean)| [weight.max(1e-300), mean]);
                Geometrics::new(parts.collect()).expect("shares and means above 1 make a law")
            };
            Generator::OnOff {
                bursts: law(burst, bursts),
                gaps: law(gap, gaps),
            }
        }
    }
}

/// Names, kinds and values of the parameters in a model's text form.
pub(crate) fn values(model: &Generator) -> Vec<(String, Kind, f64)> {
    let probability = |name: String, value| (name, Kind::Probability, value);
    match model {
        Generator::Markov(chain) => match (chain.moves(), chain.losses()) {
            ([_], [loss]) => vec![probability("rate".into(), *loss)],
            ([good, bad], [a, b]) => {
                let mut all = vec![
                    probability("good-to-bad".into(), good[1]),
                    probability("bad-to-good".into(), bad[0]),
                ];
                if [*a, *b] != [0.0, 1.0] {
                    all.push(probability("loss-good".into(), *a));
                    all.push(probability("loss-bad".into(), *b));
                }
                all
            }
            (moves, losses) => {
                let mut all = Vec::new();
                for (i, row) in moves.iter().enumerate() {
                    for (j, p) in row.iter().enumerate().filter(|(j, _)| *j != i) {
                        all.push(probability(format!("{}-to-{}", i + 1, j + 1), *p));
                    }
                }
                for (i, loss) in losses.iter().enumerate() {
                    all.push(probability(format!("loss-{}", i + 1), *loss));
                }
                all
            }
        },
        Generator::OnOff { bursts, gaps } => {
            let mut all = Vec::new();
            for (name, law) in [("burst", bursts), ("gap", gaps)] {
                for (i, [weight, mean]) in law.parts().iter().enumerate() {
                    if law.parts().len() > 1 {
                        all.push(probability(format!("{name}-weight-{}", i + 1), *weight));
                    }
                    all.push((format!("{name}-mean-{}", i + 1), Kind::Mean, *mean));
                }
            }
            all
        }
        // No other model is fitted.
        _ => Vec::new(),
    }
}
