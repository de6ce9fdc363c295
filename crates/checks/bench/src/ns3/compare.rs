//! Runs all simulators on one setting and compares their goodputs.

use airlane_sim::{Estimate, repeat};

use super::compile::{Ns3, Ns3Error};
use super::setting::{Places, Reception, Setting};
use crate::ns2::{Ns2, Ns2Error};
use crate::workers;

/// The largest allowed difference of the mean goodputs.
pub const LIMIT: f64 = 0.05;
/// Repetitions in each simulator.
pub(super) const RUNS: u64 = 4;
const SEED: u64 = 1999;

/// What Airlane is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// ns-3, whose receivers decide in this way.
    Ns3(Reception),
    /// ns-2.
    Ns2,
}

/// One goodput in all simulators, bit/s.
#[derive(Clone, Debug)]
pub struct Beside {
    /// A description for the report.
    pub label: String,
    /// The world.
    pub setting: Setting,
    /// Whether it is that of the farther station alone, and not of all.
    pub far: bool,
    /// In Airlane.
    pub airlane: Estimate,
    /// In the others that were run.
    pub references: Vec<(Reference, Estimate)>,
}

impl Beside {
    /// In this simulator, if it was run.
    pub fn reference(&self, reference: Reference) -> Option<Estimate> {
        let found = self.references.iter().find(|(of, _)| *of == reference);
        found.map(|(_, estimate)| *estimate)
    }

    /// Airlane's mean against that of a reference, and half the width of the 95 % confidence interval of it: 0.01 is
    /// one percent more.
    pub fn gap(&self, reference: Reference) -> Option<(f64, f64)> {
        let theirs = self.reference(reference)?;
        let half = |estimate: Estimate| estimate.ci95_half_width.unwrap_or(0.0);
        let (ours, others) = (half(self.airlane), half(theirs));
        let ratio = self.airlane.mean / theirs.mean;
        Some((ratio - 1.0, libm::hypot(ours, others * ratio) / theirs.mean))
    }

    /// Whether a gap is within [`LIMIT`].
    pub fn is_near(&self, reference: Reference) -> bool {
        self.gap(reference)
            .is_none_or(|(gap, _)| gap.abs() <= LIMIT)
    }
}

/// One setting in all simulators.
#[derive(Clone, Debug)]
pub struct BesideNs3 {
    /// The goodput of all stations together, and of the farther one if they stand at unequal distances.
    pub rows: Vec<Beside>,
}

/// Runs a setting in Airlane and in ns-3, and in ns-2 if it is installed.
///
/// # Errors
/// If ns-3 or ns-2 fails.
///
/// # Panics
/// Never, because a setting is a valid scenario.
pub fn compare(setting: &Setting, ns3: &Ns3, ns2: Option<&Ns2>) -> Result<BesideNs3, String> {
    let airlane = airlane(setting);
    let mut references = Vec::new();
    for reception in [Reception::Threshold, Reception::Own] {
        let runs = workers::each(RUNS as usize, |run| {
            ns3.run_one_hop(setting, reception, [SEED, run as u64])
        });
        let runs: Result<Vec<_>, Ns3Error> = runs.into_iter().collect();
        references.push((
            Reference::Ns3(reception),
            runs.map_err(|error| error.to_string())?,
        ));
    }
    if let Some(ns2) = ns2 {
        let runs = workers::each(RUNS as usize, |run| {
            ns2.run_one_hop(setting.arguments(), SEED, run as u64, |text| {
                setting.read(text)
            })
        });
        let runs: Result<Vec<_>, Ns2Error> = runs.into_iter().collect();
        references.push((Reference::Ns2, runs.map_err(|error| error.to_string())?));
    }
    let row = |far: bool| {
        let estimate = |runs: &Vec<Vec<f64>>| {
            let value = |stations: &Vec<f64>| match far {
                true => stations.last().copied().unwrap_or(f64::NAN),
                false => stations.iter().sum(),
            };
            let values: Vec<f64> = runs.iter().map(value).collect();
            Estimate::of(&values).expect("there are runs")
        };
        Beside {
            label: match far {
                true => format!("{}, the far one", setting.label()),
                false => setting.label(),
            },
            setting: *setting,
            far,
            airlane: estimate(&airlane),
            references: references
                .iter()
                .map(|(reference, runs)| (*reference, estimate(runs)))
                .collect(),
        }
    };
    let mut rows = vec![row(false)];
    if matches!(setting.places, Places::Unequal(..)) {
        rows.push(row(true));
    }
    Ok(BesideNs3 { rows })
}

/// The goodput of each station in each run of Airlane, bit/s.
fn airlane(setting: &Setting) -> Vec<Vec<f64>> {
    let results = repeat(&setting.scenario(), SEED, RUNS, 0, |_, _| {});
    let results = results.expect("a valid scenario runs");
    let runs = results.iter().map(|run| {
        let flows = run.flows.iter().map(|flow| {
            let progress = flow.progress.as_ref();
            let window = progress.and_then(|progress| progress.windows.get("measured"));
            window.and_then(|w| w.good_bps).unwrap_or(f64::NAN)
        });
        flows.collect()
    });
    runs.collect()
}
