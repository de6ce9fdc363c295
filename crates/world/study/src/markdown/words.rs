//! Wording that several pages share.

use std::collections::BTreeMap;

use crate::claim::ClaimClass;
use crate::outcome::{ClaimOutcome, WorkOutcome};
use crate::verdict::Verdict;
use crate::work::Work;

/// Escapes bars, which would end the cell.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The word for a verdict; a miss stands out.
pub(super) const fn word(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Misses) => "**misses**",
        Some(verdict) => verdict.word(),
        None => "",
    }
}

/// Whether a claim needs a cause: it is near, missed or not measured.
pub(super) fn is_open(claim: &ClaimOutcome) -> bool {
    matches!(claim.verdict, Some(Verdict::Misses | Verdict::Near) | None)
}

/// The options that give the same results again.
pub(super) fn options(work: &Work, base: &WorkOutcome) -> String {
    let seed = match base.seed {
        seed if seed == work.seed => String::new(),
        seed => format!(" --seed {seed}"),
    };
    format!("--runs {}{seed}", base.runs)
}

/// How many claims are counted apart, by class.
pub(super) fn classes(base: &WorkOutcome) -> String {
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    for claim in &base.apart {
        *classes
            .entry(claim.class.map_or("", ClaimClass::word))
            .or_default() += 1;
    }
    let texts: Vec<String> = classes
        .iter()
        .map(|(class, count)| format!("{count} {class}"))
        .collect();
    match texts.as_slice() {
        [] => "none".to_owned(),
        texts => texts.join(", "),
    }
}
