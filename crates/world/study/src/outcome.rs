//! The outcome of studies: estimates for the figures, verdicts for the claims.

use std::collections::BTreeMap;

use airlane_sim::Estimate;
use serde::Serialize;

use crate::claim::lint::lint;
use crate::claim::{Claim, ClaimClass, ClaimKind, Comparison, ComparisonCounts};
use crate::curve::Metric;
use crate::data::MeasuredData;
use crate::error::StudyError;
use crate::figure;
use crate::figure::outcome::FigureOutcome;
use crate::over_time::OverTime;
use crate::over_time::outcome::OverTimeOutcome;
use crate::plain::plain;
use crate::plan::{Plan, PlannedStudy, PlannedVariant};
use crate::store::{RunRecord, Store, VERSION};
use crate::study::Study;
use crate::verdict::Verdict;
use crate::work::Cause;

/// Version of the JSON.
pub(crate) const SCHEMA: u32 = 1;

/// The outcome of a work's studies under one set of choices.
#[derive(Clone, Debug, Serialize)]
pub struct WorkOutcome {
    /// Version of the layout of this JSON.
    pub schema: u32,
    /// Id of the work.
    pub work: String,
    /// The publication.
    pub title: String,
    /// Version and fingerprint of the code that simulated.
    pub version: &'static str,
    /// Repetitions of every scenario.
    pub runs: u64,
    /// Seed of all random streams.
    pub seed: u64,
    /// Name of the alternative; `None` for the committed choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alternative: Option<String>,
    /// Counts of the verdicts in `claims`.
    pub counts: VerdictCounts,
    /// Claims that are counted.
    pub claims: Vec<ClaimOutcome>,
    /// Claims that are not counted: settings, background, closed forms, artefacts, slips and what
    /// is not testable.
    pub apart: Vec<ClaimOutcome>,
    /// Claims that are not judged because they read studies which were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<Unjudged>,
    /// The requested studies.
    pub studies: Vec<StudyOutcome>,
}

/// A claim that reads studies which were left out.
#[derive(Clone, Debug, Serialize)]
pub struct Unjudged {
    /// Id in docs/spec.
    pub id: String,
    /// The study that would judge it.
    pub study: String,
    /// What was published.
    pub published: String,
    /// The studies that it reads and that were left out.
    pub reads: Vec<String>,
}

impl Unjudged {
    /// Why it is not judged, in words.
    pub fn why(&self) -> String {
        format!(
            "it reads {}, which --figure-only leaves out",
            self.reads.join(", ")
        )
    }
}

/// Counts of claims by verdict.
///
/// A claim that its source contradicts is counted separately and is in no sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerdictCounts {
    /// Reproduced.
    pub holds: u64,
    /// Neither for nor against.
    #[serde(skip_serializing_if = "is_zero")]
    pub consistent: u64,
    /// Almost.
    pub near: u64,
    /// Not reproduced.
    pub misses: u64,
    /// Contradicted by the source itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub inconsistent: u64,
}

// Serde passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The outcome of a claim.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimOutcome {
    /// Id in docs/spec.
    pub id: String,
    /// The study that judges it.
    pub study: String,
    /// Whether it is about numbers or orderings.
    pub kind: ClaimKind,
    /// Why it is not counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ClaimClass>,
    /// Why it has this class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What was published.
    pub published: String,
    /// What was measured.
    pub measured: String,
    /// The verdict; `None` if nothing was compared.
    pub verdict: Option<Verdict>,
    /// The outcomes of its comparisons; `None` if nothing was compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<ComparisonCounts>,
    /// Each comparison.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub comparisons: Vec<Comparison>,
    /// Statements of the source that contradict it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contradicted: Vec<String>,
    /// Its checks, as written.
    pub checks: Vec<String>,
    /// For each comparison that does not hold: the values, the interval or printed value, and the
    /// rule.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// The cause if it was not reproduced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Why it misses, as far as is known; plain text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What one study measured.
#[derive(Clone, Debug, Serialize)]
pub struct StudyOutcome {
    /// Its id.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Axes and their values.
    pub axes: Vec<(String, Vec<String>)>,
    /// Name in claims, name in results.
    pub metrics: BTreeMap<String, String>,
    /// One for each scenario.
    pub points: Vec<PointOutcome>,
    /// Its figure; `None` if it runs no scenario of its own.
    pub figure: Option<FigureOutcome>,
    /// What it draws over the time of one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub over_time: Option<OverTimeOutcome>,
}

/// What one scenario of a study measured.
#[derive(Clone, Debug, Serialize)]
pub struct PointOutcome {
    /// One value for each axis.
    pub at: Vec<String>,
    /// Equal for equal worlds.
    pub scenario_hash: String,
    /// By metric, over the repetitions in which it could be measured.
    pub metrics: BTreeMap<String, Estimate>,
}

impl Plan {
    /// Judges the claims of all variants. Where the alternatives have fewer repetitions, the
    /// committed choices are judged a second time with as few, right after all of theirs, because
    /// fewer repetitions alone change verdicts.
    ///
    /// # Errors
    /// If results are missing or a claim cannot be judged.
    pub fn outcomes(&self, store: &Store) -> Result<Vec<WorkOutcome>, StudyError> {
        let mut outcomes = vec![];
        for variant in &self.variants {
            outcomes.push(self.outcome(store, variant)?);
            if variant.runs > self.alternative_runs && self.variants.len() > 1 {
                let few = PlannedVariant {
                    runs: self.alternative_runs,
                    ..variant.clone()
                };
                outcomes.push(self.outcome(store, &few)?);
            }
        }
        Ok(outcomes)
    }

    /// Judges the claims of a variant.
    ///
    /// # Errors
    /// If results are missing or a claim cannot be judged.
    pub fn outcome(
        &self,
        store: &Store,
        variant: &PlannedVariant,
    ) -> Result<WorkOutcome, StudyError> {
        let data = self.data(Some(store), variant)?;
        let mut outcome = WorkOutcome {
            schema: SCHEMA,
            work: self.work.id.clone(),
            title: self.work.title.clone(),
            version: VERSION,
            runs: variant.runs,
            seed: self.seed,
            alternative: variant.alternative.clone(),
            counts: VerdictCounts::default(),
            claims: vec![],
            apart: vec![],
            unjudged: vec![],
            studies: vec![],
        };
        let contradicted = self.work.contradictions();
        for planned in variant.studies.iter().filter(|planned| planned.asked) {
            let study = self.study(planned)?;
            outcome
                .unjudged
                .extend(study.claims.iter().filter_map(|claim| {
                    let reads = variant.left_out(claim);
                    (!reads.is_empty()).then(|| Unjudged {
                        id: claim.id.clone(),
                        study: study.id.clone(),
                        published: claim.published.clone(),
                        reads,
                    })
                }));
            for mut claim in self.claims(&data, variant, planned)? {
                if let Some(by) = contradicted.get(&claim.id) {
                    claim.verdict = Some(Verdict::SourceInconsistent);
                    claim.contradicted.clone_from(by);
                }
                if claim.class.is_some() {
                    outcome.apart.push(claim);
                    continue;
                }
                outcome.counts.count(claim.verdict);
                outcome.claims.push(claim);
            }
            outcome
                .studies
                .push(self.study_outcome(&data, study, planned)?);
        }
        Ok(outcome)
    }

    /// Finds claims that cannot be judged before anything is simulated.
    ///
    /// # Errors
    /// The first such claim.
    pub fn check(&self) -> Result<(), StudyError> {
        for variant in self.variants.iter().take(1) {
            let data = self.data(None, variant)?;
            for planned in variant.studies.iter().filter(|planned| planned.asked) {
                self.claims(&data, variant, planned)?;
                let study = self.study(planned)?;
                self.figure(&data, study)?;
                self.check_over_time(study, planned)?;
            }
        }
        Ok(())
    }

    /// Lints the claims with the help of these results.
    ///
    /// # Errors
    /// If results are missing.
    pub fn lint(&self, store: &Store) -> Result<Vec<(String, Vec<String>)>, StudyError> {
        self.findings(Some(store))
    }

    /// Lints the claims without results.
    ///
    /// # Errors
    /// If a scenario is wrong.
    pub fn lint_files(&self) -> Result<Vec<(String, Vec<String>)>, StudyError> {
        self.findings(None)
    }

    fn findings(&self, store: Option<&Store>) -> Result<Vec<(String, Vec<String>)>, StudyError> {
        let Some(variant) = self
            .variants
            .iter()
            .find(|variant| variant.alternative.is_none())
        else {
            return Ok(vec![]);
        };
        let data = self.data(store, variant)?;
        let asked = variant.studies.iter().filter(|planned| planned.asked);
        let studies = asked
            .map(|planned| self.study(planned).cloned())
            .collect::<Result<Vec<_>, _>>()?;
        Ok(lint(&studies, &data, &variant.scenarios)
            .into_iter()
            .collect())
    }

    fn study(&self, planned: &PlannedStudy) -> Result<&Study, StudyError> {
        let missing = || StudyError::Results(format!("there is no study {}", planned.id));
        self.work.study(&planned.id).ok_or_else(missing)
    }

    fn data(
        &self,
        store: Option<&Store>,
        variant: &PlannedVariant,
    ) -> Result<MeasuredData, StudyError> {
        let mut data = MeasuredData::new(variant.runs as usize);
        let mut all = vec![];
        for planned in &variant.studies {
            let study = self.study(planned)?;
            let worlds = planned
                .worlds
                .iter()
                .filter(|_| self.work.reads(&study.id))
                .filter_map(|world| store.map(|store| self.records(store, *world, variant.runs)));
            let runs: Vec<Vec<&RunRecord>> = worlds.collect::<Result<_, _>>()?;
            let mut columns = BTreeMap::new();
            for (metric, read) in &study.read {
                if let Metric::Plain(name) = read {
                    let column =
                        |runs: &Vec<&RunRecord>| runs.iter().map(|r| r.get(name)).collect();
                    columns.insert(metric.clone(), runs.iter().map(column).collect());
                }
            }
            data.insert(study, columns);
            all.push((study, planned.worlds.len(), runs));
        }
        // Metrics up to a time read the times of other flows.
        for (study, points, runs) in all {
            for (metric, read) in &study.read {
                let Metric::Until { flow, time } = read else {
                    continue;
                };
                let column = data.until(study, points, &runs, flow, time);
                let column = column.map_err(|problem| {
                    let metric = &study.metrics[metric];
                    StudyError::Results(format!("{}: `{metric}`: {problem}", study.id))
                })?;
                data.add(study, metric, column);
            }
        }
        Ok(data)
    }

    /// The first `runs` repetitions of a world.
    pub(crate) fn records<'s>(
        &self,
        store: &'s Store,
        world: usize,
        runs: u64,
    ) -> Result<Vec<&'s RunRecord>, StudyError> {
        let hash = self.worlds[world].hash();
        (0..runs)
            .map(|run| {
                store.get(&(hash.to_owned(), self.seed, run)).ok_or_else(|| {
                    StudyError::Results(format!(
                        "repetition {run} of scenario {hash} is missing; `airlane study run` with \
                         the same arguments and the same --out completes the results"
                    ))
                })
            })
            .collect()
    }

    fn claims(
        &self,
        data: &MeasuredData,
        variant: &PlannedVariant,
        planned: &PlannedStudy,
    ) -> Result<Vec<ClaimOutcome>, StudyError> {
        let study = self.study(planned)?;
        let scenarios = |id: &str| variant.scenarios.get(id).map_or(&[][..], Vec::as_slice);
        study
            .claims
            .iter()
            .filter(|claim| variant.left_out(claim).is_empty())
            .map(|claim| {
                let judgement = claim.judge(data, &study.id, &scenarios);
                let judgement = judgement.map_err(|problem| StudyError::Claim {
                    study: study.id.clone(),
                    claim: claim.id.clone(),
                    problem,
                })?;
                Ok(ClaimOutcome {
                    id: claim.id.clone(),
                    study: study.id.clone(),
                    kind: claim.kind(),
                    class: claim.class,
                    reason: claim.reason.clone(),
                    published: claim.published.clone(),
                    measured: judgement.measured,
                    verdict: judgement.verdict,
                    agreement: (!judgement.comparisons.is_empty())
                        .then(|| ComparisonCounts::of(&judgement.comparisons)),
                    comparisons: judgement.comparisons,
                    contradicted: vec![],
                    checks: claim.checks(),
                    why: judgement.why,
                    cause: self.work.notes.get(&claim.id).map(|note| note.cause),
                    note: self
                        .work
                        .notes
                        .get(&claim.id)
                        .map(|note| plain(note.text.trim())),
                })
            })
            .collect()
    }

    fn figure(
        &self,
        data: &MeasuredData,
        study: &Study,
    ) -> Result<Option<FigureOutcome>, StudyError> {
        let Some(figure) = &study.figure else {
            return Ok(None);
        };
        let printed = study
            .claims
            .iter()
            .map(|c| c.printed_at_places(data, &study.id));
        let printed: Result<Vec<_>, String> = printed.collect();
        let outcome = printed.and_then(|printed| {
            figure.outcome(
                data,
                &study.id,
                &study.labels,
                &self.slots(),
                &printed.concat(),
            )
        });
        outcome.map(Some).map_err(|problem| StudyError::Figure {
            study: study.id.clone(),
            problem,
        })
    }

    fn study_outcome(
        &self,
        data: &MeasuredData,
        study: &Study,
        planned: &PlannedStudy,
    ) -> Result<StudyOutcome, StudyError> {
        let points = planned.worlds.iter().enumerate().map(|(point, world)| {
            let estimate = |metric: &str| Estimate::of(data.column(&study.id, metric, point)?);
            let metrics = study.metrics.keys();
            PointOutcome {
                at: study.values(point),
                scenario_hash: self.worlds[*world].hash().to_owned(),
                metrics: metrics
                    .filter_map(|m| Some((m.clone(), estimate(m)?)))
                    .collect(),
            }
        });
        Ok(StudyOutcome {
            id: study.id.clone(),
            title: study.title.clone(),
            axes: study
                .axes
                .iter()
                .map(|a| (a.name.clone(), a.values.clone()))
                .collect(),
            metrics: study.metrics.clone(),
            points: points.collect(),
            figure: self.figure(data, study)?,
            over_time: study.over_time.as_ref().map(|over_time| {
                over_time.outcome(
                    study.over_time_name(),
                    self.seed,
                    &study.labels,
                    &self.slots(),
                )
            }),
        })
    }

    /// The number of each line, by name.
    fn slots(&self) -> BTreeMap<String, usize> {
        figure::slots(self.work.studies.iter().filter_map(|s| s.figure.as_ref()))
    }

    /// Whether the scenarios have the flows that are drawn over time.
    fn check_over_time(&self, study: &Study, planned: &PlannedStudy) -> Result<(), StudyError> {
        let flows = study.over_time.iter().flat_map(OverTime::flows);
        for (flow, world) in flows.flat_map(|flow| planned.worlds.iter().map(move |w| (flow, w))) {
            let names = self.worlds[*world].names();
            if !names.flows().contains(flow) {
                let known = names.flows().join(", ");
                return Err(StudyError::Figure {
                    study: study.id.clone(),
                    problem: format!("over-time.flows: no flow \"{flow}\"; there are: {known}"),
                });
            }
        }
        Ok(())
    }
}

impl PlannedVariant {
    /// Studies that a claim reads and that were left out.
    fn left_out(&self, claim: &Claim) -> Vec<String> {
        let read = claim.studies().into_iter();
        let missing = read.filter(|id| !self.studies.iter().any(|study| study.id == *id));
        let mut missing: Vec<String> = missing.map(str::to_owned).collect();
        missing.sort();
        missing.dedup();
        missing
    }
}

/// Verdicts by claim, as committed and compared.
pub type Verdicts = BTreeMap<String, Verdict>;

impl WorkOutcome {
    /// Whether it has no claims to judge.
    pub(crate) fn claims_nothing(&self) -> bool {
        self.claims.is_empty() && self.apart.is_empty()
    }

    /// The verdicts of all claims that have one, including those that are not counted.
    pub fn verdicts(&self) -> Verdicts {
        let all = self.claims.iter().chain(&self.apart);
        all.filter_map(|claim| Some((claim.id.clone(), claim.verdict?)))
            .collect()
    }

    /// Claims whose verdict is worse than the committed one, with the committed one.
    pub fn worse_than(&self, committed: &Verdicts) -> Vec<(&ClaimOutcome, Verdict)> {
        let all = self.claims.iter().chain(&self.apart);
        all.filter_map(|claim| {
            let before = *committed.get(&claim.id)?;
            (claim.verdict? < before).then_some((claim, before))
        })
        .collect()
    }
}
