//! `--set`, which several verbs take.

use clap::Args;

// Not a doc comment, in which the brackets would be a link.
const SET_HELP: &str = "Change one value of the file, such as links.radio.services[voice].rate=0.5";

/// Assignments on top of a file.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Values by path, each `KEY=VALUE`.
    #[arg(long = "set", value_name = "KEY=VALUE", help = SET_HELP)]
    pub set: Vec<String>,
}
