//! How what was measured compares with a claim.

use std::cell::RefCell;

use toml::Table;

use super::comparison::{self, Comparison};
use super::scale;
use super::words::{grouped, labelled, summary};
use super::{Bound, Claim, ClaimClass, Closed, Gain, Judgement};
use crate::data::MeasuredData;
use crate::expression::{Comparator, Condition, ConditionKind, Expression, Operand};
use crate::statistics::{Jackknife, Repetitions};
use crate::unit::Unit;
use crate::verdict::print::{self, Found, Scale};
use crate::verdict::{self, Verdict};

/// The results and the words for them.
struct Judge<'d> {
    data: &'d MeasuredData,
    study: &'d str,
    /// Of each comparison that does not hold, why.
    why: RefCell<Vec<String>>,
    /// Where curves are judged, each comparison.
    comparisons: RefCell<Vec<Comparison>>,
}

/// What a comparison by curves is recorded with.
struct Recorded<'r> {
    check: String,
    place: &'r [String],
    unit: Unit,
    values: [f64; 2],
    known: &'r Jackknife,
    axis: Option<f64>,
    before: Verdict,
}

impl Claim {
    /// Compares it with the results. `scenarios` gives those of a study that it reads.
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
        let judge = Judge {
            data,
            study,
            why: RefCell::default(),
            comparisons: RefCell::default(),
        };
        let mut found: Vec<(Verdict, String)> = vec![];
        for condition in self.check.as_slice() {
            found.extend(judge.condition(condition)?);
        }
        if let Some(gain) = &self.gain {
            found.push(judge.gain(gain)?);
        }
        for printed in self.value.as_slice() {
            let (is, digit) = (printed.is, printed.digit);
            let rule = |x| verdict::value(x, is, digit);
            let curves = |x, half: f64| print::value(x, is, digit, half * PREDICTION);
            let words = Against("printed", is, verdict::VALUE_RULE);
            found.push(judge.each(&printed.of, &printed.at, words, rule, curves)?);
        }
        for Bound { of, is, at } in self.below.as_slice() {
            let words = Against("at most", *is, verdict::BOUND_RULE);
            let rule = |x| verdict::below(x, *is);
            let curves = |x, half| print::bound(rule(x), x - is, half);
            found.push(judge.each(of, at, words, rule, curves)?);
        }
        for Bound { of, is, at } in self.above.as_slice() {
            let words = Against("at least", *is, verdict::BOUND_RULE);
            let rule = |x| verdict::above(x, *is);
            let curves = |x, half| print::bound(rule(x), is - x, half);
            found.push(judge.each(of, at, words, rule, curves)?);
        }
        for closed in self.closed.as_slice() {
            found.push(judge.closed(closed)?);
        }
        for setting in self.setting.as_slice() {
            found.push(setting.judge(study, scenarios)?);
        }
        if found.is_empty()
            && !matches!(
                self.class,
                Some(ClaimClass::Background | ClaimClass::NotTestable)
            )
        {
            return Err("there is no check".to_owned());
        }
        let worst = found.iter().map(|(verdict, _)| *verdict).min();
        let mut comparisons = judge.comparisons.into_inner();
        if comparisons.is_empty() {
            return Ok(Judgement {
                verdict: worst,
                before: None,
                comparisons,
                measured: summary(&found),
                why: judge.why.into_inner(),
            });
        }
        comparison::correct(&mut comparisons);
        Ok(Judgement {
            verdict: comparisons.iter().map(|c| c.verdict).min(),
            before: worst,
            measured: comparison::words(&comparisons),
            comparisons,
            why: judge.why.into_inner(),
        })
    }
}

/// The interval of the mean of as many repetitions again, by that of the mean.
const PREDICTION: f64 = std::f64::consts::SQRT_2;

/// What a value is held against: in words, the number, the rule.
struct Against(&'static str, f64, &'static str);

impl Judge<'_> {
    /// Keeps the reason of what does not hold.
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

    /// Keeps a comparison by curves.
    fn record(&self, recorded: Recorded, found: Found) {
        let Recorded {
            check,
            place,
            unit,
            values: [measured, against],
            known,
            axis,
            before,
        } = recorded;
        self.comparisons.borrow_mut().push(Comparison {
            check,
            at: place.to_vec(),
            measured,
            against,
            ci95_half_width: known.half_width(0.95),
            axis,
            unit: unit.base(),
            probability: known.chance(found.excess),
            before,
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

    fn condition(&self, condition: &Condition) -> Result<Vec<(Verdict, String)>, String> {
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
    ) -> Result<(Verdict, String), String> {
        let mut worst = Verdict::Holds;
        let mut values = vec![];
        let constant = matches!(right.expression, Expression::Number(_));
        let unit = self.unit(left);
        for place in places {
            let (verdict, a, b) = self.compare(left, comparator, right, [place, place])?;
            worst = worst.min(verdict);
            let text = if constant {
                unit.show(a)
            } else if b == 0.0 || !b.is_finite() || a < 0.0 || b < 0.0 {
                format!("{} and {}", unit.show(a), unit.show(b))
            } else {
                Unit::None.show(a / b)
            };
            values.push(labelled(&text, place, verdict));
        }
        let name = if constant {
            left.text.clone()
        } else {
            format!("{} / {}", grouped(&left.text), grouped(&right.text))
        };
        Ok((worst, format!("{name}: {}", values.join(", "))))
    }

    fn compare(
        &self,
        left: &Operand,
        comparator: Comparator,
        right: &Operand,
        [left_place, right_place]: [&[String]; 2],
    ) -> Result<(Verdict, f64, f64), String> {
        let (data, study) = (self.data, self.study);
        let difference = |left: &Operand, right: &Operand| {
            let a = |s| data.value(study, &left.expression, left_place, s);
            let b = |s| data.value(study, &right.expression, right_place, s);
            let difference = Jackknife::of(data.runs, |s| Ok::<_, String>(a(s)? - b(s)?))?;
            Ok::<_, String>((difference, a(Repetitions::All)?, b(Repetitions::All)?))
        };
        let (known, a, b) = difference(left, right)?;
        let half = known.half_width(0.95);
        let verdict = verdict::compare(comparator, a, b, half);
        if data.curves {
            let [left, right] = [left, right].map(|of| scale::drawn(data, study, of));
            let axis = |of: &Operand| scale::axis(data, study, &of.expression);
            let bars = |of: &Operand| scale::shows_bars(&of.expression);
            let axis = if bars(&left) || bars(&right) {
                Some(1.0)
            } else {
                axis(&left).and(axis(&right)).end()
            };
            let (known, a, b) = difference(&left, &right)?;
            let half = known.half_width(0.95);
            let found = print::compare(comparator, a, b, Scale { axis, half });
            let recorded = Recorded {
                check: format!("{} {} {}", left.text, comparator.sign(), right.text),
                place: left_place,
                unit: if axis == Some(1.0) {
                    Unit::Percent
                } else {
                    self.unit(&left)
                },
                values: [a, b],
                known: &known,
                axis,
                before: verdict,
            };
            self.record(recorded, found);
            self.because(found.verdict, left_place, || {
                let unit = self.unit(&left);
                let [a, b, by, half] = [a, b, a - b, half].map(|value| unit.show(value));
                let rule = print::rule(comparator);
                let (left, right) = (&left.text, &right.text);
                format!("{left} {a}, {right} {b}, difference {by} ± {half}; {rule}")
            });
            return Ok((verdict, a, b));
        }
        self.because(verdict, left_place, || {
            let unit = self.unit(left);
            let [a, b, by, half] = [a, b, a - b, half].map(|value| unit.show(value));
            let (left, right) = (&left.text, &right.text);
            let rule = verdict::rule(comparator);
            format!("{left} {a}, {right} {b}, difference {by} ± {half}; {rule}")
        });
        Ok((verdict, a, b))
    }

    fn monotone(
        &self,
        of: &Operand,
        rises: bool,
        places: &[Vec<String>],
    ) -> Result<(Verdict, String), String> {
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
        let mut values = vec![labelled(&unit.show(start), &places[0], Verdict::Holds)];
        let mut worst = Verdict::Holds;
        for pair in places.windows(2) {
            let (verdict, value, _) = self.compare(of, comparator, of, [&pair[1], &pair[0]])?;
            worst = worst.min(verdict);
            values.push(labelled(&unit.show(value), &pair[1], verdict));
        }
        Ok((worst, format!("{}: {}", of.text, values.join(", "))))
    }

    fn gain(&self, gain: &Gain) -> Result<(Verdict, String), String> {
        let mut ends: Option<[(Jackknife, Vec<String>); 2]> = None;
        for of in gain.of.as_slice() {
            for place in self.data.places(self.study, &[&of.expression], &[])? {
                let ratio = self.known(&of.expression, &place)?;
                if ratio.value.is_nan() {
                    return Ok((Verdict::Misses, "not measured".to_owned()));
                }
                ends = Some(match ends {
                    None => [(ratio, place.clone()), (ratio, place)],
                    Some([least, most]) => {
                        let this = (ratio, place);
                        let least = if ratio.value < least.0.value {
                            this.clone()
                        } else {
                            least
                        };
                        let most = if ratio.value > most.0.value {
                            this
                        } else {
                            most
                        };
                        [least, most]
                    }
                });
            }
        }
        let [least, most] = ends.ok_or("there is nothing to compare")?;
        let [(least, least_at), (most, most_at)] = [least, most];
        if self.data.curves {
            let ends = [(least, &least_at), (most, &most_at)];
            for ((known, place), printed) in ends.into_iter().zip(gain.range) {
                let half = known.half_width(0.95) * PREDICTION;
                let recorded = Recorded {
                    check: format!("an end of {}", gain.of.as_slice()[0].text),
                    place,
                    unit: Unit::None,
                    values: [known.value, printed],
                    known: &known,
                    axis: None,
                    before: verdict::gain([known.value; 2], [printed; 2]),
                };
                self.record(recorded, print::gain(known.value, printed, half));
            }
        }
        let (least, most) = (least.value, most.value);
        let text = format!(
            "{} to {} times",
            Unit::None.show(least),
            Unit::None.show(most)
        );
        let verdict = verdict::gain([least, most], gain.range);
        self.because(verdict, &[], || {
            let [low, high] = gain.range;
            format!("{text}, printed {low} to {high}; {}", verdict::GAIN_RULE)
        });
        Ok((verdict, text))
    }

    fn each(
        &self,
        of: &Operand,
        at: &[String],
        Against(words, is, rule_in_words): Against,
        rule: impl Fn(f64) -> Verdict,
        curves: impl Fn(f64, f64) -> Found,
    ) -> Result<(Verdict, String), String> {
        let mut worst = Verdict::Holds;
        let mut values = vec![];
        let unit = self.unit(of);
        for place in self.data.places(self.study, &[&of.expression], at)? {
            let known = self.known(&of.expression, &place)?;
            let value = known.value;
            let verdict = if value.is_nan() {
                Verdict::Misses
            } else {
                rule(value)
            };
            if self.data.curves {
                let recorded = Recorded {
                    check: format!("{} {words} {is}", of.text),
                    place: &place,
                    unit,
                    values: [value, is],
                    known: &known,
                    axis: None,
                    before: verdict,
                };
                self.record(recorded, curves(value, known.half_width(0.95)));
            }
            self.because(verdict, &place, || {
                let [value, half, is] =
                    [value, known.half_width(0.95), is].map(|value| unit.show(value));
                let of = &of.text;
                format!("{of} {value} ± {half}, {words} {is}; {rule_in_words}")
            });
            worst = worst.min(verdict);
            values.push(labelled(&unit.show(value), &place, verdict));
        }
        Ok((worst, format!("{}: {}", of.text, values.join(", "))))
    }

    fn closed(&self, closed: &Closed) -> Result<(Verdict, String), String> {
        let places = self
            .data
            .places(self.study, &[&closed.of.expression], &[])?;
        if places.len() != closed.is.len() {
            let (is, places) = (closed.is.len(), places.len());
            return Err(format!("{is} values are given for {places} places"));
        }
        let mut worst = Verdict::Holds;
        let mut values = vec![];
        let unit = self.unit(&closed.of);
        // Bonferroni: together they hold with 95 %.
        let confidence = 1.0 - 0.05 / places.len() as f64;
        for (place, is) in places.iter().zip(&closed.is) {
            let known = self.known(&closed.of.expression, place)?;
            let inside = (known.value - is).abs() <= known.half_width(confidence);
            let rounds = (known.value - is).abs() <= 5e-5 * is.abs();
            let verdict = if inside || rounds {
                Verdict::Holds
            } else {
                Verdict::Misses
            };
            if self.data.curves {
                let recorded = Recorded {
                    check: format!("{} follows", closed.of.text),
                    place,
                    unit,
                    values: [known.value, *is],
                    known: &known,
                    axis: None,
                    before: verdict,
                };
                // Its intervals hold together already.
                let excess = if verdict == Verdict::Holds {
                    0.0
                } else {
                    f64::INFINITY
                };
                self.record(recorded, Found { verdict, excess });
            }
            self.because(verdict, place, || {
                let numbers = [known.value, known.half_width(confidence), *is];
                let [value, half, is] = numbers.map(|value| unit.show(value));
                let of = &closed.of.text;
                format!(
                    "{of} {value} ± {half}, printed {is}; {}",
                    verdict::CLOSED_RULE
                )
            });
            worst = worst.min(verdict);
            let text = format!("{} for {}", unit.show(known.value), unit.show(*is));
            values.push(labelled(&text, place, verdict));
        }
        Ok((worst, format!("{}: {}", closed.of.text, values.join(", "))))
    }
}
