//! Arguments of the verbs that write scenario files.

use std::path::PathBuf;

use airlane_base::Duration;
use clap::{Args, Subcommand, ValueEnum, ValueHint};

/// The verbs of scenario files.
#[derive(Debug, Subcommand)]
pub enum ScenarioVerb {
    /// List the scenarios that come with the program
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Print a scenario that comes with the program, to copy and change it
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        /// Its name, as `airlane scenario list` has it.
        name: String,
    },
    /// Translate a `tc` configuration of netem and shapers into a scenario
    ///
    /// Commands, scripts and what `tc qdisc show` and `tc class show` print are read as tc keeps them: the link is one
    /// way through qdiscs and classes. It gets rate, delay, queue and losses; a flow runs over it. What a link here does
    /// otherwise, or not at all, is named on standard error and in the file's first lines.
    #[command(after_help = FROM_NETEM_EXAMPLES)]
    FromNetem(FromNetemArgs),
    /// Translate a row of Mahimahi's shells into a scenario
    ///
    /// mm-link with its traces, mm-delay, mm-loss and mm-onoff become one link; a flow runs over it,
    /// downlink. What a link here does otherwise, or not at all, is named on standard error and in the
    /// file's first lines.
    #[command(after_help = FROM_MAHIMAHI_EXAMPLES)]
    FromMahimahi(FromMahimahiArgs),
}

/// Arguments of `scenario from-netem`.
#[derive(Debug, Args)]
pub struct FromNetemArgs {
    /// What `tc qdisc show` prints, tc commands or a script with some, or what follows `netem`; a file
    /// with that; or - for standard input.
    #[arg(value_name = "TEXT|FILE|-")]
    pub input: String,
    /// The other direction, in the same way [default: no delay, no loss]
    #[arg(long, value_name = "TEXT|FILE")]
    pub reverse: Option<String>,
    /// Which interface, where the text has several; CONTAINER/NAME where a name alone is several
    #[arg(long, value_name = "NAME")]
    pub dev: Option<String>,
    /// Which class, such as 1:10, where the interface has several
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// The interface that sends the other way, in the same text or in that of --reverse
    #[arg(long, value_name = "NAME")]
    pub reverse_dev: Option<String>,
    /// Its class
    #[arg(long, value_name = "CLASS")]
    pub reverse_class: Option<String>,
    /// What holds so far into a script that sleeps between its commands [default: rates that change become a trace
    /// beside --output]
    #[arg(long, value_name = "DURATION")]
    pub at: Option<Duration>,
    /// What is written.
    #[command(flatten)]
    pub written: WrittenArgs,
}

/// Arguments of `scenario from-mahimahi`.
#[derive(Debug, Args)]
pub struct FromMahimahiArgs {
    /// The command, from its first mm- on; a file with it; or - for standard input.
    #[arg(value_name = "TEXT|FILE|-")]
    pub input: String,
    /// What is written.
    #[command(flatten)]
    pub written: WrittenArgs,
}

/// A scenario that is written.
#[derive(Debug, Args)]
pub struct WrittenArgs {
    /// What runs over the link
    #[arg(
        long,
        value_name = "APPS",
        value_enum,
        value_delimiter = ',',
        default_value = "file"
    )]
    pub app: Vec<ScenarioApp>,
    /// Write to a file, which is replaced, instead of standard output
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// Applications of a translated scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScenarioApp {
    /// A TCP transfer that does not end.
    File,
    /// Web pages.
    Web,
    /// Speech over UDP.
    Voice,
}

const LIST_EXAMPLES: &str = "\
Examples:
  airlane scenario list";

const SHOW_EXAMPLES: &str = "\
Examples:
  airlane scenario show three-applications > world.toml";

const FROM_NETEM_EXAMPLES: &str = "\
Examples:
  airlane scenario from-netem 'tc qdisc add dev eth0 root netem delay 25ms loss 5% rate 20mbit'
  airlane scenario from-netem 'delay 25ms loss gemodel 1% 20%' --app file,web,voice --output bursts.toml
  tc qdisc show | airlane scenario from-netem - --dev eth0 --output eth0.toml
  (tc qdisc show dev eth0; tc class show dev eth0) | airlane scenario from-netem - --class 1:10
  airlane scenario from-netem setup.sh --dev veth1 --reverse-dev veth2
  airlane scenario from-netem steps.sh --output steps.toml   # and steps.down: the rates of a script that sleeps";

const FROM_MAHIMAHI_EXAMPLES: &str = "\
Examples:
  airlane scenario from-mahimahi 'mm-delay 25 mm-link LTE.up LTE.down' --output lte.toml
  airlane scenario from-mahimahi 'mm-loss uplink 0.05 mm-onoff downlink 2 0.1' --app web";
