//! Runs both simulators on one setting, with enough repetitions to exclude chance, and writes the report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use airlane_sim::{Estimate, repeat};

use super::grid::KnownSetting;
use super::run::{Ns2, Ns2Error, TransferFigures};
use super::setting::{Errors, Load};
use crate::workers;

/// The largest allowed difference of the mean throughputs.
pub const LIMIT: f64 = 0.05;
/// Settings are repeated until the standard error of the difference is this share of the mean: then a gap beyond
/// [`LIMIT`] is at least four standard errors, and not chance.
const PRECISION: f64 = LIMIT / 4.0;
/// Initial and largest number of repetitions of a setting: it is doubled until it suffices.
const FEWEST: u64 = 10;
const MOST: u64 = 640;
/// Repetitions for a comparison with the table, which has its own number.
const AGAINST_TABLE: u64 = 40;
const SEED: u64 = 1999;

/// One setting in both simulators.
#[derive(Clone, Debug)]
pub struct BesideNs2 {
    /// A description for the report.
    pub label: String,
    /// Repetitions in each simulator.
    pub runs: u64,
    /// Throughput in Airlane, bit/s.
    pub airlane: Estimate,
    /// Throughput in ns-2, bit/s: mean, standard deviation, and number of repetitions.
    pub ns2: (f64, f64, u64),
    /// Timeouts of a transfer in Airlane and in ns-2.
    pub timeouts: [f64; 2],
    /// Standard error of the gap if repetitions are paired, as with pages of the same sizes.
    pub paired: Option<f64>,
}

impl BesideNs2 {
    /// Airlane's mean against ns-2's: 0.01 is one percent more.
    pub fn gap(&self) -> f64 {
        let gap = self.airlane.mean / self.ns2.0 - 1.0;
        // Less than ns-2's printed precision counts as zero.
        if gap.abs() < 1e-9 { 0.0 } else { gap }
    }

    /// Standard error of the gap.
    pub fn error(&self) -> f64 {
        if let Some(error) = self.paired {
            return error;
        }
        let (mean, sd, n) = self.ns2;
        let ours = self.airlane.sd * self.airlane.sd / self.airlane.n as f64;
        (ours + sd * sd / n as f64).sqrt() / mean
    }

    /// Whether the means are close enough, or so uncertain that chance is the likelier reason. The latter only occurs
    /// with the few repetitions of the table.
    pub fn holds(&self) -> bool {
        self.gap().abs() <= LIMIT.max(4.0 * self.error())
    }
}

/// Runs a setting in Airlane, and in ns-2 if it is installed; otherwise the table's figures are used.
///
/// # Errors
/// If ns-2 fails.
///
/// # Panics
/// If Airlane refuses the setting.
pub fn compare(known: &KnownSetting, ns2: Option<&Ns2>) -> Result<BesideNs2, Ns2Error> {
    let scenario = known.setting.scenario("");
    let without_chance = known.setting.errors == Errors::None;
    let mut theirs: Vec<TransferFigures> = Vec::new();
    let mut runs = match ns2 {
        _ if without_chance => 1,
        Some(_) => FEWEST,
        None => AGAINST_TABLE,
    };
    loop {
        let results = repeat(&scenario, SEED, runs, 0, |_, _| {}).expect("a valid scenario runs");
        let values = |metric: &str| -> Vec<f64> {
            let values = results.iter().map(|run| {
                let scalars = run.flows[0].scalars();
                let found = scalars.into_iter().find(|(name, _)| *name == metric);
                found.map_or(f64::NAN, |(_, value)| value)
            });
            values.collect()
        };
        let column = |metric: &str| Estimate::of(&values(metric)).expect("there are runs");
        let (throughput, timeouts) = match ns2 {
            Some(ns2) => {
                let from = theirs.len() as u64;
                theirs.extend(repeat_ns2(known, ns2, from, runs)?);
                let column = |of: fn(&TransferFigures) -> f64| {
                    let values: Vec<f64> = theirs.iter().map(of).collect();
                    Estimate::of(&values).expect("there are runs")
                };
                let throughput = column(|m| m.throughput_bps);
                let figures = (throughput.mean, throughput.sd, throughput.n);
                (figures, column(|m| m.timeouts).mean)
            }
            None => {
                let known = known.figures.ok_or(Ns2Error::Missing)?;
                let figures = (known.throughput_bps, known.throughput_sd_bps, known.runs);
                (figures, known.timeouts)
            }
        };
        let comparison = BesideNs2 {
            label: known.label.clone(),
            runs,
            airlane: column("throughput_bps"),
            ns2: throughput,
            timeouts: [column("timeouts").mean, timeouts],
            paired: (known.setting.load == Load::Pages && ns2.is_some())
                .then(|| paired_error(&values("throughput_bps"), &theirs)),
        };
        let enough = ns2.is_none() || comparison.error() <= PRECISION;
        if without_chance || enough || runs >= MOST {
            return Ok(comparison);
        }
        runs *= 2;
    }
}

/// Standard error of the ratio of means, from pairs.
fn paired_error(ours: &[f64], theirs: &[TransferFigures]) -> f64 {
    let n = ours.len() as f64;
    let mean = theirs.iter().map(|run| run.throughput_bps).sum::<f64>() / n;
    let ratio = ours.iter().sum::<f64>() / n / mean;
    let pairs = ours.iter().zip(theirs);
    let apart = pairs.map(|(ours, theirs)| ours - ratio * theirs.throughput_bps);
    let apart = Estimate::of(&apart.collect::<Vec<_>>()).expect("there are runs");
    apart.sd / n.sqrt() / mean
}

/// Repetitions `from` to `to - 1`, in order, on all cores.
fn repeat_ns2(
    known: &KnownSetting,
    ns2: &Ns2,
    from: u64,
    to: u64,
) -> Result<Vec<TransferFigures>, Ns2Error> {
    let count = to.saturating_sub(from) as usize;
    let all = workers::each(count, |index| {
        ns2.run(&known.setting, SEED, from + index as u64)
    });
    all.into_iter().collect()
}

/// The mean gap of each TCP, which shows small differences that all settings share.
fn mean_gaps(comparisons: &[BesideNs2]) -> String {
    let tcp = |c: &BesideNs2| c.label.split(" | ").next().map(str::to_owned);
    let groups: Vec<String> = comparisons
        .chunk_by(|a, b| tcp(a) == tcp(b))
        .map(|group| {
            let mean = group.iter().map(BesideNs2::gap).sum::<f64>() / group.len() as f64;
            let name = tcp(&group[0]).unwrap_or_default();
            format!("{name} {:+.1} % ({})", mean * 100.0, group.len())
        })
        .collect();
    groups.join("; ")
}

/// The report: the method, and every setting.
pub fn markdown(comparisons: &[BesideNs2]) -> String {
    let mut text = String::from(
        "# Airlane beside ns-2\n\n\
         Written by `make validate-ns2`, which runs ns-2 2.35 (Debian's package `ns2`) on the scripts of \
         `crates/checks/bench/ns2` and Airlane on the same settings: bulk transfers \
         over wireless links without services, with the TCP of 1999: Reno, and at points of their own Tahoe, NewReno, \
         SACK (ns-2's Sack1) and Vegas, with a slip of its table of times (`stale-times`). Each setting is repeated in \
         both until the standard error of the gap is at most 1.25 %; without errors nothing is \
         random and one run is all.\n\n\
         `reno, snoop` is a file behind ns-2's Snoop at the base station (Airlane: `variant = \"ns2-connections\"`). In \
         2.35 the module stands above the queue, so that it copies what still waits and its repairs wait at the tail; \
         Airlane does the same with `handed-over = \"unlimited\"`, over a link that is faster by the byte that names the \
         service. `reno, web` is pages after Mah's model without repair, as ns-2's older HTTP module fetched them \
         (`web.tcl`; Airlane: `requests = \"one\"`). Both simulators draw the same sizes, others in each repetition.\n\n\
         Fades are exponential periods, good ones of 10 s on average; a frame that arrives in a bad \
         one is lost. Airlane is set to the same \
         simplification (`kind = \"two-state-arrival\"`).\n\n\
         The last rows are saturating flows over chains of 802.11b stations (`chain.tcl`; Gopal \
         2007, figure 5.3): contention, hidden stations and capture, each chain five times.\n\n",
    );
    let worst = comparisons
        .iter()
        .max_by(|a, b| a.gap().abs().total_cmp(&b.gap().abs()));
    let beyond = comparisons.iter().filter(|c| !c.holds()).count();
    if let Some(worst) = worst {
        writeln!(
            text,
            "{} of {} settings are within {:.0} %; the largest gap is {:+.2} %.\n",
            comparisons.len() - beyond,
            comparisons.len(),
            LIMIT * 100.0,
            worst.gap() * 100.0
        )
        .expect("writing to a string cannot fail");
    }
    writeln!(text, "Mean gaps: {}.\n", mean_gaps(comparisons))
        .expect("writing to a string cannot fail");
    text.push_str(
        "Every setting stands in [validation-ns2.csv](validation-ns2.csv): both throughputs, the gap and its standard error, \
         and the timeouts of both. In sum, with the largest gap of each:\n\n\
         |TCP|link|settings|mean gap|largest gap|at|\n|---|---|---|---|---|---|\n",
    );
    for (group, of) in groups(comparisons) {
        let worst = of
            .iter()
            .max_by(|a, b| a.gap().abs().total_cmp(&b.gap().abs()));
        let mean = of.iter().map(|c| c.gap()).sum::<f64>() / of.len() as f64;
        let Some(worst) = worst else { continue };
        let at = worst
            .label
            .split(" | ")
            .skip(2)
            .collect::<Vec<_>>()
            .join(", ");
        writeln!(
            text,
            "|{group}|{}|{:+.2} %|{:+.2} %|{at}|",
            of.len(),
            mean * 100.0,
            worst.gap() * 100.0,
        )
        .expect("writing to a string cannot fail");
    }
    text
}

/// The settings of each TCP and link.
fn groups(comparisons: &[BesideNs2]) -> BTreeMap<String, Vec<&BesideNs2>> {
    let mut found: BTreeMap<String, Vec<&BesideNs2>> = BTreeMap::new();
    for c in comparisons {
        let name = c.label.split(" | ").take(2).collect::<Vec<_>>().join("|");
        found.entry(name).or_default().push(c);
    }
    found
}

/// Every setting as a row of CSV.
pub fn csv(comparisons: &[BesideNs2]) -> String {
    let mut text = String::from(
        "tcp,link,topology,window,queue,errors,runs,ns2_kbps,airlane_kbps,gap_percent,standard_error_percent,\
         ns2_timeouts,airlane_timeouts,within_limit\n",
    );
    for c in comparisons {
        let label: Vec<String> = c
            .label
            .split(" | ")
            .map(|part| format!("\"{part}\""))
            .collect();
        writeln!(
            text,
            "{},{},{:.4},{:.4},{:+.2},{:.2},{:.1},{:.1},{}",
            label.join(","),
            c.runs,
            c.ns2.0 / 1e3,
            c.airlane.mean / 1e3,
            c.gap() * 100.0,
            c.error() * 100.0,
            c.timeouts[1],
            c.timeouts[0],
            c.holds()
        )
        .expect("writing to a string cannot fail");
    }
    text
}
