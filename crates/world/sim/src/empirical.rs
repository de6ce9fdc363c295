//! Empirical distributions: a table of values with their cumulative probabilities, drawn by its
//! step inverse (no interpolation), as ns-2 does.
//!
//! ```text
//! value count cumulative-probability          the .cdf files of ns-2 and of Debian's ns2-examples
//! 83    64    0.017804878048780488
//! ```
//!
//! Values increase strictly, probabilities do not decrease, and the last one is 1. The count is redundant and
//! ignored.

use airlane_base::Rng;
use airlane_base::random::fnv1a;

/// A table that is not a valid distribution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {problem}; {help}")]
pub struct TableError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1; 0 if no line is at fault.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub help: &'static str,
}

/// The form of a line of a table.
const FORM: &str = "a line is `value count cumulative-probability`, such as `83 64 0.0178`";
/// Tolerance of the last probability around 1: the files have 12 digits.
const ROUNDING: f64 = 1e-6;

/// An empirical distribution.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Empirical {
    /// Values and cumulative probabilities, both in increasing order.
    rows: Vec<(f64, f64)>,
    /// Equal for equal tables.
    digest: u64,
}

impl Empirical {
    /// Reads a table. `file` is the name that errors show.
    pub(crate) fn parse(text: &str, file: &str) -> Result<Self, TableError> {
        let wrong = |line: usize, problem: String, help: &'static str| TableError {
            file: file.to_owned(),
            line,
            problem,
            help,
        };
        let mut rows: Vec<(f64, f64)> = vec![];
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields.is_empty() {
                continue;
            }
            let [value, _, cumulative] = fields[..] else {
                let problem = format!("{} columns where there should be 3", fields.len());
                return Err(wrong(line_number, problem, FORM));
            };
            let number = |text: &str| match text.parse::<f64>() {
                Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
                _ => Err(wrong(
                    line_number,
                    format!("`{text}` is no number here"),
                    FORM,
                )),
            };
            let (value, cumulative) = (number(value)?, number(cumulative)?);
            if let Some((before, below)) = rows.last() {
                if value <= *before {
                    let problem = format!("the value {value} follows {before}");
                    return Err(wrong(line_number, problem, "values rise from line to line"));
                }
                if cumulative < *below {
                    let problem = format!("the probability falls from {below} to {cumulative}");
                    let help = "the last column is cumulative: it never falls";
                    return Err(wrong(line_number, problem, help));
                }
            }
            rows.push((value, cumulative));
        }
        let Some((_, last)) = rows.last_mut() else {
            return Err(wrong(0, "the table is empty".to_owned(), FORM));
        };
        if (*last - 1.0).abs() > ROUNDING {
            let problem = format!("the table ends at a probability of {last}");
            let help = "the last column ends at 1";
            return Err(wrong(text.lines().count(), problem, help));
        }
        *last = 1.0;
        let digest = fnv1a(text.as_bytes());
        Ok(Self { rows, digest })
    }

    /// The smallest value whose cumulative probability exceeds `u`, which is in `[0, 1)`.
    pub(crate) fn quantile(&self, u: f64) -> f64 {
        let index = self
            .rows
            .partition_point(|(_, cumulative)| *cumulative <= u);
        self.rows[index.min(self.rows.len() - 1)].0
    }

    pub(crate) fn draw(&self, random: &mut Rng) -> f64 {
        self.quantile(random.uniform())
    }

    /// Draws a number of bytes or objects.
    pub(crate) fn draw_whole(&self, random: &mut Rng) -> u64 {
        self.draw(random).round() as u64
    }

    /// Equal for equal tables.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    #[cfg(test)]
    pub(crate) fn rows(&self) -> &[(f64, f64)] {
        &self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airlane_base::Streams;

    fn refusal(text: &str) -> String {
        Empirical::parse(text, "sizes.cdf").unwrap_err().to_string()
    }

    #[test]
    fn a_table_is_drawn_by_its_steps() {
        let table = Empirical::parse("10 1 0.25\n20 2 0.75\n\n30 1 1.0\n", "t").unwrap();
        for (u, value) in [
            (0.0, 10.0),
            (0.249, 10.0),
            (0.25, 20.0),
            (0.7499, 20.0),
            (0.75, 30.0),
        ] {
            assert_eq!(table.quantile(u), value, "{u}");
        }
        assert_eq!(table.quantile(1.0 - f64::EPSILON / 2.0), 30.0);
        let mut random = Streams::new(1, 0).stream("table");
        let n = 100_000;
        let twenties = (0..n)
            .filter(|_| table.draw_whole(&mut random) == 20)
            .count();
        // Mean 0.5, standard error 0.0016; the bound is four standard errors.
        assert!(
            (twenties as f64 / f64::from(n) - 0.5).abs() < 0.0064,
            "{twenties}"
        );
    }

    #[test]
    fn an_invalid_distribution_is_refused_with_file_and_line() {
        for (text, needles) in [
            ("", &["sizes.cdf:0", "empty"][..]),
            ("1 1 0.5\n2 1\n", &["sizes.cdf:2", "2 columns"]),
            ("1 1 0.5\nx 1 1\n", &["sizes.cdf:2", "`x`"]),
            ("1 1 0.5\n-2 1 1\n", &["sizes.cdf:2", "`-2`"]),
            ("1 1 0.5\n1 1 1\n", &["sizes.cdf:2", "1 follows 1", "rise"]),
            ("1 1 0.5\n2 1 0.4\n", &["sizes.cdf:2", "falls from 0.5"]),
            (
                "1 1 0.5\n2 1 0.9\n",
                &["sizes.cdf:2", "ends at a probability of 0.9"],
            ),
            ("1 1 NaN\n", &["sizes.cdf:1", "`NaN`"]),
        ] {
            let message = refusal(text);
            for needle in needles {
                assert!(message.contains(needle), "no {needle:?} in {message}");
            }
        }
    }
}
