//! `airlane schema`: prints which keys and values a file may have, for editors and for people.

use airlane_base::schema::FileSchema;
#[cfg(feature = "live")]
use airlane_live::{air::AirConfig, config::LiveConfig};
#[cfg(feature = "lab")]
use airlane_sim::Scenario;
#[cfg(feature = "lab")]
use airlane_study::schema as study;

use crate::args::{FileKind, SchemaArgs};
use crate::{output, reference};

/// Runs `schema`.
pub(crate) fn schema(args: &SchemaArgs) -> anyhow::Result<()> {
    let schema = of(args.of);
    let text = if args.markdown {
        reference::markdown(args.of, &schema)
    } else {
        format!("{:#}\n", schema.json())
    };
    output::print(&text)
}

/// The schema of a kind of file.
pub(crate) fn of(kind: FileKind) -> FileSchema {
    match kind {
        #[cfg(feature = "lab")]
        FileKind::Scenario => FileSchema::of::<Scenario>(),
        #[cfg(feature = "live")]
        FileKind::Live => FileSchema::of::<LiveConfig>(),
        #[cfg(feature = "live")]
        FileKind::Air => FileSchema::of::<AirConfig>(),
        #[cfg(feature = "lab")]
        FileKind::Study => study::study(),
        #[cfg(feature = "lab")]
        FileKind::StudyPart => study::part(),
        #[cfg(feature = "lab")]
        FileKind::StudyWork => study::work(),
    }
}

#[cfg(all(test, feature = "live", feature = "lab"))]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::reference::{Described, described, markdown};

    /// Every reference and its path in the repository.
    const ALL: [(FileKind, &str); 6] = [
        (FileKind::Scenario, "docs/reference/scenario.md"),
        (FileKind::Live, "docs/reference/live.md"),
        (FileKind::Air, "docs/reference/air.md"),
        (FileKind::Study, "docs/reference/study.md"),
        (FileKind::StudyPart, "docs/reference/study-part.md"),
        (FileKind::StudyWork, "docs/reference/study-work.md"),
    ];

    #[test]
    fn the_references_in_the_documents_are_current() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        for (kind, file) in ALL {
            let written = std::fs::read_to_string(sources.join(file)).unwrap_or_default();
            let current = written == markdown(kind, &of(kind));
            assert!(current, "{file} is stale: `make reference` writes it anew");
        }
    }

    /// Calls `check` with the place and schema of every key of every table.
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
            let schema = of(kind);
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
