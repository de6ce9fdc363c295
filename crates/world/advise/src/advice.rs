//! The advice: the results of each candidate, what they are worth, and which candidate to take.

use airlane_sim::{Estimate, RunResult, ScenarioError};
use serde::Serialize;
use toml::Table;

use crate::apps::{AppKind, Apps};
use crate::candidate::{Candidate, CandidateError, Kind, candidates};
use crate::goal::{GoalState, Goals};
use crate::link::{Assumption, Link};
use crate::measure::Measure;
use crate::trial::{Pace, RADIO, Trial};
use crate::what_if::{WhatIf, WhatIfs};

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

    /// Whether it is a loss worth reporting, in the mean or within the interval.
    pub fn is_price(&self) -> bool {
        let low = self.gain.mean - self.gain.ci95_half_width.unwrap_or(0.0);
        self.is_loss() || (self.gain.mean < 0.0 && low < -self.measure.worth())
    }

    /// Whether the mean is a loss worth reporting.
    pub fn is_loss(&self) -> bool {
        self.gain.mean < -self.measure.worth()
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
    /// Mean rate of all frames that arrive from the first end with the base, bit/s.
    pub carried_bps: f64,
    /// Assumptions where the recording gives no value.
    pub assumed: Vec<Assumption>,
    /// Runs, their length and seed.
    pub runs: u64,
    /// In seconds.
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
    let all = candidates(apps, question.present.as_ref())?;
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
    let mut results = trial.run(pace, &progress)?.into_iter();
    let runs: Vec<Vec<RunResult>> = results.by_ref().take(all.len()).collect();
    let measures = Measure::all(apps);
    let of_base = runs[base].clone();
    let outcomes: Vec<Outcome> = (all.iter().zip(runs))
        .map(|(candidate, runs)| Outcome::of(candidate.kind, runs, &of_base, question))
        .collect();
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
    let choice = choose(question, &all, base, &outcomes, &progress)?;
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
        carried_bps: carried.sum::<f64>() / of_base.len().max(1) as f64,
        assumed: link.assumed.clone(),
        runs: pace.runs,
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
    outcomes: &[Outcome],
    progress: &(impl Fn(u64, u64) + Sync),
) -> Result<Choice, ScenarioError> {
    let wanted = !question.goals.0.is_empty() && !outcomes[base].meets_goals();
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
    let mut again = trial.run(pace, progress)?.into_iter();
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
