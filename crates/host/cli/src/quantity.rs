//! Formats numbers for people: a fitting unit, and as many digits as the confidence interval
//! justifies.

use std::fmt;

/// What a number measures, in the base unit that results carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// bit/s.
    BitsPerSecond,
    /// Seconds.
    Seconds,
    /// 0 to 1, shown in percent.
    Ratio,
    /// Bytes.
    Bytes,
    /// Events, packets, runs.
    Count,
}

impl Unit {
    /// The name of the unit that fits `value`, and how many base units it is.
    fn scale(self, value: f64) -> (&'static str, f64) {
        let value = value.abs();
        let thousands = |names: [&'static str; 4]| match value {
            v if v >= 1e9 => (names[3], 1e9),
            v if v >= 1e6 => (names[2], 1e6),
            v if v >= 1e3 => (names[1], 1e3),
            _ => (names[0], 1.0),
        };
        match self {
            Self::BitsPerSecond => thousands(["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]),
            Self::Bytes => thousands(["B", "kB", "MB", "GB"]),
            Self::Ratio => ("%", 0.01),
            Self::Count => ("", 1.0),
            Self::Seconds if value >= 1.0 => ("s", 1.0),
            Self::Seconds if value >= 1e-3 || value == 0.0 => ("ms", 1e-3),
            Self::Seconds => ("us", 1e-6),
        }
    }
}

/// An estimate: a mean with the half width of its confidence interval, if known, and the runs that
/// measured it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean, in base units.
    pub mean: f64,
    /// Half the width of the 95 % confidence interval.
    pub half_width: Option<f64>,
    /// How many runs measured it, and of how many; `None` if all did.
    pub of_runs: Option<[u64; 2]>,
}

impl Estimate {
    /// A single measurement, without a confidence interval.
    pub const fn single(mean: f64) -> Self {
        Self {
            mean,
            half_width: None,
            of_runs: None,
        }
    }

    /// Shows it with its unit, and with the runs that measured it if not all did:
    /// `5.66 ± 0.12 kbit/s (8 of 20 runs)`.
    pub const fn show(self, unit: Unit) -> Shown {
        Shown {
            estimate: self,
            unit,
        }
    }
}

/// An [`Estimate`] ready to be displayed.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    estimate: Estimate,
    unit: Unit,
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Estimate {
            mean,
            half_width,
            of_runs,
        } = self.estimate;
        if !mean.is_finite() {
            return f.write_str("none");
        }
        let (name, factor) = self.unit.scale(mean);
        let mean = mean / factor;
        let half_width = half_width.map(|h| h / factor).filter(|h| h.is_finite());
        let decimals = decimals(mean, half_width);
        write!(f, "{mean:.decimals$}")?;
        if let Some(half_width) = half_width {
            write!(f, " ± {half_width:.decimals$}")?;
        }
        if !name.is_empty() {
            write!(f, " {name}")?;
        }
        if let Some([n, runs]) = of_runs {
            write!(f, " ({n} of {runs} runs)")?;
        }
        Ok(())
    }
}

/// Two significant digits of the uncertainty, or three of the value if there is none; at most four
/// decimals.
fn decimals(mean: f64, half_width: Option<f64>) -> usize {
    let (leading, digits) = match half_width {
        Some(h) if h > 0.0 => (h, 2),
        _ => (mean.abs(), 3),
    };
    if leading == 0.0 {
        return 0;
    }
    let magnitude = libm::floor(libm::log10(leading)) as i32;
    (digits - 1 - magnitude).clamp(0, 4) as usize
}

/// A ratio in short: `4.5 x`.
pub fn times(ratio: f64) -> String {
    match ratio {
        r if !r.is_finite() => "-".to_owned(),
        r if r >= 100.0 => format!("{r:.0} x"),
        r if r >= 10.0 => format!("{r:.1} x"),
        r => format!("{r:.2} x"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(mean: f64, half_width: Option<f64>, unit: Unit) -> String {
        let estimate = Estimate {
            half_width,
            ..Estimate::single(mean)
        };
        estimate.show(unit).to_string()
    }

    #[test]
    fn uncertainty_sets_the_number_of_digits() {
        let rate = Unit::BitsPerSecond;
        assert_eq!(shown(5663.4, Some(123.0), rate), "5.66 ± 0.12 kbit/s");
        assert_eq!(
            shown(15_234_000.0, Some(1_400_000.0), rate),
            "15.2 ± 1.4 Mbit/s"
        );
        assert_eq!(shown(0.00264, Some(0.0003), Unit::Ratio), "0.264 ± 0.030 %");
        assert_eq!(shown(0.0, Some(0.0), Unit::Ratio), "0 ± 0 %");
    }

    #[test]
    fn three_digits_are_shown_without_an_uncertainty() {
        assert_eq!(shown(0.1547, None, Unit::Seconds), "155 ms");
        assert_eq!(shown(0.054, None, Unit::Ratio), "5.40 %");
        assert_eq!(shown(12.0, None, Unit::Count), "12.0");
        assert_eq!(shown(f64::NAN, None, Unit::Seconds), "none");
    }

    #[test]
    fn ratios_stay_short() {
        assert_eq!(times(4.512), "4.51 x");
        assert_eq!(times(123.4), "123 x");
        assert_eq!(times(f64::INFINITY), "-");
    }
}
