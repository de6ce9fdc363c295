//! The search: many settings are simulated briefly, and the better ones again, longer and on new draws.
//!
//! Successive halving (Jamieson and Talwalkar 2016) with a fixed schedule, and not with a time limit, so that the same
//! seed finds the same on any machine. In each rung all meet the same losses. What is found is told to the caller as one
//! more candidate, which is then simulated like all others: how good it looked here does not count.

use airlane_base::{Duration, Streams};
use airlane_sim::{RunResult, ScenarioError};
use toml::Table;

use crate::apps::Apps;
use crate::candidate::{Candidate, CandidateError};
use crate::goal::Goals;
use crate::knob::{Draw, Space};
use crate::link::Link;
use crate::measure::Measure;
use crate::trial::{Pace, Trial};

/// How many of the settings are simulated, how often and how long.
struct Rung {
    /// One in so many of the settings at the start.
    one_in: usize,
    runs: u64,
    length: Duration,
}

impl Rung {
    /// At least two, of which one is the better.
    fn of(&self, settings: usize) -> usize {
        (settings / self.one_in).max(2.min(settings))
    }
}

const RUNGS: [Rung; 3] = [
    Rung {
        one_in: 1,
        runs: 1,
        length: Duration::from_secs(6),
    },
    Rung {
        one_in: 6,
        runs: 2,
        length: Duration::from_secs(8),
    },
    Rung {
        one_in: 25,
        runs: 3,
        length: Duration::from_secs(10),
    },
];

/// How much more a loss counts than a gain of the same size, unless a goal needs it: a search that sums both would trade
/// one application for another, which only the user may.
const PRICE: f64 = 4.0;

/// What is searched for.
pub(crate) struct Search<'a> {
    pub(crate) link: &'a Link,
    pub(crate) apps: &'a Apps,
    pub(crate) goals: &'a Goals,
    /// The link of the file that is to be changed.
    pub(crate) base: &'a Table,
    /// Whether the base misses goals, so that reaching them may cost something.
    pub(crate) wanted: bool,
    pub(crate) pace: Pace,
    /// How many settings are looked at.
    pub(crate) settings: usize,
}

/// Why a search fails.
#[derive(Debug)]
pub(crate) enum SearchError {
    Candidate(CandidateError),
    Scenario(ScenarioError),
}

impl Search<'_> {
    /// The runs that [`Search::best`] takes at most.
    pub(crate) fn runs(&self) -> u64 {
        let rungs = RUNGS.iter();
        let rungs = rungs.map(|rung| (rung.of(self.settings) as u64 + 1) * rung.runs);
        rungs.sum::<u64>() + 9 * RUNGS[2].runs
    }

    /// The best settings, without those that add nothing; none if no setting is better than the file's.
    pub(crate) fn best(
        &self,
        progress: impl Fn(u64) + Sync,
    ) -> Result<Option<Candidate>, SearchError> {
        let space = Space::of(self.apps, self.base, self.link).map_err(SearchError::Candidate)?;
        let mut random = Streams::new(self.pace.seed, 0).stream("search");
        let mut draws = space.draws(self.settings, &mut random);
        if draws.is_empty() {
            return Ok(None);
        }
        let mut done = 0;
        let mut rung = |number: u64, rung: &Rung, draws: &[Draw]| {
            let pace = Pace {
                length: rung.length,
                runs: rung.runs,
                // Each rung has other draws than those that chose its settings, and than the comparison that follows.
                seed: self.pace.seed.wrapping_add(2 + number),
                ..self.pace
            };
            let scores = self.scores(&space, draws, pace, |now| progress(done + now));
            done += (draws.len() as u64 + 1) * rung.runs;
            scores
        };
        let mut scored = vec![];
        for (number, of) in RUNGS.iter().enumerate() {
            draws.truncate(of.of(self.settings));
            let scores = rung(number as u64, of, &draws)?;
            let mut order: Vec<usize> = (0..draws.len()).collect();
            // Equal scores keep their order: fewer changes come first.
            order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
            scored = order.iter().map(|at| scores[*at]).collect();
            draws = order.into_iter().map(|at| draws[at].clone()).collect();
        }
        let best = draws.swap_remove(0);
        if scored[0] <= 0.0 {
            return Ok(None);
        }
        // What can be left out is left out, all at once: each by itself first, to see which these are.
        let changed = (0..best.len()).filter(|at| best[*at] > 0);
        let without = changed.map(|at| {
            let mut draw = best.clone();
            draw[at] = 0;
            (at, draw)
        });
        let without: Vec<(usize, Draw)> = without.collect();
        let mut all = vec![best.clone()];
        if without.len() > 1 {
            all.extend(without.iter().map(|(_, draw)| draw.clone()));
        }
        let scores = rung(RUNGS.len() as u64, &RUNGS[2], &all)?;
        let mut least = best.clone();
        for ((at, _), score) in without.iter().zip(&scores[1..]) {
            if *score >= scores[0] - 1.0 {
                least[*at] = 0;
            }
        }
        let unchanged = least.iter().all(|setting| *setting == 0);
        if unchanged || least == best {
            return Ok(Some(space.candidate(&best)));
        }
        let both = [best, least];
        let scores = rung(RUNGS.len() as u64 + 1, &RUNGS[2], &both)?;
        let at = usize::from(scores[1] >= scores[0] - 1.0);
        Ok(Some(space.candidate(&both[at])))
    }

    /// How much better than the base each of these is, in units of what is worth reporting.
    fn scores(
        &self,
        space: &Space,
        draws: &[Draw],
        pace: Pace,
        progress: impl Fn(u64) + Sync,
    ) -> Result<Vec<f64>, SearchError> {
        let mut trial = Trial::default();
        let live = crate::candidate::of_link(self.base.clone());
        let candidates = draws.iter().map(|draw| space.candidate(draw).live);
        for live in std::iter::once(Some(live)).chain(candidates) {
            trial
                .add(self.link, self.apps, live.as_ref(), pace)
                .map_err(SearchError::Scenario)?;
        }
        let results = trial.run(pace, |done, _| progress(done));
        let results = results.map_err(SearchError::Scenario)?;
        let (base, others) = results.split_first().expect("the base is always there");
        Ok(others.iter().map(|runs| self.score(runs, base)).collect())
    }

    fn score(&self, runs: &[RunResult], base: &[RunResult]) -> f64 {
        let mean = |of: &dyn Fn(&RunResult, &RunResult) -> f64| {
            let pairs = runs.iter().zip(base);
            pairs.map(|(run, base)| of(run, base)).sum::<f64>() / runs.len().max(1) as f64
        };
        let mut short = 0.0;
        if self.wanted {
            for goal in &self.goals.0 {
                let Some(measure) = goal.measure(self.apps) else {
                    continue;
                };
                // A tenth to spare counts as well, since a goal is met only if the whole interval is within it.
                let beyond = goal.beyond(mean(&|run, _| measure.of(run)));
                short += beyond.clamp(-0.1, 10.0);
            }
        }
        let price = if self.wanted { 1.0 } else { PRICE };
        let measures = Measure::all(self.apps);
        let worth = measures.iter().map(|measure| {
            let gain = mean(&|run, base| measure.gain(measure.of(run), measure.of(base)));
            let gain = gain.clamp(-1.0, 1.0) / measure.worth();
            // Each application counts the same, however many measures it has.
            let own = measures.iter().filter(|other| other.app == measure.app);
            gain * if gain < 0.0 { price } else { 1.0 } / own.count() as f64
        });
        worth.sum::<f64>() - 1e3 * short
    }
}
