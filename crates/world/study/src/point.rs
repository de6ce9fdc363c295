//! Composes one point of a study as a scenario, to be run, inspected and changed separately.

use std::collections::BTreeMap;

use airlane_sim::Scenario;

use crate::error::StudyError;
use crate::pattern::Assignment;
use crate::study::Study;
use crate::work::Work;

/// Joins alternatives that apply together.
pub(crate) const TOGETHER: &str = " + ";

impl Work {
    /// The scenario of the study's point at `values` (`scheme=rlp`, one for each axis), with the
    /// work's seed, so that repetition k of it is repetition k of the study. `alternative` and
    /// `set` are as in a [`RunRequest`](crate::RunRequest).
    ///
    /// # Errors
    /// If a name is unknown, an axis has no value or two, or an assignment matches nothing.
    pub fn scenario(
        &self,
        study: &str,
        values: &[String],
        alternative: Option<&str>,
        set: &[String],
    ) -> Result<Scenario, StudyError> {
        let found = self.study(study).ok_or_else(|| {
            let known = self.studies.iter().map(|study| study.id.as_str());
            StudyError::unknown("study", study, known)
        })?;
        if !found.runs_something() {
            let problem = format!("{study} runs nothing; it reads what other studies ran");
            return Err(StudyError::Results(problem));
        }
        let at = found.at(values)?;
        let mut texts = set.to_vec();
        if let Some(name) = alternative {
            texts.extend(self.alternative(name)?);
        }
        let extra = Assignment::parse_all(&texts)?;
        let mut reached = BTreeMap::new();
        let mut scenario = found.compose(&self.id, at, &extra, &mut reached)?.scenario;
        // An alternative concerns the whole work and need not match at every point.
        if let Some(text) = set.iter().find(|text| reached.get(*text) == Some(&0)) {
            return Err(StudyError::Assignment {
                text: text.clone(),
                problem: "it reaches no place in this scenario".to_owned(),
            });
        }
        scenario.seed = self.seed;
        Ok(scenario)
    }

    /// The assignments of one or several alternatives (`max-rto-64 + flows[*].app.parallel=2`): a
    /// name stands for the assignments in the work's file, and an assignment for itself.
    pub(crate) fn alternative(&self, name: &str) -> Result<Vec<String>, StudyError> {
        let mut set = vec![];
        for part in name.split(TOGETHER) {
            if let Some(found) = self.alternatives.get(part) {
                set.extend(found.set.iter().cloned());
            } else if part.contains('=') {
                set.push(part.to_owned());
            } else {
                let known = self.alternatives.keys().map(String::as_str);
                return Err(StudyError::unknown("alternative", part, known));
            }
        }
        Ok(set)
    }
}

impl Study {
    /// Indices on the axes, from `axis=value` for each axis in any order.
    fn at(&self, values: &[String]) -> Result<Vec<usize>, StudyError> {
        let refuse = |problem: String| StudyError::Point {
            study: self.id.clone(),
            problem,
            axes: join(
                self.axes
                    .iter()
                    .map(|axis| format!("{}={}", axis.name, axis.values.join("|"))),
            ),
        };
        let mut at = vec![None; self.axes.len()];
        for text in values {
            let (name, value) = text
                .split_once('=')
                .ok_or_else(|| refuse(format!("\"{text}\" is no AXIS=VALUE")))?;
            let axis = self.axes.iter().position(|axis| axis.name == name);
            let axis = axis.ok_or_else(|| refuse(format!("it has no axis \"{name}\"")))?;
            let index = self.axes[axis]
                .values
                .iter()
                .position(|known| known == value);
            let index = index.ok_or_else(|| refuse(format!("{name} is never \"{value}\"")))?;
            if at[axis].replace(index).is_some() {
                return Err(refuse(format!("{name} is given twice")));
            }
        }
        let missing = self.axes.iter().zip(&at).filter(|(_, at)| at.is_none());
        let missing = join(missing.map(|(axis, _)| axis.name.as_str()));
        if !missing.is_empty() {
            return Err(refuse(format!("a point needs a value of {missing}")));
        }
        Ok(at.into_iter().flatten().collect())
    }
}

fn join<S: AsRef<str>>(names: impl Iterator<Item = S>) -> String {
    let names: Vec<S> = names.collect();
    names
        .iter()
        .map(AsRef::as_ref)
        .collect::<Vec<&str>>()
        .join(", ")
}
