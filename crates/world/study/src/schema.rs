//! The schemas of the files of a work.

use airlane_base::schema::FileSchema;

use crate::study::{Part, StudyFile};
use crate::work::WorkFile;

/// The schema of a study's file.
pub fn study() -> FileSchema {
    FileSchema::of::<StudyFile>()
}

/// The schema of `parts/*.toml`.
pub fn part() -> FileSchema {
    FileSchema::of::<Part>()
}

/// The schema of `work.toml`.
pub fn work() -> FileSchema {
    FileSchema::of::<WorkFile>()
}
