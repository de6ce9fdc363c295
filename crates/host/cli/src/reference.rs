//! The reference of all keys of a kind of file, generated from its schema: `docs/reference/*.md`.

mod description;
mod table;

use airlane_base::schema::FileSchema;

use crate::args::FileKind;
#[cfg(test)]
pub(crate) use description::{Described, described};
use table::Tables;

/// The reference of a kind of file with this schema.
pub(crate) fn markdown(kind: FileKind, schema: &FileSchema) -> String {
    let (title, name, elsewhere): (_, _, &[_]) = match kind {
        #[cfg(feature = "lab")]
        FileKind::Scenario => ("Scenario files", "scenario", &[]),
        #[cfg(feature = "live")]
        FileKind::Live => (
            "Files of a live link",
            "live",
            // Goals choose schemes; people who state one are advanced, and find it where studies state theirs.
            &[(
                ".scheme",
                "[advanced: schemes](scenario.md#linksnameservicesscheme)",
            )],
        ),
        #[cfg(feature = "live")]
        FileKind::Air => ("Files of the emulator", "air", &[]),
        #[cfg(feature = "lab")]
        FileKind::Study => ("Files of studies", "study", &[]),
        #[cfg(feature = "lab")]
        FileKind::StudyPart => ("Parts of studies", "study-part", &[]),
        #[cfg(feature = "lab")]
        FileKind::StudyWork => ("Files of works", "study-work", &[]),
    };
    let mut text = format!(
        "# {title}: every key\n\nMade from the types that read them, by `airlane schema {name} --markdown`; \
         `make reference` writes this page anew.\n\nWith `airlane schema {name} > airlane-{name}.json`, and \
         `#:schema ./airlane-{name}.json` in the first line of a file, editors that know JSON Schema for \
         TOML (Taplo, Even Better TOML) complete its keys and check them.\n\nIn the names of sections, NAME \
         is a name of your own and `[]` an entry of a list. What has no default must be given.\n"
    );
    text += &Tables::new(schema, "The file", elsewhere).render();
    text
}
