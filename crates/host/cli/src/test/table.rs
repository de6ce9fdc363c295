//! Prints the results of a test.

use airlane_probe::{App, LinkTestReport, PathReport, Times, TrafficReport};

use crate::chart::{Better, Chart, Measure};
use crate::output;
use crate::quantity::{Estimate, Unit};

/// A table with a line for each measure and a column for each path.
pub(super) fn render(report: &LinkTestReport, link: Option<&str>, times: &Times) -> String {
    let paths = paths(report);
    let first = paths.first().map(|(_, path)| *path);
    let last = paths.last().map(|(_, path)| *path);
    let peer = last.map_or_else(String::new, |path| path.address.to_string());
    let by = link.map_or_else(String::new, |link| format!(" over the link {link}"));
    let mut title = format!(
        "From {peer}{by}: {} s each, after {} s of warm-up",
        times.measure.as_secs_f64(),
        times.warmup.as_secs_f64()
    );
    let congestion_control = first.and_then(|path| path.runs().find_map(|run| run.file.as_ref()));
    if let Some(file) = congestion_control {
        // This text comes from the server.
        title += &format!(", TCP {}", output::plain(&file.congestion_control));
    }
    Chart {
        title,
        ways: paths.iter().map(|(name, _)| (*name).to_owned()).collect(),
        measures: rows(&paths),
    }
    .table()
}

/// Problems during the measured period.
pub(super) fn complaints(report: &LinkTestReport) -> Vec<String> {
    let mut all = Vec::new();
    for (name, path) in paths(report) {
        for run in path.runs() {
            if let Some(error) = run.file.as_ref().and_then(|file| file.error.as_ref()) {
                all.push(format!("{name}: a file ended early: {error}"));
            }
            for pages in run.pages.iter().filter(|pages| pages.failed > 0) {
                let all_pages = pages.failed + pages.completed;
                all.push(format!(
                    "{name}: {} of {all_pages} pages failed",
                    pages.failed
                ));
            }
        }
    }
    all
}

trait Runs {
    fn runs(&self) -> impl Iterator<Item = &TrafficReport>;
}

impl Runs for PathReport {
    fn runs(&self) -> impl Iterator<Item = &TrafficReport> {
        self.alone.values().chain(&self.together)
    }
}

type Paths<'a> = [(&'static str, &'a PathReport)];

fn paths(report: &LinkTestReport) -> Vec<(&'static str, &PathReport)> {
    let both = [("before", &report.before), ("after", &report.after)];
    both.into_iter()
        .filter_map(|(name, path)| Some((name, path.as_ref()?)))
        .collect()
}

/// How a measure of an application is shown: its name, unit, better direction, and where it is
/// found.
type Shown = (
    &'static str,
    Unit,
    Better,
    fn(&TrafficReport) -> Option<f64>,
);

const FILE: [Shown; 1] = [("throughput", Unit::BitsPerSecond, Better::Higher, |run| {
    run.file.as_ref().map(|file| file.goodput_bps)
})];
const PAGES: [Shown; 2] = [
    ("mean", Unit::Seconds, Better::Lower, |run| {
        let pages = run.pages.as_ref().filter(|pages| pages.completed > 0);
        pages.map(|pages| pages.mean_ns / 1e9)
    }),
    ("95 % within", Unit::Seconds, Better::Lower, |run| {
        let pages = run.pages.as_ref().filter(|pages| pages.completed > 0);
        pages.map(|pages| seconds(pages.p95_ns))
    }),
];
const VOICE: [Shown; 2] = [
    (
        "lost",
        Unit::Ratio,
        Better::Lower,
        TrafficReport::voice_loss,
    ),
    ("99 % within", Unit::Seconds, Better::Lower, |run| {
        let both = [run.voice_down.as_ref()?, run.voice_up.as_ref()?];
        let heard = both.iter().all(|way| way.received > 0);
        heard.then(|| {
            seconds(
                both.map(|way| way.delay_p99_ns)
                    .into_iter()
                    .max()
                    .unwrap_or(0),
            )
        })
    }),
];

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

fn rows(paths: &Paths<'_>) -> Vec<Measure> {
    let mut rows = Vec::new();
    for (app, all) in [
        (App::File, FILE.as_slice()),
        (App::Pages, &PAGES),
        (App::Voice, &VOICE),
    ] {
        for (what, unit, better, value) in all {
            let alone = |path: &PathReport| value(path.alone.get(&app)?);
            let together = |path: &PathReport| value(path.together.as_ref()?);
            let mut row = |how: &str, of: &dyn Fn(&PathReport) -> Option<f64>| {
                rows.push(Measure {
                    flow: app.name().to_owned(),
                    what: format!("{what}, {how}"),
                    unit: *unit,
                    better: *better,
                    values: estimates(paths, of),
                });
            };
            if paths.iter().any(|(_, path)| path.alone.contains_key(&app)) {
                row("alone", &alone);
                if paths.iter().any(|(_, path)| path.together.is_some()) {
                    row("with the others", &together);
                }
            }
        }
    }
    // Before the first run the path carries no load of the test.
    let idle = |path: &PathReport| {
        let idle = path.runs().find_map(|run| run.idle.as_ref())?;
        (idle.sent > idle.lost).then(|| seconds(idle.rtt_p50_ns))
    };
    let loaded = |path: &PathReport| {
        let all = path.together.as_ref().or(path.alone.values().next());
        let loaded = all?.loaded.as_ref()?;
        (loaded.sent > loaded.lost).then(|| seconds(loaded.rtt_p99_ns))
    };
    let mut round_trip = |what: &str, of: &dyn Fn(&PathReport) -> Option<f64>| {
        rows.push(Measure {
            flow: "round trip".to_owned(),
            what: what.to_owned(),
            unit: Unit::Seconds,
            better: Better::Lower,
            values: estimates(paths, of),
        });
    };
    round_trip("median, idle", &idle);
    round_trip("99 % within, under load", &loaded);
    rows
}

fn estimates(paths: &Paths<'_>, of: &dyn Fn(&PathReport) -> Option<f64>) -> Vec<Option<Estimate>> {
    let value = |(_, path): &(&str, &PathReport)| of(path).map(Estimate::single);
    paths.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use airlane_probe::{EchoReport, FileReport, PagesReport, VoiceReport};

    use super::*;

    fn traffic(rate_bps: f64, failed: u64) -> TrafficReport {
        let voice = VoiceReport {
            sent: 500,
            received: 475,
            lost: 25,
            delay_p99_ns: 31_000_000,
            ..VoiceReport::default()
        };
        TrafficReport {
            measured_ns: 1,
            warmup_ns: 1,
            ports: airlane_probe::ServerPorts::default(),
            file: Some(FileReport {
                congestion_control: "cubic".to_owned(),
                received_bytes: 1,
                goodput_bps: rate_bps,
                error: None,
            }),
            download: None,
            pages: Some(PagesReport {
                completed: 10,
                failed,
                mean_ns: 2e8,
                p95_ns: 400_000_000,
                ..PagesReport::default()
            }),
            voice_down: Some(voice.clone()),
            voice_up: Some(voice),
            idle: Some(EchoReport {
                sent: 20,
                rtt_p50_ns: 50_000_000,
                ..EchoReport::default()
            }),
            loaded: None,
            clock: None,
        }
    }

    fn path(rate_bps: f64, failed: u64) -> PathReport {
        PathReport {
            address: [10, 7, 0, 1].into(),
            alone: App::ALL.map(|app| (app, traffic(rate_bps, 0))).into(),
            together: Some(traffic(rate_bps / 2.0, failed)),
        }
    }

    const TIMES: Times = Times {
        warmup: Duration::from_secs(2),
        measure: Duration::from_secs(10),
        grace: Duration::from_secs(1),
    };

    #[test]
    fn each_application_has_a_line_alone_and_one_with_the_others() {
        let report = LinkTestReport {
            before: Some(path(2e6, 3)),
            after: Some(path(16e6, 0)),
        };
        let text =
            anstream::adapter::strip_str(&render(&report, Some("right"), &TIMES)).to_string();
        let expected = "\
From 10.7.0.1 over the link right: 10 s each, after 2 s of warm-up, TCP cubic

                                                 before        after
  file        throughput, alone             2.00 Mbit/s  16.0 Mbit/s  8.00 x as much
              throughput, with the others   1.00 Mbit/s  8.00 Mbit/s  8.00 x as much
  pages       mean, alone                        200 ms       200 ms  the same
              mean, with the others              200 ms       200 ms  the same
              95 % within, alone                 400 ms       400 ms  the same
              95 % within, with the others       400 ms       400 ms  the same
  voice       lost, alone                        5.00 %       5.00 %  the same
              lost, with the others              5.00 %       5.00 %  the same
              99 % within, alone                31.0 ms      31.0 ms  the same
              99 % within, with the others      31.0 ms      31.0 ms  the same
  round trip  median, idle                      50.0 ms      50.0 ms  the same
              99 % within, under load                 -            -
";
        assert_eq!(text, expected);
        assert_eq!(complaints(&report), ["before: 3 of 13 pages failed"]);
    }

    #[test]
    fn unmeasured_applications_have_no_line() {
        let mut after = path(16e6, 0);
        after.together = None;
        after.alone = BTreeMap::from([(App::Voice, traffic(0.0, 0))]);
        let report = LinkTestReport {
            before: None,
            after: Some(after),
        };
        let text = render(&report, None, &TIMES);
        assert!(!text.contains("before") && !text.contains("pages") && !text.contains("others"));
        assert!(text.contains("lost, alone"), "{text}");
    }
}
