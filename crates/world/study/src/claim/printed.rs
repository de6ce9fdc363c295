//! Where a claim's printed numbers stand: at which place which value was printed.

use super::{Claim, Gain, Printed};
use crate::axis::AxisValues;
use crate::data::MeasuredData;
use crate::expression::{Expression, Operator};
use crate::statistics::{Jackknife, Repetitions};
use crate::verdict::print;

/// A number of the publication, and what counts as equal to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PrintedValue {
    /// What it is a value of, with the value of each axis.
    pub(crate) of: Expression,
    pub(crate) is: f64,
    /// Values between these agree with it, whatever their scatter.
    pub(crate) band: [f64; 2],
}

/// The least or the greatest of the ratios of a gain.
#[derive(Clone)]
pub(super) struct GainEnd<'c> {
    pub(super) ratio: Jackknife,
    of: &'c Expression,
    pub(super) place: AxisValues,
}

impl Claim {
    /// Its printed values, and those that its printed gains make of what was measured without.
    pub(crate) fn printed_at_places(
        &self,
        data: &MeasuredData,
        study: &str,
    ) -> Result<Vec<PrintedValue>, String> {
        let mut found = vec![];
        let mut add = |of: &Expression, place: &[String], is: f64, off: f64| {
            let of = data.at(study, of, place)?;
            let band = [is - off, is + off];
            found.push(PrintedValue { of, is, band });
            Ok::<_, String>(())
        };
        for Printed { of, is, at, digit } in self.value.as_slice() {
            let of = &of.expression;
            for place in data.places(study, &[of], at)? {
                add(of, &place, *is, print::value_tolerance(*is, *digit))?;
            }
        }
        for gain in self.gain.as_slice() {
            let ends = gain.ends(data, study)?;
            for (GainEnd { of, place, .. }, is) in ends.iter().zip(gain.range) {
                let off = print::gain_tolerance(is);
                add(of, place, is, off)?;
                if let Expression::Binary(Operator::Divide, more, base) = of {
                    let base = data.value(study, base, place, Repetitions::All)?;
                    add(more, place, base * is, base * off)?;
                }
            }
        }
        Ok(found)
    }
}

impl Gain {
    /// The least and the greatest ratio; one that was not measured is both.
    pub(super) fn ends(
        &self,
        data: &MeasuredData,
        study: &str,
    ) -> Result<[GainEnd<'_>; 2], String> {
        let mut ratios = vec![];
        for of in self.of.as_slice().iter().map(|of| &of.expression) {
            for place in data.places(study, &[of], &[])? {
                let at = |sample| data.value(study, of, &place, sample);
                let ratio = Jackknife::of(data.runs, at)?;
                ratios.push(GainEnd { ratio, of, place });
            }
        }
        let value = |end: &&GainEnd| end.ratio.value;
        let order = |a: &&GainEnd, b: &&GainEnd| value(a).total_cmp(&value(b));
        let unmeasured = ratios.iter().find(|end| value(end).is_nan());
        let least = unmeasured.or_else(|| ratios.iter().min_by(order));
        let most = unmeasured.or_else(|| ratios.iter().max_by(order));
        let (least, most) = least.zip(most).ok_or("there is nothing to compare")?;
        Ok([least.clone(), most.clone()])
    }
}
