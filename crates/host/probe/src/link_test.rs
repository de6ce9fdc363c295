//! Tests a link for its operator: each application on each path, alone and with all others.
//!
//! The paths alternate, so that other changes affect both of them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::client::{ClientConfig, ProbeError, run_client};
use crate::clock::LocalClock;
use crate::plan::Times;
use crate::progress::Progress;
use crate::report::TrafficReport;

/// An application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum App {
    /// One TCP connection.
    File,
    /// Short TCP connections.
    Pages,
    /// UDP, both ways.
    Voice,
}

impl App {
    /// All applications.
    pub const ALL: [Self; 3] = [Self::File, Self::Pages, Self::Voice];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Pages => "pages",
            Self::Voice => "voice",
        }
    }
}

/// A path to the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestedPath {
    /// The plain path below the link.
    Before,
    /// Through the link.
    After,
}

/// What is measured.
#[derive(Clone, Debug)]
pub struct LinkTest {
    /// The server's control port.
    pub control: SocketAddr,
    /// The server's address on the plain path, if that is measured.
    pub before: Option<IpAddr>,
    /// The server's address in the link, if that is measured.
    pub after: Option<IpAddr>,
    /// The applications in this order, each once.
    pub apps: Vec<App>,
    /// Durations of each run.
    pub times: Times,
    /// Congestion control of the server's TCP; none: its kernel's default.
    pub congestion_control: Option<String>,
    /// How long to wait for the server to start.
    pub patience: Duration,
}

/// A run that is about to begin.
#[derive(Clone, Copy, Debug)]
pub struct LinkTestStep<'a> {
    /// The path.
    pub path: TestedPath,
    /// The applications.
    pub apps: &'a [App],
}

/// The results.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LinkTestReport {
    /// The plain path.
    pub before: Option<PathReport>,
    /// Through the link.
    pub after: Option<PathReport>,
}

/// The results on one path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PathReport {
    /// The server's address.
    pub address: IpAddr,
    /// Each application without any other.
    pub alone: BTreeMap<App, TrafficReport>,
    /// All of them at once, if there are several.
    pub together: Option<TrafficReport>,
}

impl LinkTest {
    fn paths(&self) -> impl Iterator<Item = (TestedPath, IpAddr)> {
        let both = [
            (TestedPath::Before, self.before),
            (TestedPath::After, self.after),
        ];
        both.into_iter()
            .filter_map(|(path, address)| Some((path, address?)))
    }

    /// The groups of applications that run together: each one alone, and all of them.
    fn groups(&self) -> Vec<&[App]> {
        let mut groups: Vec<&[App]> = self.apps.chunks(1).collect();
        if self.apps.len() > 1 {
            groups.push(&self.apps);
        }
        groups
    }

    /// The number of runs.
    pub fn steps(&self) -> usize {
        self.paths().count() * self.groups().len()
    }

    /// Carries out the test. `tell` is called before each run.
    ///
    /// # Errors
    /// At the first run that fails.
    pub fn run(
        &self,
        tell: &mut dyn FnMut(LinkTestStep<'_>),
    ) -> Result<LinkTestReport, ProbeError> {
        let empty = |address| PathReport {
            address,
            alone: BTreeMap::new(),
            together: None,
        };
        let mut report = LinkTestReport {
            before: self.before.map(empty),
            after: self.after.map(empty),
        };
        for apps in self.groups() {
            for (path, address) in self.paths() {
                tell(LinkTestStep { path, apps });
                let traffic = run_client(&self.client(address, apps))?;
                let here = match path {
                    TestedPath::Before => &mut report.before,
                    TestedPath::After => &mut report.after,
                };
                if let Some(here) = here {
                    here.note(apps, traffic);
                }
            }
        }
        Ok(report)
    }

    fn client(&self, server: IpAddr, apps: &[App]) -> ClientConfig {
        ClientConfig {
            control: self.control,
            server,
            times: self.times,
            congestion_control: self.congestion_control.clone(),
            file: apps.contains(&App::File),
            pages: apps.contains(&App::Pages),
            voice: apps.contains(&App::Voice),
            marked: true,
            download: false,
            echoes: true,
            voice_port: None,
            patience: self.patience,
            progress: Progress::default(),
            watch: LocalClock::default(),
        }
    }
}

impl PathReport {
    fn note(&mut self, apps: &[App], traffic: TrafficReport) {
        // A single application is reported as alone, whether or not others were requested.
        match apps {
            [app] => drop(self.alone.insert(*app, traffic)),
            _ => self.together = Some(traffic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_application_runs_alone_and_several_run_together() {
        let mut test = LinkTest {
            control: ([10, 7, 0, 1], 4999).into(),
            before: Some([192, 0, 2, 1].into()),
            after: Some([10, 7, 0, 1].into()),
            apps: App::ALL.to_vec(),
            times: Times {
                warmup: Duration::ZERO,
                measure: Duration::ZERO,
                grace: Duration::ZERO,
            },
            congestion_control: None,
            patience: Duration::ZERO,
        };
        assert_eq!(test.steps(), 8);
        assert_eq!(test.groups().last(), Some(&App::ALL.as_slice()));
        test.apps = vec![App::Voice];
        test.before = None;
        assert_eq!(test.steps(), 1);
    }
}
