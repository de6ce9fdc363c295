//! Converts Markdown to plain text: notes are also shown on terminals and on pages that do not
//! render Markdown.

/// `markdown` without its markup. A link, which is relative to `docs/lab`, keeps its target
/// relative to the root of the repository.
pub(crate) fn plain(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some((before, words, target, after)) = next_link(rest) {
        let document = target.split('#').next().unwrap_or_default();
        text.push_str(&format!("{before}{words} (docs/lab/{document})"));
        rest = after;
    }
    text.push_str(rest);
    text.replace("**", "").replace('`', "")
}

/// The text before the first `[words](target)`, its two parts, and the text after it.
fn next_link(text: &str) -> Option<(&str, &str, &str, &str)> {
    let (left, right) = text.split_once("](")?;
    let (before, words) = left.rsplit_once('[')?;
    let (target, after) = right.split_once(')')?;
    Some((before, words, target, after))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::work::Work;

    #[test]
    fn markup_is_removed_and_links_show_their_targets() {
        let note = "[Snoop](experiments.md#snoop), **not** [Web](experiments.md); see `a [x]`.";
        let text = "Snoop (docs/lab/experiments.md), not Web (docs/lab/experiments.md); see a [x].";
        assert_eq!(plain(note), text);
    }

    #[test]
    fn no_displayed_text_of_a_work_has_markup() {
        let marked = |text: &str| text.contains("](") || text.contains('`') || text.contains("**");
        for work in Work::here_and_shipped(Path::new("none")).unwrap() {
            let claims = work.studies.iter().flat_map(|study| &study.claims);
            let shown =
                claims.flat_map(|claim| [Some(claim.published.clone()), claim.reason.clone()]);
            let titles = work.studies.iter().map(|study| study.title.clone());
            let others = work.alternatives.values().map(|other| other.title.clone());
            let notes = work.notes.values().map(|note| plain(&note.text));
            for text in shown.flatten().chain(titles).chain(others).chain(notes) {
                assert!(!marked(&text), "{}: {text}", work.id);
            }
        }
    }
}
