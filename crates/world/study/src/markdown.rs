//! Verdicts as Markdown: a page for each work, and one for several.

mod overview;
mod tables;
mod words;
mod work;

use crate::outcome::WorkOutcome;
use crate::work::Work;

/// A page, and the suffix of its file name; the first page has none.
pub struct Page {
    /// The id of its work.
    pub of: Option<String>,
    /// Its Markdown.
    pub text: String,
}

/// The pages for these outcomes: that of their only work, or one over all of them, which links to
/// `NAME-WORK.md`, and one for each. `works` are those of the outcomes. A work without claims gets
/// its measured values, a table for each figure.
pub fn markdown(outcomes: &[WorkOutcome], works: &[&Work], name: &str) -> Vec<Page> {
    let mut found = vec![];
    for work in works {
        let mut variants = outcomes.iter().filter(|outcome| outcome.work == work.id);
        if let Some(base) = variants.next() {
            found.push((*work, base, variants.collect::<Vec<_>>()));
        }
    }
    let page = |(work, base, others): &(&Work, &WorkOutcome, Vec<&WorkOutcome>)| {
        if base.claims_nothing() {
            tables::page(work, base)
        } else {
            work::page(work, base, others)
        }
    };
    if let [only] = found.as_slice() {
        return vec![Page {
            of: None,
            text: page(only),
        }];
    }
    let bases: Vec<(&Work, &WorkOutcome)> =
        found.iter().map(|(work, base, _)| (*work, *base)).collect();
    let over = Page {
        of: None,
        text: overview::page(&bases, name),
    };
    let each = found.iter().map(|found| Page {
        of: Some(found.0.id.clone()),
        text: page(found),
    });
    std::iter::once(over).chain(each).collect()
}
