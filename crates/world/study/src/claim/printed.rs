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
        for printed in self.value.as_slice() {
            printed.places(data, study, &mut found)?;
        }
        for gain in self.gain.as_slice() {
            gain.places(data, study, &mut found)?;
        }
        Ok(found)
    }
}

impl Printed {
    fn places(
        &self,
        data: &MeasuredData,
        study: &str,
        found: &mut Vec<PrintedValue>,
    ) -> Result<(), String> {
        let of = &self.of.expression;
        let off = print::value_tolerance(self.is, self.digit);
        for place in data.places(study, &[of], &self.at)? {
            found.push(PrintedValue {
                of: data.at(study, of, &place)?,
                is: self.is,
                band: [self.is - off, self.is + off],
            });
        }
        Ok(())
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

    fn places(
        &self,
        data: &MeasuredData,
        study: &str,
        found: &mut Vec<PrintedValue>,
    ) -> Result<(), String> {
        for (GainEnd { of, place, .. }, printed) in
            self.ends(data, study)?.into_iter().zip(self.range)
        {
            let off = print::gain_tolerance(printed);
            let band = [printed - off, printed + off];
            found.push(PrintedValue {
                of: data.at(study, of, &place)?,
                is: printed,
                band,
            });
            if let Expression::Binary(Operator::Divide, more, base) = of {
                let base = data.value(study, base, &place, Repetitions::All)?;
                found.push(PrintedValue {
                    of: data.at(study, more, &place)?,
                    is: base * printed,
                    band: band.map(|bound| base * bound),
                });
            }
        }
        Ok(())
    }
}
