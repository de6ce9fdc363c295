//! Makes scenarios from the settings of other tools: `tc qdisc` with netem, and Mahimahi's shells.
//!
//! A command becomes one link and a flow over it, as the text of a scenario file. What a link here cannot do is left
//! out or approximated, and reported: each such point is a note in [`ImportedScenario`] and a comment in the file.
//! Input that is not understood is refused, with its position.

mod direction;
mod mahimahi;
mod netem;
mod words;
mod write;

pub use mahimahi::from_mahimahi;
pub use netem::{NetemChoice, from_netem};
pub use words::ImportError;

/// A scenario, and how it differs from the original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedScenario {
    /// A scenario file.
    pub text: String,
    /// One line for each feature that a link here lacks or does differently.
    pub notes: Vec<String>,
    /// Files that the scenario names and that belong next to it: their names and contents.
    pub beside: Vec<(String, String)>,
}

/// An application that runs over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedApp {
    /// An endless TCP transfer.
    File,
    /// Web pages.
    Web,
    /// Speech over UDP.
    Voice,
}
