//! Arguments of `airlane emulate`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueHint};

use super::set::SetArgs;

/// Arguments of `emulate`.
#[derive(Debug, Args)]
pub struct EmulateArgs {
    /// The scenario: two nodes and one link.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// How many runs, simulated and emulated; each emulated one takes the scenario's `duration`
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Seed of the first run, the next number that of the second [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Exit with 1 where a mean differs by more: in percent of the simulated one, a loss in points of percent
    ///
    /// MEASURE is a name in JSON, such as loss_ratio. Can be given several times; the last that fits a measure counts.
    #[arg(long, value_name = "[MEASURE=]P%")]
    pub tolerance: Vec<Tolerance>,
    /// Changes of the file.
    #[command(flatten)]
    pub set: SetArgs,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

/// How far the worlds may be apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Tolerance {
    /// The measure that it is for; `None`: for all.
    pub measure: Option<String>,
    /// As a part of 1.
    pub part: f64,
}

impl FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (measure, percent) = match text.split_once('=') {
            Some((measure, percent)) => (Some(measure.to_owned()), percent),
            None => (None, text),
        };
        let number = percent.strip_suffix('%').map(str::trim);
        let number = number.and_then(|number| number.parse::<f64>().ok());
        match number {
            Some(percent) if percent >= 0.0 && percent.is_finite() => Ok(Self {
                measure,
                part: percent / 100.0,
            }),
            _ => Err("write 10%, or loss_ratio=1% for one measure".to_owned()),
        }
    }
}

pub(super) const EXAMPLES: &str = "\
Examples:
  airlane emulate hill-top.toml
  airlane emulate hill-top.toml --runs 5 --set 'duration=20 s'
  airlane emulate hill-top.toml --runs 5 --tolerance 10% --tolerance loss_ratio=1%
  airlane emulate hill-top.toml --set links.radio.errors.rate=0.05 --json > result.json

Exit codes: 0 all is well, 1 beyond the tolerance, or the run failed, 2 the scenario cannot be
emulated, or the command line is wrong.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_is_in_percent() {
        let read = |text: &str| text.parse::<Tolerance>();
        let of = |measure: Option<&str>, part| {
            Ok(Tolerance {
                measure: measure.map(str::to_owned),
                part,
            })
        };
        assert_eq!(read("10%"), of(None, 0.1));
        assert_eq!(read("loss_ratio=0.5 %"), of(Some("loss_ratio"), 0.005));
        for wrong in ["10", "-1%", "%", "nan%", "loss_ratio=1"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
