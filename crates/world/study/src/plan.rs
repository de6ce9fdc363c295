//! Determines what must be simulated for the requested studies: every distinct world once.

use std::collections::{BTreeMap, BTreeSet};

use airlane_sim::Prepared;
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::error::StudyError;
use crate::figure::Figure;
use crate::pattern::Assignment;
use crate::work::Work;

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRequest {
    /// Repetitions; the work's own number if `None`.
    pub runs: Option<u64>,
    /// Repetitions of alternatives; as many as of the committed choices if `None`.
    #[serde(default)]
    pub alternative_runs: Option<u64>,
    /// Seed; the work's own if `None`.
    pub seed: Option<u64>,
    /// Assignments applied to every scenario.
    pub set: Vec<String>,
    /// Alternatives of the work, or several at once joined by ` + `, each in place of the committed
    /// choices.
    pub alternatives: Vec<String>,
    /// Whether the committed choices are requested in addition to the alternatives.
    pub committed: bool,
    /// Whether studies that only claims read are left out, and these claims not judged.
    #[serde(default)]
    pub figure_only: bool,
}

/// What a plan simulates, and how much of it only claims read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Simulations of the requested studies, including those that their figures show.
    pub figures: u64,
    /// Simulations that only claims read.
    pub claims: u64,
    /// The studies with these simulations.
    pub read: Vec<String>,
}

/// The distinct worlds, and which study uses which of them.
#[derive(Debug)]
pub struct Plan {
    /// The work.
    pub work: Work,
    /// Repetitions of the committed choices.
    pub runs: u64,
    /// Repetitions of alternatives, at most `runs`.
    pub alternative_runs: u64,
    /// Seed of all random streams.
    pub seed: u64,
    /// Assignments applied to every scenario.
    pub set: Vec<String>,
    /// The committed choices and the alternatives, in the order of the request.
    pub variants: Vec<PlannedVariant>,
    /// Every distinct world once.
    pub worlds: Vec<Prepared>,
    /// Repetitions of each world: the most that any variant needs.
    pub(crate) repetitions: Vec<u64>,
}

/// The studies under one set of choices.
#[derive(Clone, Debug)]
pub struct PlannedVariant {
    /// Name of the alternative; `None` for the committed choices.
    pub alternative: Option<String>,
    /// Repetitions.
    pub runs: u64,
    /// The requested studies, then those that their claims read.
    pub studies: Vec<PlannedStudy>,
    /// By study, the composed scenarios with every default filled in, if a claim reads them.
    pub(crate) scenarios: BTreeMap<String, Vec<Table>>,
}

/// A study and its worlds.
#[derive(Clone, Debug)]
pub struct PlannedStudy {
    /// Its id.
    pub id: String,
    /// Whether it was requested, rather than needed by others.
    pub asked: bool,
    /// Whether only claims read it: no requested figure shows it.
    pub for_claims: bool,
    /// Index of the world of each point.
    pub worlds: Vec<usize>,
}

/// A study to be planned.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Its index in the work.
    index: usize,
    asked: bool,
    for_claims: bool,
}

impl Plan {
    /// Plans the studies `ids` of a work; all of them if `ids` is empty.
    ///
    /// # Errors
    /// If a study or an alternative is unknown, or a scenario is wrong.
    pub fn new(work: Work, ids: &[String], request: &RunRequest) -> Result<Self, StudyError> {
        let runs = request.runs.unwrap_or(work.runs);
        let mut plan = Self {
            runs,
            alternative_runs: request.alternative_runs.map_or(runs, |n| n.min(runs)),
            seed: request.seed.unwrap_or(work.seed),
            set: request.set.clone(),
            variants: vec![],
            worlds: vec![],
            repetitions: vec![],
            work,
        };
        let order = plan.order(ids, request.figure_only)?;
        let mut known = BTreeMap::new();
        let committed = request.committed.then_some(None);
        let all = committed
            .into_iter()
            .chain(request.alternatives.iter().map(Some));
        for alternative in all {
            let mut set = request.set.clone();
            if let Some(name) = alternative {
                set.extend(plan.work.alternative(name)?);
            }
            let set = Assignment::parse_all(&set)?;
            let studies = plan.studies(&order, &set, &mut known)?;
            let scenarios = plan.scenarios(&order, &set)?;
            let runs = match alternative {
                None => plan.runs,
                Some(_) => plan.alternative_runs,
            };
            plan.repetitions.resize(plan.worlds.len(), 0);
            for study in studies.iter().filter(|study| plan.work.reads(&study.id)) {
                for world in &study.worlds {
                    let most = &mut plan.repetitions[*world];
                    *most = runs.max(*most);
                }
            }
            plan.variants.push(PlannedVariant {
                alternative: alternative.cloned(),
                runs,
                studies,
                scenarios,
            });
        }
        Ok(plan)
    }

    /// Indices of the studies to plan: the requested ones, those that their figures show, then
    /// those that only their claims read.
    fn order(&self, ids: &[String], figure_only: bool) -> Result<Vec<Place>, StudyError> {
        let studies = &self.work.studies;
        let find = |id: &str| {
            studies.iter().position(|s| s.id == id).ok_or_else(|| {
                let known = studies.iter().map(|study| study.id.as_str());
                StudyError::unknown("study", id, known)
            })
        };
        let mut asked: Vec<usize> = match ids {
            [] => (0..studies.len()).collect(),
            ids => ids.iter().map(|id| find(id)).collect::<Result<_, _>>()?,
        };
        asked.sort_unstable();
        asked.dedup();
        let place = |index: &usize| Place {
            index: *index,
            asked: true,
            for_claims: false,
        };
        let mut order: Vec<Place> = asked.iter().map(place).collect();
        let mut add = |index: usize, for_claims: bool| {
            if !order.iter().any(|known| known.index == index) {
                order.push(Place {
                    index,
                    asked: false,
                    for_claims,
                });
            }
        };
        for index in &asked {
            for id in studies[*index].figure.iter().flat_map(Figure::studies) {
                add(find(id)?, false);
            }
        }
        for index in asked.iter().filter(|_| !figure_only) {
            for claim in &studies[*index].claims {
                for id in claim.studies() {
                    let wrong = |_| StudyError::Claim {
                        study: studies[*index].id.clone(),
                        claim: claim.id.clone(),
                        problem: format!("there is no study \"{id}\""),
                    };
                    add(find(id).map_err(wrong)?, true);
                }
            }
        }
        // Studies that metrics read serve the same purpose as those that read the metrics.
        let mut at = 0;
        while let Some(Place {
            index, for_claims, ..
        }) = order.get(at).copied()
        {
            for id in studies[index].reads() {
                let index = find(id)?;
                if !order.iter().any(|known| known.index == index) {
                    order.push(Place {
                        index,
                        asked: false,
                        for_claims,
                    });
                }
            }
            at += 1;
        }
        Ok(order)
    }

    /// The scenarios that the claims of these studies read; they need not be simulated.
    fn scenarios(
        &self,
        order: &[Place],
        set: &[Assignment],
    ) -> Result<BTreeMap<String, Vec<Table>>, StudyError> {
        let mut read = BTreeMap::new();
        for place in order.iter().filter(|place| place.asked) {
            let study = &self.work.studies[place.index];
            let claims = study.claims.iter();
            let reads = claims.flat_map(|claim| {
                let ids = claim.read_scenarios(&study.id).into_iter();
                ids.map(move |id| (claim, id))
            });
            for (claim, id) in reads {
                let wrong = |problem: String| StudyError::Claim {
                    study: study.id.clone(),
                    claim: claim.id.clone(),
                    problem,
                };
                let other = self.work.study(id);
                let other = other.ok_or_else(|| wrong(format!("there is no study \"{id}\"")))?;
                if read.contains_key(id) {
                    continue;
                }
                let points = other.points(&self.work.id, set, &mut BTreeMap::new())?;
                let tables = points.iter().map(|point| {
                    let table = Table::try_from(point.scenario.resolved());
                    table.map_err(|error| wrong(error.to_string()))
                });
                read.insert(id.to_owned(), tables.collect::<Result<_, _>>()?);
            }
        }
        Ok(read)
    }

    fn studies(
        &mut self,
        order: &[Place],
        set: &[Assignment],
        known: &mut BTreeMap<String, usize>,
    ) -> Result<Vec<PlannedStudy>, StudyError> {
        let mut reached = BTreeMap::new();
        let mut planned = vec![];
        for place in order {
            let study = &self.work.studies[place.index];
            let mut worlds = vec![];
            for point in study.points(&self.work.id, set, &mut reached)? {
                let refuse = |problem: String| StudyError::Scenario {
                    study: study.id.clone(),
                    point: study.label(&point.at),
                    problem,
                };
                let prepared = Prepared::new(&point.scenario).map_err(|e| refuse(e.to_string()))?;
                let next = self.worlds.len();
                let world = *known.entry(prepared.hash().to_owned()).or_insert(next);
                if world == next {
                    self.worlds.push(prepared);
                }
                worlds.push(world);
            }
            planned.push(PlannedStudy {
                id: study.id.clone(),
                asked: place.asked,
                for_claims: place.for_claims,
                worlds,
            });
        }
        // An assignment of a part need not match in every study, but must match in at least one.
        let whole = order.len() == self.work.studies.len();
        let asked = |text: &str| set.iter().any(|assignment| assignment.text() == text);
        let idle = reached
            .iter()
            .find(|(text, count)| **count == 0 && (whole || asked(text)));
        if let Some((text, _)) = idle {
            return Err(StudyError::Assignment {
                text: text.clone(),
                problem: "it reaches no place in any scenario of these studies".to_owned(),
            });
        }
        Ok(planned)
    }

    /// Counts what the plan simulates for figures and for claims alone.
    pub fn needs(&self) -> Needs {
        let studies = || self.variants.iter().flat_map(|variant| &variant.studies);
        let shown: BTreeSet<usize> = studies()
            .filter(|study| !study.for_claims)
            .flat_map(|study| study.worlds.iter().copied())
            .collect();
        let mut read: Vec<String> = vec![];
        for study in studies().filter(|study| study.for_claims) {
            let more = study.worlds.iter().any(|world| !shown.contains(world));
            if more && !read.contains(&study.id) {
                read.push(study.id.clone());
            }
        }
        let figures = shown.iter().map(|world| self.repetitions[*world]).sum();
        Needs {
            figures,
            claims: self.jobs() - figures,
            read,
        }
    }

    /// The number of simulations that the plan needs.
    pub fn jobs(&self) -> u64 {
        self.repetitions.iter().sum()
    }
}
