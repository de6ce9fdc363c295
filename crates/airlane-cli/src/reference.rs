//! The reference of all keys of a kind of file, made from its schema: `docs/reference/*.md`.

mod description;
mod table;

use airlane_base::schema::FileSchema;

use crate::args::FileKind;
use table::Tables;

/// The reference of a kind of file, which has this schema.
pub(crate) fn markdown(kind: FileKind, schema: &FileSchema) -> String {
    let (title, name, root) = match kind {
        #[cfg(feature = "lab")]
        FileKind::Scenario => ("Scenario files", "scenario", "The file"),
        #[cfg(feature = "live")]
        FileKind::Live => ("Files of a live link", "live", "The file"),
        #[cfg(feature = "live")]
        FileKind::Air => ("Files of the emulator", "air", "The file"),
        #[cfg(feature = "lab")]
        FileKind::Study => ("Files of studies", "study", "The file"),
        #[cfg(feature = "lab")]
        FileKind::StudyPart => ("Parts of studies", "study-part", "The file"),
        #[cfg(feature = "lab")]
        FileKind::StudyWork => ("Files of works", "study-work", "The file"),
    };
    let mut text = format!(
        "# {title}: every key\n\nMade from the types that read them, by `airlane schema {name} --markdown`; \
         `make reference` writes this page anew.\n\nWith `airlane schema {name} > airlane-{name}.json`, and \
         `#:schema ./airlane-{name}.json` in the first line of a file, editors that know JSON Schema for \
         TOML (Taplo, Even Better TOML) complete its keys and check them.\n\nIn the names of sections, NAME \
         is a name of your own and `[]` an entry of a list. What has no default must be given.\n"
    );
    text += &Tables::new(schema, root).render();
    text
}

/// Every reference, with its place in the sources.
#[cfg(all(test, feature = "live", feature = "lab"))]
const ALL: [(FileKind, &str); 6] = [
    (FileKind::Scenario, "docs/reference/scenario.md"),
    (FileKind::Live, "docs/reference/live.md"),
    (FileKind::Air, "docs/reference/air.md"),
    (FileKind::Study, "docs/reference/study.md"),
    (FileKind::StudyPart, "docs/reference/study-part.md"),
    (FileKind::StudyWork, "docs/reference/study-work.md"),
];

#[cfg(all(test, feature = "live", feature = "lab"))]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::description::{Described, described};
    use super::*;
    use crate::schema;

    #[test]
    fn the_references_in_the_documents_are_current() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (kind, file) in ALL {
            let written = std::fs::read_to_string(sources.join(file)).unwrap_or_default();
            let current = written == markdown(kind, &schema::of(kind));
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
}
