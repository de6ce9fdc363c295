//! `airlane schema`: what may stand in a file, for editors and for people.

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
