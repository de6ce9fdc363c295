//! Runs ns-2 as a program.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use airlane_base::Streams;

use super::setting::{Load, PAGES, Setting};
use crate::mesh;

/// Our scripts and their tables; written to files for each [`Ns2`].
const SCRIPTS: [(&str, &str); 11] = [
    ("air.tcl", include_str!("../../ns2/air.tcl")),
    ("mesh.tcl", include_str!("../../ns2/mesh.tcl")),
    ("radio.tcl", include_str!("../../ns2/radio.tcl")),
    ("world.tcl", include_str!("../../ns2/world.tcl")),
    ("web.tcl", include_str!("../../ns2/web.tcl")),
    ("bulk.tcl", include_str!("../../ns2/bulk.tcl")),
    ("chain.tcl", include_str!("../../ns2/chain.tcl")),
    ("one_hop.tcl", include_str!("../../ns2/one_hop.tcl")),
    (
        "HttpRequestLength.cdf",
        include_str!("../../../../world/sim/data/http-mah/HttpRequestLength.cdf"),
    ),
    (
        "HttpReplyLength.cdf",
        include_str!("../../../../world/sim/data/http-mah/HttpReplyLength.cdf"),
    ),
    (
        "HttpConnections.cdf",
        include_str!("../../../../world/sim/data/http-mah/HttpConnections.cdf"),
    ),
];

/// Sizes drawn for a repetition of pages: more than any needs.
const DRAWS: usize = 50_000;

/// Why ns-2 gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Ns2Error {
    /// There is no ns-2 on this machine.
    #[error("ns-2 is not installed; as root: apt-get install ns2")]
    Missing,
    /// It is installed, but could not be run.
    #[error("ns-2 could not be run: {0}")]
    Io(#[from] io::Error),
    /// It ran, and printed something other than results.
    #[error("ns {arguments}: {said}")]
    Said {
        /// The arguments.
        arguments: String,
        /// The output.
        said: String,
    },
}

/// The figures of one transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransferFigures {
    /// User bits over the time from the first segment to the last new acknowledgment.
    pub throughput_bps: f64,
    /// Expirations of the retransmission timer.
    pub timeouts: f64,
}

/// ns-2 of this machine, with our scripts.
#[derive(Debug)]
pub struct Ns2 {
    /// Holds the scripts; removed when this value is dropped.
    directory: tempfile::TempDir,
}

impl Ns2 {
    /// Looks for the program `ns` and checks that it is ns-2.
    ///
    /// # Errors
    /// [`Ns2Error::Missing`] if there is none, or if `ns` is another program.
    pub fn find() -> Result<Self, Ns2Error> {
        let directory = tempfile::tempdir()?;
        for (name, script) in SCRIPTS {
            std::fs::write(directory.path().join(name), script)?;
        }
        let version = directory.path().join("version.tcl");
        // Only ns-2 has this class.
        std::fs::write(&version, "puts [[new Simulator] info class]; exit 0\n")?;
        let output = Command::new("ns")
            .arg(version)
            .stdin(Stdio::null())
            .output();
        match output {
            Ok(o) if o.status.success() && o.stdout.starts_with(b"Simulator") => {
                Ok(Self { directory })
            }
            _ => Err(Ns2Error::Missing),
        }
    }

    /// One repetition of a transfer.
    ///
    /// # Errors
    /// If ns-2 fails.
    pub fn run(&self, setting: &Setting, seed: u64, run: u64) -> Result<TransferFigures, Ns2Error> {
        let mut arguments = setting.ns2_arguments();
        if setting.load != Load::Pages {
            return self.run_script("bulk.tcl", arguments, seed, run);
        }
        // The same numbers that Airlane draws.
        let mut sizes = Streams::new(seed, run).stream(&format!("flow.{PAGES}.sizes"));
        let draws: String = (0..DRAWS)
            .map(|_| format!("{:.17}\n", sizes.uniform()))
            .collect();
        let file = self.directory.path().join(format!("draws-{run}"));
        std::fs::write(&file, draws)?;
        arguments.push(format!("draws={}", file.display()));
        arguments.push(format!("tables={}", self.directory.path().display()));
        let figures = self.run_script("web.tcl", arguments, seed, run);
        std::fs::remove_file(file)?;
        figures
    }

    /// One repetition of a chain, by its arguments: user bits per second.
    pub(super) fn run_chain(&self, hops: &str, seed: u64, run: u64) -> Result<f64, Ns2Error> {
        let figures = self.run_script("chain.tcl", vec![hops.to_owned()], seed, run)?;
        Ok(figures.throughput_bps)
    }

    /// One repetition of files from stations, by its arguments: bits of all files over the time until the last was
    /// complete.
    pub(super) fn run_air(
        &self,
        arguments: &[String],
        seed: u64,
        run: u64,
    ) -> Result<f64, Ns2Error> {
        let figures = self.run_script("air.tcl", arguments.to_vec(), seed, run)?;
        Ok(figures.throughput_bps)
    }

    /// Stations that send to one receiver, by the arguments of `one_hop.tcl`; `read` parses the output.
    pub(crate) fn run_one_hop<T>(
        &self,
        arguments: Vec<String>,
        seed: u64,
        run: u64,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Ns2Error> {
        self.run_reading("one_hop.tcl", arguments, [seed, run], read)
    }

    /// The throughput of each flow of the saturated grid, bit/s.
    ///
    /// # Errors
    /// If ns-2 fails.
    pub fn run_mesh(&self, seconds: u32, seed: u64, run: u64) -> Result<Vec<f64>, Ns2Error> {
        let length = format!("seconds={seconds}");
        let read = |text: &str| mesh::flows(text, seconds);
        self.run_reading("mesh.tcl", vec![length], [seed, run], read)
    }

    fn run_script(
        &self,
        script: &str,
        arguments: Vec<String>,
        seed: u64,
        run: u64,
    ) -> Result<TransferFigures, Ns2Error> {
        let read = |text: &str| {
            let value = |key: &str| {
                let mut pairs = text.split_whitespace();
                let found = pairs.find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
                found?.parse::<f64>().ok()
            };
            Some(TransferFigures {
                throughput_bps: value("throughput_bps")?,
                timeouts: value("timeouts")?,
            })
        };
        self.run_reading(script, arguments, [seed, run], read)
    }

    /// Runs a script and parses its output.
    fn run_reading<T>(
        &self,
        script: &str,
        mut arguments: Vec<String>,
        [seed, run]: [u64; 2],
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, Ns2Error> {
        arguments.extend([format!("seed={seed}"), format!("run={run}")]);
        let script: PathBuf = self.directory.path().join(script);
        let mut command = Command::new("ns");
        command.arg(script).args(&arguments).stdin(Stdio::null());
        let output = command.output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        match read(&text) {
            Some(figures) if output.status.success() => Ok(figures),
            _ => Err(Ns2Error::Said {
                arguments: arguments.join(" "),
                said: format!("{text}{}", String::from_utf8_lossy(&output.stderr)),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ns2::{compare, grid};

    /// Without errors nothing is random: both simulators must give the same digits.
    #[test]
    fn ns2_agrees_to_the_last_digit_where_nothing_is_random() {
        let ns2 = match Ns2::find() {
            Ok(ns2) => ns2,
            Err(missing) => {
                println!("SKIPPED ns2_agrees_to_the_last_digit: {missing}");
                return;
            }
        };
        let known = grid()
            .into_iter()
            .find(|k| k.label.contains("wlan | WAN2 | 64 | 1000 | none"));
        let comparison = compare(&known.unwrap(), Some(&ns2)).unwrap();
        assert!(comparison.gap().abs() < 1e-8, "{comparison:?}");
    }
}
