//! Results by study, metric and place, and the values of expressions over them.

use std::collections::BTreeMap;

use crate::axis::{Axis, AxisValues};
use crate::curve::{self, Metric};
use crate::expression::{Expression, Function, Operand, Operator, Quantity};
use crate::statistics::Repetitions;
use crate::store::RunRecord;
use crate::study::Study;

/// The results of all studies of a work.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredData {
    pub(crate) runs: usize,
    studies: BTreeMap<String, Results>,
}

/// The results of one study.
#[derive(Clone, Debug)]
struct Results {
    study: Study,
    /// Values of each metric, by point and repetition; without points if nothing has run yet.
    columns: BTreeMap<String, Vec<Vec<f64>>>,
}

impl MeasuredData {
    pub(crate) const fn new(runs: usize) -> Self {
        Self {
            runs,
            studies: BTreeMap::new(),
        }
    }

    /// Adds a study with its columns by metric.
    pub(crate) fn insert(&mut self, study: &Study, columns: BTreeMap<String, Vec<Vec<f64>>>) {
        let results = Results {
            study: study.clone(),
            columns,
        };
        self.studies.insert(study.id.clone(), results);
    }

    /// Adds one more column to a study that has been inserted.
    pub(crate) fn add(&mut self, study: &Study, metric: &str, column: Vec<Vec<f64>>) {
        if let Some(results) = self.studies.get_mut(&study.id) {
            results.columns.insert(metric.to_owned(), column);
        }
    }

    /// What a flow had carried by a time, for the runs of a study's points; the runs may be
    /// missing.
    pub(crate) fn until(
        &self,
        study: &Study,
        points: usize,
        runs: &[Vec<&RunRecord>],
        flow: &str,
        time: &Operand,
    ) -> Result<Vec<Vec<f64>>, String> {
        // Unknown names are found here.
        self.open_axes(&study.id, &[&time.expression])?;
        for (quantity, _) in time.expression.quantities() {
            let read = &self.results(&study.id, quantity)?.study.read;
            if !matches!(read.get(&quantity.metric), Some(Metric::Plain(_))) {
                return Err(format!("\"{}\" goes until a time itself", quantity.metric));
            }
        }
        let point = |point: usize| {
            let place = study.values(point);
            let time = |run| {
                let only = Repetitions::Only(run);
                self.value(&study.id, &time.expression, &place, only)
            };
            // Even if nothing has run: this checks that such times exist.
            time(0)?;
            let runs = runs.get(point).into_iter().flatten().enumerate();
            runs.map(|(run, record)| Ok(curve::good_bps(record, flow, time(run)?)))
                .collect()
        };
        (0..points).map(point).collect()
    }

    /// The values of a metric, one for each repetition.
    pub(crate) fn column(&self, study: &str, metric: &str, point: usize) -> Option<&[f64]> {
        let column = self.studies.get(study)?.columns.get(metric)?;
        column.get(point).map(Vec::as_slice)
    }

    /// The largest mean of a quantity's metric in its study, where the figure's axis ends; `None`
    /// if that axis is logarithmic, or if nothing was measured.
    pub(crate) fn largest(&self, own: &str, quantity: &Quantity) -> Option<f64> {
        let results = self.results(own, quantity).ok()?;
        let figure = results.study.figure.as_ref();
        if figure.is_some_and(crate::figure::Figure::is_logarithmic) {
            return None;
        }
        let means = results
            .columns
            .get(&quantity.metric)?
            .iter()
            .map(|runs| spread(runs).0);
        means.filter(|mean| mean.is_finite()).reduce(f64::max)
    }

    fn results(&self, own: &str, quantity: &Quantity) -> Result<&Results, String> {
        let id = quantity.study.as_deref().unwrap_or(own);
        let results = self.studies.get(id);
        let results = results.ok_or_else(|| format!("there is no study \"{id}\""))?;
        if results.study.metrics.contains_key(&quantity.metric) {
            return Ok(results);
        }
        let known: Vec<&str> = results.study.metrics.keys().map(String::as_str).collect();
        Err(format!(
            "study {id} has no metric \"{}\"; it has: {}",
            quantity.metric,
            known.join(", ")
        ))
    }

    /// The name in results of a quantity's metric; it ends with the unit.
    pub(crate) fn metric_name(&self, own: &str, quantity: &Quantity) -> Option<&str> {
        let results = self.results(own, quantity).ok()?;
        results
            .study
            .metrics
            .get(&quantity.metric)
            .map(String::as_str)
    }

    /// The axes of a quantity's study.
    pub(crate) fn axes<'d>(
        &'d self,
        own: &str,
        quantity: &Quantity,
    ) -> impl Iterator<Item = &'d Axis> {
        let results = self.results(own, quantity).ok();
        results.into_iter().flat_map(|results| &results.study.axes)
    }

    /// Axes with several values that a quantity leaves open.
    fn open(&self, own: &str, quantity: &Quantity) -> Result<Vec<(String, Vec<String>)>, String> {
        let axes = &self.results(own, quantity)?.study.axes;
        let unknown = quantity
            .at
            .iter()
            .find(|v| !axes.iter().any(|a| a.values.contains(v)));
        if let Some(value) = unknown {
            return Err(format!("no axis has the value \"{value}\""));
        }
        Ok(axes
            .iter()
            .filter(|a| a.values.len() > 1 && !quantity.at.iter().any(|v| a.values.contains(v)))
            .map(|axis| (axis.name.clone(), axis.values.clone()))
            .collect())
    }

    /// The open axes of expressions that are evaluated together.
    pub(crate) fn open_axes(
        &self,
        own: &str,
        expressions: &[&Expression],
    ) -> Result<Vec<(String, Vec<String>)>, String> {
        let mut axes: Vec<(String, Vec<String>)> = vec![];
        for expression in expressions {
            for (quantity, inside) in expression.quantities() {
                let mut open = self.open(own, quantity)?;
                if inside {
                    open.pop();
                }
                for axis in open {
                    if !axes.iter().any(|(name, _)| *name == axis.0) {
                        axes.push(axis);
                    }
                }
            }
        }
        Ok(axes)
    }

    /// All places on the open axes; `at` keeps those with these values.
    pub(crate) fn places(
        &self,
        own: &str,
        expressions: &[&Expression],
        at: &[String],
    ) -> Result<Vec<AxisValues>, String> {
        let axes = self.open_axes(own, expressions)?;
        if let Some(value) = at
            .iter()
            .find(|v| !axes.iter().any(|(_, all)| all.contains(v)))
        {
            return Err(format!("no open axis has the value \"{value}\""));
        }
        let mut places: Vec<AxisValues> = vec![vec![]];
        for (_, values) in axes {
            let chosen: Vec<&String> = values.iter().filter(|v| at.contains(v)).collect();
            let chosen = if chosen.is_empty() {
                values.iter().collect()
            } else {
                chosen
            };
            places = places
                .iter()
                .flat_map(|place| {
                    chosen.iter().map(|value| {
                        let mut place = place.clone();
                        place.push((*value).clone());
                        place
                    })
                })
                .collect();
        }
        Ok(places)
    }

    /// The value of an expression at a place.
    pub(crate) fn value(
        &self,
        own: &str,
        expression: &Expression,
        place: &[String],
        sample: Repetitions,
    ) -> Result<f64, String> {
        Ok(match expression {
            Expression::Number(number) => *number,
            Expression::Quantity(quantity) => self.quantity(own, quantity, place, sample)?,
            Expression::Negative(of) => -self.value(own, of, place, sample)?,
            Expression::Binary(operator, left, right) => {
                let left = self.value(own, left, place, sample)?;
                let right = self.value(own, right, place, sample)?;
                match operator {
                    Operator::Add => left + right,
                    Operator::Subtract => left - right,
                    Operator::Multiply => left * right,
                    Operator::Divide => left / right,
                }
            }
            Expression::Call(Function::Deviation, of) => {
                spread(&self.each(own, of, place, sample)?).1
            }
            Expression::Call(Function::Variation, of) => {
                let (mean, deviation) = spread(&self.each(own, of, place, sample)?);
                deviation / mean
            }
            Expression::Call(function, of) => {
                let values = self.along(own, of, place, sample)?;
                match function {
                    Function::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
                    Function::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                    _ => values.iter().sum::<f64>() / values.len() as f64,
                }
            }
        })
    }

    /// The same expression with the value of each axis at a place, so that equal ones mean the same
    /// numbers.
    pub(crate) fn at(
        &self,
        own: &str,
        expression: &Expression,
        place: &[String],
    ) -> Result<Expression, String> {
        let at = |of: &Expression| self.at(own, of, place).map(Box::new);
        Ok(match expression {
            Expression::Number(number) => Expression::Number(*number),
            Expression::Quantity(quantity) => {
                let study = &self.results(own, quantity)?.study;
                let value = |axis: &Axis| {
                    let at = chosen(axis, quantity, place)?;
                    axis.values.get(at).cloned()
                };
                Expression::Quantity(Quantity {
                    study: Some(study.id.clone()),
                    metric: quantity.metric.clone(),
                    at: study.axes.iter().filter_map(value).collect(),
                })
            }
            Expression::Negative(of) => Expression::Negative(at(of)?),
            Expression::Binary(operator, left, right) => {
                Expression::Binary(*operator, at(left)?, at(right)?)
            }
            Expression::Call(function, of) => Expression::Call(*function, at(of)?),
        })
    }

    /// The values repetition by repetition.
    fn each(
        &self,
        own: &str,
        of: &Expression,
        place: &[String],
        sample: Repetitions,
    ) -> Result<Vec<f64>, String> {
        let runs = sample.of(self.runs);
        runs.map(|run| self.value(own, of, place, Repetitions::Only(run)))
            .collect()
    }

    /// The values along the last axis that the place leaves open.
    fn along(
        &self,
        own: &str,
        of: &Expression,
        place: &[String],
        sample: Repetitions,
    ) -> Result<Vec<f64>, String> {
        let axes = self.open_axes(own, &[of])?;
        let Some((_, values)) = axes.last() else {
            return Err("min, max and mean need an axis that is left open".to_owned());
        };
        values
            .iter()
            .map(|value| {
                // The innermost choice takes precedence.
                let place: AxisValues = std::iter::once(value).chain(place).cloned().collect();
                self.value(own, of, &place, sample)
            })
            .collect()
    }

    fn quantity(
        &self,
        own: &str,
        quantity: &Quantity,
        place: &[String],
        sample: Repetitions,
    ) -> Result<f64, String> {
        let results = self.results(own, quantity)?;
        let mut at = vec![];
        for axis in &results.study.axes {
            at.push(chosen(axis, quantity, place).ok_or_else(|| {
                let (study, axis) = (&results.study.id, &axis.name);
                format!("which {axis} of {study}.{} is meant?", quantity.metric)
            })?);
        }
        let point = results.study.index(&at);
        let Some(column) = results
            .columns
            .get(&quantity.metric)
            .and_then(|c| c.get(point))
        else {
            return Ok(f64::NAN);
        };
        // The mean of the repetitions in which it could be measured; NaN if there is none.
        let (mut sum, mut count) = (0.0, 0.0);
        for run in sample.of(column.len()) {
            if column[run].is_finite() {
                sum += column[run];
                count += 1.0;
            }
        }
        Ok(sum / count)
    }
}

/// Which value of an axis a quantity has at a place: that of the innermost choice, or the only one.
fn chosen(axis: &Axis, quantity: &Quantity, place: &[String]) -> Option<usize> {
    let named = quantity.at.iter().chain(place);
    let mut known = named.filter_map(|v| axis.values.iter().position(|a| a == v));
    let only = (axis.values.len() == 1).then_some(0);
    known.next().or(only)
}

/// Mean and standard deviation of the measured values.
fn spread(values: &[f64]) -> (f64, f64) {
    let values: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    let deviation = if values.len() > 1 {
        (squares / (n - 1.0)).sqrt()
    } else {
        0.0
    };
    (mean, deviation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmeasured_values_are_left_out() {
        assert_eq!(spread(&[1.0, f64::NAN, 3.0]), (2.0, 2.0_f64.sqrt()));
        assert!(spread(&[f64::NAN]).0.is_nan());
    }
}
