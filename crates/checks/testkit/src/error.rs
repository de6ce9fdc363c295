//! What goes wrong where real programs run.

use std::io;
use std::path::PathBuf;

use airlane_probe::{ProbeError, ServeError};

use crate::netns::NetnsError;

/// Why an experiment could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The namespaces.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// A program of the experiment ended early, or did not come up.
    #[error("`{what}` {problem}\n{said}")]
    Program {
        /// The command.
        what: String,
        /// What is wrong with it.
        problem: String,
        /// Its last words.
        said: String,
    },
    /// The traffic.
    #[error("traffic: {0}")]
    Traffic(io::Error),
    /// The applications.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// Their server.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A file.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}
