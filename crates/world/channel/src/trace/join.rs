//! Joins the recordings of the two ends of a link.

use super::Trace;
use super::path::Way;
use super::record::TraceHeader;

/// Why two recordings cannot be joined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// One recording already has the views of both ends.
    #[error("\"{name}\" has the views of both ends already; join the recordings of single ends")]
    Joined {
        /// Name of the recording.
        name: String,
    },
    /// The recordings have no frame in common.
    #[error(
        "no frame that one end sent was received in the other's recording, either way; record both ends of \
         one link at the same time"
    )]
    Strangers,
}

impl Trace {
    /// Joins the recordings of the two ends.
    ///
    /// # Errors
    /// If they are not of the two ends of one link at the same time.
    pub fn join(near: Self, far: Self) -> Result<Self, JoinError> {
        if let Some(both) = [&near, &far].into_iter().find(|t| !t.far.is_empty()) {
            let name = both.header.name.clone();
            return Err(JoinError::Joined { name });
        }
        let joined = Self {
            header: TraceHeader {
                name: format!("{} and {}", near.header.name, far.header.name),
                ..near.header
            },
            near: near.near,
            far: far.near,
            cut_at: None,
        };
        let common = [Way::In, Way::Out].into_iter().any(|way| {
            let path = joined.path(way);
            path.is_some_and(|path| path.received > 0)
        });
        if !common {
            return Err(JoinError::Strangers);
        }
        Ok(joined)
    }
}
