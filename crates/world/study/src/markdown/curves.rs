//! The page of a work whose results are curves: totals by chapter, then a section for each figure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::words::{cell, word};
use crate::claim::Comparison;
use crate::outcome::{ClaimOutcome, VerdictCounts, WorkOutcome};
use crate::verdict::Verdict;
use crate::work::Work;

/// So many of the comparisons against a claim are listed, the farthest first.
const LISTED: usize = 1;

/// A section for each figure, behind the totals.
pub(super) fn section(out: &mut String, work: &Work, base: &WorkOutcome) {
    totals(out, work, base);
    changed(out, base);
    apart(out, base);
    let _ = writeln!(
        out,
        "`airlane study run {0}/FIGURE` has the numbers of a figure. Pictures have what was printed as short lines, with a \
         band of what is the same (`python -m airlane.figures RESULTS --out docs/lab/figures --format svg`). A row counts comparisons that agree, and has the verdict by the rule for numbers where that \
         differs. Of what misses or is near the farthest comparison follows: what was measured, what it is held against.\n",
        work.id
    );
    if let Some(front) = &work.front {
        let _ = writeln!(out, "{}\n", front.trim());
    }
    clusters(out, work, base);
    for study in &work.studies {
        let claims = base.claims.iter().chain(&base.apart);
        let claims: Vec<&ClaimOutcome> = claims
            .filter(|c| c.study == study.id && c.class.is_none())
            .collect();
        if claims.is_empty() {
            continue;
        }
        let _ = writeln!(out, "### {}\n\n{}.\n", study.id, study.title);
        let measured = base.studies.iter().find(|s| s.id == study.id);
        if measured.is_some_and(|s| s.figure.is_some()) {
            let _ = writeln!(out, "![{1}](figures/{0}/{1}.svg)\n", work.id, study.id);
        }
        out.push_str("|claim|published|agree|verdict|by numbers|\n|---|---|---|---|---|\n");
        for claim in &claims {
            let before = claim.before.filter(|before| Some(*before) != claim.verdict);
            let before = before.map_or("", Verdict::word);
            let measured = if claim.comparisons.is_empty() {
                cell(&claim.measured)
            } else {
                agreement(claim)
            };
            let _ = writeln!(
                out,
                "|{}|{}|{measured}|{}|{before}|",
                claim.id,
                cell(&claim.published),
                word(claim.verdict)
            );
        }
        out.push('\n');
        for claim in &claims {
            against(out, work, base, claim);
        }
    }
}

fn agreement(claim: &ClaimOutcome) -> String {
    let Some(counts) = claim.agreement else {
        return String::new();
    };
    let ties = if counts.consistent > 0 {
        format!(", {} ties", counts.consistent)
    } else {
        String::new()
    };
    format!("{} of {}{ties}", counts.agree, counts.all)
}

/// By the first digit of a study's name.
fn chapter(study: &str) -> String {
    let digits = study.trim_start_matches(|c: char| !c.is_ascii_digit());
    digits
        .chars()
        .next()
        .map_or_else(|| "all".to_owned(), |digit| digit.to_string())
}

/// Where Markdown puts the section of this heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || *c == '-');
    kept.flat_map(char::to_lowercase).collect()
}

/// Totals by chapter, each with its figures.
fn totals(out: &mut String, work: &Work, base: &WorkOutcome) {
    let mut chapters: BTreeMap<String, (VerdictCounts, [usize; 3])> = BTreeMap::new();
    for claim in &base.claims {
        let (counts, comparisons) = chapters.entry(chapter(&claim.study)).or_default();
        counts.count(claim.verdict);
        if let Some(agreement) = claim.agreement {
            comparisons[0] += agreement.agree;
            comparisons[1] += agreement.consistent;
            comparisons[2] += agreement.all;
        }
    }
    out.push_str(
        "|chapter|hold|consistent|near|miss|source inconsistent|comparisons that agree|ties|all|figures|\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    let has_section = |id: &str| {
        let claims = base.claims.iter().chain(&base.apart);
        claims
            .into_iter()
            .any(|c| c.study == id && c.class.is_none())
    };
    for (chapter, (counts, [agree, ties, all])) in chapters {
        let VerdictCounts {
            holds,
            consistent,
            near,
            misses,
            inconsistent,
        } = counts;
        let ids = work.studies.iter().map(|study| study.id.as_str());
        let figures = ids.filter(|id| self::chapter(id) == chapter && has_section(id));
        let links: Vec<String> = figures
            .map(|id| format!("[{id}](#{})", anchor(id)))
            .collect();
        let _ = writeln!(
            out,
            "|{chapter}|{holds}|{consistent}|{near}|{misses}|{inconsistent}|{agree}|{ties}|{all}|{}|",
            links.join(" ")
        );
    }
    out.push('\n');
}

/// How many claims are counted apart, by class.
fn apart(out: &mut String, base: &WorkOutcome) {
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    for claim in &base.apart {
        *classes
            .entry(claim.class.map_or("", crate::claim::ClaimClass::word))
            .or_default() += 1;
    }
    let texts: Vec<String> = classes
        .iter()
        .map(|(class, count)| format!("{class} {count}"))
        .collect();
    if !texts.is_empty() {
        let _ = writeln!(out, "Counted apart, by class: {}.\n", texts.join(", "));
    }
}

/// How many claims the rule for curves judges otherwise than the one for numbers, on the same results.
fn changed(out: &mut String, base: &WorkOutcome) {
    let mut moves: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for claim in &base.claims {
        if let (Some(before), Some(after)) = (claim.before, claim.verdict)
            && before != after
        {
            *moves.entry((before.word(), after.word())).or_default() += 1;
        }
    }
    if moves.is_empty() {
        return;
    }
    let texts: Vec<String> = moves
        .iter()
        .map(|((from, to), count)| format!("{count} from {from} to {to}"))
        .collect();
    let _ = writeln!(
        out,
        "On the same results the rule for curves moves these verdicts of the rule for numbers: {}.\n",
        texts.join(", ")
    );
}

fn is_open(claim: &ClaimOutcome) -> bool {
    matches!(claim.verdict, Some(Verdict::Misses | Verdict::Near) | None)
}

/// Which claims that miss or are near hang on which experiment, and which on none.
fn clusters(out: &mut String, work: &Work, base: &WorkOutcome) {
    if work.clusters.is_empty() {
        return;
    }
    let hangs = |claim: &ClaimOutcome, link: &str| {
        let note = work.notes.get(&claim.id).map_or("", String::as_str);
        note.contains(&format!("({link})"))
    };
    let links = |claims: &mut dyn Iterator<Item = &ClaimOutcome>| {
        let links = claims.map(|c| format!("[{}](#{})", c.id, anchor(&c.study)));
        links.collect::<Vec<_>>().join(" ")
    };
    out.push_str("|cluster|claims that miss or are near for it|what its experiment settles|\n|---|---|---|\n");
    for cluster in &work.clusters {
        let mut own = base
            .claims
            .iter()
            .filter(|c| is_open(c) && hangs(c, &cluster.link));
        let own = links(&mut own);
        let _ = writeln!(
            out,
            "|[{}]({})|{own}|{}|",
            cluster.title, cluster.link, cluster.settles
        );
    }
    let belongs = |claim: &ClaimOutcome| work.clusters.iter().any(|c| hangs(claim, &c.link));
    let mut alone = base.claims.iter().filter(|c| is_open(c) && !belongs(c));
    let alone = links(&mut alone);
    if !alone.is_empty() {
        let _ = writeln!(out, "|none|{alone}|their causes stand beside them|");
    }
    out.push('\n');
}

fn against(out: &mut String, work: &Work, base: &WorkOutcome, claim: &ClaimOutcome) {
    if let Some(first) = claim.contradicted.first() {
        let more = claim.contradicted.len() - 1;
        let others = if more > 0 {
            format!(" `airlane study lint {}` names {more} more.", work.id)
        } else {
            String::new()
        };
        // In the source's words, and so with its numbers.
        let named = |other: &&ClaimOutcome| {
            let mut words = first.split([' ', ':']);
            other.id != claim.id && words.any(|word| word == other.id)
        };
        let quoted = base.claims.iter().filter(named);
        let quoted: Vec<String> = quoted
            .map(|other| format!("{}: \u{201c}{}\u{201d}", other.id, cell(&other.published)))
            .collect();
        let _ = writeln!(
            out,
            "**{}** is contradicted: {}. {}.{others}\n",
            claim.id,
            cell(first),
            quoted.join("; ")
        );
    }
    if !is_open(claim) {
        return;
    }
    let mut failing: Vec<&Comparison> = claim
        .comparisons
        .iter()
        .filter(|c| c.verdict < Verdict::Consistent)
        .collect();
    failing.sort_by(|a, b| {
        a.verdict
            .cmp(&b.verdict)
            .then(a.probability.total_cmp(&b.probability))
    });
    let texts: Vec<String> = failing.iter().take(LISTED).map(|c| one(c)).collect();
    let texts = match texts[..] {
        [] => "not measured".to_owned(),
        _ => texts.join("; "),
    };
    let more = failing.len().saturating_sub(LISTED);
    let others = if more > 0 {
        format!("; {more} more")
    } else {
        String::new()
    };
    let cause = work
        .notes
        .get(&claim.id)
        .map_or("Cause: open.", |note| note.trim());
    let _ = writeln!(out, "**{}**: {texts}{others}. {cause}\n", claim.id);
}

fn one(c: &Comparison) -> String {
    let at = if c.at.is_empty() {
        String::new()
    } else {
        format!(" at {}", c.at.join(" "))
    };
    format!(
        "`{}`{at}: {}, {} ± {}",
        c.check,
        number(c.measured),
        number(c.against),
        number(c.ci95_half_width)
    )
}

/// Three digits.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "nothing".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = 2 - libm::floor(libm::log10(value.abs())) as i32;
    format!("{value:.*}", digits.clamp(0, 9) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_figures_their_chapters() {
        assert_eq!(number(0.012_345), "0.0123");
        assert_eq!(number(12_345.6), "12346");
        assert_eq!(number(0.0), "0");
        assert_eq!(number(f64::NAN), "nothing");
        assert_eq!(chapter("F4.12-LAN2"), "4");
        assert_eq!(chapter("background"), "all");
        assert_eq!(anchor("F4.12-LAN2"), "f412-lan2");
    }
}
