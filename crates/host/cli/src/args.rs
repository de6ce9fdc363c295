//! Arguments of the command line. The text here is the manual: every verb has examples.

#[cfg(feature = "live")]
mod address;
#[cfg(feature = "lab")]
mod advise;
#[cfg(feature = "lab")]
mod blocks;
#[cfg(feature = "emulate")]
mod emulate;
mod groups;
#[cfg(feature = "live")]
mod import;
#[cfg(feature = "lab")]
mod lab;
#[cfg(feature = "live")]
mod live;
#[cfg(feature = "live")]
mod measure;
#[cfg(feature = "live")]
mod node;
#[cfg(feature = "lab")]
mod page;
#[cfg(feature = "live")]
mod relay;
#[cfg(feature = "lab")]
mod scenario;
mod schema;
#[cfg(feature = "live")]
mod service;
mod set;
#[cfg(feature = "live")]
mod setup;
#[cfg(feature = "live")]
mod ship;
#[cfg(feature = "lab")]
mod sim;
#[cfg(feature = "lab")]
mod study;
#[cfg(feature = "lab")]
mod trace;

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use crate::features;

#[cfg(feature = "lab")]
pub use advise::{AdviseArgs, CheckArgs, QuestionArgs};
#[cfg(feature = "lab")]
pub use blocks::{
    BlocksForm, BlocksSource, FrameLengths, RetraceOverhead, TraceConvertArgs, TraceGenerateArgs,
    TraceRetraceArgs,
};
#[cfg(feature = "emulate")]
pub use emulate::{EmulateArgs, Tolerance};
pub use groups::grouped_command;
#[cfg(feature = "live")]
pub use import::{ImportVerb, WireguardArgs};
#[cfg(feature = "lab")]
pub use lab::LabCommand;
#[cfg(feature = "live")]
pub use live::LiveCommand;
#[cfg(feature = "live")]
pub use measure::{JournalReplayArgs, JournalVerb, RecordArgs, TestApp, TestArgs};
#[cfg(feature = "screen")]
pub use node::TopArgs;
#[cfg(feature = "live")]
pub use node::{
    DaemonArgs, FlowsArgs, KeygenArgs, LogFormat, NodeArg, PullArgs, ReloadArgs, RunningArgs,
    StatusArgs, UpArgs,
};
#[cfg(feature = "lab")]
pub use page::PageArgs;
#[cfg(feature = "live")]
pub use relay::RelayArgs;
#[cfg(feature = "lab")]
pub use scenario::{FromMahimahiArgs, FromNetemArgs, ScenarioApp, ScenarioVerb, WrittenArgs};
pub use schema::{FileKind, SchemaArgs};
#[cfg(feature = "live")]
pub use service::{
    LinkArgs, ServiceAddArgs, ServiceRemoveArgs, ServiceSetArgs, ServiceVerb, SetRateArgs,
};
pub use set::SetArgs;
#[cfg(feature = "live")]
pub use setup::SetupArgs;
#[cfg(feature = "live")]
pub use ship::{RecvArgs, SendArgs, TicketArgs};
#[cfg(feature = "lab")]
pub use sim::{CompareArgs, RepeatArgs, RunArgs, SimVerb};
#[cfg(feature = "lab")]
pub use study::{
    StudiesArgs, StudyListArgs, StudyOutputArgs, StudyPageArgs, StudyReportArgs, StudyRunArgs,
    StudyScenarioArgs, StudyShowArgs, StudyVerb,
};
#[cfg(feature = "lab")]
pub use trace::{FitFamily, TraceFitArgs, TraceJoinArgs, TraceShowArgs, TraceVerb};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

const EXIT_CODES: &str = "\
Exit codes: 0 all is well, 1 the run failed, 2 the input or the command line is wrong.";

/// Carry file transfers, web pages and calls over a lossy link, each with the repair that suits it.
///
/// One protocol library runs in a simulator (`sim`) and between two real interfaces (`up`); both
/// read the same kind of file.
#[derive(Debug, Parser)]
#[command(name = "airlane", version = version(), styles = STYLES, after_help = EXIT_CODES)]
#[command(
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
#[allow(
    clippy::large_enum_variant,
    reason = "there is one, which is read once"
)]
pub enum Command {
    /// The verbs of the lab.
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Lab(LabCommand),
    /// Run a scenario with the kernel's TCP and UDP over an emulated link, and print it beside the simulation
    ///
    /// Each run makes two hosts in network namespaces, with `airlane air` and the scenario's link between them, and
    /// removes them at the end. The flows go over the bare link, or, with `node = "live"`, through `airlane up` at both
    /// ends. Run by run both worlds have the same seed and the same traffic. What no kernel has is refused: other shapes
    /// than two nodes and one link, ports without a live node, TCP of the past. Needs root.
    #[cfg(feature = "emulate")]
    #[command(after_help = emulate::EXAMPLES)]
    Emulate(EmulateArgs),
    /// Print a file with every default filled in
    ///
    /// FILE is a scenario, a daemon file or an emulator file; its keys tell which. The output is
    /// again a valid file, in which each value has its unit.
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Print what a file may contain: JSON Schema for editors, or a reference of all keys
    #[command(after_help = schema::EXAMPLES)]
    Schema(SchemaArgs),
    /// The verbs of live links.
    #[cfg(feature = "live")]
    #[command(flatten)]
    Live(LiveCommand),
    /// Write the manual pages, one for each verb, into a folder
    #[command(after_help = MANUAL_EXAMPLES)]
    Manual {
        /// The folder.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    /// Print the version of the program
    #[command(after_help = VERSION_EXAMPLES)]
    Version,
    /// Print the completion script of a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Which shell.
        shell: Shell,
    },
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The file.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Changes of the file.
    #[command(flatten)]
    pub set: SetArgs,
}

#[cfg(feature = "lab")]
const EXPLAIN_EXAMPLES: &str = "\
Examples:
  airlane explain scenarios/three-applications.toml
  airlane explain hill-top.toml --set 'link.rate=50 Mbit/s'";
#[cfg(not(feature = "lab"))]
const EXPLAIN_EXAMPLES: &str = "\
Examples:
  airlane explain hill-top.toml
  airlane explain hill-top.toml --set 'link.rate=50 Mbit/s'";

const MANUAL_EXAMPLES: &str = "\
Examples:
  airlane manual /usr/local/share/man/man1";

const VERSION_EXAMPLES: &str = "\
Examples:
  airlane version";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  airlane completions bash > /etc/bash_completion.d/airlane
  airlane completions fish > ~/.config/fish/completions/airlane.fish";

/// The commit that the program was built from; `None` if the sources came without git.
pub const COMMIT: Option<&str> = option_env!("AIRLANE_COMMIT");

/// The version of the program, its commit, the protocol version that two ends must share, and its
/// features.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let program = env!("CARGO_PKG_VERSION");
        let commit = COMMIT.unwrap_or("unknown");
        #[cfg(feature = "live")]
        let commit = format!("{commit}, protocol {}", airlane_live::status::PROTOCOL);
        format!(
            "{program}, commit {commit}, features {}",
            features::built().join(" ")
        )
    });
    &VERSION
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    /// Calls `check` with the full name of each verb without subcommands, and with the text after
    /// its help.
    fn each_verb(command: &clap::Command, parents: &str, check: &mut impl FnMut(&str, &str)) {
        let called = format!("{parents}{}", command.get_name());
        let mut verbs = command.get_subcommands().peekable();
        if verbs.peek().is_none() {
            let help = command.get_after_help().map(ToString::to_string);
            check(&called, &help.unwrap_or_default());
        }
        verbs.for_each(|verb| each_verb(verb, &format!("{called} "), check));
    }

    #[cfg(feature = "screen")]
    #[test]
    fn verbs_that_ask_a_running_link_take_it_in_the_same_way() {
        let cli = Cli::command();
        let node = |verb: &str| {
            let found = verb
                .split(' ')
                .try_fold(&cli, |at, verb| at.find_subcommand(verb));
            let found = found.unwrap_or_else(|| panic!("{verb} is no verb"));
            for option in ["link", "socket"] {
                let options = || found.get_arguments().filter_map(clap::Arg::get_long);
                assert!(options().all(|long| long != option), "{verb} --{option}");
            }
            let last = found.get_positionals().last().unwrap();
            assert!(!last.is_required_set(), "{verb}");
            let names = last.get_value_names().unwrap_or_default().join(" ");
            (names, last.get_help().unwrap().to_string())
        };
        let status = node("status");
        assert_eq!(status.0, "NODE");
        for verb in [
            "flows",
            "pull",
            "record",
            "service add",
            "service remove",
            "service set",
            "set",
            "top",
        ] {
            assert_eq!(node(verb), status, "{verb}");
        }
    }

    #[test]
    fn every_verb_has_examples_that_can_be_parsed() {
        each_verb(&Cli::command(), "", &mut |called, help| {
            let examples = help.split("\n\n").next().unwrap_or_default();
            assert!(examples.starts_with("Examples:"), "{called}: {help}");
            assert!(
                examples.contains(&format!("  {called}")),
                "{called}: {help}"
            );
            for line in examples.lines().skip(1) {
                let command = line.split(['>', '#']).next().unwrap_or_default();
                // The output of another program is piped in.
                let command = command.rsplit("| ").next().unwrap_or(command);
                // Every second piece was quoted and is one word.
                let pieces = command.split('\'').enumerate();
                let words: Vec<String> = pieces
                    .flat_map(|(i, piece)| match i % 2 {
                        0 => piece.split_whitespace().map(str::to_owned).collect(),
                        _ => vec![piece.to_owned()],
                    })
                    .collect();
                Cli::try_parse_from(&words).unwrap_or_else(|e| panic!("{line}: {e}"));
            }
        });
    }
}
