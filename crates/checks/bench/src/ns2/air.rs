//! Files over TCP from stations of 802.11b to one of them, in both simulators: the effect of collisions with its own
//! acknowledgments, and among stations, on a transfer (Gopal 2007, sections 2.2 and 4.1).

use airlane_sim::{Estimate, Scenario, repeat};

use super::run::{Ns2, Ns2Error};

/// Seeds in each simulator.
const RUNS: u64 = 20;
const SEED: u64 = 1999;
const FILE_BITS: f64 = 8e6;
/// Seconds between the starts of the files; the first starts at once.
const APART_S: f64 = 0.1;

/// One world.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AirSetting {
    /// TCP's loss recovery in scenarios, and ns-2's agent.
    pub tcp: [&'static str; 2],
    /// How many stations send at the same time.
    pub stations: usize,
    /// Whether the MAC transmits a frame up to seven times, or once.
    pub retries: bool,
    /// Results of ns-2 2.35 with `RUNS` seeds: minimum, mean and maximum time until the last file is complete,
    /// seconds.
    pub known_s: [f64; 3],
}

const fn setting(
    tcp: [&'static str; 2],
    stations: usize,
    retries: bool,
    known_s: [f64; 3],
) -> AirSetting {
    AirSetting {
        tcp,
        stations,
        retries,
        known_s,
    }
}

/// The worlds that are compared.
pub const AIR: [AirSetting; 7] = [
    setting(["reno", "Reno"], 1, true, [2.819, 3.639, 3.802]),
    setting(["reno", "Reno"], 1, false, [5.396, 12.717, 19.283]),
    setting(["newreno", "Newreno"], 1, false, [2.408, 5.600, 8.421]),
    setting(["sack", "Sack1"], 1, true, [2.393, 2.729, 3.687]),
    setting(["sack", "Sack1"], 1, false, [3.052, 6.205, 11.358]),
    setting(["reno", "Reno"], 5, true, [11.854, 13.410, 20.803]),
    setting(["reno", "Reno"], 5, false, [24.855, 29.618, 37.861]),
];

impl AirSetting {
    /// A description for the report.
    pub fn label(&self) -> String {
        let retries = if self.retries {
            "seven tries"
        } else {
            "one try"
        };
        let word = if self.stations == 1 {
            "station"
        } else {
            "stations"
        };
        format!("{} | {} {word} | {retries}", self.tcp[0], self.stations)
    }
}

/// The section of the report on these worlds.
pub fn markdown_air(compared: &[(AirSetting, AirTimes)]) -> String {
    if compared.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n## Files from stations of 802.11b to one among them\n\n1 MB from each station, over TCP of July 2002; seconds until \
         the sender of the last file knew it there, {RUNS} seeds in each simulator. Airlane's mean has to be among the times of \
         ns-2.\n\n| TCP | stations | a frame has | Airlane, mean | ns-2: least | mean | greatest | |\n\
         |---|---|---|---|---|---|---|---|\n"
    );
    for (setting, times) in compared {
        let [least, mean, greatest] = times.ns2;
        let found = if times.is_inside() {
            "inside"
        } else {
            "**outside**"
        };
        text += &format!(
            "| {} | {:.2} | {least:.2} | {mean:.2} | {greatest:.2} | {found} |\n",
            setting.label(),
            times.airlane.mean,
        );
    }
    text
}

/// Time until the last file was complete, seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct AirTimes {
    /// In Airlane.
    pub airlane: Estimate,
    /// In ns-2: minimum, mean and maximum.
    pub ns2: [f64; 3],
}

impl AirTimes {
    /// Whether Airlane's mean lies within the range of ns-2's seeds.
    pub fn is_inside(&self) -> bool {
        (self.ns2[0]..=self.ns2[2]).contains(&self.airlane.mean)
    }
}

/// Runs a world in Airlane, and in ns-2 if it is installed; otherwise recorded results are used.
///
/// # Errors
/// If ns-2 fails.
///
/// # Panics
/// If a file is never complete.
pub fn compare_air(setting: &AirSetting, ns2: Option<&Ns2>) -> Result<AirTimes, Ns2Error> {
    let results =
        repeat(&scenario(setting), SEED, RUNS, 0, |_, _| {}).expect("a valid scenario runs");
    let last = results.iter().map(|run| {
        let ends = run.flows.iter().enumerate().map(|(i, flow)| {
            // Up to the sender's last acknowledgment, as ns-2 reports it.
            let bps = flow.throughput_bps.expect("each file comes");
            i as f64 * APART_S + FILE_BITS / bps
        });
        ends.fold(0.0, f64::max)
    });
    let airlane = Estimate::of(&last.collect::<Vec<_>>()).expect("there are runs");
    let Some(ns2) = ns2 else {
        return Ok(AirTimes {
            airlane,
            ns2: setting.known_s,
        });
    };
    let arguments = [
        format!("tcp={}", setting.tcp[1]),
        format!("stations={}", setting.stations),
        format!("attempts={}", if setting.retries { 7 } else { 1 }),
    ];
    let bits = setting.stations as f64 * FILE_BITS;
    let runs = (0..RUNS).map(|run| ns2.run_air(&arguments, SEED, run).map(|bps| bits / bps));
    let times: Vec<f64> = runs.collect::<Result<_, _>>()?;
    let mean = times.iter().sum::<f64>() / times.len() as f64;
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = times.iter().copied().fold(0.0, f64::max);
    Ok(AirTimes {
        airlane,
        ns2: [least, mean, greatest],
    })
}

/// As in `ns2/air.tcl`; TCP is that of `studies/gopal-2007/parts/wlan.toml`, except for changes of ns-2 up to 2.35:
/// NewReno deflates its window, and duplicates inflate it only during a recovery.
fn scenario(setting: &AirSetting) -> Scenario {
    let retries = if setting.retries { "on" } else { "off" };
    let mut text = format!(
        "schema = 1\nname = \"files to a station\"\nduration = \"1000 s\"\n[media.air]\nkind = \"wifi\"\nprofile = \"802.11b\"\n\
         source-header = \"20 B\"\nretries = \"{retries}\"\n[media.air.nodes]\nsink = [0, 0]\n"
    );
    let count = setting.stations;
    for i in 1..=count {
        let angle = i as f64 * std::f64::consts::TAU / count as f64;
        let [x, y] = [libm::cos(angle), libm::sin(angle)].map(|at| at * 7.2);
        text += &format!("s{i} = [{x:.4}, {y:.4}]\n");
    }
    text += "[nodes.sink]\n";
    for i in 1..=count {
        text += &format!("[nodes.s{i}]\n");
    }
    for i in 1..=count {
        let (start, recovery) = ((i - 1) * 100, setting.tcp[0]);
        text += &format!(
            "[[flows]]\nname = \"f{i}\"\nends = [\"s{i}\", \"sink\"]\nstart = \"{start} ms\"\n\
             transport = {{ kind = \"tcp\", profile = \"ns2-1999\", recovery = \"{recovery}\", window = 16384, tick = \"10 ms\", header-size = \"40 B\", \
             limited-transmit = true }}\napp = {{ kind = \"bulk\", size = \"1 MB\", packet = \"1000 B\" }}\n"
        );
    }
    Scenario::from_toml(&text, "air").unwrap_or_else(|e| panic!("{count} stations: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_times_of_files_are_among_those_of_20_seeds_of_ns2() {
        for setting in &AIR {
            let times = compare_air(setting, None).unwrap();
            assert!(times.is_inside(), "{setting:?}: {times:?}");
        }
    }
}
