//! The report, as Markdown.

use std::fmt::Write as _;

use super::Study;
use super::claims::{Verdict, cause};
use super::figures::SEED;

/// How a metric is shown: heading, factor, decimals.
fn presentation(metric: &str) -> (&'static str, f64, usize) {
    match metric {
        "throughput_bps" => ("throughput, kbit/s", 1e-3, 2),
        "loss_ratio" => ("loss, %", 100.0, 3),
        "delay_mean_plus_2sd_s" => ("delay (mean + 2 sd), ms", 1e3, 1),
        other => unreachable!("no presentation for {other}"),
    }
}

/// Tables and verdicts of all figures.
pub fn markdown(studies: &[Study], runs: u64) -> String {
    let mut out = String::from("# Validation against Xylomenos 1999\n\n");
    let _ = writeln!(
        out,
        "Written by `make validation`: every number here comes from that command. {runs} \
         repetitions, seed {SEED}; ± is the half width of the 95 % confidence interval of the mean. \
         The ids are those of the specification that Airlane follows. What the source leaves open \
         was decided by one rule for all figures, see [choices.md](choices.md); under each figure \
         stands how the verdicts move with other choices.\n"
    );
    let all = || studies.iter().flat_map(|study| &study.claims);
    let count = |verdict| all().filter(|claim| claim.verdict == verdict).count();
    let _ = writeln!(
        out,
        "{} claims: {} hold, {} near, {} miss.\n",
        all().count(),
        count(Verdict::Holds),
        count(Verdict::Near),
        count(Verdict::Misses)
    );
    for study in studies {
        figure(&mut out, study);
    }
    out
}

fn figure(out: &mut String, study: &Study) {
    let grid = &study.grid;
    let f = &grid.figure;
    let _ = writeln!(out, "## {}: {}\n", f.id, f.title);
    for metric in f.metrics {
        let (heading, factor, decimals) = presentation(metric);
        let _ = writeln!(
            out,
            "| {heading} | L1 | L2 | L3 | L4 |\n|---|---|---|---|---|"
        );
        for line in f.lines {
            let _ = write!(out, "| {} ", line.scheme);
            for level in 0..4 {
                let e = grid.estimate(line.scheme, level, metric);
                let half = e.ci95_half_width.unwrap_or(0.0);
                let _ = write!(
                    out,
                    "| {:.decimals$} ± {:.decimals$} ",
                    e.mean * factor,
                    half * factor
                );
            }
            out.push_str("|\n");
        }
        out.push('\n');
    }
    let files: Vec<String> = f.lines.iter().map(|l| format!("`{}`", l.file)).collect();
    let _ = writeln!(
        out,
        "Scenarios {} with `{}` = {}.\n",
        files.join(", "),
        f.axis,
        f.levels.join(", ").replace('"', "")
    );
    out.push_str("| claim | published | measured | verdict |\n|---|---|---|---|\n");
    for claim in &study.claims {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            claim.id,
            claim.published,
            claim.measured,
            word(claim.verdict)
        );
    }
    out.push('\n');
    for claim in study.claims.iter().filter(|c| c.verdict == Verdict::Misses) {
        if let Some(cause) = cause(claim.id) {
            let _ = writeln!(out, "**Why {} misses.** {cause}\n", claim.id);
        }
    }
    alternatives(out, study);
}

/// Only claims whose verdict or measure moves are worth a column.
fn alternatives(out: &mut String, study: &Study) {
    let moves = |i: &usize| {
        let here = study.claims[*i].verdict;
        study.alternatives.iter().any(|a| a.1[*i].verdict != here)
    };
    let columns: Vec<usize> = (0..study.claims.len()).filter(moves).collect();
    if columns.is_empty() {
        out.push_str("No verdict moves with the other choices: ");
        let names: Vec<&str> = study.alternatives.iter().map(|a| a.0.what).collect();
        let _ = writeln!(out, "{}.\n", names.join("; "));
        return;
    }
    out.push_str("| choice ");
    for i in &columns {
        let _ = write!(out, "| {} ", study.claims[*i].id);
    }
    let _ = writeln!(out, "|\n|---{}|", "|---".repeat(columns.len()));
    let committed = std::iter::once(("as committed", &study.claims));
    let others = study.alternatives.iter().map(|a| (a.0.what, &a.1));
    for (what, claims) in committed.chain(others) {
        let _ = write!(out, "| {what} ");
        for i in &columns {
            let claim = &claims[*i];
            let _ = write!(out, "| {}: {} ", word(claim.verdict), claim.measured);
        }
        out.push_str("|\n");
    }
    out.push('\n');
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "holds",
        Verdict::Near => "near",
        Verdict::Misses => "**misses**",
    }
}
