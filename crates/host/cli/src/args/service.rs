//! Arguments of the verbs that change the services of a running link.

use clap::{Args, Subcommand, ValueHint};

use super::NodeArg;

/// The verbs of services.
#[derive(Debug, Subcommand)]
pub enum ServiceVerb {
    /// Add services
    ///
    /// SERVICE is a file with `services` and `classes` as under `link` in a live file, or one
    /// service as an inline table. New classes are matched before existing ones.
    #[command(after_help = SERVICE_ADD_EXAMPLES)]
    Add(ServiceAddArgs),
    /// Remove a service, once its queue is empty
    #[command(after_help = SERVICE_REMOVE_EXAMPLES)]
    Remove(ServiceRemoveArgs),
    /// Change the share of a service
    ///
    /// Anything else about a service is changed by `airlane reload`: the service then drains and
    /// starts anew.
    #[command(after_help = SERVICE_SET_EXAMPLES)]
    Set(ServiceSetArgs),
}

/// Arguments of `service add`.
#[derive(Debug, Args)]
pub struct ServiceAddArgs {
    /// The file, or `{ number = .., name = .., rate = .., scheme = { kind = .. } }`.
    #[arg(value_name = "SERVICE", value_hint = ValueHint::FilePath)]
    pub service: String,
    /// Which packets an inline service takes, such as '{ protocol = "udp", port = 5004 }'
    ///
    /// Can be given several times.
    #[arg(long = "match", value_name = "TOML")]
    pub matches: Vec<String>,
    /// Which link.
    #[command(flatten)]
    pub link: LinkArgs,
}

/// Arguments of `service remove`.
#[derive(Debug, Args)]
pub struct ServiceRemoveArgs {
    /// Its name.
    pub name: String,
    /// Which link.
    #[command(flatten)]
    pub link: LinkArgs,
}

/// Arguments of `service set`.
#[derive(Debug, Args)]
pub struct ServiceSetArgs {
    /// Its name.
    pub name: String,
    /// Its share of the link, relative to the others'.
    #[arg(value_name = "rate=SHARE")]
    pub value: String,
    /// Which link.
    #[command(flatten)]
    pub link: LinkArgs,
}

/// Arguments of `set`.
#[derive(Debug, Args)]
pub struct SetRateArgs {
    /// The rate, as `link.rate` in the file; "auto" goes back to finding it.
    #[arg(value_name = "rate=RATE")]
    pub value: String,
    /// Which link.
    #[command(flatten)]
    pub link: LinkArgs,
}

/// Which running link is changed, and how that is printed.
#[derive(Debug, Args)]
pub struct LinkArgs {
    /// Which link.
    #[command(flatten)]
    pub node: NodeArg,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

pub(super) const SET_EXAMPLES: &str = "\
Examples:
  airlane set rate=30Mbit/s
  airlane set 'rate=512 kbit/s' hill-top";

const SERVICE_ADD_EXAMPLES: &str = "\
Examples:
  airlane service add games.toml
  airlane service add '{ number = 7, name = \"games\", rate = 0.1, scheme = { kind = \"rlp-oos\" } }'";

const SERVICE_REMOVE_EXAMPLES: &str = "\
Examples:
  airlane service remove games
  airlane service remove games hill-top";

const SERVICE_SET_EXAMPLES: &str = "\
Examples:
  airlane service set voice rate=0.2";
