//! What is said of a file that cannot work.

/// A service table that cannot work. `path` is relative to the link's table.
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

/// Takes note of what is wrong: where, what, and what would be right.
pub(super) type Wrong<'a> = &'a mut dyn FnMut(String, String, &str);
