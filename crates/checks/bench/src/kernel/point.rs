//! The points of the comparison, and the simulator's side of it.

use airlane_sim::{Scenario, run};

/// Rate, delay and queue of the path, in both directions.
pub(super) const RATE: &str = "10 Mbit/s";
pub(super) const DELAY_MS: u64 = 20;
pub(super) const QUEUE: &str = "100 packets";
/// Bytes of the file; bytes of a page's request and reply; pages per run.
pub(super) const FILE: u64 = 3_000_000;
pub(super) const REQUEST: usize = 300;
pub(super) const REPLY: usize = 50_000;
pub(super) const PAGES: u64 = 25;
/// The name of the link on both sides, which selects its random streams.
const LINK: &str = "radio";
/// User bytes of a full segment in an IP packet of 1,500 bytes, with timestamps.
const SEGMENT: u64 = 1_448;

/// A congestion control that the kernel has, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Congestion {
    /// NewReno's window.
    Reno,
    /// CUBIC.
    Cubic,
    /// BBR v1.
    Bbr,
}

impl Congestion {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Reno, Self::Cubic, Self::Bbr];

    /// Its name in the kernel and in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }
}

/// What the connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Application {
    /// A file, from the end that connects.
    File,
    /// Pages one after the other, a connection each.
    Pages,
}

impl Application {
    /// Simulator runs for each run of the kernel.
    pub const fn simulated(self) -> u64 {
        match self {
            Self::File => 1,
            Self::Pages => 16,
        }
    }
}

/// One point of the comparison.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Point {
    /// What the connection carries.
    pub application: Application,
    /// Its congestion control.
    pub congestion: Congestion,
    /// Frames lost in each direction, percent.
    pub loss_percent: f64,
}

impl Point {
    /// All points.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for application in [Application::File, Application::Pages] {
            for congestion in Congestion::ALL {
                for loss_percent in [0.0, 0.5, 1.0, 2.0, 3.0] {
                    all.push(Self {
                        application,
                        congestion,
                        loss_percent,
                    });
                }
            }
        }
        all
    }

    /// A description for the report.
    pub(super) fn cells(&self) -> [String; 3] {
        let what = match self.application {
            Application::File => "file",
            Application::Pages => "pages",
        };
        [
            what.to_owned(),
            self.congestion.name().to_owned(),
            format!("{} %", self.loss_percent),
        ]
    }

    /// A description for messages.
    pub fn label(&self) -> String {
        self.cells().join(" | ")
    }

    fn errors(&self) -> String {
        let rate = self.loss_percent / 100.0;
        format!("{{ kind = \"uniform\", rate = {rate} }}")
    }

    /// The emulator's file.
    pub(super) fn air(&self) -> String {
        format!(
            "schema = 1\nname = \"{LINK}\"\ninterfaces = [\"to-left\", \"to-right\"]\nrate = \"{RATE}\"\n\
             delay = \"{DELAY_MS} ms\"\nqueue = \"{QUEUE}\"\nerrors = {}\n",
            self.errors()
        )
    }

    /// The same point in the simulator: frames are Ethernet frames, and where the kernel's defaults differ from
    /// `modern`, the kernel's are used. It paces only with BBR, does not request ECN, acknowledges the first sixteen
    /// segments at once, delays later acknowledgments by up to 40 ms for a second segment, and adds 200 ms to the
    /// round trip for its RTO.
    pub(super) fn scenario(&self) -> String {
        let (name, paces) = (self.congestion.name(), self.congestion == Congestion::Bbr);
        // Linux ends the first slow start at once, and its CUBIC never returns to Reno's pace.
        let linux = match self.congestion {
            Congestion::Cubic => "conservative-rounds = 0, catch-up = false, ",
            _ => "",
        };
        let app = match self.application {
            Application::File => {
                format!("kind = \"bulk\", packet = \"{SEGMENT} B\", size = \"{FILE} B\"")
            }
            Application::Pages => format!(
                "kind = \"pages\", packet = \"{SEGMENT} B\", request = \"{REQUEST} B\", reply = \"{REPLY} B\", \
                 count = {PAGES}"
            ),
        };
        format!(
            "schema = 1\nname = \"beside the kernel\"\nduration = \"100000 s\"\nuntil = \"app\"\n\
             [nodes.left]\n[nodes.right]\n[links.{LINK}]\nends = [\"left\", \"right\"]\nrate = \"{RATE}\"\n\
             delay = \"{DELAY_MS} ms\"\nqueue = \"{QUEUE}\"\nframe = \"1514 B\"\nerrors = {}\n\
             [[flows]]\nname = \"app\"\nends = [\"left\", \"right\"]\n\
             transport = {{ kind = \"tcp\", profile = \"modern\", congestion = \"{name}\", pacing = {paces}, \
             ecn = false, tick = \"200 ms\", min-rto = \"200 ms\", \
             delayed-ack = {{ every = 2, within = \"40 ms\", quick = 16 }}, \
             {linux}header-size = \"54 B\", ack-size = \"54 B\" }}\napp = {{ {app} }}\n",
            self.errors()
        )
    }
}

/// Runs the simulator: bit/s of the file, or seconds per page.
///
/// # Errors
/// If the transfer does not end.
pub fn run_simulator(point: &Point, seed: u64) -> Result<f64, String> {
    let scenario = Scenario::from_toml(&point.scenario(), "kernel").map_err(|e| e.to_string())?;
    let result = run(&scenario, seed, 0).map_err(|e| e.to_string())?;
    let scalars = result.flows[0].scalars();
    let metric = match point.application {
        Application::File => "throughput_bps",
        Application::Pages => "page_time_mean_s",
    };
    let found = scalars.into_iter().find(|(name, _)| *name == metric);
    let value = found.and_then(|(_, value)| Some(value).filter(|v| v.is_finite()));
    value
        .filter(|_| result.finished)
        .ok_or_else(|| format!("{}: the simulation did not end", point.label()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_a_scenario_that_ends() {
        for point in Point::all() {
            let value = run_simulator(&point, 1).unwrap();
            assert!(value > 0.0, "{}", point.label());
        }
    }
}
