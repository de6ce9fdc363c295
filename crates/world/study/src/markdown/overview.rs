//! One page over several works: totals, and for each work a summary in a few lines and pictures.

use std::fmt::Write as _;

use super::words::{classes, is_open, options};
use crate::outcome::{VerdictCounts, WorkOutcome};
use crate::work::{Cause, Work};

pub(super) fn page(works: &[(&Work, &WorkOutcome)], name: &str) -> String {
    let mut out = format!(
        "# Validation\n\nWritten by `make validation`. Statements of {} works, each held against simulations by one rule \
         for each form of statement ([judging.md](judging.md)). \"Consistent\" is what print cannot show or chance may \
         have done: neither for nor against. What does not come out, near or missed, has one of four causes: **ours**, \
         a fault or a simplification here; **silent**, the work does not say what decides it; **source**, its own \
         numbers, sentences or model say otherwise; **print**, what is printed is one run or a drawn line.\n\n",
        works.len()
    );
    out.push_str("|work|hold|consistent|near|miss|source inconsistent|ours|silent|source|print|open|\n|---|---|---|---|---|---|---|---|---|---|---|\n");
    let mut total = (VerdictCounts::default(), [0; 5]);
    for (work, base) in works {
        let causes = causes(work, base);
        total = (
            total.0 + base.counts,
            std::array::from_fn(|i| total.1[i] + causes[i]),
        );
        row(
            &mut out,
            &format!("[{0}]({name}-{0}.md)", work.id),
            base.counts,
            causes,
        );
    }
    row(&mut out, "all", total.0, total.1);
    out.push_str("\nCounted apart, as no result decides them or the setup was chosen by them:\n\n");
    for (work, base) in works {
        let _ = writeln!(out, "- {}: {}", work.id, classes(base));
    }
    for (work, base) in works {
        let _ = writeln!(
            out,
            "\n## {}\n\n{}. {} repetitions, seed {}.\n",
            work.id, work.title, base.runs, base.seed
        );
        if let Some(front) = &work.front {
            let _ = writeln!(out, "{}\n", front.trim());
        }
        for id in &work.pictures {
            let _ = writeln!(out, "![{id}](figures/{}/{id}.svg)", work.id);
        }
        let _ = writeln!(
            out,
            "\n`airlane study run {} {}` runs it again.",
            work.id,
            options(work, base)
        );
    }
    out
}

/// Counts claims that are near or missed by cause; the last count is of those without a cause yet.
fn causes(work: &Work, base: &WorkOutcome) -> [usize; 5] {
    let open = base.claims.iter().filter(|claim| is_open(claim));
    let mut counts = [0; 5];
    for claim in open {
        let cause = work.notes.get(&claim.id).map(|note| note.cause);
        let at = Cause::ALL.iter().position(|known| cause == Some(*known));
        counts[at.unwrap_or(Cause::ALL.len())] += 1;
    }
    counts
}

fn row(out: &mut String, name: &str, counts: VerdictCounts, causes: [usize; 5]) {
    let VerdictCounts {
        holds,
        consistent,
        near,
        misses,
        inconsistent,
    } = counts;
    let causes = causes.map(|count| count.to_string()).join("|");
    let _ = writeln!(
        out,
        "|{name}|{holds}|{consistent}|{near}|{misses}|{inconsistent}|{causes}|"
    );
}
