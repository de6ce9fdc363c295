//! The verdicts of all claims as Markdown, with the reason for each that misses and how the
//! verdicts move with other choices: docs/lab/validation.md.

mod curves;
mod tables;
mod words;

use std::fmt::Write as _;

use self::words::{cell, word};
use crate::outcome::{ClaimOutcome, WorkOutcome};
use crate::report::Report;
use crate::verdict::Verdict;
use crate::work::{Work, WorkPrint};

/// The page. `works` are those of the outcomes, for their notes and the titles of alternatives. A work that claims nothing
/// has what was measured, a table for each figure.
pub fn markdown(report: &Report, outcomes: &[WorkOutcome], works: &[&Work]) -> String {
    let mut out = match !outcomes.is_empty() && outcomes.iter().all(WorkOutcome::claims_nothing) {
        true => String::from("# Measured\n\n"),
        false => introduction(report, works),
    };
    for work in works {
        let mut variants = outcomes.iter().filter(|outcome| outcome.work == work.id);
        let Some(base) = variants.next() else {
            continue;
        };
        if base.claims_nothing() {
            tables::page(&mut out, work, base);
            continue;
        }
        let (few, others): (Vec<_>, Vec<_>) = variants.partition(|o| o.alternative.is_none());
        let yardstick = few.first().copied().unwrap_or(base);
        section(&mut out, work, base, yardstick, &others);
    }
    out
}

fn introduction(report: &Report, works: &[&Work]) -> String {
    let counts = report.counts;
    let more = if works.iter().any(|work| work.print == WorkPrint::Curves) {
        "docs/studies.md has the rules, docs/lab/choices.md the baseline and its evidence; `airlane study report RESULTS \
         --comparisons FILE` writes every comparison. "
    } else {
        ""
    };
    format!(
        "# Validation\n\nWritten by `airlane study run --markdown`, which measures the tables. The reasons for misses are \
         kept in `notes.toml` beside the studies; figures in them that the tables do not have come \
         from the runs that they name. {more}{} claims: {}.\n\n",
        counts.total(),
        counts.words()
    )
}

fn section(
    out: &mut String,
    work: &Work,
    base: &WorkOutcome,
    yardstick: &WorkOutcome,
    others: &[&WorkOutcome],
) {
    let counts = base.counts;
    let _ = writeln!(
        out,
        "## {}\n\n{}. {} repetitions, seed {}. {} claims: {}.\n",
        work.id,
        work.title,
        base.runs,
        base.seed,
        counts.total(),
        counts.words()
    );
    if work.print == WorkPrint::Curves {
        curves::section(out, work, base);
        if !others.is_empty() {
            alternatives(out, work, yardstick, others);
        }
        unjudged(out, base);
        return;
    }
    out.push_str("| claim | figure | published | measured | verdict |\n|---|---|---|---|---|\n");
    for claim in &base.claims {
        row(out, claim, word(claim.verdict));
    }
    out.push('\n');
    let missed = base
        .claims
        .iter()
        .filter(|claim| claim.verdict == Some(Verdict::Misses));
    let missed: Vec<&ClaimOutcome> = missed.collect();
    if !missed.is_empty() {
        out.push_str("### Why claims miss\n\n");
    }
    for claim in missed {
        let note = work
            .notes
            .get(&claim.id)
            .map_or("No cause is known.", String::as_str);
        let _ = writeln!(out, "**{}.** {}\n", claim.id, note.trim());
        moves(out, work, claim, yardstick, others);
    }
    if !others.is_empty() {
        alternatives(out, work, yardstick, others);
    }
    apart(out, base);
    unjudged(out, base);
}

fn unjudged(out: &mut String, base: &WorkOutcome) {
    if base.unjudged.is_empty() {
        return;
    }
    out.push_str("### Not judged\n\n| claim | figure | published | why not |\n|---|---|---|---|\n");
    for claim in &base.unjudged {
        let (id, study) = (&claim.id, &claim.study);
        let _ = writeln!(
            out,
            "| {id} | {study} | {} | {} |",
            cell(&claim.published),
            claim.why()
        );
    }
    out.push('\n');
}

fn apart(out: &mut String, base: &WorkOutcome) {
    if !base.apart.is_empty() {
        out.push_str(
            "### Counted apart\n\nSettings and background quantities, what follows from the setup \
             by arithmetic, and claims that the specification calls artefacts, slips or not \
             testable.\n\n| claim | figure | published | measured | class |\n|---|---|---|---|---|\n",
        );
        for claim in &base.apart {
            let class = claim.class.map_or("", crate::claim::ClaimClass::word);
            let mut last = match claim.verdict {
                Some(verdict) => format!("{class}: {}", word(Some(verdict))),
                None => class.to_owned(),
            };
            if let Some(reason) = &claim.reason {
                let _ = write!(last, "; {reason}");
            }
            row(out, claim, &last);
        }
        out.push('\n');
    }
}

fn row(out: &mut String, claim: &ClaimOutcome, verdict: &str) {
    let _ = writeln!(
        out,
        "| {} | {} | {} | {} | {verdict} |",
        claim.id,
        claim.study,
        cell(&claim.published),
        cell(&claim.measured)
    );
}

/// Under which other choices a claim that misses does better.
fn moves(
    out: &mut String,
    work: &Work,
    claim: &ClaimOutcome,
    yardstick: &WorkOutcome,
    others: &[&WorkOutcome],
) {
    let few = yardstick.claims.iter().find(|c| c.id == claim.id);
    let before = few.map_or(claim.verdict, |c| c.verdict.max(claim.verdict));
    let better = others.iter().filter_map(|other| {
        let there = other.claims.iter().find(|c| c.id == claim.id)?;
        (there.verdict > before).then_some((other, there))
    });
    let lines: Vec<String> = better
        .map(|(other, there)| {
            let name = other.alternative.as_deref().unwrap_or_default();
            let title = work
                .alternatives
                .get(name)
                .map_or(name, |a| a.title.as_str());
            format!("- {title}: {}; {}\n", word(there.verdict), there.measured)
        })
        .collect();
    if !lines.is_empty() {
        let _ = writeln!(
            out,
            "It moves with what the work does not say:\n{}",
            lines.concat()
        );
    }
}

fn alternatives(out: &mut String, work: &Work, base: &WorkOutcome, others: &[&WorkOutcome]) {
    let _ = write!(
        out,
        "### Other choices where the work is silent\n\n{} repetitions of each, what is committed \
         included.\n\n| choice | holds | near | misses | better | \
         worse |\n|---|---|---|---|---|---|\n",
        base.runs
    );
    let counts = base.counts;
    let (holds, near, misses) = (counts.holds, counts.near, counts.misses);
    let _ = writeln!(out, "| as committed | {holds} | {near} | {misses} | | |");
    for other in others {
        let name = other.alternative.as_deref().unwrap_or_default();
        let title = work
            .alternatives
            .get(name)
            .map_or(name, |a| a.title.as_str());
        let list = |better: bool| {
            let pairs = base.claims.iter().zip(&other.claims);
            let moved = pairs.filter(|(before, after)| {
                if better {
                    after.verdict > before.verdict
                } else {
                    after.verdict < before.verdict
                }
            });
            moved
                .map(|(claim, _)| claim.id.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let counts = other.counts;
        let (holds, near, misses) = (counts.holds, counts.near, counts.misses);
        let (better, worse) = (list(true), list(false));
        let _ = writeln!(
            out,
            "| {title} | {holds} | {near} | {misses} | {better} | {worse} |"
        );
    }
    out.push('\n');
}
