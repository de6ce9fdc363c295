//! The user's goals: `file>=10 Mbit/s`, `pages<=300 ms`, `pages-p95<=800 ms`, `call-loss<=1 %`, `call-delay<=150 ms`.

use std::fmt;
use std::str::FromStr;

use airlane_base::{Duration, Rate};
use airlane_sim::Estimate;
use serde::Serialize;

use crate::BadWord;
use crate::apps::{AppKind, Apps};
use crate::measure::{Measure, What};

/// A bound on a measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The kind of application.
    pub kind: AppKind,
    /// The quantity.
    pub what: What,
    /// The bound in the unit of the measure: a minimum for rates, a maximum for all others.
    pub bound: f64,
    text: String,
}

/// A list of goals.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Goals(pub Vec<Goal>);

/// The state of a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GoalState {
    /// The whole interval is within the bound.
    Met,
    /// The interval contains the bound.
    Unsure,
    /// The whole interval is beyond the bound.
    Missed,
}

const WORDS: &str = "write file>=10Mbit/s, upload>=2Mbit/s, pages<=300ms, pages-p95<=800ms, call-loss<=1% or call-delay<=150ms";

impl Goal {
    /// The measure that it bounds, if such an application is simulated.
    pub fn measure(&self, apps: &Apps) -> Option<Measure> {
        let mut all = Measure::all(apps).into_iter();
        all.find(|measure| (measure.app.kind, measure.what) == (self.kind, self.what))
    }

    /// How far a value is beyond the bound, in its unit; negative within it.
    fn excess(&self, value: f64) -> f64 {
        match self.what {
            What::Throughput => self.bound - value,
            What::PageTime | What::PageTail | What::CallLoss | What::CallDelay => {
                value - self.bound
            }
        }
    }

    /// The same as a part of the bound.
    pub(crate) fn beyond(&self, value: f64) -> f64 {
        self.excess(value) / self.bound.max(f64::MIN_POSITIVE)
    }

    /// Its state for a measured value.
    pub fn state(&self, measured: &Estimate) -> GoalState {
        let half = measured.ci95_half_width.unwrap_or(0.0);
        let beyond = self.excess(measured.mean);
        match () {
            () if beyond + half <= 0.0 => GoalState::Met,
            () if beyond - half > 0.0 => GoalState::Missed,
            () => GoalState::Unsure,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Goal {
    type Err = BadWord;
    fn from_str(text: &str) -> Result<Self, BadWord> {
        let wrong = |reason: &str| BadWord::new(text, reason);
        let (name, least, bound) = match (text.split_once(">="), text.split_once("<=")) {
            (Some((name, bound)), None) => (name, true, bound),
            (None, Some((name, bound))) => (name, false, bound),
            _ => return Err(wrong(WORDS)),
        };
        let (kind, what) = match name.trim() {
            "file" => (AppKind::File, What::Throughput),
            "upload" => (AppKind::Upload, What::Throughput),
            "pages" => (AppKind::Pages, What::PageTime),
            "pages-p95" => (AppKind::Pages, What::PageTail),
            "call-loss" => (AppKind::Call, What::CallLoss),
            "call-delay" => (AppKind::Call, What::CallDelay),
            _ => return Err(wrong(WORDS)),
        };
        if least != (what == What::Throughput) {
            return Err(wrong(
                "a rate has a least value, >=; times and losses have a most, <=",
            ));
        }
        let bound = bound.trim();
        let bound = match what {
            What::Throughput => bound.parse::<Rate>().map(|rate| rate.as_bps() as f64),
            What::PageTime | What::PageTail | What::CallDelay => {
                bound.parse::<Duration>().map(|time| time.as_secs_f64())
            }
            What::CallLoss => {
                let share = bound
                    .strip_suffix('%')
                    .and_then(|text| text.trim().parse::<f64>().ok());
                let share = share.filter(|percent| (0.0..=100.0).contains(percent));
                let share = share.ok_or_else(|| wrong("a loss is 0% to 100%"))?;
                Ok(share / 100.0)
            }
        };
        let bound = bound.map_err(|error| wrong(&error.to_string()))?;
        Ok(Self {
            kind,
            what,
            bound,
            text: text.trim().to_owned(),
        })
    }
}

impl FromStr for Goals {
    type Err = BadWord;
    fn from_str(text: &str) -> Result<Self, BadWord> {
        text.split(',')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

impl fmt::Display for Goals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<&str> = self.0.iter().map(|goal| &*goal.text).collect();
        f.write_str(&all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_read_and_judged() {
        let goals: Goals = "file>=10Mbit/s, pages<=300 ms,call-loss<=1%,pages-p95<=800ms"
            .parse()
            .unwrap();
        let bounds: Vec<f64> = goals.0.iter().map(|goal| goal.bound).collect();
        assert_eq!(bounds, [1e7, 0.3, 0.01, 0.8]);
        assert_eq!(goals.0[3].what, What::PageTail);
        let estimate = |values: &[f64]| Estimate::of(values).unwrap();
        assert_eq!(
            goals.0[0].state(&estimate(&[1.1e7, 1.2e7, 1.15e7])),
            GoalState::Met
        );
        assert_eq!(
            goals.0[0].state(&estimate(&[0.5e7, 1.2e7, 1.5e7])),
            GoalState::Unsure
        );
        assert_eq!(
            goals.0[1].state(&estimate(&[0.4, 0.41, 0.42])),
            GoalState::Missed
        );
        for (text, part) in [
            ("file", "file>="),
            ("file<=1Mbit/s", "least value"),
            ("call-loss<=101%", "0% to 100%"),
            ("pages<=3", "unit"),
            ("mail<=3s", "file>="),
        ] {
            let said = text.parse::<Goals>().unwrap_err().to_string();
            assert!(said.contains(part), "{text}: {said}");
        }
    }
}
