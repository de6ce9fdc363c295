//! Figures of published works: what they run, and what comes of it.

use std::collections::BTreeMap;

use airlane_sim::Prepared;
use airlane_study::{
    ClaimClass, Plan, PlannedStudy, RunRequest, Store, StudyError, Verdict, Work, WorkOutcome,
    metrics,
};
use serde::{Deserialize, Serialize};

use crate::world::Fault;

/// What `make verdicts` wrote.
const VERDICTS: &str = include_str!("../../../../studies/verdicts.json");

/// A figure, with assignments on top of each of its scenarios.
#[derive(Debug, Deserialize)]
pub(crate) struct FigureOf {
    work: String,
    study: String,
    #[serde(default)]
    set: Vec<String>,
}

#[derive(Serialize)]
pub(crate) struct WorkOutline {
    id: String,
    title: String,
    /// Whether it is a published work: others have no committed verdicts.
    published: bool,
    figures: Vec<FigureTitle>,
}

#[derive(Serialize)]
struct FigureTitle {
    id: String,
    title: String,
    claims: usize,
}

#[derive(Serialize)]
pub(crate) struct FigureOutline {
    /// Repetitions of the runs that the committed verdicts come from.
    runs: u64,
    /// Every distinct scenario once, those of the figure itself first.
    worlds: Vec<FigureWorld>,
    claims: Vec<ClaimOutline>,
}

#[derive(Serialize)]
struct FigureWorld {
    hash: String,
    text: String,
    /// The points of studies at which it stands, each with one value for each axis.
    points: Vec<(String, Vec<String>)>,
}

#[derive(Serialize)]
struct ClaimOutline {
    id: String,
    published: String,
    /// Why it is not counted.
    class: Option<&'static str>,
    checks: Vec<String>,
    committed: Option<Verdict>,
}

#[derive(Deserialize)]
struct Committed {
    runs: u64,
    verdicts: BTreeMap<String, Verdict>,
}

/// The numbers of a run; null for what could not be measured, as JSON has no NaN.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    hash: String,
    run: u64,
    names: Vec<String>,
    values: Vec<Option<f64>>,
}

fn committed() -> Result<Committed, Fault> {
    serde_json::from_str(VERDICTS).map_err(|error| error.to_string().into())
}

impl From<StudyError> for Fault {
    fn from(error: StudyError) -> Self {
        match error {
            StudyError::Refused(refused) => refused.into(),
            other => other.to_string().into(),
        }
    }
}

/// The works that come with the page.
pub(crate) fn works() -> Result<Vec<WorkOutline>, Fault> {
    let committed = committed()?;
    let outline = |id: String| {
        let work = Work::shipped(&id)?;
        let mut claims = work.studies.iter().flat_map(|study| &study.claims);
        let figures = work.studies.iter().map(|study| FigureTitle {
            id: study.id.clone(),
            title: study.title.clone(),
            claims: study.claims.len(),
        });
        Ok(WorkOutline {
            published: claims.any(|claim| committed.verdicts.contains_key(&claim.id)),
            figures: figures.collect(),
            title: work.title,
            id,
        })
    };
    Work::shipped_ids()?.into_iter().map(outline).collect()
}

/// The numbers of a run that figures are made of.
pub(crate) fn measure(prepared: &Prepared, run: u64) -> Record {
    let (names, values) = metrics(&prepared.run(prepared.scenario().seed, run));
    let values = values.into_iter();
    Record {
        hash: prepared.hash().to_owned(),
        run,
        names,
        values: values
            .map(|value| value.is_finite().then_some(value))
            .collect(),
    }
}

impl FigureOf {
    fn plan(&self, runs: u64) -> Result<Plan, Fault> {
        let work = Work::shipped(&self.work)?;
        let request = RunRequest {
            runs: Some(runs),
            set: self.set.clone(),
            committed: true,
            ..RunRequest::default()
        };
        Ok(Plan::new(
            work,
            std::slice::from_ref(&self.study),
            &request,
        )?)
    }

    pub(crate) fn outline(&self) -> Result<FigureOutline, Fault> {
        let Committed { runs, verdicts } = committed()?;
        let plan = self.plan(runs)?;
        let planned = plan.variants.iter().flat_map(|variant| &variant.studies);
        let planned: Vec<&PlannedStudy> = planned.collect();
        let points = |world: usize| {
            let mut points = vec![];
            for of in &planned {
                let study = plan.work.study(&of.id);
                let here = (0..of.worlds.len()).filter(|point| of.worlds[*point] == world);
                let here = here.filter_map(|point| Some((of.id.clone(), study?.values(point))));
                points.extend(here);
            }
            points
        };
        let world = |(at, world): (usize, &Prepared)| {
            let mut scenario = world.scenario().clone();
            scenario.seed = plan.seed;
            FigureWorld {
                hash: world.hash().to_owned(),
                text: scenario.to_toml(),
                points: points(at),
            }
        };
        let study = plan.work.study(&self.study);
        let claims = study.iter().flat_map(|study| &study.claims);
        let claims = claims.map(|claim| ClaimOutline {
            id: claim.id.clone(),
            published: claim.published.clone(),
            class: claim.class.map(ClaimClass::word),
            checks: claim.checks(),
            committed: verdicts.get(&claim.id).copied(),
        });
        Ok(FigureOutline {
            runs,
            worlds: plan.worlds.iter().enumerate().map(world).collect(),
            claims: claims.collect(),
        })
    }

    /// The CSV of `Plan::curves`.
    pub(crate) fn curves(&self) -> Result<Option<String>, Fault> {
        let plan = self.plan(1)?;
        Ok(plan.curves().next().map(|(_, text)| text))
    }

    pub(crate) fn judge(&self, runs: u64, records: &[u8]) -> Result<WorkOutcome, Fault> {
        let records: Vec<Record> =
            serde_json::from_slice(records).map_err(|error| error.to_string())?;
        let plan = self.plan(runs)?;
        let mut store = Store::default();
        for record in records {
            let values = record.values.into_iter();
            let values = values.map(|value| value.unwrap_or(f64::NAN)).collect();
            let key = (record.hash, plan.seed, record.run);
            store.add(key, record.names, values, "")?;
        }
        let variant = plan.variants.first();
        let variant = variant.ok_or_else(|| "nothing was planned".to_owned())?;
        Ok(plan.outcome(&store, variant)?)
    }
}
