//! Arguments of the verbs that run until stopped, and of those that query them.

use std::path::PathBuf;

use airlane_base::Size;
use clap::{Args, ValueEnum, ValueHint};

// Not a doc comment: `[` in one is a link.
const SET_HELP: &str = "Change one value of the file, such as link.rate=50Mbit/s or peers[farm].weight=2, and for \
    `air` errors.rate=0.1";

/// Which running link is meant. Every verb that asks one takes this as its last argument.
#[derive(Debug, Args)]
pub struct NodeArg {
    /// The running link: its name, its file, or its control socket [default: the only one running]
    #[arg(value_name = "NODE", value_hint = ValueHint::FilePath)]
    node: Option<String>,
}

impl NodeArg {
    /// What the user wrote, if anything.
    pub fn named(&self) -> Option<&str> {
        self.node.as_deref()
    }
}

/// Arguments of the verbs that read the file of a link.
#[derive(Debug, Args)]
pub struct DaemonArgs {
    /// The file.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// Changes of the file, each `KEY=VALUE`.
    #[arg(long, value_name = "KEY=VALUE", help = SET_HELP)]
    pub set: Vec<String>,
}

/// Arguments of `reload`.
#[derive(Debug, Args)]
pub struct ReloadArgs {
    /// The file, and how changes are printed.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// Only say what would change, including what it would undo of changes by `airlane set` and
    /// `airlane service`
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of the verbs that run until they are stopped.
#[derive(Debug, Args)]
pub struct RunningArgs {
    /// The file, and how results are printed.
    #[command(flatten)]
    pub daemon: DaemonArgs,
    /// How the log on standard error is written, one line for each change of state with its reason
    ///
    /// The environment variable AIRLANE_LOG chooses its lines: error, warn, info (default), debug.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line, for programs.
    Json,
}

#[cfg(feature = "screen")]
/// Arguments of `top`.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Which link.
    #[command(flatten)]
    pub node: NodeArg,
}

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// The file, and how the log is written.
    #[command(flatten)]
    pub running: RunningArgs,
    /// Become this user before anything is opened: of root's privileges only the capabilities that
    /// a link needs are kept. The files of FILE have to be readable for the user
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Keep a journal of everything that goes into the port, including the contents of packets
    ///
    /// Of several peers each port has its own, with the peer's name before the extension. A journal that is there gets
    /// `.before` after its name.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub journal: Option<PathBuf>,
    /// End the journal, but not the link, before it exceeds this size
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1 GB",
        requires = "journal"
    )]
    pub journal_size: Size,
}

/// Arguments of `keygen`.
#[derive(Debug, Args)]
pub struct KeygenArgs {
    /// File for the key; one that exists stays as it is.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print the public key of the private key in FILE, and make none
    #[arg(long)]
    pub public: bool,
    /// Make a pre-shared key instead, which both ends name as their preshared-key
    #[arg(long, conflicts_with = "public")]
    pub preshared: bool,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Which link.
    #[command(flatten)]
    pub node: NodeArg,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// Repeat every second until Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

/// Arguments of `flows`.
#[derive(Debug, Args)]
pub struct FlowsArgs {
    /// Which link.
    #[command(flatten)]
    pub node: NodeArg,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// Show this many flows of each peer
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub most: usize,
}

/// Arguments of `pull`.
#[derive(Debug, Args)]
pub struct PullArgs {
    /// Destination of the flow
    #[arg(value_name = "HOST[:PORT]", value_hint = ValueHint::Hostname)]
    pub host: String,
    /// Which link.
    #[command(flatten)]
    pub node: NodeArg,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// Repeat every second until Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

pub(super) const PULL_EXAMPLES: &str = "\
Examples:
  airlane pull 10.7.0.2
  airlane pull 10.7.0.2:7008 hill-top --watch
  airlane pull station.example --json";

pub(super) const FLOWS_EXAMPLES: &str = "\
Examples:
  airlane flows
  airlane flows hill-top --most 5
  airlane flows /run/airlane/hill-top.sock --json";

pub(super) const UP_EXAMPLES: &str = "\
Examples:
  airlane up hill-top.toml
  airlane up hill-top.toml --log-format json
  airlane up hill-top.toml --user airlane
  airlane up hill-top.toml --set 'link.rate=50 Mbit/s'
  airlane up hill-top.toml --journal /var/tmp/hill-top.journal --journal-size 200MB";

#[cfg(feature = "screen")]
pub(super) const TOP_EXAMPLES: &str = "\
Examples:
  airlane top
  airlane top hill-top";

pub(super) const DOCTOR_EXAMPLES: &str = "\
Examples:
  airlane doctor hill-top.toml
  airlane doctor hill-top.toml --json

Exit codes: 0 nothing is bad, 1 the link cannot come up or carries nothing, 2 the file or the command line is
wrong.";

pub(super) const RELOAD_EXAMPLES: &str = "\
Examples:
  airlane reload hill-top.toml
  airlane reload hill-top.toml --dry-run
  airlane reload hill-top.toml --set link.underlay.peer=192.0.2.9:7007
  airlane reload base.toml --set peers[farm].weight=3";

pub(super) const KEYGEN_EXAMPLES: &str = "\
Examples:
  airlane keygen /etc/airlane/hill-top.key
  airlane keygen --public /etc/airlane/hill-top.key
  airlane keygen --preshared /etc/airlane/hill-top-farm.psk   # a copy of it belongs at the other end";

pub(super) const AIR_EXAMPLES: &str = "\
Examples:
  airlane air radio.toml
  airlane air radio.toml --set errors.rate=0.1 --set seed=2";

pub(super) const STATUS_EXAMPLES: &str = "\
Examples:
  airlane status
  airlane status hill-top --watch
  airlane status /run/airlane/hill-top.sock --json";
