//! What stands in the cells of both kinds of pages.

use crate::verdict::Verdict;

/// A bar would end the cell.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A verdict; what misses stands out.
pub(super) const fn word(verdict: Option<Verdict>) -> &'static str {
    match verdict {
        Some(Verdict::Holds) => "holds",
        Some(Verdict::Consistent) => "consistent",
        Some(Verdict::SourceInconsistent) => "source inconsistent",
        Some(Verdict::Near) => "near",
        Some(Verdict::Misses) => "**misses**",
        None => "",
    }
}
