//! Compares a claim with the results.

use std::cell::RefCell;

use toml::Table;

use super::comparison::{self, Comparison};
use super::printed::GainEnd;
use super::scale;
use super::words::{grouped, labelled};
use super::{Bound, Claim, ClaimClass, Closed, Gain, Judgement};
use crate::data::MeasuredData;
use crate::expression::{Comparator, Condition, ConditionKind, Expression, Operand};
use crate::statistics::{Jackknife, Repetitions};
use crate::unit::Unit;
use crate::verdict::Verdict;
use crate::verdict::print::{self, Found, Print, Scale};

/// The results, and the words for them.
struct Judge<'d> {
    data: &'d MeasuredData,
    study: &'d str,
    print: Print,
    /// Factor that widens a confidence interval to the prediction interval of a printed number,
    /// which depends on how many runs that number has and how many there are here.
    widen: f64,
    /// Reasons of the comparisons that do not hold.
    why: RefCell<Vec<String>>,
    comparisons: RefCell<Vec<Comparison>>,
}

/// The description with which a comparison is recorded.
struct Recorded<'r> {
    check: String,
    place: &'r [String],
    unit: Unit,
    values: [f64; 2],
    known: &'r Jackknife,
    axis: Option<f64>,
    /// Whether the value on the right is printed, and so has an error of its own.
    printed: bool,
}

impl Claim {
    /// Compares the claim with the results. `scenarios` gives those of a study that it reads.
    pub(crate) fn judge<'s>(
        &self,
        data: &MeasuredData,
        study: &str,
        scenarios: &dyn Fn(&str) -> &'s [Table],
    ) -> Result<Judgement, String> {
        if self.class.is_some() != self.reason.is_some() && self.class != Some(ClaimClass::Setting)
        {
            return Err("a class needs a reason, and a reason a class".to_owned());
        }
        let here = data.runs as f64;
        let judge = Judge {
            data,
            study,
            print: self.print.unwrap_or_default(),
            widen: (1.0 + here / self.of_runs.map_or(here, |runs| f64::from(runs.get()))).sqrt(),
            why: RefCell::default(),
            comparisons: RefCell::default(),
        };
        let mut texts = vec![];
        for condition in self.check.as_slice() {
            texts.extend(judge.condition(condition)?);
        }
        for gain in self.gain.as_slice() {
            texts.push(judge.gain(gain)?);
        }
        for printed in self.value.as_slice() {
            let (is, digit) = (printed.is, printed.digit);
            let rule = |x, half| print::value(x, is, digit, half);
            let words = Against("printed", is, print::VALUE_RULE);
            texts.push(judge.each(&printed.of, &printed.at, words, rule)?);
        }
        for Bound { of, is, at } in self.below.as_slice() {
            let words = Against("at most", *is, print::BOUND_RULE);
            let rule = |x, half| print::bound(x - is, 0.25 * is.abs(), half);
            texts.push(judge.each(of, at, words, rule)?);
        }
        for Bound { of, is, at } in self.above.as_slice() {
            let words = Against("at least", *is, print::BOUND_RULE);
            let rule = |x, half| print::bound(is - x, 0.2 * is.abs(), half);
            texts.push(judge.each(of, at, words, rule)?);
        }
        for closed in self.closed.as_slice() {
            texts.push(judge.closed(closed)?);
        }
        let mut settings = vec![];
        for setting in self.setting.as_slice() {
            let (verdict, text) = setting.judge(study, scenarios)?;
            settings.push(verdict);
            texts.push(text);
        }
        if texts.is_empty()
            && !matches!(
                self.class,
                Some(ClaimClass::Background | ClaimClass::NotTestable)
            )
        {
            return Err("there is no check".to_owned());
        }
        let mut comparisons = judge.comparisons.into_inner();
        comparison::correct(&mut comparisons);
        let found = comparisons.iter().map(|c| c.verdict);
        Ok(Judgement {
            verdict: found.chain(settings).min(),
            measured: if comparisons.len() > LISTED {
                comparison::words(&comparisons)
            } else {
                texts.join("; ")
            },
            comparisons,
            why: judge.why.into_inner(),
        })
    }
}

/// At most this many comparisons are listed; the others are counted.
const LISTED: usize = 6;

/// The reference of a value: its name, its number and the rule.
struct Against(&'static str, f64, &'static str);

impl Judge<'_> {
    /// Records the reason if the verdict is not `holds`.
    fn because(&self, verdict: Verdict, place: &[String], reason: impl FnOnce() -> String) {
        if verdict < Verdict::Holds {
            let at = if place.is_empty() {
                String::new()
            } else {
                format!(" at {}", place.join(" "))
            };
            let reason = format!("{}{at}: {}", verdict.word(), reason());
            self.why.borrow_mut().push(reason);
        }
    }

    /// Records a comparison.
    fn record(&self, recorded: Recorded, found: Found) {
        let Recorded {
            check,
            place,
            unit,
            values: [measured, against],
            known,
            axis,
            printed,
        } = recorded;
        let widen = if printed { self.widen } else { 1.0 };
        self.comparisons.borrow_mut().push(Comparison {
            check,
            at: place.to_vec(),
            measured,
            against,
            ci95_half_width: known.half_width(0.95),
            axis,
            unit: unit.base(),
            probability: known.chance(found.excess / widen),
            verdict: found.verdict,
        });
    }

    fn known(&self, of: &Expression, place: &[String]) -> Result<Jackknife, String> {
        Jackknife::of(self.data.runs, |sample| {
            self.data.value(self.study, of, place, sample)
        })
    }

    fn unit(&self, operand: &Operand) -> Unit {
        Unit::of(&operand.expression, &|quantity| {
            self.data
                .metric_name(self.study, quantity)
                .map(str::to_owned)
        })
    }

    fn condition(&self, condition: &Condition) -> Result<Vec<String>, String> {
        let operands = condition.operands();
        let expressions: Vec<&Expression> = operands.iter().map(|o| &o.expression).collect();
        let places = self.data.places(self.study, &expressions, &condition.at)?;
        match &condition.kind {
            ConditionKind::Chain(first, rest) => {
                let mut found = vec![];
                let mut left = &**first;
                for (comparator, right) in rest {
                    found.push(self.pair(left, *comparator, right, &places)?);
                    left = right;
                }
                Ok(found)
            }
            ConditionKind::Monotone { rises, of } => Ok(vec![self.monotone(of, *rises, &places)?]),
        }
    }

    fn pair(
        &self,
        left: &Operand,
        comparator: Comparator,
        right: &Operand,
        places: &[Vec<String>],
    ) -> Result<String, String> {
        let mut values = vec![];
        let constant = matches!(right.expression, Expression::Number(_));
        let unit = self.unit(left);
        for place in places {
            let [a, b] = self.compare(left, comparator, right, [place, place])?;
            let text = if constant {
                unit.show(a)
            } else if b == 0.0 || !b.is_finite() || a < 0.0 || b < 0.0 {
                format!("{} and {}", unit.show(a), unit.show(b))
            } else {
                Unit::None.show(a / b)
            };
            values.push(labelled(&text, place));
        }
        let name = if constant {
            left.text.clone()
        } else {
            format!("{} / {}", grouped(&left.text), grouped(&right.text))
        };
        Ok(format!("{name}: {}", values.join(", ")))
    }

    /// Compares the two values, records the comparison, and returns them.
    fn compare(
        &self,
        left: &Operand,
        comparator: Comparator,
        right: &Operand,
        [left_place, right_place]: [&[String]; 2],
    ) -> Result<[f64; 2], String> {
        let (data, study) = (self.data, self.study);
        let at = |of: &Operand, place, sample| data.value(study, &of.expression, place, sample);
        let all = Repetitions::All;
        let values = [at(left, left_place, all)?, at(right, right_place, all)?];
        let on_axes = self.print == Print::Curves;
        let [left, right] = [left, right].map(|of| match on_axes {
            true => scale::drawn(data, study, of),
            false => of.clone(),
        });
        let bars = |of: &Operand| scale::shows_bars(&of.expression);
        let axis = |of: &Operand| scale::axis(data, study, &of.expression);
        let axis = match on_axes {
            false => None,
            true if bars(&left) || bars(&right) => Some(1.0),
            true => axis(&left).and(axis(&right)).end(),
        };
        let known = Jackknife::of(data.runs, |s| {
            Ok::<_, String>(at(&left, left_place, s)? - at(&right, right_place, s)?)
        })?;
        let [a, b] = [at(&left, left_place, all)?, at(&right, right_place, all)?];
        let half = known.half_width(0.95);
        let found = print::compare(comparator, a, b, Scale { axis, half });
        let unit = match on_axes && axis == Some(1.0) {
            true => Unit::Percent,
            false => self.unit(&left),
        };
        let recorded = Recorded {
            check: format!("{} {} {}", left.text, comparator.sign(), right.text),
            place: left_place,
            unit,
            values: [a, b],
            known: &known,
            axis,
            printed: false,
        };
        self.record(recorded, found);
        self.because(found.verdict, left_place, || {
            let unit = self.unit(&left);
            let [a, b, by, half] = [a, b, a - b, half].map(|value| unit.show(value));
            let rule = print::rule(comparator, axis.is_some());
            let (left, right) = (&left.text, &right.text);
            format!("{left} {a}, {right} {b}, difference {by} ± {half}; {rule}")
        });
        Ok(values)
    }

    fn monotone(
        &self,
        of: &Operand,
        rises: bool,
        places: &[Vec<String>],
    ) -> Result<String, String> {
        if places.len() < 2 || places[0].len() != 1 {
            return Err("rises and falls need one open axis with several values".to_owned());
        }
        let comparator = if rises {
            Comparator::Greater
        } else {
            Comparator::Less
        };
        let unit = self.unit(of);
        let start = self.known(&of.expression, &places[0])?.value;
        let mut values = vec![labelled(&unit.show(start), &places[0])];
        for pair in places.windows(2) {
            let [value, _] = self.compare(of, comparator, of, [&pair[1], &pair[0]])?;
            values.push(labelled(&unit.show(value), &pair[1]));
        }
        Ok(format!("{}: {}", of.text, values.join(", ")))
    }

    fn gain(&self, gain: &Gain) -> Result<String, String> {
        let ends = gain.ends(self.data, self.study)?;
        for (
            GainEnd {
                ratio: known,
                place,
                ..
            },
            printed,
        ) in ends.iter().zip(gain.range)
        {
            let half = known.half_width(0.95) * self.widen;
            let found = print::gain(known.value, printed, half);
            let recorded = Recorded {
                check: format!("an end of {}", gain.of.as_slice()[0].text),
                place,
                unit: Unit::None,
                values: [known.value, printed],
                known,
                axis: None,
                printed: true,
            };
            self.record(recorded, found);
            self.because(found.verdict, place, || {
                let [value, half] = [known.value, half].map(|value| Unit::None.show(value));
                format!(
                    "{value} ± {half} times, printed {printed}; {}",
                    print::GAIN_RULE
                )
            });
        }
        let [least, most] = ends.map(|end| Unit::None.show(end.ratio.value));
        Ok(format!("{least} to {most} times"))
    }

    fn each(
        &self,
        of: &Operand,
        at: &[String],
        Against(words, is, rule_in_words): Against,
        rule: impl Fn(f64, f64) -> Found,
    ) -> Result<String, String> {
        let mut values = vec![];
        let unit = self.unit(of);
        for place in self.data.places(self.study, &[&of.expression], at)? {
            let known = self.known(&of.expression, &place)?;
            let value = known.value;
            let half = known.half_width(0.95) * self.widen;
            let found = rule(value, half);
            let recorded = Recorded {
                check: format!("{} {words} {is}", of.text),
                place: &place,
                unit,
                values: [value, is],
                known: &known,
                axis: None,
                printed: true,
            };
            self.record(recorded, found);
            self.because(found.verdict, &place, || {
                let [value, half, is] = [value, half, is].map(|value| unit.show(value));
                let of = &of.text;
                format!("{of} {value} ± {half}, {words} {is}; {rule_in_words}")
            });
            values.push(labelled(&unit.show(value), &place));
        }
        Ok(format!("{}: {}", of.text, values.join(", ")))
    }

    fn closed(&self, closed: &Closed) -> Result<String, String> {
        let places = self
            .data
            .places(self.study, &[&closed.of.expression], &[])?;
        if places.len() != closed.is.len() {
            let (is, places) = (closed.is.len(), places.len());
            return Err(format!("{is} values are given for {places} places"));
        }
        let mut values = vec![];
        let unit = self.unit(&closed.of);
        // Bonferroni: all of them hold together with 95 % confidence.
        let confidence = 1.0 - 0.05 / places.len() as f64;
        for (place, is) in places.iter().zip(&closed.is) {
            let known = self.known(&closed.of.expression, place)?;
            let inside = (known.value - is).abs() <= known.half_width(confidence);
            let rounds = (known.value - is).abs() <= 5e-5 * is.abs();
            // Its intervals already hold together.
            let (verdict, excess) = match inside || rounds {
                true => (Verdict::Holds, 0.0),
                false => (Verdict::Misses, f64::INFINITY),
            };
            let recorded = Recorded {
                check: format!("{} follows", closed.of.text),
                place,
                unit,
                values: [known.value, *is],
                known: &known,
                axis: None,
                printed: false,
            };
            self.record(recorded, Found { verdict, excess });
            self.because(verdict, place, || {
                let numbers = [known.value, known.half_width(confidence), *is];
                let [value, half, is] = numbers.map(|value| unit.show(value));
                let (of, rule) = (&closed.of.text, print::CLOSED_RULE);
                format!("{of} {value} ± {half}, printed {is}; {rule}")
            });
            let text = format!("{} for {}", unit.show(known.value), unit.show(*is));
            values.push(labelled(&text, place));
        }
        Ok(format!("{}: {}", closed.of.text, values.join(", ")))
    }
}
