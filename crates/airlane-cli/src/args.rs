//! What the command line takes. The text here is the manual: every verb has examples.

mod blocks;
mod import;
mod measure;
mod node;
mod relay;
mod scenario;
mod schema;
mod service;
mod set;
mod setup;
mod ship;
mod sim;
mod study;

use std::path::PathBuf;
use std::sync::LazyLock;

use airlane_live::status::{PROTOCOL, build};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

pub use blocks::{
    BlocksForm, BlocksSource, FrameLengths, RetraceOverhead, TraceConvertArgs, TraceGenerateArgs,
    TraceRetraceArgs,
};
pub use import::{ImportVerb, WireguardArgs};
pub use measure::{
    FitFamily, JournalReplayArgs, JournalVerb, RecordArgs, TestApp, TestArgs, TraceFitArgs,
    TraceJoinArgs, TraceShowArgs, TraceVerb,
};
pub use node::{
    DaemonArgs, FlowsArgs, KeygenArgs, LogFormat, PullArgs, ReloadArgs, RunningArgs, StatusArgs,
    TopArgs, UpArgs,
};
pub use relay::RelayArgs;
pub use scenario::{FromMahimahiArgs, FromNetemArgs, ScenarioApp, ScenarioVerb, WrittenArgs};
pub use schema::{FileKind, SchemaArgs};
pub use service::{
    LinkArgs, ServiceAddArgs, ServiceRemoveArgs, ServiceSetArgs, ServiceVerb, SetRateArgs,
};
pub use set::SetArgs;
pub use setup::SetupArgs;
pub use ship::{RecvArgs, SendArgs, TicketArgs};
pub use sim::{CompareArgs, RepeatArgs, RunArgs, SimVerb};
pub use study::{
    StudiesArgs, StudyListArgs, StudyOutputArgs, StudyPageArgs, StudyReportArgs, StudyRunArgs,
    StudyScenarioArgs, StudyShowArgs, StudyVerb,
};

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
pub enum Command {
    /// Simulate: run a scenario, or compare several
    #[command(subcommand, arg_required_else_help = true)]
    Sim(SimVerb),
    /// List and show the scenarios that come with the program, and make them of what other tools were told
    #[command(subcommand, arg_required_else_help = true)]
    Scenario(ScenarioVerb),
    /// Run the figures of published works and judge their claims
    #[command(subcommand, arg_required_else_help = true)]
    Study(StudyVerb),
    /// Print a file with every default filled in
    ///
    /// FILE is a scenario, a daemon file or an emulator file; its keys tell which. The output is
    /// again a valid file, in which each value has its unit.
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(ExplainArgs),
    /// Print what may stand in a file: JSON Schema for editors, or a reference of all keys
    #[command(after_help = schema::EXAMPLES)]
    Schema(SchemaArgs),
    /// Bring one end of a link up and keep it up until SIGTERM or Ctrl-C
    ///
    /// Creates the TUN device of FILE with its addresses and routes and carries its packets over
    /// the underlay, UDP or an Ethernet interface, to the peer, or to several who share the link.
    /// Needs root, or CAP_NET_ADMIN, and CAP_NET_RAW for Ethernet; once it is up, it keeps CAP_NET_ADMIN
    /// alone. At the end the device is
    /// removed and the counters are printed.
    #[command(after_help = node::UP_EXAMPLES)]
    Up(UpArgs),
    /// Make the files of both ends of a new link, or of a base and its stations, with keys
    ///
    /// Asks four questions, or takes four options, and writes a file and a key for each end, which nobody but
    /// their owner may read. With --station this end is a base, and each station gets files of its own. What is there is not replaced without --force.
    #[command(after_help = setup::SETUP_EXAMPLES)]
    Setup(SetupArgs),
    /// Make a key for one end of a secured link
    ///
    /// Writes a new private key to FILE, which nobody but its owner may read, and prints its public
    /// half: the other end has that as `peer-key`.
    #[command(after_help = node::KEYGEN_EXAMPLES)]
    Keygen(KeygenArgs),
    /// Emulate a lossy link between two interfaces until SIGTERM or Ctrl-C
    ///
    /// Carries Ethernet frames between the two interfaces of FILE at the stated rate, delay and
    /// queue and loses some of them. Needs root, or CAP_NET_RAW. At the end it prints what was asked
    /// and what was delivered.
    #[command(after_help = node::AIR_EXAMPLES)]
    Air(RunningArgs),
    /// Split TCP connections: end each here and go on with another one, until SIGTERM or Ctrl-C
    ///
    /// What comes in on one passes on to the other, so each side of the relay repairs its own losses over its own
    /// round trip. The source hears acknowledgments of what has not arrived yet. One connection holds at most
    /// twice the pool; a closed direction closes the other side's behind its last byte, and a side that dies
    /// resets the other at once. At the end all are reset and the counters are printed; SIGUSR1 logs them.
    #[command(after_help = relay::EXAMPLES)]
    Relay(RelayArgs),
    /// Send files and folders to another host, over a path that loses packets
    ///
    /// `airlane recv` there prints a ticket, which is all that this end needs. What is sent is sealed, and as fast as the
    /// path carries it: the rate follows what arrives, and losses that do not grow with it change nothing. Every
    /// file is compared by its BLAKE3. Ended and started again with the same files, it goes on where it was.
    /// Source: CLAP-final, Gopal 2007, section 3.2.
    #[command(after_help = ship::SEND_EXAMPLES)]
    Send(SendArgs),
    /// Receive what another host sends with `airlane send`
    ///
    /// Prints a ticket for the other end and waits. Whoever has the ticket may put files into FOLDER, and nowhere else,
    /// one sender at a time. What has come of files lies in .airlane-parts until all is here.
    #[command(after_help = ship::RECV_EXAMPLES)]
    Recv(RecvArgs),
    /// Check whether a link can come up, and say what to do where it cannot
    ///
    /// Tries rights, keys, interface, port, route and MTU as `airlane up` does and undoes them again;
    /// a peer with keys is asked for a handshake. Of a link that runs it says how each session stands, and why
    /// one has never come up.
    #[command(after_help = node::DOCTOR_EXAMPLES)]
    Doctor(DaemonArgs),
    /// Let a running link take over what changed in its file
    ///
    /// Keys, peers, their addresses, rates, services and classes change at once, and connections through
    /// links that stay go on. SIGHUP to `airlane up` does the same with the file that it was started with. What only a new start can change is named, and nothing is changed then.
    #[command(after_help = node::RELOAD_EXAMPLES)]
    Reload(ReloadArgs),
    /// Make a live file of what another tunnel was told
    #[command(subcommand, arg_required_else_help = true)]
    Import(ImportVerb),
    /// Change the rate of a running link
    ///
    /// Frames leave at it from now on: no new session, nothing lost. The file stays as it is; write there,
    /// too, what shall outlast a reload.
    #[command(after_help = service::SET_EXAMPLES)]
    Set(SetRateArgs),
    /// Change the services of a running link
    ///
    /// Nothing else is interrupted: connections through the other services go on. A service is used once
    /// both ends have it; until then, and once one end has removed it, its packets travel as those
    /// without a class. The file stays as it is; write there, too, what shall outlast a restart.
    #[command(subcommand, arg_required_else_help = true)]
    Service(ServiceVerb),
    /// Show what each service of a running link has carried, repaired and lost
    #[command(after_help = node::STATUS_EXAMPLES)]
    Status(StatusArgs),
    /// Show which flows a running link knows, which service each gets, and why
    ///
    /// Without rules a link looks at what flows do. Each comes with the rule that would keep it where it is, as it stands in
    /// a file. At most 150 flows are told, those of the most bytes. Only root and the user of the link may ask.
    #[command(after_help = node::FLOWS_EXAMPLES)]
    Flows(FlowsArgs),
    /// Show what a flow to a host would be told that it may send
    ///
    /// That is what the service that it gets exports as a MAC does: what it took to send in the last 100 ms, how often it
    /// ran dry, and what finds room in its queue; and the least of that on its path, by a probe along it. `airlane send`
    /// goes by it. Source: CLF, Gopal 2007, section 3.3.
    #[command(after_help = node::PULL_EXAMPLES)]
    Pull(PullArgs),
    /// Watch a running link on the whole screen
    ///
    /// Per service and direction: packets, repairs, their cost, losses, round trip, queue and rates, once
    /// a second. Of several peers each has a line, and the arrow keys choose whose services are shown. f
    /// shows flows, where they go and why, in place of the rates. q, Esc or Ctrl-C ends.
    #[command(after_help = node::TOP_EXAMPLES)]
    Top(TopArgs),
    /// Measure what a file, web pages and voice get below a link and through it
    ///
    /// First run `airlane test --serve` at the other end. Then each application runs alone, and all of them
    /// at once: before, over the plain path to the peer, and after, through the link. The other end sends
    /// the file and the pages; voice goes both ways. Whatever else uses the link meanwhile is in the
    /// figures. The clocks of the ends need not agree.
    ///
    /// PEER is the link's name, or the address of the other end in the link. With an address that no link
    /// leads to, the plain path alone can be measured: `airlane test --serve ADDRESS` there, and here
    /// `airlane test ADDRESS --before`.
    #[command(after_help = measure::TEST_EXAMPLES)]
    Test(TestArgs),
    /// Record what becomes of each frame of a running link
    ///
    /// Writes a trace to OUT until Ctrl-C: each frame sent with its size and what waited behind it, each
    /// frame received, and by their numbers those that were lost. Nothing is sent for it. Record both ends
    /// at the same time and join the two (`airlane trace join`) to know both directions and the delays;
    /// one recording knows the losses on the way to its end. The link must be secured: the frames of other
    /// links are not all numbered.
    #[command(after_help = measure::RECORD_EXAMPLES)]
    Record(RecordArgs),
    /// Do again what a port did, from its journal
    #[command(subcommand, arg_required_else_help = true)]
    Journal(JournalVerb),
    /// Look at recorded traces, and join those of two ends
    #[command(subcommand, arg_required_else_help = true)]
    Trace(TraceVerb),
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

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  airlane explain scenarios/three-applications.toml
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

/// The commit that the program is built of; none where its sources came without git.
pub const COMMIT: Option<&str> = option_env!("AIRLANE_COMMIT");

/// The version of the program, its commit, and the protocol that two ends must have in common.
pub fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let program = build(env!("CARGO_PKG_VERSION"), COMMIT);
        format!("{program}, protocol {PROTOCOL}")
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

    /// Calls `check` with each verb that has none below it, as it is called, and what follows its help.
    fn each_verb(command: &clap::Command, parents: &str, check: &mut impl FnMut(&str, &str)) {
        let called = format!("{parents}{}", command.get_name());
        let mut verbs = command.get_subcommands().peekable();
        if verbs.peek().is_none() {
            let help = command.get_after_help().map(ToString::to_string);
            check(&called, &help.unwrap_or_default());
        }
        verbs.for_each(|verb| each_verb(verb, &format!("{called} "), check));
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
                // What another program prints goes in.
                let command = command.rsplit("| ").next().unwrap_or(command);
                // Every second piece is quoted, and one word.
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
