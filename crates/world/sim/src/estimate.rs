//! A mean over repetitions and its confidence interval.

use serde::Serialize;

/// Mean, spread and 95 % confidence interval of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Runs in the sample: those that could measure the value.
    pub n: u64,
    /// All runs.
    pub runs: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n - 1 in the denominator); zero for a single value.
    pub sd: f64,
    /// Half the width of the 95 % confidence interval of the mean (Student's t); absent for a single value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95_half_width: Option<f64>,
}

impl Estimate {
    /// From one value per run, NaN for runs without a measurement; none if no run has one.
    pub fn of(values: &[f64]) -> Option<Self> {
        let runs = values.len() as u64;
        let values: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        if values.is_empty() {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
        let sd = if values.len() > 1 {
            (squares / (n - 1.0)).sqrt()
        } else {
            0.0
        };
        let half = (values.len() > 1).then(|| t_975(values.len() - 1) * sd / n.sqrt());
        Some(Self {
            n: values.len() as u64,
            runs,
            mean,
            sd,
            ci95_half_width: half,
        })
    }

    /// Both ends of the 95 % confidence interval; none for a single value.
    pub fn ci95(&self) -> Option<(f64, f64)> {
        let half = self.ci95_half_width?;
        Some((self.mean - half, self.mean + half))
    }
}

/// The 97.5 % quantile of Student's t distribution.
fn t_975(degrees_of_freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004,
        2.262_157, 2.228_139, 2.200_985, 2.178_813, 2.160_369, 2.144_787, 2.131_450, 2.119_905,
        2.109_816, 2.100_922, 2.093_024, 2.085_963, 2.079_614, 2.073_873, 2.068_658, 2.063_899,
        2.059_539, 2.055_529, 2.051_831, 2.048_407, 2.045_230, 2.042_272,
    ];
    match TABLE.get(degrees_of_freedom.wrapping_sub(1)) {
        Some(t) => *t,
        None => {
            // The expansion around the normal quantile (Abramowitz and Stegun 26.7.5) is exact to 1e-6
            // from 31 degrees of freedom on.
            let (z, v) = (1.959_963_985, degrees_of_freedom as f64);
            let (z3, z5) = (z * z * z, z * z * z * z * z);
            let z7 = z5 * z * z;
            z + (z3 + z) / (4.0 * v)
                + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * v * v)
                + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * v * v * v)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_three() {
        let e = Estimate::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((e.n, e.mean, e.sd), (3, 2.0, 1.0));
        // t(2) = 4.302653, sd / sqrt(3) = 0.577350.
        assert!((e.ci95_half_width.unwrap() - 2.484_138).abs() < 1e-5);
    }

    #[test]
    fn nothing_and_one_value() {
        assert_eq!(Estimate::of(&[]), None);
        let e = Estimate::of(&[5.0]).unwrap();
        assert_eq!((e.mean, e.ci95()), (5.0, None));
    }

    #[test]
    fn runs_without_a_measurement_are_reported() {
        let e = Estimate::of(&[1.0, f64::NAN, 3.0]).unwrap();
        assert_eq!((e.n, e.runs, e.mean), (2, 3, 2.0));
        assert_eq!(Estimate::of(&[f64::NAN]), None);
    }

    #[test]
    fn the_expansion_joins_the_table_and_tends_to_the_normal() {
        assert!((t_975(31) - 2.039_513).abs() < 2e-6, "{}", t_975(31));
        assert!((t_975(60) - 2.000_298).abs() < 1e-6);
        assert!((t_975(1_000_000) - 1.959_966).abs() < 1e-6);
        assert!((1..200).all(|n| t_975(n) > t_975(n + 1)));
    }

    #[test]
    fn the_interval_covers_the_mean_as_often_as_it_says() {
        // 4000 samples of 5 normal values (sums of 12 uniform ones): 95 % within 4 standard errors
        // of 0.34 %.
        let mut rng = airlane_base::Streams::new(1, 0).stream("coverage");
        let mut normal = move || (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0;
        let covered = (0..4_000)
            .filter(|_| {
                let sample = [0; 5].map(|_| normal());
                let (low, high) = Estimate::of(&sample).unwrap().ci95().unwrap();
                (low..=high).contains(&0.0)
            })
            .count();
        let share = covered as f64 / 4_000.0;
        assert!((share - 0.95).abs() < 0.0138, "{share}");
    }
}
