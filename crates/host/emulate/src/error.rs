//! Errors of experiments with real programs.

use std::io;
use std::path::PathBuf;

use airlane_probe::{ProbeError, ServeError};

use crate::netns::NetnsError;

/// Why an experiment failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The namespaces.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// A program of the experiment ended early, or did not start.
    #[error("`{what}` {problem}\n{said}")]
    Program {
        /// The command.
        what: String,
        /// The problem.
        problem: String,
        /// The end of its output.
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
        /// The error of the operating system.
        source: io::Error,
    },
}
