//! The report of a command, which `--json` prints.

use serde::Serialize;

use crate::outcome::{
    ClaimOutcome, SCHEMA, StudyOutcome, Unjudged, VerdictCounts, Verdicts, WorkOutcome,
};
use crate::store::VERSION;
use crate::verdict::Verdict;

/// The outcome of the studies of one or more works.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of this format.
    pub schema: u32,
    /// Version and fingerprint of the code that simulated.
    pub version: &'static str,
    /// Counts of the verdicts in `claims`.
    pub counts: VerdictCounts,
    /// Claims that are counted.
    pub claims: Vec<OfWork<ClaimOutcome>>,
    /// Claims that are not counted: settings, background, closed forms, artefacts, slips and what
    /// is not testable.
    pub apart: Vec<OfWork<ClaimOutcome>>,
    /// Claims that read studies which were left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<OfWork<Unjudged>>,
    /// The measured values.
    pub studies: Vec<OfWork<StudyOutcome>>,
    /// How the verdicts change with other choices.
    pub alternatives: Vec<AlternativeReport>,
}

/// Something with the work that it belongs to.
#[derive(Clone, Debug, Serialize)]
pub struct OfWork<T> {
    /// Id of the work.
    pub work: String,
    /// The item.
    #[serde(flatten)]
    pub item: T,
}

/// How another choice changes the verdicts.
#[derive(Clone, Debug, Serialize)]
pub struct AlternativeReport {
    /// Id of the work.
    pub work: String,
    /// The alternative.
    pub name: String,
    /// Counts of the verdicts of counted claims.
    pub counts: VerdictCounts,
    /// Claims whose verdict differs from the committed one; all claims if the committed choices
    /// were not requested.
    pub moved: Vec<ClaimOutcome>,
}

impl Report {
    /// Assembles a report. The first outcome of each work is reported in full; alternatives are
    /// compared with the last outcome of the committed choices.
    pub fn new(outcomes: &[WorkOutcome]) -> Self {
        let mut report = Self {
            schema: SCHEMA,
            version: VERSION,
            counts: VerdictCounts::default(),
            claims: vec![],
            apart: vec![],
            unjudged: vec![],
            studies: vec![],
            alternatives: vec![],
        };
        let mut first: Option<&WorkOutcome> = None;
        for outcome in outcomes {
            let known = first.filter(|first| first.work == outcome.work);
            if let (Some(base), Some(name)) = (known, &outcome.alternative) {
                report.alternatives.push(AlternativeReport {
                    work: outcome.work.clone(),
                    name: name.clone(),
                    counts: outcome.counts,
                    moved: outcome.moved(&base.verdicts()),
                });
                continue;
            }
            first = Some(outcome);
            if known.is_some() {
                continue;
            }
            let work = &outcome.work;
            report
                .claims
                .extend(outcome.claims.iter().map(|claim| of(work, claim)));
            report
                .apart
                .extend(outcome.apart.iter().map(|claim| of(work, claim)));
            let unjudged = outcome.unjudged.iter();
            report
                .unjudged
                .extend(unjudged.map(|claim| of(work, claim)));
            report
                .studies
                .extend(outcome.studies.iter().map(|study| of(work, study)));
            report.counts = report.counts + outcome.counts;
        }
        report
    }
}

fn of<T: Clone>(work: &str, item: &T) -> OfWork<T> {
    OfWork {
        work: work.to_owned(),
        item: item.clone(),
    }
}

impl WorkOutcome {
    /// Claims whose verdict differs from that in `base`.
    pub fn moved(&self, base: &Verdicts) -> Vec<ClaimOutcome> {
        let all = self.claims.iter().chain(&self.apart);
        let differs = |claim: &&ClaimOutcome| claim.verdict != base.get(&claim.id).copied();
        all.filter(differs).cloned().collect()
    }
}

impl std::ops::Add for VerdictCounts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            holds: self.holds + other.holds,
            consistent: self.consistent + other.consistent,
            near: self.near + other.near,
            misses: self.misses + other.misses,
            inconsistent: self.inconsistent + other.inconsistent,
        }
    }
}

impl VerdictCounts {
    /// Counts one more verdict.
    pub(crate) const fn count(&mut self, verdict: Option<Verdict>) {
        match verdict {
            Some(Verdict::Holds) => self.holds += 1,
            Some(Verdict::Consistent) => self.consistent += 1,
            Some(Verdict::SourceInconsistent) => self.inconsistent += 1,
            Some(Verdict::Near) => self.near += 1,
            Some(Verdict::Misses) | None => self.misses += 1,
        }
    }

    /// The number of counted claims.
    pub const fn total(&self) -> u64 {
        self.holds + self.consistent + self.near + self.misses
    }

    /// The counts in words: `3 hold, 1 near, 2 miss`, and the other kinds.
    pub fn words(&self) -> String {
        let Self {
            holds,
            consistent,
            near,
            misses,
            inconsistent,
        } = self;
        let ties = if *consistent > 0 {
            format!(", {consistent} consistent")
        } else {
            String::new()
        };
        let apart = if *inconsistent > 0 {
            format!("; {inconsistent} more are inconsistent in the source")
        } else {
            String::new()
        };
        format!("{holds} hold{ties}, {near} near, {misses} miss{apart}")
    }
}
