//! The reference of all keys of a kind of file, made from its schema: `docs/reference-*.md`.

mod table;

use serde_json::Value;

use crate::args::FileKind;
use crate::schema;
use table::Tables;

/// The reference of a kind of file.
pub(crate) fn markdown(kind: FileKind) -> String {
    let (title, name, root) = match kind {
        FileKind::Scenario => ("Scenario files", "scenario", "The file"),
        FileKind::Live => ("Files of a live link", "live", "The file"),
        FileKind::Air => ("Files of the emulator", "air", "The file"),
        FileKind::Study => ("Files of studies", "study", "The file"),
        FileKind::StudyPart => ("Parts of studies", "study-part", "The file"),
        FileKind::StudyWork => ("Files of works", "study-work", "The file"),
    };
    let schema = schema::of(kind);
    let mut text = format!(
        "# {title}: every key\n\nMade from the types that read them, by `airlane schema {name} --markdown`; \
         `make reference` writes this page anew.\n\nWith `airlane schema {name} > airlane-{name}.json`, and \
         `#:schema ./airlane-{name}.json` in the first line of a file, editors that know JSON Schema for \
         TOML (Taplo, Even Better TOML) complete its keys and check them.\n\nIn the names of sections, NAME \
         is a name of your own and `[]` an entry of a list. What has no default must be given.\n"
    );
    text += &Tables::new(&schema, root).render();
    text
}

/// What a description says: the meaning, what holds where the key is left out, and the source.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) meaning: String,
    pub(crate) left_out: Option<String>,
    pub(crate) source: Option<String>,
}

/// Takes the sentences that begin with `Left out:` and `Source:` out of a description.
pub(crate) fn described(schema: &Value) -> Described {
    let text = schema.get("description").and_then(Value::as_str);
    let mut rest = text.unwrap_or_default().replace('\n', " ");
    let left_out = take(&mut rest, "Left out:");
    let source = take(&mut rest, "Source:");
    let meaning = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    Described {
        meaning,
        left_out,
        source,
    }
}

/// Cuts the sentence that begins with `start` out of `text`.
fn take(text: &mut String, start: &str) -> Option<String> {
    let from = text.find(start)?;
    let sentence = &text[from + start.len()..];
    // A sentence ends before a capital: units and abbreviations end with a dot, too.
    let end = sentence
        .match_indices(". ")
        .find(|(at, _)| sentence[at + 2..].starts_with(|c: char| c.is_ascii_uppercase()))
        .map_or(sentence.len(), |(at, _)| at + 1);
    let taken = sentence[..end].trim().trim_end_matches('.').to_owned();
    text.replace_range(from..from + start.len() + end, "");
    Some(taken)
}

/// Every reference, with its place in the sources.
#[cfg(test)]
const ALL: [(FileKind, &str); 6] = [
    (FileKind::Scenario, "docs/reference-scenario.md"),
    (FileKind::Live, "docs/reference-live.md"),
    (FileKind::Air, "docs/reference-air.md"),
    (FileKind::Study, "docs/reference-study.md"),
    (FileKind::StudyPart, "docs/reference-study-part.md"),
    (FileKind::StudyWork, "docs/reference-study-work.md"),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_references_in_the_documents_are_current() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (kind, file) in ALL {
            let written = std::fs::read_to_string(sources.join(file)).unwrap_or_default();
            let current = written == markdown(kind);
            assert!(current, "{file} is stale: `make reference` writes it anew");
        }
    }

    /// Calls `check` with every key of every table, where it stands and what is said about it.
    fn each_key(schema: &Value, at: &str, check: &mut impl FnMut(&str, &Value)) {
        match schema {
            Value::Object(object) => {
                for (word, inner) in object {
                    let properties = inner.as_object().filter(|_| word == "properties");
                    for (key, value) in properties.into_iter().flatten() {
                        check(&format!("{at}.{key}"), value);
                    }
                    each_key(inner, &format!("{at}/{word}"), check);
                }
            }
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    each_key(item, &format!("{at}/{i}"), check);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn every_key_has_a_meaning_in_whole_sentences() {
        for (kind, _) in ALL {
            let schema = schema::of(kind);
            each_key(schema.json(), "", &mut |at, value| {
                if value.get("const").is_some() {
                    return;
                }
                let Described { meaning, .. } = described(value);
                assert!(meaning.ends_with('.'), "{kind:?} {at}: {meaning:?}");
                assert!(!meaning.contains("[`"), "{kind:?} {at}: {meaning:?}");
            });
        }
    }

    #[test]
    fn a_description_is_taken_apart_at_its_sentences() {
        let schema = serde_json::json!({
            "description": "How long\nit waits. Left out: 1.5 s, of `rlp` 2 s. Source: RFC 6298. Live only.",
        });
        let expected = Described {
            meaning: "How long it waits. Live only.".to_owned(),
            left_out: Some("1.5 s, of `rlp` 2 s".to_owned()),
            source: Some("RFC 6298".to_owned()),
        };
        assert_eq!(described(&schema), expected);
    }
}
