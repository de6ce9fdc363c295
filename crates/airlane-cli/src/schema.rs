//! `airlane schema`: what may stand in a file, for editors and for people.

use airlane_base::schema::FileSchema;
use airlane_live::air::AirConfig;
use airlane_live::config::LiveConfig;
use airlane_sim::Scenario;
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
        FileKind::Scenario => FileSchema::of::<Scenario>(),
        FileKind::Live => FileSchema::of::<LiveConfig>(),
        FileKind::Air => FileSchema::of::<AirConfig>(),
        FileKind::Study => study::study(),
        FileKind::StudyPart => study::part(),
        FileKind::StudyWork => study::work(),
    }
}
