//! What a claim found, in words.

use crate::verdict::Verdict;

/// More comparisons than these are not listed if they hold.
const LISTED: usize = 6;

/// All of a few comparisons; of many, those that do not hold.
pub(super) fn summary(found: &[(Verdict, String)]) -> String {
    let texts = |all: &mut dyn Iterator<Item = &(Verdict, String)>| -> Vec<String> {
        all.map(|(_, text)| text.clone()).collect()
    };
    if found.len() <= LISTED {
        return texts(&mut found.iter()).join("; ");
    }
    let failing = texts(
        &mut found
            .iter()
            .filter(|(verdict, _)| *verdict < Verdict::Holds),
    );
    let good = found.len() - failing.len();
    match (failing.as_slice(), good) {
        ([], all) => format!("all {all} comparisons are as published"),
        (failing, 0) => failing.join("; "),
        (failing, good) => format!("{}; the other {good} are as published", failing.join("; ")),
    }
}

/// In parentheses, if it has several parts.
pub(super) fn grouped(text: &str) -> String {
    let mut depth = 0;
    let several = text.chars().any(|c| {
        depth += i32::from(matches!(c, '[' | '(')) - i32::from(matches!(c, ']' | ')'));
        depth == 0 && c.is_whitespace()
    });
    if several {
        format!("({text})")
    } else {
        text.to_owned()
    }
}

/// `1.02 (L1)`, and what is wrong with it.
pub(super) fn labelled(text: &str, place: &[String], verdict: Verdict) -> String {
    let mut words: Vec<&str> = place.iter().map(String::as_str).collect();
    if verdict != Verdict::Holds {
        words.push(verdict.word());
    }
    if words.is_empty() {
        text.to_owned()
    } else {
        format!("{text} ({})", words.join(", "))
    }
}
