//! Words for the outcome of a claim.

/// Adds parentheses if the text has several parts.
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

/// A value with its place: `1.02 (L1)`.
pub(super) fn labelled(text: &str, place: &[String]) -> String {
    match place {
        [] => text.to_owned(),
        place => format!("{text} ({})", place.join(", ")),
    }
}
