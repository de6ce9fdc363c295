//! The schemas of the files of a work.

use airlane_base::schema::FileSchema;

use crate::study::{Part, StudyFile};
use crate::work::WorkFile;

/// That of a study.
pub fn study() -> FileSchema {
    FileSchema::of::<StudyFile>()
}

/// That of `parts/*.toml`.
pub fn part() -> FileSchema {
    FileSchema::of::<Part>()
}

/// That of `work.toml`.
pub fn work() -> FileSchema {
    FileSchema::of::<WorkFile>()
}
