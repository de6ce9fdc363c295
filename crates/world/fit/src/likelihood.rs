//! The likelihood of a trace under a model.
//!
//! The computation works on runs of blocks: a run of k blocks multiplies the distribution over
//! states by the k-th power of one matrix, so the cost grows with the bursts of a trace and not
//! with its blocks.

use std::collections::BTreeMap;

use airlane_channel::blocks::{Blocks, Chain, Generator, Geometrics};

/// Natural logarithm of the probability of the trace; minus infinity for a trace that the model
/// cannot make. Models of minutes have no likelihood and give NaN.
pub fn log_likelihood(model: &Generator, blocks: &Blocks) -> f64 {
    match model {
        Generator::Markov(chain) => of_chain(chain, blocks),
        Generator::OnOff { bursts, gaps } => of_on_off([gaps, bursts], blocks),
        _ => f64::NAN,
    }
}

/// A matrix times e^scale.
#[derive(Clone)]
struct Scaled {
    rows: Vec<Vec<f64>>,
    scale: f64,
}

impl Scaled {
    fn times(&self, other: &Self) -> Self {
        let n = self.rows.len();
        let cell = |i: usize, j: usize| (0..n).map(|k| self.rows[i][k] * other.rows[k][j]).sum();
        let rows: Vec<Vec<f64>> = (0..n)
            .map(|i| (0..n).map(|j| cell(i, j)).collect())
            .collect();
        let mut product = Self {
            rows,
            scale: self.scale + other.scale,
        };
        let most = product
            .rows
            .iter()
            .flatten()
            .fold(0.0, |a: f64, b| a.max(*b));
        if most > 0.0 {
            product.rows.iter_mut().flatten().for_each(|p| *p /= most);
            product.scale += libm::log(most);
        }
        product
    }
}

/// Powers of a matrix for the lengths that occur.
fn powers(one: Scaled, lengths: &[u32]) -> BTreeMap<u32, Scaled> {
    let longest = lengths.iter().max().copied().unwrap_or(1);
    let mut squares = vec![one];
    while longest >> squares.len() > 0 {
        let last = &squares[squares.len() - 1];
        squares.push(last.times(last));
    }
    let power = |len: u32| {
        let bits = (0..squares.len()).filter(|bit| len >> bit & 1 == 1);
        let factors = bits.map(|bit| squares[bit].clone());
        factors
            .reduce(|a, b| a.times(&b))
            .expect("a row has at least one block")
    };
    lengths.iter().map(|len| (*len, power(*len))).collect()
}

fn of_chain(chain: &Chain, blocks: &Blocks) -> f64 {
    let states = chain.losses().len();
    // Tables for runs of received and of erased blocks; each block comes before its transition.
    let tables = [false, true].map(|erased| {
        let mut lengths: Vec<u32> = blocks
            .rows()
            .flatten()
            .filter(|(is, _)| *is == erased)
            .map(|(_, len)| len)
            .collect();
        lengths.sort_unstable();
        lengths.dedup();
        let emits = |state: usize| match erased {
            true => chain.losses()[state],
            false => 1.0 - chain.losses()[state],
        };
        let rows = (0..states).map(|i| {
            (0..states)
                .map(|j| emits(i) * chain.moves()[i][j])
                .collect()
        });
        let one = Scaled {
            rows: rows.collect(),
            scale: 0.0,
        };
        powers(one, &lengths)
    });
    let begin = chain.equilibrium();
    let mut log = 0.0;
    for rows in blocks.rows() {
        let mut alive = begin.clone();
        for (erased, len) in rows {
            let power = &tables[usize::from(erased)][&len];
            let into = |j: usize| {
                (0..states)
                    .map(|i| alive[i] * power.rows[i][j])
                    .sum::<f64>()
            };
            let next: Vec<f64> = (0..states).map(into).collect();
            let sum: f64 = next.iter().sum();
            log += libm::log(sum) + power.scale;
            alive = next.iter().map(|p| p / sum).collect();
        }
    }
    if log.is_nan() { f64::NEG_INFINITY } else { log }
}

/// Runs at the edges of a part are at least as long as seen.
fn of_on_off(laws: [&Geometrics; 2], blocks: &Blocks) -> f64 {
    let cycle = laws[0].mean() + laws[1].mean();
    let mut log = 0.0;
    for rows in blocks.rows() {
        let last = rows.len().saturating_sub(1);
        for (at, (erased, len)) in rows.into_iter().enumerate() {
            let law = laws[usize::from(erased)];
            log += libm::log(match (at == 0, at == last) {
                (true, true) => law.lasts(len) / cycle,
                (true, false) => law.above(len - 1) / cycle,
                (false, true) => law.above(len - 1),
                (false, false) => law.at(len),
            });
        }
    }
    log
}
