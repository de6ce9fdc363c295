//! Finds claims that no simulation could refuse, and claims that repeat another one.
//!
//! * A claim that **cannot fail**: it has no measured value; its bound or order holds for all
//!   values that its metrics can have, which are never negative; both sides are the same; both
//!   sides are counted alike in every repetition; or what it prints is a probability of the
//!   scenario, its complement, or the period of one of its timers. In the last case, `fails-when`
//!   may say what would make it fail, and it counts.
//! * A claim with **the same inequalities** or the same printed value of the same quantity as another one.
//! * A claim that a value of an axis is **the best of a grid** whose next values are further away
//!   than printed values may be: it would hold for any optimum between them, unless `fails-when`
//!   says that there may be none.
//!
//! Claims with a class are not counted, and are not checked here.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::Claim;
use super::contradiction::name;
use crate::data::MeasuredData;
use crate::expression::{Comparator, Expression, Function, Operand, Operator};
use crate::statistics::Repetitions;
use crate::study::Study;

/// Relative difference below which two numbers are equal up to rounding.
const SAME: f64 = 1e-9;
/// A value holds if it is this close to the printed one, relatively; so the next value of a grid
/// must be as close.
const PRINTED: f64 = 0.1;

/// For each claim that says nothing of its own, the reasons.
pub(crate) type Findings = BTreeMap<String, Vec<String>>;

/// Composed scenarios of studies, with all defaults.
pub(crate) type Scenarios = BTreeMap<String, Vec<Table>>;

/// The findings about the claims of a work's studies. Checks that need repetitions are skipped if
/// `data` has none.
pub(crate) fn lint(studies: &[Study], data: &MeasuredData, scenarios: &Scenarios) -> Findings {
    let mut found = Findings::new();
    let mut said: BTreeMap<String, &str> = BTreeMap::new();
    for study in studies {
        for claim in study.claims.iter().filter(|claim| claim.class.is_none()) {
            let asked = Asked { data, study, claim };
            let mut texts = asked.cannot_fail();
            texts.extend(asked.was_set(scenarios));
            texts.extend(asked.best_of_a_grid());
            for what in asked.statements() {
                match said.get(&what) {
                    Some(other) if *other != claim.id => {
                        texts.push(format!("{other} says the same: {what}"))
                    }
                    _ => _ = said.insert(what, &claim.id),
                }
            }
            if !texts.is_empty() {
                found.insert(claim.id.clone(), texts);
            }
        }
    }
    found
}

/// A claim that is counted.
struct Asked<'c> {
    data: &'c MeasuredData,
    study: &'c Study,
    claim: &'c Claim,
}

/// The interval of all values that an expression can have.
type Range = [f64; 2];

impl Asked<'_> {
    /// Checks that hold whatever is measured.
    fn cannot_fail(&self) -> Vec<String> {
        let mut found = vec![];
        if !self.claim.setting.as_slice().is_empty() {
            found.push("it reads back what was set: class = \"setting\"".to_owned());
        }
        let orders: Vec<_> = self.claim.pairs().into_iter().collect();
        let number = |of: &Operand| of.expression.quantities().is_empty();
        let ordered = orders
            .iter()
            .filter(|(left, _, right, _)| number(left) && number(right));
        let alone = self.claim.alone().into_iter().filter(|of| number(of));
        for of in ordered.map(|(left, ..)| *left).chain(alone) {
            found.push(format!(
                "{} is arithmetic: class = \"closed-form\"",
                of.text
            ));
        }
        for bound in self.claim.above.as_slice() {
            if range(&bound.of.expression)[0] >= bound.is {
                found.push(format!("{} is never below {}", bound.of.text, bound.is));
            }
        }
        for bound in self.claim.below.as_slice() {
            if range(&bound.of.expression)[1] <= bound.is {
                found.push(format!("{} is never above {}", bound.of.text, bound.is));
            }
        }
        let mut alike = vec![];
        for (left, comparator, right, at) in orders {
            let (a, b) = (range(&left.expression), range(&right.expression));
            let text = || format!("{} {} {}", left.text, comparator.sign(), right.text);
            let always = match comparator {
                Comparator::AtLeast => a[0] >= b[1],
                Comparator::AtMost => a[1] <= b[0],
                _ => false,
            };
            if always {
                found.push(format!("{} for all values that there can be", text()));
            }
            let places =
                self.data
                    .places(&self.study.id, &[&left.expression, &right.expression], at);
            let places = places.unwrap_or_default();
            let named =
                |of: &Operand, place| name(self.data, &self.study.id, &of.expression, place);
            if places
                .iter()
                .all(|place| named(left, place) == named(right, place))
            {
                found.push(format!("{}: both sides are the same", text()));
            }
            for place in &places {
                alike.push((text(), self.counted_the_same(left, right, place)));
            }
        }
        if !alike.is_empty() && alike.iter().all(|(_, same)| *same) {
            found.push(format!(
                "{}: counted the same in every repetition",
                alike[0].0
            ));
        }
        found
    }

    /// Whether two measured values that differ between repetitions are equal in each of them.
    fn counted_the_same(&self, left: &Operand, right: &Operand, place: &[String]) -> bool {
        // A maximum may well equal the value that is the largest in every repetition.
        if [left, right]
            .iter()
            .any(|of| matches!(of.expression, Expression::Call(..)))
        {
            return false;
        }
        let each = |of: &Operand| -> Vec<f64> {
            let value = |run| {
                self.data.value(
                    &self.study.id,
                    &of.expression,
                    place,
                    Repetitions::Only(run),
                )
            };
            (0..self.data.runs)
                .filter_map(|run| value(run).ok())
                .collect()
        };
        let (left, right) = (each(left), each(right));
        let varies = left.windows(2).any(|pair| pair[0] != pair[1]);
        varies
            && left
                .iter()
                .zip(&right)
                .all(|(a, b)| (a - b).abs() <= SAME * a.abs())
    }

    /// Printed values that were set in the scenario.
    fn was_set(&self, scenarios: &Scenarios) -> Vec<String> {
        if self.claim.fails_when.is_some() {
            return vec![];
        }
        let printed = self.claim.printed();
        let quotients = printed
            .iter()
            .flat_map(|a| printed.iter().map(move |b| a / b));
        let all: Vec<f64> = printed
            .iter()
            .copied()
            .chain(quotients.filter(|q| *q < 1.0))
            .collect();
        let mut set = vec![];
        for study in self.claim.measured_in(&self.study.id) {
            for scenario in scenarios.get(study).into_iter().flatten() {
                set_values("", &Value::Table(scenario.clone()), &mut set);
            }
        }
        let mut found: Vec<String> = vec![];
        for (key, value, makes) in set {
            let same = |printed: &&f64| (**printed - makes).abs() <= SAME * makes.abs().max(SAME);
            if let Some(printed) = all.iter().find(same) {
                found.push(format!("{printed} is what {key} = {value} makes of it"));
            }
        }
        found.sort();
        found.dedup();
        found
    }

    /// Values of a numeric axis that are the best of a few.
    fn best_of_a_grid(&self) -> Vec<String> {
        let mut found = vec![];
        if self.claim.fails_when.is_some() {
            return found;
        }
        for (left, comparator, right, _) in self.claim.pairs() {
            let (best, of) = match comparator {
                Comparator::AtLeast => (left, right),
                Comparator::AtMost => (right, left),
                _ => continue,
            };
            let Expression::Call(Function::Max, all) = &of.expression else {
                continue;
            };
            let (Expression::Quantity(best), Expression::Quantity(all)) =
                (&best.expression, &**all)
            else {
                continue;
            };
            for axis in self.data.axes(&self.study.id, best) {
                let Some(at) = best.at.iter().find(|value| axis.values.contains(value)) else {
                    continue;
                };
                let numbers: Option<Vec<f64>> =
                    axis.values.iter().map(|v| v.parse().ok()).collect();
                let (Some(numbers), Ok(at), false) =
                    (numbers, at.parse::<f64>(), all.at.contains(at))
                else {
                    continue;
                };
                let gap = |side: fn(f64, f64) -> bool| {
                    let next = numbers
                        .iter()
                        .filter(|n| side(**n, at))
                        .map(|n| (n - at).abs() / at);
                    next.reduce(f64::min)
                };
                let gaps = [gap(|n, at| n < at), gap(|n, at| n > at)];
                if gaps.into_iter().flatten().any(|gap| gap > PRINTED) {
                    found.push(format!(
                        "{} = {at} is the best of a grid whose next value is more than {} % away",
                        axis.name,
                        PRINTED * 100.0
                    ));
                }
            }
        }
        found
    }

    /// The claim in a normal form: all of its inequalities together, and each printed value.
    fn statements(&self) -> Vec<String> {
        let own = &self.study.id;
        let mut orders = vec![];
        for (left, comparator, right, at) in self.claim.pairs() {
            let places = self
                .data
                .places(own, &[&left.expression, &right.expression], at);
            for place in places.unwrap_or_default() {
                let named = |of: &Operand| name(self.data, own, &of.expression, &place);
                let (one, other, sign) = match comparator {
                    Comparator::Less => (named(right), named(left), Comparator::Greater.sign()),
                    Comparator::AtMost => (named(right), named(left), Comparator::AtLeast.sign()),
                    comparator => (named(left), named(right), comparator.sign()),
                };
                orders.push(format!("{one} {sign} {other}"));
            }
        }
        orders.sort();
        let mut found: Vec<String> = (!orders.is_empty())
            .then(|| orders.join(" and "))
            .into_iter()
            .collect();
        for printed in self.claim.value.as_slice() {
            let places = self
                .data
                .places(own, &[&printed.of.expression], &printed.at);
            for place in places.unwrap_or_default() {
                let (of, is) = solved(&printed.of.expression, printed.is);
                found.push(format!("{} is {:.6}", name(self.data, own, of, &place), is));
            }
        }
        found
    }
}

/// Solves for the quantity: `1 - x is 0.8` says that x is 0.2.
fn solved(of: &Expression, is: f64) -> (&Expression, f64) {
    let Expression::Binary(operator, left, right) = of else {
        return (of, is);
    };
    match (operator, &**left, &**right) {
        (Operator::Subtract, Expression::Number(number), inner) => solved(inner, number - is),
        (Operator::Subtract, inner, Expression::Number(number)) => solved(inner, is + number),
        (Operator::Add, Expression::Number(number), inner)
        | (Operator::Add, inner, Expression::Number(number)) => solved(inner, is - number),
        (Operator::Multiply, Expression::Number(number), inner)
        | (Operator::Multiply, inner, Expression::Number(number)) => solved(inner, is / number),
        (Operator::Divide, inner, Expression::Number(number)) => solved(inner, is * number),
        _ => (of, is),
    }
}

/// All values that are possible if no metric is negative.
fn range(of: &Expression) -> Range {
    const ALL: Range = [f64::NEG_INFINITY, f64::INFINITY];
    match of {
        Expression::Number(number) => [*number; 2],
        Expression::Quantity(_)
        | Expression::Call(Function::Deviation | Function::Variation, _) => [0.0, f64::INFINITY],
        Expression::Negative(of) => {
            let [low, high] = range(of);
            [-high, -low]
        }
        Expression::Call(_, of) => range(of),
        Expression::Binary(operator, left, right) => {
            let ([a, b], [c, d]) = (range(left), range(right));
            match operator {
                Operator::Add => [a + c, b + d],
                Operator::Subtract => [a - d, b - c],
                Operator::Multiply | Operator::Divide if a >= 0.0 && c >= 0.0 => {
                    [0.0, f64::INFINITY]
                }
                Operator::Multiply | Operator::Divide => ALL,
            }
        }
    }
}

/// Probabilities and periods of a scenario: the key, the value as written, and the measured value
/// that follows from it.
fn set_values(key: &str, value: &Value, found: &mut Vec<(String, String, f64)>) {
    match value {
        Value::Table(table) => table
            .iter()
            .for_each(|(key, value)| set_values(key, value, found)),
        Value::Array(values) => values
            .iter()
            .for_each(|value| set_values(key, value, found)),
        Value::Float(p) if key == "loss" => {
            let written = value.to_string();
            found.push((key.to_owned(), written.clone(), *p));
            found.push((key.to_owned(), written, 1.0 - p));
        }
        Value::String(text) if key.ends_with("period") || key == "interval" => {
            if let Ok(period) = text.parse::<airlane_base::Duration>() {
                found.push((key.to_owned(), text.clone(), 1.0 / period.as_secs_f64()));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::StudyFile;

    fn study(claims: &str) -> Study {
        let text = format!(
            "title = \"T\"\nscenario.schema = 1\nmetrics.t = \"a.throughput_bps\"\nmetrics.n = \"a.timeouts\"\n\
             axes.mtu = {{ 60 = [], 90 = [], 95 = [] }}\n{claims}"
        );
        let file: StudyFile = toml::from_str(&text).unwrap();
        Study::new("F1", file, &BTreeMap::new(), &BTreeMap::new()).unwrap()
    }

    fn findings(checks: &[&str], columns: &[(&str, [[f64; 2]; 3])]) -> Vec<String> {
        let claims = checks.iter().enumerate();
        let claims = claims
            .map(|(at, check)| format!("[[claims]]\nid = \"c{at}\"\npublished = \"p\"\n{check}\n"));
        let study = study(&claims.collect::<String>());
        let mut data = MeasuredData::new(2);
        let columns = columns.iter();
        let columns =
            columns.map(|(name, points)| ((*name).to_owned(), points.map(Vec::from).to_vec()));
        data.insert(&study, columns.collect());
        let scenario: Table =
            toml::from_str("noise = [{ loss = 0.4 }]\nnack-period = \"100 ms\"").unwrap();
        let scenarios = BTreeMap::from([("F1".to_owned(), vec![scenario])]);
        lint(&[study], &data, &scenarios)
            .into_iter()
            .map(|(id, why)| format!("{id}: {}", why.join("; ")))
            .collect()
    }

    #[test]
    fn claims_that_cannot_fail_are_named() {
        for (check, why) in [
            ("above = { of = \"n\", is = 0 }", "never below 0"),
            ("check = \"n >= 0\"", "for all values"),
            ("value = { of = \"2 * 3\", is = 6 }", "arithmetic"),
            ("check = \"t[90] >= t[90]\"", "both sides"),
            ("value = { of = \"t[60] / t[90]\", is = 0.6 }", "loss = 0.4"),
            (
                "value = [{ of = \"t[60]\", is = 5e6 }, { of = \"t[90]\", is = 3e6 }]",
                "loss = 0.4",
            ),
            ("check = \"t[60] / t[90] ~ 0.6\"", "loss = 0.4"),
            (
                "value = { of = \"n[60]\", is = 10 }",
                "nack-period = 100 ms",
            ),
            ("check = \"t[60] >= max(t)\"", "grid"),
        ] {
            let found = findings(&[check], &[]);
            assert!(
                found.len() == 1 && found[0].contains(why),
                "{check}: {found:?}"
            );
        }
        for check in [
            "above = { of = \"n\", is = 1 }",
            "above = { of = \"n - t\", is = 0 }",
            "below = { of = \"n\", is = 0 }",
            "check = \"t[60] > t[90]\"",
            "value = { of = \"t[60] / t[90]\", is = 0.7 }",
            "fails-when = \"losses are not independent\"\nvalue = { of = \"t[60] / t[90]\", is = 0.6 }",
            "check = \"t[95] >= max(t)\"",
            "class = \"by-construction\"\nreason = \"r\"\nabove = { of = \"n\", is = 0 }",
        ] {
            assert_eq!(findings(&[check], &[]), Vec::<String>::new(), "{check}");
        }
    }

    #[test]
    fn a_count_equal_in_every_repetition_is_an_identity() {
        let column = [[1.0, 2.0], [3.0, 4.0], [5.0, 5.0]];
        let other = [[1.0, 2.0], [3.0, 5.0], [5.0, 6.0]];
        let check = ["check = [\"t[60] <= n[60]\", \"t[60] >= n[60]\"]"];
        assert_eq!(findings(&check, &[("t", column), ("n", column)]).len(), 1);
        let check = ["check = [\"t[60] <= n[60]\", \"t[90] >= n[90]\"]"];
        assert_eq!(findings(&check, &[("t", column), ("n", other)]).len(), 0);
        // Two zeros at one place do not make an identity: zero may be what was claimed.
        let nothing = [[0.0, 0.0]; 3];
        let check = ["check = \"t[60] <= n[60]\""];
        assert_eq!(findings(&check, &[("t", nothing), ("n", nothing)]).len(), 0);
    }

    #[test]
    fn a_repeated_claim_is_named_in_any_notation() {
        for (one, other, same) in [
            (
                "check = \"t[60] > t[90]\"",
                "check = \"t[90] < t[60]\"",
                true,
            ),
            (
                "check = [\"t[60] > t[90]\", \"t[60] > t[95]\"]",
                "check = \"t[60] > t at 90 95\"",
                true,
            ),
            (
                "check = \"t[60] > t[90]\"",
                "check = \"t[60] > t at 90 95\"",
                false,
            ),
            (
                "value = { of = \"1 - n[60] / n[90]\", is = 0.8 }",
                "value = { of = \"n[60] / n[90]\", is = 0.2 }",
                true,
            ),
            (
                "value = { of = \"n[60]\", is = 7 }",
                "value = { of = \"n[60]\", is = 8 }",
                false,
            ),
        ] {
            assert_eq!(
                findings(&[one, other], &[]).len(),
                usize::from(same),
                "{one}, {other}"
            );
        }
    }
}
