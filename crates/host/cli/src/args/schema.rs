//! Arguments of `airlane schema`.

use clap::{Args, ValueEnum};

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub struct SchemaArgs {
    /// Which kind of file
    #[arg(value_enum)]
    pub of: FileKind,
    /// Print the reference of its keys instead, as Markdown
    #[arg(long)]
    pub markdown: bool,
}

/// The kinds of files that people write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileKind {
    /// What `airlane sim` runs.
    #[cfg(feature = "lab")]
    Scenario,
    /// What `airlane up` reads.
    #[cfg(feature = "live")]
    Live,
    /// What `airlane air` reads.
    #[cfg(feature = "live")]
    Air,
    /// A figure or table of a published work.
    #[cfg(feature = "lab")]
    Study,
    /// A piece of scenarios that studies put together.
    #[cfg(feature = "lab")]
    StudyPart,
    /// What the studies of a work share.
    #[cfg(feature = "lab")]
    StudyWork,
}

#[cfg(feature = "lab")]
pub(super) const EXAMPLES: &str = "\
Examples:
  airlane schema scenario > airlane-scenario.json   # and `#:schema ./airlane-scenario.json` in a file
  airlane schema live > airlane-live.json
  airlane schema study --markdown";
#[cfg(not(feature = "lab"))]
pub(super) const EXAMPLES: &str = "\
Examples:
  airlane schema live > airlane-live.json   # and `#:schema ./airlane-live.json` in a file";
