//! Scenarios made of what other tools were told: `tc qdisc` with netem, and Mahimahi's shells.
//!
//! A command there becomes one link here and a flow over it, as the text of a scenario file. What a
//! link here cannot do is left out or put as near as it can be, and said so: each [`ImportedScenario`] has a note
//! for each of these, and the file has them as comments. What is not understood is refused, with its
//! place.

mod direction;
mod mahimahi;
mod netem;
mod words;
mod write;

pub use mahimahi::from_mahimahi;
pub use netem::{NetemChoice, from_netem};
pub use words::ImportError;

/// A scenario, and what of it is not as it was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedScenario {
    /// A scenario file.
    pub text: String,
    /// One line for each thing that a link here does otherwise or not at all.
    pub notes: Vec<String>,
    /// Files that it names and that belong beside it: their names and texts.
    pub beside: Vec<(String, String)>,
}

/// An application that runs over the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportedApp {
    /// A TCP transfer that does not end.
    File,
    /// Web pages.
    Web,
    /// Speech over UDP.
    Voice,
}
