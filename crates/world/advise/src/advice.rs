//! The advice: the results of each candidate, what they are worth, and which candidate to take.

use std::ops::Range;

use airlane_sim::{Estimate, RunResult, ScenarioError};
use serde::Serialize;
use toml::Table;

use crate::apps::{AppKind, Apps};
use crate::candidate::{Candidate, CandidateError, Kind, base_link, candidates};
use crate::goal::{GoalState, Goals};
use crate::link::{Assumption, Link};
use crate::measure::{Measure, What};
use crate::search::{Search, SearchError};
use crate::trial::{Pace, RADIO, Trial};
use crate::what_if::{WhatIf, WhatIfs};

/// Runs that each candidate has at first.
const FIRST: u64 = 3;

/// The input of [`advise`] and [`check`].
#[derive(Clone, Debug)]
pub struct Question {
    /// The link.
    pub link: Link,
    /// The applications on it.
    pub apps: Apps,
    /// The user's file.
    pub present: Option<Table>,
    /// Goals to meet.
    pub goals: Goals,
    /// Changed links and traffic to simulate as well.
    pub what_ifs: WhatIfs,
    /// How many settings to search beside the candidates; 0: none.
    pub search: usize,
    /// Number, length and seed of the runs.
    pub pace: Pace,
}

/// One measure of a candidate, compared with another candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// What is measured.
    pub measure: Measure,
    /// The gain, paired run by run; positive is better ([`Measure::gain`]).
    pub gain: Estimate,
}

impl Compared {
    /// Whether the gain is worth reporting and significant.
    pub fn is_gain(&self) -> bool {
        let low = self.gain.mean - self.gain.ci95_half_width.unwrap_or(0.0);
        self.gain.mean >= self.measure.worth() && low > 0.0
    }

    /// Whether the mean is a gain worth reporting, but the interval is too wide to tell.
    pub fn may_gain(&self) -> bool {
        self.gain.mean >= self.measure.worth() && !self.is_gain()
    }

    /// Whether it is a loss worth reporting, in the mean or within the interval.
    pub fn is_price(&self) -> bool {
        let low = self.gain.mean - self.gain.ci95_half_width.unwrap_or(0.0);
        self.is_loss() || (self.gain.mean < 0.0 && low < -self.measure.worth())
    }

    /// Whether more runs would hardly change what is said: it is a gain, a loss or neither for the whole interval.
    fn is_settled(&self) -> bool {
        let (mean, worth) = (self.gain.mean, self.measure.worth());
        let half = self.gain.ci95_half_width.unwrap_or(f64::INFINITY);
        mean - half > worth || mean + half < -worth || (mean - half > -worth && mean + half < worth)
    }

    /// Whether the mean is a loss worth reporting. A few pages decide a tail, so for that the interval must agree.
    pub fn is_loss(&self) -> bool {
        let high = self.gain.mean + self.gain.ci95_half_width.unwrap_or(0.0);
        let sure = self.measure.what != What::PageTail || high < 0.0;
        sure && self.gain.mean < -self.measure.worth()
    }
}

/// The results of a candidate.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Which candidate.
    pub kind: Kind,
    /// Values in the order of the measures.
    pub values: Vec<Estimate>,
    /// Compared with the base.
    pub beside_base: Vec<Compared>,
    /// The state of each goal, in their order.
    pub goals: Vec<GoalState>,
    #[serde(skip)]
    runs: Vec<RunResult>,
}

/// Results without Airlane and with the base, for senders that use BBR.
#[derive(Clone, Debug, Serialize)]
pub struct Senders {
    /// What is measured.
    pub measures: Vec<Measure>,
    /// Without Airlane.
    pub without: Vec<Estimate>,
    /// With the base.
    pub base: Vec<Estimate>,
    /// What the base gains.
    pub gains: Vec<Compared>,
}

/// Results without Airlane and with the base on a changed link.
#[derive(Clone, Debug, Serialize)]
pub struct Elsewhere {
    /// The change.
    pub what_if: WhatIf,
    /// What is measured.
    pub measures: Vec<Measure>,
    /// Without Airlane.
    pub without: Vec<Estimate>,
    /// With the base.
    pub base: Vec<Estimate>,
    /// How the goals fare with the base.
    pub goals: Vec<GoalState>,
}

/// The recommendation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "take", rename_all = "kebab-case")]
pub enum Choice {
    /// Keep the base: no candidate gains enough without an unwanted price.
    Keep,
    /// Change to another candidate.
    Change {
        /// Which.
        to: Kind,
        /// Its comparison with the base on fresh seeds.
        confirmed: Vec<Compared>,
    },
}

/// The result of [`advise`].
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Who uses the link.
    pub apps: Apps,
    /// What is measured.
    pub measures: Vec<Measure>,
    /// The candidate that others are compared with: the user's file, or the default.
    pub base: Kind,
    /// Each candidate, in their order.
    pub outcomes: Vec<Outcome>,
    /// What the base gains over the link without Airlane.
    pub worth: Vec<Compared>,
    /// Results for senders with BBR, where there are TCP senders and none uses it.
    pub senders: Option<Senders>,
    /// Results on changed links.
    pub elsewhere: Vec<Elsewhere>,
    /// Which one to take.
    pub choice: Choice,
    /// What that gains over the default; empty if it is the default.
    pub beside_default: Vec<Compared>,
    /// What it gains over the default, or over the base, where long frames are lost more often than short ones. A
    /// recording does not tell whether they are, and short packets that are hardly lost need no repair. Empty where
    /// there is nothing to compare, or losses come in bursts.
    pub by_length: Vec<Compared>,
    /// Mean rate of all frames that arrive from the first end with the base, bit/s.
    pub carried_bps: f64,
    /// Assumptions where the recording gives no value.
    pub assumed: Vec<Assumption>,
    /// Most runs of a candidate.
    pub runs: u64,
    /// Runs of a candidate that these settle already.
    pub runs_least: u64,
    /// Their length, in seconds.
    pub run_length_s: f64,
    /// Seed of all random streams.
    pub seed: u64,
    /// The candidates themselves.
    #[serde(skip)]
    pub candidates: Vec<Candidate>,
}

/// Why there is no advice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdviceError {
    /// The user's file describes no end of a link.
    #[error("the file: {0}")]
    File(#[from] CandidateError),
    /// A candidate cannot be simulated.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A goal is about an application that is not simulated.
    #[error(
        "the goal {goal} is about an application that is not simulated; --apps {apps} has others"
    )]
    Goal {
        /// The goal.
        goal: String,
        /// The applications.
        apps: String,
    },
}

impl From<SearchError> for AdviceError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Candidate(error) => Self::File(error),
            SearchError::Scenario(error) => Self::Scenario(error),
        }
    }
}

impl Outcome {
    fn of(kind: Kind, runs: Vec<RunResult>, base: &[RunResult], question: &Question) -> Self {
        let measures = Measure::all(&question.apps);
        let goals = question.goals.0.iter().map(|goal| {
            let measure = goal.measure(&question.apps);
            measure.map_or(GoalState::Unsure, |measure| {
                goal.state(&values(&[measure], &runs)[0])
            })
        });
        Self {
            kind,
            values: values(&measures, &runs),
            beside_base: compared(&measures, &runs, base),
            goals: goals.collect(),
            runs,
        }
    }

    /// Whether more runs would hardly change what becomes of it. A sure loss rules it out, unless goals may have their
    /// price.
    fn is_settled(&self, wanted: bool) -> bool {
        let mut beside = self.beside_base.iter();
        match wanted {
            true => !self.goals.contains(&GoalState::Unsure) && beside.all(Compared::is_settled),
            false => {
                beside.clone().any(|of| of.is_settled() && of.is_loss())
                    || beside.all(Compared::is_settled)
            }
        }
    }

    /// Whether all goals are met.
    pub fn meets_goals(&self) -> bool {
        self.goals.iter().all(|state| *state == GoalState::Met)
    }
}

fn values(measures: &[Measure], runs: &[RunResult]) -> Vec<Estimate> {
    let of = |measure: &Measure| {
        let values: Vec<f64> = runs.iter().map(|run| measure.of(run)).collect();
        Estimate::of(&values).expect("there are runs, and every measure has a value")
    };
    measures.iter().map(of).collect()
}

fn compared(measures: &[Measure], runs: &[RunResult], base: &[RunResult]) -> Vec<Compared> {
    let of = |measure: &Measure| {
        let pairs = runs.iter().zip(base);
        let gains = pairs.map(|(run, base)| measure.gain(measure.of(run), measure.of(base)));
        let gains: Vec<f64> = gains.collect();
        Compared {
            measure: *measure,
            gain: Estimate::of(&gains).expect("there are runs"),
        }
    };
    measures.iter().map(of).collect()
}

fn check_goals(question: &Question) -> Result<(), AdviceError> {
    let mut goals = question.goals.0.iter();
    match goals.find(|goal| goal.measure(&question.apps).is_none()) {
        None => Ok(()),
        Some(goal) => Err(AdviceError::Goal {
            goal: goal.to_string(),
            apps: question.apps.to_string(),
        }),
    }
}

/// Checks the goals for the user's file, or for the default.
///
/// # Errors
/// If the file describes no end of a link, or a goal is about an application that is not simulated.
pub fn check(
    question: &Question,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Outcome, AdviceError> {
    check_goals(question)?;
    let all = candidates(&question.apps, question.present.as_ref())?;
    let base = base_of(&all);
    let mut trial = Trial::default();
    trial.add(
        &question.link,
        &question.apps,
        all[base].live.as_ref(),
        question.pace,
    )?;
    let mut results = trial.run(question.pace, progress)?;
    let runs = results.pop().unwrap_or_default();
    Ok(Outcome::of(all[base].kind, runs.clone(), &runs, question))
}

/// The index of the base.
fn base_of(all: &[Candidate]) -> usize {
    let at = |kind| all.iter().position(|candidate| candidate.kind == kind);
    at(Kind::Yours)
        .or(at(Kind::Default))
        .expect("the default is always there")
}

/// Simulates the candidates and compares them.
///
/// # Errors
/// If the file describes no end of a link, or a goal is about an application that is not simulated.
pub fn advise(
    question: &Question,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Advice, AdviceError> {
    check_goals(question)?;
    let (link, apps, pace) = (&question.link, &question.apps, question.pace);
    let mut all = candidates(apps, question.present.as_ref())?;
    let base = base_of(&all);
    let live = |at: usize| all[at].live.as_ref();
    let mut trial = Trial::default();
    for at in 0..all.len() {
        trial.add(link, apps, live(at), pace)?;
    }
    let tcp = |kind| matches!(kind, AppKind::File | AppKind::Upload | AppKind::Pages);
    let other_senders = apps.0.iter().any(|app| tcp(app.kind)) && !apps.0.iter().any(|app| app.bbr);
    let bbr = apps.with_bbr();
    if other_senders {
        for live in [None, live(base)] {
            trial.add(link, &bbr, live, pace)?;
        }
    }
    for what_if in &question.what_ifs.0 {
        let (link, apps) = what_if.applied(link, apps);
        for live in [None, live(base)] {
            trial.add(&link, &apps, live, pace)?;
        }
    }
    let search = Search {
        link,
        apps,
        goals: &question.goals,
        base: &base_link(question.present.as_ref()),
        wanted: false,
        pace,
        settings: question.search,
    };
    let searched = match question.search {
        0 => 0,
        _ => search.runs() + pace.runs,
    };
    // The base, which all are compared with, has all runs; what only a sentence is made of has the first ones.
    let first = pace.runs.min(FIRST);
    let mut which = vec![0..first; trial.len()];
    which[base] = 0..pace.runs;
    which[0] = 0..pace.runs;
    // The advised candidate is compared with the default as well.
    if let Some(default) = all.iter().position(|of| of.kind == Kind::Default) {
        which[default] = 0..pace.runs;
    }
    let more: u64 = which[..all.len()]
        .iter()
        .map(|runs| pace.runs - runs.end)
        .sum();
    let before = which.iter().map(|runs| runs.end).sum::<u64>() + more;
    // At the end the chosen one and the base are simulated again, twice.
    let total = before + searched + 4 * pace.runs;
    let mut results = trial.run_some(&which, pace, |done| progress(done, total))?;
    let others = results.split_off(all.len());
    let (mut runs, mut results) = (results, others.into_iter());
    let measures = Measure::all(apps);
    let of_base = runs[base].clone();
    let wanted = !question.goals.0.is_empty()
        && !Outcome::of(all[base].kind, of_base.clone(), &of_base, question).meets_goals();
    let rest = runs.iter().zip(&all).map(|(runs, candidate)| {
        let outcome = Outcome::of(candidate.kind, runs.clone(), &of_base, question);
        match outcome.is_settled(wanted) {
            true => 0..0,
            false => runs.len() as u64..pace.runs,
        }
    });
    let rest: Vec<Range<u64>> = rest.collect();
    let done_first = before - more;
    let rest = trial.run_some(&rest, pace, |done| progress(done_first + done, total))?;
    for (runs, rest) in runs.iter_mut().zip(rest) {
        runs.extend(rest);
    }
    let mut outcomes: Vec<Outcome> = (all.iter().zip(runs))
        .map(|(candidate, runs)| Outcome::of(candidate.kind, runs, &of_base, question))
        .collect();
    if question.search > 0 {
        let search = Search { wanted, ..search };
        if let Some(found) = search.best(|done| progress(before + done, total))? {
            let mut trial = Trial::default();
            trial.add(link, apps, found.live.as_ref(), pace)?;
            let before = before + search.runs();
            let runs = trial.run(pace, |done, _| progress(before + done, total))?;
            let runs = runs.into_iter().next().unwrap_or_default();
            outcomes.push(Outcome::of(found.kind, runs, &of_base, question));
            all.push(found);
        }
    }
    let mut pair = || results.next().unwrap_or_default();
    let senders = other_senders.then(|| {
        let (without, base) = (pair(), pair());
        let measures = Measure::all(&bbr);
        Senders {
            without: values(&measures, &without),
            base: values(&measures, &base),
            gains: compared(&measures, &base, &without),
            measures,
        }
    });
    let elsewhere = question.what_ifs.0.iter().map(|what_if| {
        let (without, base) = (pair(), pair());
        let (_, apps) = what_if.applied(link, apps);
        let measures = Measure::all(&apps);
        let goals = question.goals.0.iter().map(|goal| {
            let measure = goal.measure(&apps);
            measure.map_or(GoalState::Unsure, |m| goal.state(&values(&[m], &base)[0]))
        });
        Elsewhere {
            what_if: *what_if,
            goals: goals.collect(),
            without: values(&measures, &without),
            base: values(&measures, &base),
            measures,
        }
    });
    let elsewhere = elsewhere.collect();
    let worth = compared(&measures, &of_base, &outcomes[0].runs);
    let choice = choose(question, &all, base, wanted, &outcomes, |done| {
        progress(total - 4 * pace.runs + done, total);
    })?;
    let [taken, other] = between(&choice, all[base].kind);
    let runs = |kind| outcomes.iter().find(|outcome| outcome.kind == kind);
    let beside_default = match (runs(taken), runs(Kind::Default)) {
        (Some(taken), Some(default)) if other == Kind::Default && taken.kind != other => {
            compared(&measures, &taken.runs, &default.runs)
        }
        _ => vec![],
    };
    let by_length = by_length(question, &all, base, &choice, |done| {
        progress(total - 2 * pace.runs + done, total);
    })?;
    let carried = of_base.iter().filter_map(|run| {
        let radio = run.links.iter().find(|link| link.name == RADIO)?;
        Some(radio.down.channel.delivered.bytes as f64 * 8.0 / run.stopped_s)
    });
    Ok(Advice {
        apps: apps.clone(),
        measures,
        base: all[base].kind,
        worth,
        senders,
        elsewhere,
        choice,
        beside_default,
        by_length,
        carried_bps: carried.sum::<f64>() / of_base.len().max(1) as f64,
        assumed: link.assumed.clone(),
        runs: pace.runs,
        runs_least: first,
        run_length_s: pace.length.as_secs_f64(),
        seed: pace.seed,
        outcomes,
        candidates: all,
    })
}

/// Chooses the candidate that gains most without a price, or that meets the goals where the base does not. It must do so
/// again on fresh seeds, since the best of several candidates is partly the luckiest.
fn choose(
    question: &Question,
    all: &[Candidate],
    base: usize,
    wanted: bool,
    outcomes: &[Outcome],
    progress: impl Fn(u64) + Sync,
) -> Result<Choice, ScenarioError> {
    let helps = |outcome: &&Outcome| {
        // Doing without Airlane is reported separately.
        if matches!(outcome.kind, Kind::Without) || outcome.kind == all[base].kind {
            return false;
        }
        let gains = outcome.beside_base.iter().any(Compared::is_gain);
        // A possible price is reported with the advice.
        let prices = outcome.beside_base.iter().any(Compared::is_loss);
        match wanted && outcome.meets_goals() {
            true => gains,
            false => gains && !prices,
        }
    };
    let merit = |outcome: &Outcome| {
        let goals = if wanted && outcome.meets_goals() {
            10.0
        } else {
            0.0
        };
        let gains = outcome
            .beside_base
            .iter()
            // A tail follows the mean, and would count it twice.
            .filter(|of| of.measure.what != What::PageTail)
            .map(|of| of.gain.mean.clamp(-1.0, 10.0) / of.measure.worth());
        goals * 1e3 + gains.sum::<f64>()
    };
    // Many candidates look good beside a bad file: what is advised must be no worse than the default, too.
    let measures = Measure::all(&question.apps);
    let default = outcomes.iter().find(|other| other.kind == Kind::Default);
    let stands = |outcome: &&Outcome| {
        let beside = default.map(|default| compared(&measures, &outcome.runs, &default.runs));
        outcome.meets_goals() && wanted
            || beside.is_some_and(|beside| !beside.iter().any(Compared::is_loss))
    };
    let best = outcomes
        .iter()
        .filter(helps)
        .filter(stands)
        .max_by(|a, b| merit(a).total_cmp(&merit(b)));
    let Some(best) = best else {
        return Ok(Choice::Keep);
    };
    let candidate = all.iter().find(|candidate| candidate.kind == best.kind);
    let live = candidate.and_then(|candidate| candidate.live.as_ref());
    let pace = Pace {
        seed: question.pace.seed.wrapping_add(1),
        ..question.pace
    };
    let mut trial = Trial::default();
    for live in [all[base].live.as_ref(), live] {
        trial.add(&question.link, &question.apps, live, pace)?;
    }
    let mut again = trial.run(pace, |done, _| progress(done))?.into_iter();
    let (of_base, runs) = (
        again.next().unwrap_or_default(),
        again.next().unwrap_or_default(),
    );
    let again = Outcome::of(best.kind, runs, &of_base, question);
    if !helps(&&again) {
        return Ok(Choice::Keep);
    }
    Ok(Choice::Change {
        to: best.kind,
        confirmed: again.beside_base,
    })
}

/// The chosen one, and what it is compared with where losses are of bits.
const fn between(choice: &Choice, base: Kind) -> [Kind; 2] {
    let taken = match choice {
        Choice::Keep => base,
        Choice::Change { to, .. } => *to,
    };
    match taken {
        Kind::Default => [taken, base],
        _ => [taken, Kind::Default],
    }
}

impl Advice {
    /// The chosen one, and the default, or the base where the default is chosen.
    pub const fn taken_and_other(&self) -> [Kind; 2] {
        between(&self.choice, self.base)
    }
}

/// Compares the chosen one with the default, or with the base if it is the default, where losses are of bits.
fn by_length(
    question: &Question,
    all: &[Candidate],
    base: usize,
    choice: &Choice,
    progress: impl Fn(u64) + Sync,
) -> Result<Vec<Compared>, ScenarioError> {
    let [taken, other] = between(choice, all[base].kind);
    let Some(link) = question.link.by_length().filter(|_| taken != other) else {
        return Ok(vec![]);
    };
    let pace = Pace {
        seed: question.pace.seed.wrapping_add(1),
        ..question.pace
    };
    let mut trial = Trial::default();
    for kind in [other, taken] {
        let candidate = all.iter().find(|candidate| candidate.kind == kind);
        let live = candidate.and_then(|candidate| candidate.live.as_ref());
        trial.add(&link, &question.apps, live, pace)?;
    }
    let results = trial.run(pace, |done, _| progress(done))?;
    let measures = Measure::all(&question.apps);
    Ok(compared(&measures, &results[1], &results[0]))
}
