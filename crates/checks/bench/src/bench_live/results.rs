//! The results, as JSON and as tables.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use airlane_testkit::machine::{self, LostTime};

use super::channel::Endpoints;
use super::clean::CleanRun;
use super::criteria::{self, CriterionVerdict};
use super::impaired::{Impaired, ImpairedFigures};
use super::measured::Measured;
use super::tool::Tool;

/// All results.
#[derive(Debug, Default)]
pub struct Results {
    /// Tools that were left out, and why.
    pub left_out: Vec<(Tool, String)>,
    /// The clean link.
    pub clean: Option<Measured<(Tool, CleanRun)>>,
    /// The impaired link.
    pub impaired: Option<Impaired>,
    /// CPU time that other work took from the machine, over the whole bench.
    pub lost: LostTime,
}

impl Results {
    /// What could not be run.
    pub fn failures(&self) -> impl Iterator<Item = &String> {
        let clean = self.clean.iter().flat_map(|m| &m.failures);
        let impaired = self.impaired.iter().flat_map(|i| &i.measured.failures);
        clean.chain(impaired)
    }

    fn clean_tools(&self) -> Vec<CleanTool> {
        let mut tools: Vec<CleanTool> = Vec::new();
        for (tool, run) in self.clean.iter().flat_map(|m| &m.rows) {
            match tools.iter_mut().find(|t| t.tool == *tool) {
                Some(of_tool) => of_tool.runs.push(*run),
                None => tools.push(CleanTool {
                    tool: *tool,
                    runs: vec![*run],
                }),
            }
        }
        tools
    }

    fn impaired_rows(&self) -> &[ImpairedFigures] {
        self.impaired.as_ref().map_or(&[], |i| &i.measured.rows)
    }

    /// The figures alone, with three decimals.
    pub fn json(&self) -> serde_json::Value {
        let clean = self.clean_tools();
        let clean = clean.iter().map(|t| (t.tool.name(), t.json()));
        let impaired = self.impaired_rows().iter().map(|row| ImpairedJson {
            tool: row.tool.name(),
            channel: row.channel.name(),
            endpoints: row.endpoints.name(),
            file_mbps: rounded(row.file_mbps),
            file_ceiling_mbps: rounded(row.file_ceiling_mbps),
            download_mbps: row.download_mbps.map(rounded),
            page_mean_ms: rounded(row.page_mean_ms),
            voice_loss_pct: rounded(row.voice_loss_pct),
            voice_p99_ms: rounded(row.voice_p99_ms),
        });
        serde_json::json!({
            "clean": clean.collect::<BTreeMap<_, _>>(),
            "impaired": impaired.collect::<Vec<_>>(),
        })
    }
}

#[derive(Serialize)]
struct ImpairedJson {
    tool: String,
    channel: String,
    endpoints: &'static str,
    file_mbps: f64,
    file_ceiling_mbps: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    download_mbps: Option<f64>,
    page_mean_ms: f64,
    voice_loss_pct: f64,
    voice_p99_ms: f64,
}

fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// All runs of a tool on the clean link.
struct CleanTool {
    tool: Tool,
    runs: Vec<CleanRun>,
}

impl CleanTool {
    fn tcp(&self) -> Spread {
        Spread::of(self.runs.iter().map(|run| run.tcp_mbps))
    }

    fn rtt(&self) -> Spread {
        Spread::of(self.runs.iter().map(|run| run.rtt_p50_us))
    }

    fn cpu(&self) -> Spread {
        Spread::of(self.runs.iter().map(|run| run.cpu_s_per_gb))
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "tcp_mbps": rounded(self.tcp().median),
            "rtt_p50_us": rounded(self.rtt().median),
            "cpu_s_per_gb": rounded(self.cpu().median),
        })
    }
}

/// Median, minimum and maximum of at least one run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |i: usize| sorted.get(i).copied().unwrap_or(f64::NAN);
        let last = sorted.len().saturating_sub(1);
        Self {
            median: f64::midpoint(at(last / 2), at(sorted.len() / 2)),
            least: at(0),
            most: at(last),
        }
    }

    fn text(&self, decimals: usize) -> String {
        let Self {
            median,
            least,
            most,
        } = self;
        format!("{median:.decimals$} ({least:.decimals$}..{most:.decimals$})")
    }
}

impl fmt::Display for Results {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.clean.is_some() {
            self.clean_table(f)?;
        }
        if let Some(impaired) = &self.impaired {
            impaired_table(impaired, f)?;
        }
        writeln!(f, "{}", self.lost)?;
        writeln!(
            f,
            "spoilt is what was measured while it lost more than {:.0} %",
            100.0 * machine::MUCH
        )?;
        for (tool, why) in &self.left_out {
            writeln!(f, "left out: {tool}: {why}")?;
        }
        for failure in self.failures() {
            writeln!(f, "failed: {failure}")?;
        }
        Ok(())
    }
}

impl Results {
    fn clean_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.clean_tools();
        let of = |tool| tools.iter().find(|t| t.tool == tool);
        let runs = tools.iter().map(|t| t.runs.len()).max().unwrap_or(0);
        writeln!(
            f,
            "Clean link, both ends on this machine: median (least..most) of {runs} runs\n"
        )?;
        writeln!(
            f,
            "{:<18} {:<24} {:>15}       {:<26} {:>9}       CPU s/GB",
            "", "TCP Mbit/s", "x wireguard-go", "round trip us, median", "added us"
        )?;
        let wireguard = of(Tool::WireguardGo).map(|t| t.tcp().median);
        let cable = of(Tool::Veth).map(|t| t.rtt().median);
        for t in &tools {
            // The criteria for Airlane.
            let asked = |holds: bool| match t.tool {
                Tool::Airlane => CriterionVerdict::of(holds),
                _ => CriterionVerdict::Open,
            };
            let (times, fast) =
                wireguard.map_or((String::new(), CriterionVerdict::Open), |other| {
                    let times = t.tcp().median / other;
                    (format!("{times:.2}"), asked(times >= criteria::SPEEDUP))
                });
            let (added, short) = match cable {
                Some(cable) if t.tool != Tool::Veth => {
                    let added = t.rtt().median - cable;
                    (format!("{added:.0}"), asked(added < criteria::ADDED_US))
                }
                _ => (String::new(), CriterionVerdict::Open),
            };
            let spoilt = t.runs.iter().filter(|run| run.lost.spoils()).count();
            let spoilt = match spoilt {
                0 => String::new(),
                some => format!(" SPOILT in {some} of {} runs", t.runs.len()),
            };
            writeln!(
                f,
                "{:<18} {:<24} {times:>15} {fast:<4}  {:<26} {added:>9} {short:<4}  {}{spoilt}",
                t.tool,
                t.tcp().text(0),
                t.rtt().text(0),
                match t.tool {
                    Tool::Veth => "-".to_owned(),
                    _ => t.cpu().text(2),
                }
            )?;
        }
        writeln!(
            f,
            "asked of airlane: {} x wireguard-go, added round trip under {} us\n",
            criteria::SPEEDUP,
            criteria::ADDED_US
        )
    }
}

/// A suffix for figures that other load on the machine has made unreliable.
fn spoilt(lost: LostTime) -> String {
    match lost.spoils() {
        true => format!(" SPOILT by {:.0} %", 100.0 * (lost.stolen + lost.others)),
        false => String::new(),
    }
}

fn impaired_table(impaired: &Impaired, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let rows = &impaired.measured.rows;
    writeln!(
        f,
        "20 Mbit/s, 25 ms, 50 ms of queue: a file, pages of 20 kB and voice at once\n"
    )?;
    writeln!(
        f,
        "{:<16}{:<6}{:<13} {:>16} {:>12} {:>14} {:>16} {:>15}",
        "channel",
        "TCP",
        "tool",
        "file Mbit/s",
        "of ceiling",
        "page ms",
        "voice lost %",
        "voice p99 ms"
    )?;
    let mut before = None;
    for row in rows {
        if before.is_some_and(|before| before != (row.channel, row.endpoints)) {
            writeln!(f)?;
        }
        before = Some((row.channel, row.endpoints));
        let plain = rows.iter().find(|other| {
            (other.tool, other.channel, other.endpoints)
                == (Tool::Plain, row.channel, Endpoints::Bbr)
        });
        let file = criteria::file(
            row.channel,
            row.endpoints,
            row.file_mbps,
            row.file_ceiling_mbps,
            plain.map(|plain| plain.file_mbps),
        );
        let (channel, endpoints) = (row.channel, row.endpoints);
        write!(
            f,
            "{channel:<16}{endpoints:<6}{:<13} {:>5.2} / {:>5.2} {file:<4}",
            row.tool, row.file_mbps, row.file_ceiling_mbps,
        )?;
        let part = row.file_mbps / row.file_ceiling_mbps * 100.0;
        write!(f, " {part:>8.1} %")?;
        let (ms, pages) = (row.page_mean_ms, criteria::pages(channel, row.page_mean_ms));
        write!(f, " {ms:>10.0} {pages:<4}")?;
        let (lost, voice) = (row.voice_loss_pct, row.voice_loss_pct);
        write!(
            f,
            " {lost:>10.2} {:<4}",
            criteria::voice_loss(channel, voice)
        )?;
        let p99 = row.voice_p99_ms;
        write!(f, " {p99:>9.1} {:<4}", criteria::voice_p99(channel, p99))?;
        if let Some(download) = row.download_mbps {
            write!(f, "  download {download:.2} Mbit/s")?;
        }
        if row.pages_failed > 0 {
            write!(f, " {} pages failed", row.pages_failed)?;
        }
        writeln!(f, "{}", spoilt(row.lost))?;
    }
    if let Some(flood) = &impaired.flood {
        let (quiet, flooded, per_s) = (flood.quiet_mbps, flood.flooded_mbps, flood.sent_per_s);
        let verdict = criteria::flooded(quiet, flooded, per_s);
        writeln!(
            f,
            "\nairlane, uniform-5, cubic, under {per_s:.0} datagrams a second of a stranger: the file \
             gets {flooded:.2} of {quiet:.2} Mbit/s {verdict}{}",
            spoilt(flood.lost)
        )?;
    }
    if let Some(ms) = impaired.idle_page_ms {
        let asked = criteria::IDLE_PAGE_MS;
        writeln!(
            f,
            "\na page alone on the plain link without losses: {ms:.1} ms (the criteria are made of {asked} ms)"
        )?;
    }
    writeln!(f)
}

#[cfg(test)]
mod tests {
    use super::super::channel::LossChannel;
    use super::super::impaired::FloodFigures;
    use super::*;

    fn run(tcp_mbps: f64, rtt_p50_us: f64) -> CleanRun {
        CleanRun {
            tcp_mbps,
            rtt_p50_us,
            cpu_s_per_gb: 2.0,
            lost: LostTime::default(),
        }
    }

    fn results() -> Results {
        let rows = vec![
            (Tool::Veth, run(10_000.0, 10.0)),
            (Tool::WireguardGo, run(1000.0, 150.0)),
            (Tool::Airlane, run(1400.0, 90.0)),
            (Tool::Airlane, run(1600.0, 120.0)),
            (Tool::Airlane, run(9000.0, 100.0)),
        ];
        let row = ImpairedFigures {
            tool: Tool::Plain,
            channel: LossChannel::Uniform5,
            endpoints: Endpoints::Bbr,
            file_mbps: 17.2,
            file_ceiling_mbps: 17.5,
            download_mbps: None,
            page_mean_ms: 430.04,
            pages_failed: 0,
            voice_loss_pct: 5.0,
            voice_p99_ms: 67.0,
            lost: LostTime::default(),
        };
        Results {
            lost: LostTime::default(),
            left_out: vec![(Tool::OpenVpn, "not there".to_owned())],
            clean: Some(Measured {
                rows,
                failures: Vec::new(),
            }),
            impaired: Some(Impaired {
                idle_page_ms: Some(155.5),
                flood: Some(FloodFigures {
                    quiet_mbps: 15.0,
                    flooded_mbps: 12.5,
                    sent_per_s: 95_000.0,
                    lost: LostTime {
                        stolen: 0.1,
                        others: 0.02,
                    },
                }),
                measured: Measured {
                    rows: vec![
                        row,
                        ImpairedFigures {
                            tool: Tool::Airlane,
                            file_mbps: 16.3,
                            ..row
                        },
                    ],
                    failures: vec!["airlane, uniform-1, bbr: gone".to_owned()],
                },
            }),
        }
    }

    #[test]
    fn the_median_stands_between_least_and_most() {
        let of = |values: &[f64]| Spread::of(values.iter().copied());
        assert_eq!(of(&[3.0, 1.0, 2.0]).text(0), "2 (1..3)");
        assert_eq!(of(&[4.0, 1.0]).text(1), "2.5 (1.0..4.0)");
        assert_eq!(of(&[7.0]).text(0), "7 (7..7)");
    }

    #[test]
    fn json_has_exactly_the_figures() {
        let expected = serde_json::json!({
            "clean": {
                "veth": { "tcp_mbps": 10_000.0, "rtt_p50_us": 10.0, "cpu_s_per_gb": 2.0 },
                "wireguard-go": { "tcp_mbps": 1000.0, "rtt_p50_us": 150.0, "cpu_s_per_gb": 2.0 },
                "airlane": { "tcp_mbps": 1600.0, "rtt_p50_us": 100.0, "cpu_s_per_gb": 2.0 },
            },
            "impaired": [
                { "tool": "plain", "channel": "uniform-5", "endpoints": "bbr", "file_mbps": 17.2,
                  "file_ceiling_mbps": 17.5, "page_mean_ms": 430.04, "voice_loss_pct": 5.0,
                  "voice_p99_ms": 67.0 },
                { "tool": "airlane", "channel": "uniform-5", "endpoints": "bbr", "file_mbps": 16.3,
                  "file_ceiling_mbps": 17.5, "page_mean_ms": 430.04, "voice_loss_pct": 5.0,
                  "voice_p99_ms": 67.0 },
            ],
        });
        assert_eq!(results().json(), expected);
    }

    #[test]
    fn tables_show_verdicts_and_missing_tools() {
        let text = results().to_string();
        let line = |start: &str| {
            let line = text.lines().find(|line| line.starts_with(start));
            let words: Vec<&str> = line.unwrap_or("").split_ascii_whitespace().collect();
            words.join(" ")
        };
        // 1.6 times as fast, 90 us on top of the cable's 10.
        let airlane = "airlane 1600 (1400..9000) 1.60 ok 100 (90..120) 90 ok 2.00 (2.00..2.00)";
        assert_eq!(line("airlane "), airlane);
        assert_eq!(line("left out"), "left out: openvpn: not there");
        assert_eq!(line("failed"), "failed: airlane, uniform-1, bbr: gone");
        let flood = "the file gets 12.50 of 15.00 Mbit/s ok SPOILT by 12 %";
        assert!(line("airlane, uniform-5, cubic").ends_with(flood), "{text}");
        // 95 % of 17.2 are 16.34.
        assert!(text.contains("16.30 / 17.50 MISS"), "{text}");
        assert!(text.contains("17.20 / 17.50 ok"), "{text}");
    }
}
