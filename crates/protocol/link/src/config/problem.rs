//! The error for a configuration that cannot work.

/// A problem of a service table. `path` is relative to the link's table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}; {help}")]
pub struct ConfigError {
    /// Where: `services[1].number`.
    pub path: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub help: String,
}

/// Records a problem: its path, what is wrong, and what would be right.
pub(super) type Wrong<'a> = &'a mut dyn FnMut(String, String, &str);
