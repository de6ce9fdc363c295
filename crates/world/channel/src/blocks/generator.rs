//! Models that generate traces of blocks: their notation, their draws and their closed forms.
//!
//! ```text
//! bernoulli P                        each block is erased with probability P, independently
//! gilbert G B                        two states, one of which erases: from good to bad with G, back with B
//! gilbert-elliott G B LG LB          the same, with erasure probabilities LG and LB in the states
//! markov P11 P12 ... / L1 L2 ...     a hidden chain: all transitions, row by row, then the erasure probabilities
//! on-off BURSTS / GAPS               independent lengths of bursts and gaps: mixtures W1xM1+W2xM2+...
//! minutes BAD OF EACH MEAN           BAD minutes of every OF have EACH bursts of the mean length MEAN
//! onoff-b, onoff-c                   fits to the numbers that Ludwig et al. 1999 print for their traces B and C
//! a-literal, a-outage                two readings of what they print for trace A
//! ```
//! Chains, bursts and gaps begin in equilibrium: the first blocks of a trace are distributed like all later ones.

use std::fmt;
use std::str::FromStr;

use airlane_base::Rng;

use super::law::{Geometrics, LawError, draw};
use super::{Blocks, BlocksHeader};

/// Maximum number of states of a chain.
const MOST_STATES: usize = 8;

/// A model of erased blocks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Generator {
    /// A hidden Markov chain, one step per block; Bernoulli, Gilbert and Gilbert-Elliott are special cases.
    Markov(Chain),
    /// Bursts and gaps of independent lengths.
    OnOff {
        /// Lengths of bursts.
        bursts: Geometrics,
        /// Lengths of gaps.
        gaps: Geometrics,
    },
    /// Most minutes have no erasure, and a few have some.
    Minutes {
        /// Minutes of a group that have bursts.
        bad: u32,
        /// Minutes of a group.
        of: u32,
        /// Number of bursts in such a minute.
        bursts: u32,
        /// Mean burst length, blocks.
        mean: f64,
    },
}

/// A hidden Markov chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    /// Transition probabilities, `moves[from][to]`.
    moves: Vec<Vec<f64>>,
    /// Erasure probability in each state.
    losses: Vec<f64>,
}

/// Why a model is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GeneratorError {
    /// No model has this name.
    #[error(
        "\"{0}\" is no model of blocks; one of bernoulli, gilbert, gilbert-elliott, markov, on-off, minutes with their \
         numbers, or onoff-b, onoff-c, a-literal, a-outage"
    )]
    Name(String),
    /// The model needs other numbers.
    #[error("\"{text}\": {name} is written {form}")]
    Numbers {
        /// The text.
        text: String,
        /// The model.
        name: &'static str,
        /// The notation of the model.
        form: &'static str,
    },
    /// A value is not a probability.
    #[error("\"{text}\": {value} is no probability; one is between 0 and 1")]
    Probability {
        /// The text.
        text: String,
        /// The value.
        value: f64,
    },
    /// The numbers do not make a chain.
    #[error("\"{text}\": {what}")]
    Chain {
        /// The text.
        text: String,
        /// What is wrong, and what would be right.
        what: &'static str,
    },
    /// The lengths do not make a mixture.
    #[error(transparent)]
    Law(#[from] LawError),
}

const FORMS: [(&str, &str); 6] = [
    ("bernoulli", "bernoulli P, such as bernoulli 0.047"),
    (
        "gilbert",
        "gilbert GOOD-TO-BAD BAD-TO-GOOD, such as gilbert 0.006 0.12",
    ),
    (
        "gilbert-elliott",
        "gilbert-elliott GOOD-TO-BAD BAD-TO-GOOD LOSS-GOOD LOSS-BAD, such as gilbert-elliott 0.01 0.3 0 0.8",
    ),
    (
        "markov",
        "markov, all transitions, / and the loss of each state, such as markov 0.99 0.01 0.3 0.7 / 0 0.8",
    ),
    (
        "on-off",
        "on-off BURSTS / GAPS, such as on-off 0.4x1.5+0.6x4.8 / 0.9x50+0.1x8000",
    ),
    (
        "minutes",
        "minutes BAD OF BURSTS MEAN, such as minutes 10 258 7 1",
    ),
];

impl Chain {
    /// A chain from its transition probabilities, `moves[from][to]`, and its erasure probabilities.
    ///
    /// # Errors
    /// States what is wrong.
    pub fn new(mut moves: Vec<Vec<f64>>, losses: Vec<f64>) -> Result<Self, &'static str> {
        let states = losses.len();
        if !(1..=MOST_STATES).contains(&states) {
            return Err("a chain has 1 to 8 states");
        }
        if moves.len() != states || moves.iter().any(|row| row.len() != states) {
            return Err("a chain of n states has n times n transitions");
        }
        let probable = |p: &f64| (0.0..=1.0).contains(p);
        if !moves.iter().flatten().chain(&losses).all(probable) {
            return Err("transitions and losses are between 0 and 1");
        }
        for row in &mut moves {
            let sum: f64 = row.iter().sum();
            if (sum - 1.0).abs() > 1e-3 {
                return Err("the transitions out of a state sum up to 1");
            }
            row.iter_mut().for_each(|p| *p /= sum);
        }
        Ok(Self { moves, losses })
    }

    /// A chain of two states, good and bad: the probabilities of leaving them, and of an erasure in them.
    ///
    /// # Errors
    /// States what is wrong.
    pub fn of_two(leave: [f64; 2], losses: [f64; 2]) -> Result<Self, &'static str> {
        let moves = vec![
            vec![1.0 - leave[0], leave[0]],
            vec![leave[1], 1.0 - leave[1]],
        ];
        Self::new(moves, losses.into())
    }

    /// Transition probabilities, `moves[from][to]`.
    pub fn moves(&self) -> &[Vec<f64>] {
        &self.moves
    }

    /// Erasure probability in each state.
    pub fn losses(&self) -> &[f64] {
        &self.losses
    }

    /// Stationary distribution of the chain when started in the first state.
    pub fn equilibrium(&self) -> Vec<f64> {
        let n = self.losses.len();
        // By repeated squaring: after 2^40 steps even a chain that moves once a day has forgotten its start. The lazy
        // chain has the same equilibrium and is aperiodic.
        let mut power: Vec<Vec<f64>> = (0..n)
            .map(|i| {
                (0..n)
                    .map(|j| (self.moves[i][j] + f64::from(i == j)) / 2.0)
                    .collect()
            })
            .collect();
        for _ in 0..40 {
            let square = |i: usize, j: usize| (0..n).map(|k| power[i][k] * power[k][j]).sum();
            let mut next: Vec<Vec<f64>> = (0..n)
                .map(|i| (0..n).map(|j| square(i, j)).collect())
                .collect();
            for row in &mut next {
                let sum: f64 = row.iter().sum();
                row.iter_mut().for_each(|p| *p /= sum);
            }
            power = next;
        }
        power.swap_remove(0)
    }

    /// F(n): probability that a run of `n` blocks has an erasure.
    fn frame_erasure_rate(&self, n: u32) -> f64 {
        let states = self.losses.len();
        let mut alive = self.equilibrium();
        for block in 0..n {
            if block > 0 {
                let into = |j: usize| (0..states).map(|i| alive[i] * self.moves[i][j]).sum();
                alive = (0..states).map(into).collect();
            }
            alive
                .iter_mut()
                .zip(&self.losses)
                .for_each(|(p, loss)| *p *= 1.0 - loss);
        }
        1.0 - alive.iter().sum::<f64>()
    }
}

impl Generator {
    /// Fit to the printed numbers of trace B of Ludwig et al. 1999.
    pub fn onoff_b() -> Self {
        "on-off 0.484x1.94+0.422x4.57+0.094x35 / 0.59x3.9+0.3982x71+0.0118x8000"
            .parse()
            .expect("this is a model")
    }

    /// Fit to the printed numbers of trace C of Ludwig et al. 1999.
    pub fn onoff_c() -> Self {
        "on-off 0.405x1.5+0.53x4.8+0.065x32 / 0.332x1.48+0.321x4.76+0.337x71.2+0.01x8040"
            .parse()
            .expect("this is a model")
    }

    /// A memoryless model.
    ///
    /// # Errors
    /// If the rate is not a probability.
    pub fn bernoulli(rate: f64) -> Result<Self, &'static str> {
        Chain::new(vec![vec![1.0]], vec![rate]).map(Self::Markov)
    }

    /// Probability that a block is erased.
    pub fn erasure_rate(&self) -> f64 {
        self.frame_erasure_rate(1)
    }

    /// F(n): probability that `n` consecutive blocks have an erasure.
    ///
    /// For `Minutes` an approximation: its bursts count as far apart and never cut off.
    pub fn frame_erasure_rate(&self, n: u32) -> f64 {
        if n == 0 {
            return 0.0;
        }
        match self {
            Self::Markov(chain) => chain.frame_erasure_rate(n),
            Self::OnOff { bursts, gaps } => 1.0 - gaps.lasts(n) / (bursts.mean() + gaps.mean()),
            Self::Minutes {
                bad,
                of,
                bursts,
                mean,
            } => {
                let hit = f64::from(*bursts) * (mean + f64::from(n - 1)) / f64::from(MINUTE);
                f64::from(*bad) / f64::from(*of) * hit.min(1.0)
            }
        }
    }

    /// Draws a trace of `len` blocks.
    pub fn generate(&self, len: u32, header: BlocksHeader, random: &mut Rng) -> Blocks {
        let mut blocks = Blocks::new(header);
        let mut process = Process::new(self.clone(), random);
        while blocks.len() < len {
            let (erased, row) = process.next_row(random);
            blocks.push(erased, row.min(len - blocks.len()));
        }
        blocks
    }
}

/// Blocks in a minute, at 20 ms each.
const MINUTE: u32 = 3000;

/// A running model: runs of blocks, one after the other, without end.
#[derive(Clone, Debug)]
pub struct Process {
    model: Generator,
    state: State,
}

#[derive(Clone, Debug)]
enum State {
    Chain(usize),
    /// The kind of the next run, and whether it is the first.
    Rows {
        erased: bool,
        first: bool,
    },
    Minutes {
        /// Bad minutes, and all minutes, left in the group.
        left: [u32; 2],
        /// Runs of this minute, in reverse order.
        rows: Vec<(bool, u32)>,
    },
}

impl Process {
    /// Starts the model in equilibrium.
    pub fn new(model: Generator, random: &mut Rng) -> Self {
        let state = match &model {
            Generator::Markov(chain) => State::Chain(pick(&chain.equilibrium(), random)),
            Generator::OnOff { bursts, gaps } => State::Rows {
                erased: random.chance(bursts.mean() / (bursts.mean() + gaps.mean())),
                first: true,
            },
            Generator::Minutes { .. } => State::Minutes {
                left: [0, 0],
                rows: Vec::new(),
            },
        };
        Self { model, state }
    }

    /// Whether the next blocks are erased, and how many; the following run may be of the same kind.
    pub fn next_row(&mut self, random: &mut Rng) -> (bool, u32) {
        match (&self.model, &mut self.state) {
            (Generator::Markov(chain), State::Chain(at)) => {
                let erased = random.chance(chain.losses[*at]);
                *at = pick(&chain.moves[*at], random);
                (erased, 1)
            }
            (Generator::OnOff { bursts, gaps }, State::Rows { erased, first }) => {
                let (is, law) = (*erased, if *erased { bursts } else { gaps });
                let len = match *first {
                    true => law.draw_residual(random),
                    false => law.draw(random),
                };
                (*erased, *first) = (!is, false);
                (is, len)
            }
            (
                Generator::Minutes {
                    bad,
                    of,
                    bursts,
                    mean,
                },
                State::Minutes { left, rows },
            ) => {
                while rows.is_empty() {
                    if left[1] == 0 {
                        *left = [*bad, *of];
                    }
                    // Each of the minutes left is equally likely to be bad.
                    let is_bad = random.uniform() * f64::from(left[1]) < f64::from(left[0]);
                    left[1] -= 1;
                    left[0] -= u32::from(is_bad);
                    *rows = minute(if is_bad { *bursts } else { 0 }, *mean, random);
                }
                rows.pop().expect("checked: there are rows")
            }
            // Unreachable: the state always fits the model.
            _ => (false, 1),
        }
    }
}

/// The runs of a minute whose bursts begin at random places, in reverse order.
fn minute(bursts: u32, mean: f64, random: &mut Rng) -> Vec<(bool, u32)> {
    let mut erased = vec![false; MINUTE as usize];
    for _ in 0..bursts {
        let start = (random.uniform() * f64::from(MINUTE)) as usize;
        let len = draw(mean, random) as usize;
        erased
            .iter_mut()
            .skip(start)
            .take(len)
            .for_each(|is| *is = true);
    }
    let mut rows: Vec<(bool, u32)> = Vec::new();
    for is in erased.into_iter().rev() {
        match rows.last_mut() {
            Some((same, len)) if *same == is => *len += 1,
            _ => rows.push((is, 1)),
        }
    }
    rows
}

fn pick(weights: &[f64], random: &mut Rng) -> usize {
    let mut at = random.uniform();
    for (place, weight) in weights.iter().enumerate() {
        at -= weight;
        if at < 0.0 {
            return place;
        }
    }
    weights.len() - 1
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Markov(chain) => chain.fmt(f),
            Self::OnOff { bursts, gaps } => write!(f, "on-off {bursts} / {gaps}"),
            Self::Minutes {
                bad,
                of,
                bursts,
                mean,
            } => write!(f, "minutes {bad} {of} {bursts} {mean}"),
        }
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.moves.as_slice(), self.losses.as_slice()) {
            ([_], [loss]) => write!(f, "bernoulli {loss}"),
            ([good, bad], [0.0, 1.0]) => write!(f, "gilbert {} {}", good[1], bad[0]),
            ([good, bad], [a, b]) => {
                write!(f, "gilbert-elliott {} {} {a} {b}", good[1], bad[0])
            }
            (moves, losses) => {
                f.write_str("markov")?;
                for p in moves.iter().flatten() {
                    write!(f, " {p}")?;
                }
                f.write_str(" /")?;
                losses.iter().try_for_each(|p| write!(f, " {p}"))
            }
        }
    }
}

impl FromStr for Generator {
    type Err = GeneratorError;
    fn from_str(text: &str) -> Result<Self, GeneratorError> {
        let text = text.trim();
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        match text {
            "onoff-b" => return Ok(Self::onoff_b()),
            "onoff-c" => return Ok(Self::onoff_c()),
            "a-literal" => return "minutes 10 258 7 1".parse(),
            "a-outage" => return "minutes 10 258 7 115".parse(),
            _ => {}
        }
        let form = FORMS.iter().find(|(form, _)| *form == name);
        let (name, form) = *form.ok_or_else(|| GeneratorError::Name(text.to_owned()))?;
        let owned = || text.to_owned();
        let wrong = || GeneratorError::Numbers {
            text: owned(),
            name,
            form,
        };
        let numbers = |part: &str| -> Result<Vec<f64>, GeneratorError> {
            let numbers = part.split_whitespace().map(|n| n.parse::<f64>().ok());
            let numbers: Option<Vec<f64>> = numbers.collect();
            numbers
                .filter(|all| all.iter().all(|n| n.is_finite()))
                .ok_or_else(wrong)
        };
        let chain = |chain: Result<Chain, &'static str>| {
            let chain = chain.map_err(|what| GeneratorError::Chain {
                text: owned(),
                what,
            })?;
            Ok(Self::Markov(chain))
        };
        let probabilities = |part: &str| {
            let all = numbers(part)?;
            match all.iter().find(|p| !(0.0..=1.0).contains(*p)) {
                Some(value) => Err(GeneratorError::Probability {
                    text: owned(),
                    value: *value,
                }),
                None => Ok(all),
            }
        };
        match name {
            "bernoulli" => match probabilities(rest)?[..] {
                [rate] => chain(Chain::new(vec![vec![1.0]], vec![rate])),
                _ => Err(wrong()),
            },
            "gilbert" => match probabilities(rest)?[..] {
                [to_bad, to_good] => chain(Chain::of_two([to_bad, to_good], [0.0, 1.0])),
                _ => Err(wrong()),
            },
            "gilbert-elliott" => match probabilities(rest)?[..] {
                [to_bad, to_good, good, bad] => {
                    chain(Chain::of_two([to_bad, to_good], [good, bad]))
                }
                _ => Err(wrong()),
            },
            "markov" => {
                let (moves, losses) = rest.split_once('/').ok_or_else(wrong)?;
                let (moves, losses) = (probabilities(moves)?, probabilities(losses)?);
                let rows = moves.chunks(losses.len().max(1)).map(<[f64]>::to_vec);
                chain(Chain::new(rows.collect(), losses))
            }
            "on-off" => {
                let (bursts, gaps) = rest.split_once('/').ok_or_else(wrong)?;
                let (bursts, gaps) = (bursts.trim().parse()?, gaps.trim().parse()?);
                Ok(Self::OnOff { bursts, gaps })
            }
            _ => match numbers(rest)?[..] {
                [bad, of, bursts, mean]
                    if [bad, of, bursts]
                        .iter()
                        .all(|n| (0.0..=1e6).contains(n) && n.fract() == 0.0)
                        && of >= 1.0
                        && bad <= of
                        && bursts <= f64::from(MINUTE)
                        && mean >= 1.0 =>
                {
                    Ok(Self::Minutes {
                        bad: bad as u32,
                        of: of as u32,
                        bursts: bursts as u32,
                        mean,
                    })
                }
                _ => Err(wrong()),
            },
        }
    }
}
