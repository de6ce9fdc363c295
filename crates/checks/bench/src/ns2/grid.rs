//! The settings for which ns-2's figures are known.

use super::setting::{Errors, Load, Setting, Topology, Variant, WirelessLink};

/// A setting, with ns-2's figures if known.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownSetting {
    /// The setting.
    pub setting: Setting,
    /// Its label in the table.
    pub label: String,
    /// ns-2's figures, if the table has them.
    pub figures: Option<KnownFigures>,
}

/// The figures of ns-2 at the time of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KnownFigures {
    /// Number of repetitions that the figures come from.
    pub runs: u64,
    /// Mean throughput, bit/s.
    pub throughput_bps: f64,
    /// Its standard deviation between repetitions.
    pub throughput_sd_bps: f64,
    /// Mean number of timeouts in a transfer.
    pub timeouts: f64,
}

/// The table, which the simulator's own tests use, too.
const TABLE: &str = include_str!("../../../../world/sim/tests/data/ns2-reno-bulk.csv");

/// The raw link of Xylomenos and Polyzos, obtained in the same way.
const HSCSD: &str = include_str!("../../ns2/hscsd.csv");

/// All settings: three links, two topologies, two windows and queues, with their levels of errors; and HSCSD over a
/// wide area network.
///
/// # Panics
/// If the table is malformed; a test reads it.
pub fn grid() -> Vec<KnownSetting> {
    let rows = |table: &'static str| {
        let lines = table.lines().filter(|line| !line.starts_with('#'));
        lines.skip(1)
    };
    rows(TABLE)
        .chain(rows(HSCSD))
        .map(|line| known(line).expect("the table has rows of known settings"))
        .collect()
}

fn known(line: &str) -> Option<KnownSetting> {
    let cells: Vec<&str> = line.split(',').collect();
    let number = |i: usize| cells.get(i)?.parse::<f64>().ok();
    let link = match *cells.first()? {
        "cellular" => WirelessLink::Cellular,
        "pcs" => WirelessLink::Pcs,
        "wlan" => WirelessLink::Wlan,
        "hscsd" => WirelessLink::Hscsd,
        _ => return None,
    };
    let topology = match *cells.get(1)? {
        "LAN1" => Topology::Lan1,
        "WAN1" => Topology::Wan1,
        "WAN2" => Topology::Wan2,
        _ => return None,
    };
    let errors = match *cells.get(4)? {
        "none" => Errors::None,
        "uniform" => Errors::Uniform(number(5)?),
        "byte-exponential" => Errors::Bytes(number(5)? as u32),
        "two-state-arrival" => {
            let (bad, bytes) = cells[5].split_once('/')?;
            Errors::Fades {
                bad_s: bad.parse().ok()?,
                byte_errors: bytes.parse().ok()?,
            }
        }
        _ => return None,
    };
    let (window, queue) = (number(2)? as u32, number(3)? as u32);
    let setting = Setting {
        link,
        topology,
        window,
        queue,
        errors,
        segments: number(6)? as u64,
        tcp: Variant::Reno,
        load: Load::File,
    };
    Some(KnownSetting {
        label: label(&setting),
        setting,
        figures: Some(KnownFigures {
            runs: number(7)? as u64,
            throughput_bps: number(8)? * 1e3,
            throughput_sd_bps: number(9)? * 1e3,
            timeouts: number(11)?,
        }),
    })
}

/// Settings that are not in the table: the other variants of ns-2, and Reno with other windows and errors.
pub fn beyond() -> Vec<KnownSetting> {
    use Variant::{NewReno, Reno, Sack, Tahoe, Vegas};
    let links = [
        (
            WirelessLink::Cellular,
            [Errors::Uniform(0.015), Errors::Uniform(0.04)],
        ),
        (
            WirelessLink::Pcs,
            [Errors::Uniform(0.01), Errors::Uniform(0.03)],
        ),
        (
            WirelessLink::Wlan,
            [Errors::Bytes(90_000), Errors::Bytes(40_000)],
        ),
    ];
    let mut all = Vec::new();
    for tcp in [Reno, Tahoe, NewReno, Sack, Vegas] {
        for (link, levels) in links {
            for topology in [Topology::Lan1, Topology::Wan2] {
                for (window, errors) in [(12, levels[0]), (30, levels[1])] {
                    let setting = Setting {
                        link,
                        topology,
                        window,
                        queue: 100,
                        errors,
                        segments: 10_000,
                        tcp,
                        load: Load::File,
                    };
                    all.push(KnownSetting {
                        label: label(&setting),
                        setting,
                        figures: None,
                    });
                }
            }
        }
    }
    all
}

pub(super) fn label(setting: &Setting) -> String {
    let what = match setting.errors {
        Errors::None => "none".to_owned(),
        Errors::Uniform(rate) => format!("{} % of frames", rate * 100.0),
        Errors::Bytes(mean) => format!("a byte in {mean}"),
        Errors::Fades { bad_s, byte_errors } if byte_errors > 0.0 => {
            format!("fades of {bad_s} s, a byte in {:.0}", 1.0 / byte_errors)
        }
        Errors::Fades { bad_s, .. } => format!("fades of {bad_s} s"),
    };
    let load = match setting.load {
        Load::File => "",
        Load::FileBehindSnoop => ", snoop",
        Load::Pages => ", web",
    };
    format!(
        "{}{load} | {} | {} | {} | {} | {what}",
        setting.tcp.name(),
        setting.link.name(),
        setting.topology.name(),
        setting.window,
        setting.queue
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ns2::{behind_snoop, pages};

    #[test]
    fn every_row_is_a_setting_that_airlane_takes() {
        let grid = grid();
        assert_eq!(grid.len(), 92);
        let all = grid.into_iter().chain(beyond());
        for known in all.chain(behind_snoop()).chain(pages()) {
            // Building a scenario checks it completely.
            known.setting.scenario("");
            let positive = |figures: KnownFigures| figures.throughput_bps > 0.0 && figures.runs > 0;
            assert!(known.figures.is_none_or(positive), "{known:?}");
        }
    }
}
