//! The page of a work: its figures with published and measured values, then what was not
//! reproduced, by cause.

use std::fmt::Write as _;

use super::words::{cell, classes, is_open, options, word};
use crate::claim::Comparison;
use crate::outcome::{ClaimOutcome, VerdictCounts, WorkOutcome};
use crate::study::Study;
use crate::unit::{Unit, digits};
use crate::verdict::Verdict;
use crate::work::{Cause, Work};

/// At most this many comparisons are shown with their values; the others are counted.
const SHOWN: usize = 2;

pub(super) fn page(work: &Work, base: &WorkOutcome, others: &[&WorkOutcome]) -> String {
    let mut out = format!(
        "# {}\n\n{}. {} repetitions, seed {}. {} statements: {}. Counted apart: {}.\n\n",
        work.id,
        work.title,
        base.runs,
        base.seed,
        base.counts.total(),
        base.counts.words(),
        classes(base)
    );
    let _ = writeln!(
        out,
        "`airlane study run {}/STUDY {}` gives the numbers of a figure again, `--comparisons FILE` each \
         comparison. Measured/printed.\n",
        work.id,
        options(work, base)
    );
    for study in &work.studies {
        let claims: Vec<&ClaimOutcome> =
            base.claims.iter().filter(|c| c.study == study.id).collect();
        if claims.is_empty() {
            continue;
        }
        let _ = writeln!(out, "## {}\n\n{}.\n", study.id, study.title);
        for name in pictures(base, study) {
            let _ = writeln!(out, "{}\n", picture(work, &name));
        }
        out.push_str("|id|published|measured|verdict|\n|---|---|---|---|\n");
        for claim in claims {
            let (id, verdict) = (&claim.id, word(claim.verdict));
            let published = cell(&claim.published);
            let _ = writeln!(
                out,
                "|{id}|{published}|{}|{verdict}|",
                measured_in_words(claim)
            );
        }
        out.push('\n');
    }
    without_statements(&mut out, work, base);
    contradicted(&mut out, base);
    open(&mut out, work, base);
    alternatives(&mut out, work, base, others);
    unjudged(&mut out, base);
    out
}

/// The pictures of a study: of its figure, and of what it draws over time.
fn pictures(base: &WorkOutcome, study: &Study) -> Vec<String> {
    let measured = base.studies.iter().find(|s| s.id == study.id);
    let figure = measured.and_then(|s| s.figure.as_ref().map(|_| s.id.clone()));
    let over_time = measured.and_then(|s| s.over_time.as_ref().map(|o| o.name.clone()));
    figure.into_iter().chain(over_time).collect()
}

fn picture(work: &Work, name: &str) -> String {
    format!("![{name}](figures/{}/{name}.svg)", work.id)
}

/// Figures about which no statement is counted. A figure such as `F2-up` shows `F2` in another setup, so
/// the title of `F2` is not repeated.
fn without_statements(out: &mut String, work: &Work, base: &WorkOutcome) {
    let is_counted = |study: &&Study| base.claims.iter().any(|claim| claim.study == study.id);
    let mut lines = String::new();
    for study in work.studies.iter().filter(|study| !is_counted(study)) {
        let mut named = work
            .studies
            .iter()
            .filter_map(|other| study.id.strip_prefix(&other.id));
        let title = match named.any(|rest| rest.starts_with('-')) {
            true => String::new(),
            false => format!(" {}.", study.title),
        };
        for (at, name) in pictures(base, study).iter().enumerate() {
            let title = if at == 0 { title.as_str() } else { "" };
            let _ = writeln!(lines, "{}{title}\n", picture(work, name));
        }
    }
    if !lines.is_empty() {
        let _ = write!(out, "## Without statements\n\n{lines}");
    }
}

/// A few values with their references, or how many agree.
fn measured_in_words(claim: &ClaimOutcome) -> String {
    let all = &claim.comparisons;
    if let Some(counts) = claim.agreement.filter(|_| all.len() > SHOWN) {
        let ties = match counts.consistent {
            0 => String::new(),
            ties => format!(", {ties} consistent"),
        };
        return format!("{} of {}{ties}", counts.agree, counts.all);
    }
    match all.as_slice() {
        [] => "as set".to_owned(),
        all => all.iter().map(values).collect::<Vec<_>>().join("; "),
    }
}

fn values(c: &Comparison) -> String {
    let unit = Unit::of_base(c.unit).unwrap_or(Unit::None);
    let show = |value: f64| match unit {
        Unit::BitRate if value.abs() >= 1e6 => format!("{} Mbit/s", digits(value / 1e6)),
        unit => unit.show(value),
    };
    let [measured, against] = [c.measured, c.against].map(show);
    // A unit that both have stands once.
    match (measured.split_once(' '), against.split_once(' ')) {
        (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}/{against}"),
        (None, None) => format!("{measured}/{against}"),
        _ => format!("{measured} / {against}"),
    }
}

fn contradicted(out: &mut String, base: &WorkOutcome) {
    let all = base
        .claims
        .iter()
        .filter(|c| c.verdict == Some(Verdict::SourceInconsistent));
    let all: Vec<&ClaimOutcome> = all.collect();
    if all.is_empty() {
        return;
    }
    out.push_str("## Source inconsistent\n\nThe work says elsewhere what excludes them (`airlane study lint`).\n\n");
    for claim in all {
        let others: Vec<String> = base
            .claims
            .iter()
            .filter(|other| other.id != claim.id && names(&claim.contradicted, &other.id))
            .map(|other| format!("{}: {}", other.id, cell(&other.published)))
            .collect();
        let _ = writeln!(out, "- **{}** by {}", claim.id, others.join("; "));
    }
    out.push('\n');
}

fn names(texts: &[String], id: &str) -> bool {
    texts
        .iter()
        .any(|text| text.split([' ', ':']).any(|word| word == id))
}

/// The claims that were not reproduced, by cause.
fn open(out: &mut String, work: &Work, base: &WorkOutcome) {
    let open: Vec<&ClaimOutcome> = base.claims.iter().filter(|claim| is_open(claim)).collect();
    if open.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "## What does not come out\n\nWhole notes: `studies/{}/notes.toml`.\n",
        work.id
    );
    for cause in Cause::ALL.into_iter().map(Some).chain([None]) {
        let of = |claim: &&&ClaimOutcome| work.notes.get(&claim.id).map(|note| note.cause) == cause;
        let claims: Vec<&&ClaimOutcome> = open.iter().filter(of).collect();
        if claims.is_empty() {
            continue;
        }
        let title = cause.map_or("Open: no cause is known", Cause::title);
        let _ = writeln!(out, "### {title}\n");
        for claim in claims {
            let note = work
                .notes
                .get(&claim.id)
                .map_or("", |note| note.text.trim());
            let _ = writeln!(
                out,
                "- **{}** ({}): {}",
                claim.id,
                word(claim.verdict),
                sentence(note)
            );
        }
        out.push('\n');
    }
}

/// The first sentence that is more than a reference, in one line with the text before it.
fn sentence(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = text.match_indices(". ").find(|(at, _)| {
        let begins = text[at + 2..]
            .chars()
            .next()
            .is_some_and(char::is_uppercase);
        begins && text[..*at].split(' ').count() > 4
    });
    match end {
        Some((at, _)) => text[..=at].to_owned(),
        None => text,
    }
}

fn alternatives(out: &mut String, work: &Work, base: &WorkOutcome, others: &[&WorkOutcome]) {
    let (few, others): (Vec<&WorkOutcome>, Vec<&WorkOutcome>) = others
        .iter()
        .copied()
        .partition(|o| o.alternative.is_none());
    if others.is_empty() {
        return;
    }
    let base = few.first().copied().unwrap_or(base);
    let _ = write!(
        out,
        "## Other choices\n\n{} repetitions of each, what is committed included; how many verdicts get better and \
         worse.\n\n|choice|hold|consistent|near|miss|better|worse|\n|---|---|---|---|---|---|---|\n",
        base.runs
    );
    let row = |out: &mut String, title: &str, counts: VerdictCounts, moved: &str| {
        let VerdictCounts {
            holds,
            consistent,
            near,
            misses,
            ..
        } = counts;
        let _ = writeln!(
            out,
            "|{title}|{holds}|{consistent}|{near}|{misses}|{moved}|"
        );
    };
    row(out, "as committed", base.counts, "|");
    for other in others {
        let name = other.alternative.as_deref().unwrap_or_default();
        let title = work
            .alternatives
            .get(name)
            .map_or(name, |a| a.title.as_str());
        let moved = |better: bool| {
            let pairs = base.claims.iter().zip(&other.claims);
            let moved = pairs.filter(|(before, after)| match better {
                true => after.verdict > before.verdict,
                false => after.verdict < before.verdict,
            });
            moved.count()
        };
        row(
            out,
            title,
            other.counts,
            &format!("{}|{}", moved(true), moved(false)),
        );
    }
    out.push('\n');
}

fn unjudged(out: &mut String, base: &WorkOutcome) {
    if base.unjudged.is_empty() {
        return;
    }
    out.push_str("## Not judged\n\n|id|figure|published|why not|\n|---|---|---|---|\n");
    for claim in &base.unjudged {
        let (id, study, published) = (&claim.id, &claim.study, cell(&claim.published));
        let _ = writeln!(out, "|{id}|{study}|{published}|{}|", claim.why());
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_recognised_by_its_first_sentence() {
        for (text, first) in [
            (
                "Here it is 1.2 of\n2. The rest follows.",
                "Here it is 1.2 of 2.",
            ),
            ("As X. It is less here. More.", "As X. It is less here."),
            ("As X, e.g. with\nless", "As X, e.g. with less"),
            ("", ""),
        ] {
            assert_eq!(sentence(text), first);
        }
    }
}
