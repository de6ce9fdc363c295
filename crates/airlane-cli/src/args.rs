//! What the command line takes. The text here is the manual: every verb has examples.

mod scenario;

use std::path::PathBuf;

use airlane_base::{Duration, Size};
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use scenario::STUDY_SCENARIO_EXAMPLES;
pub use scenario::{FromMahimahi, FromNetem, Scenario, ScenarioApp, StudyScenario, Written};

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
#[command(name = "airlane", version, styles = STYLES, after_help = EXIT_CODES)]
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
    Sim(Sim),
    /// Make scenarios of what other tools were told
    #[command(subcommand, arg_required_else_help = true)]
    Scenario(Scenario),
    /// Run the figures of published works and judge their claims
    #[command(subcommand, arg_required_else_help = true)]
    Study(Study),
    /// Print a file with every default filled in
    ///
    /// FILE is a scenario, a daemon file or an emulator file; its keys tell which. The output is
    /// again a valid file, in which each value has its unit.
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Bring one end of a link up and keep it up until SIGTERM or Ctrl-C
    ///
    /// Creates the TUN device of FILE with its addresses and routes and carries its packets over
    /// the underlay, UDP or an Ethernet interface, to the peer, or to several who share the link.
    /// Needs root, or CAP_NET_ADMIN, and CAP_NET_RAW for Ethernet. At the end the device is
    /// removed and the counters are printed.
    #[command(after_help = UP_EXAMPLES)]
    Up(Up),
    /// Make a key for one end of a secured link
    ///
    /// Writes a new private key to FILE, which nobody but its owner may read, and prints its public
    /// half: the other end has that as `peer-key`.
    #[command(after_help = KEYGEN_EXAMPLES)]
    Keygen(Keygen),
    /// Emulate a lossy link between two interfaces until SIGTERM or Ctrl-C
    ///
    /// Carries Ethernet frames between the two interfaces of FILE at the stated rate, delay and
    /// queue and loses some of them. Needs root, or CAP_NET_RAW. At the end it prints what was asked
    /// and what was delivered.
    #[command(after_help = AIR_EXAMPLES)]
    Air(Running),
    /// Check whether a link can come up, and say what to do where it cannot
    ///
    /// Tries rights, keys, interface, port, route and MTU as `airlane up` does and undoes them again;
    /// a peer with keys is asked for a handshake.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(Daemon),
    /// Let a running link take over what changed in its file
    ///
    /// Keys, peers, their addresses, services and classes change at once, and connections through links
    /// that stay go on. What only a new start can change is named, and nothing is changed then.
    #[command(after_help = RELOAD_EXAMPLES)]
    Reload(Daemon),
    /// Change the services of a running link
    ///
    /// Nothing else is interrupted: connections through the other services go on. A service is used once
    /// both ends have it; until then, and once one end has removed it, its packets travel as those
    /// without a class. The file stays as it is; write there, too, what shall outlast a restart.
    #[command(subcommand, arg_required_else_help = true)]
    Service(Service),
    /// Show what each service of a running link has carried, repaired and lost
    #[command(after_help = STATUS_EXAMPLES)]
    Status(Status),
    /// Watch a running link on the whole screen
    ///
    /// Per service and direction: packets, repairs, their cost, losses, round trip, queue and rates, once
    /// a second. Of several peers each has a line, and the arrow keys choose whose services are shown. q,
    /// Esc or Ctrl-C ends.
    #[command(after_help = TOP_EXAMPLES)]
    Top(Top),
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
    #[command(after_help = TEST_EXAMPLES)]
    Test(Test),
    /// Record what becomes of each frame of a running link
    ///
    /// Writes a trace to OUT until Ctrl-C: each frame sent with its size and what waited behind it, each
    /// frame received, and by their numbers those that were lost. Nothing is sent for it. Record both ends
    /// at the same time and join the two (`airlane trace join`) to know both directions and the delays;
    /// one recording knows the losses on the way to its end. The link must be secured: the frames of other
    /// links are not all numbered.
    #[command(after_help = RECORD_EXAMPLES)]
    Record(Record),
    /// Do again what a port did, from its journal
    #[command(subcommand, arg_required_else_help = true)]
    Journal(Journal),
    /// Look at recorded traces, and join those of two ends
    #[command(subcommand, arg_required_else_help = true)]
    Trace(Trace),
    /// Write the manual pages, one for each verb, into a folder
    #[command(after_help = MANUAL_EXAMPLES)]
    Manual {
        /// The folder.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    /// Print the completion script of a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Which shell.
        shell: Shell,
    },
}

/// The verbs of the simulator.
#[derive(Debug, Subcommand)]
pub enum Sim {
    /// Run one scenario and print what each flow got
    ///
    /// Repetitions differ in their seeds only; means come with 95 % confidence intervals. The
    /// result does not depend on the number of threads.
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Run several scenarios with paired seeds and print them side by side
    ///
    /// The first FILE is the baseline. Repetition k of every scenario has the same seed, so that all
    /// of them meet the same fades and differences are tested in pairs.
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Compare),
}

/// The verbs of journals.
#[derive(Debug, Subcommand)]
pub enum Journal {
    /// Put everything in a journal into a new port and compare what comes out
    ///
    /// `airlane up --journal PATH` keeps one. The same version of airlane gives the same outputs, bit for
    /// bit; where it does not, the moment is named.
    #[command(after_help = JOURNAL_REPLAY_EXAMPLES)]
    Replay(JournalReplay),
}

/// The verbs of traces.
#[derive(Debug, Subcommand)]
pub enum Trace {
    /// Show how many frames a trace has, how many were lost, and how late the others were
    #[command(after_help = TRACE_SHOW_EXAMPLES)]
    Show(TraceShow),
    /// Make one trace of the recordings of the two ends of a link
    ///
    /// Clocks need not agree: a frame's delay is measured from that of the fastest one, and drift is taken
    /// out.
    #[command(after_help = TRACE_JOIN_EXAMPLES)]
    Join(TraceJoin),
}

/// The verbs of services.
#[derive(Debug, Subcommand)]
pub enum Service {
    /// Add services
    ///
    /// SERVICE is a file with `services` and `classes` as under `link` in a live file, or one service
    /// as an inline table. What is added is matched before what there is.
    #[command(after_help = SERVICE_ADD_EXAMPLES)]
    Add(ServiceAdd),
    /// Remove a service, once what waits in it has left
    #[command(after_help = SERVICE_REMOVE_EXAMPLES)]
    Remove(ServiceRemove),
    /// Change the share of a service
    ///
    /// Anything else of a service changes by `airlane reload`: it then drains and begins anew.
    #[command(after_help = SERVICE_SET_EXAMPLES)]
    Set(ServiceSet),
}

/// Arguments of `service add`.
#[derive(Debug, Args)]
pub struct ServiceAdd {
    /// The file, or `{ number = .., name = .., rate = .., scheme = { kind = .. } }`.
    #[arg(value_name = "SERVICE", value_hint = ValueHint::FilePath)]
    pub service: String,
    /// What leads packets to an inline service, such as '{ protocol = "udp", port = 5004 }'
    ///
    /// Can be given several times.
    #[arg(long = "match", value_name = "TOML")]
    pub matches: Vec<String>,
    /// Which link.
    #[command(flatten)]
    pub link: Link,
}

/// Arguments of `service remove`.
#[derive(Debug, Args)]
pub struct ServiceRemove {
    /// Its name.
    pub name: String,
    /// Which link.
    #[command(flatten)]
    pub link: Link,
}

/// Arguments of `service set`.
#[derive(Debug, Args)]
pub struct ServiceSet {
    /// Its name.
    pub name: String,
    /// Its share of the link, relative to the others'.
    #[arg(value_name = "rate=SHARE")]
    pub value: String,
    /// Which link.
    #[command(flatten)]
    pub link: Link,
}

/// Which running link is meant.
#[derive(Debug, Args)]
pub struct Link {
    /// Name of the link in its file, or path of its control socket [default: the only one running]
    #[arg(long, value_name = "NAME|SOCKET")]
    pub link: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The verbs of published studies.
#[derive(Debug, Subcommand)]
pub enum Study {
    /// List the works, their figures and their claims
    #[command(after_help = STUDY_LIST_EXAMPLES)]
    List(StudyList),
    /// Show one study: what it runs and what was claimed
    #[command(after_help = STUDY_SHOW_EXAMPLES)]
    Show(StudyShow),
    /// Run studies and judge their claims
    ///
    /// ID is a work, a study, or WORK/STUDY. Results are kept in the folder of --out: a run that
    /// was stopped goes on where it was, and worlds that several figures share run once.
    #[command(after_help = STUDY_RUN_EXAMPLES)]
    Run(StudyRun),
    /// Write one point of a study as a scenario file, to run, look at and change by itself
    ///
    /// `airlane sim run` then gives the same results as the study, repetition by repetition.
    #[command(after_help = STUDY_SCENARIO_EXAMPLES)]
    Scenario(StudyScenario),
    /// Join the results of shards in one folder
    #[command(after_help = STUDY_MERGE_EXAMPLES)]
    Merge(StudyReport),
    /// Judge the results in a folder again, without simulating, and write an HTML page for each work
    #[command(after_help = STUDY_REPORT_EXAMPLES)]
    Report(StudyPage),
}

/// Where the works are.
#[derive(Debug, Args)]
pub struct Studies {
    /// Folder with one folder for each work
    #[arg(long, value_name = "DIR", default_value = "studies", value_hint = ValueHint::DirPath)]
    pub studies: PathBuf,
}

/// Arguments of `study list`.
#[derive(Debug, Args)]
pub struct StudyList {
    /// Where the works are.
    #[command(flatten)]
    pub studies: Studies,
}

/// Arguments of `study show`.
#[derive(Debug, Args)]
pub struct StudyShow {
    /// The study.
    pub id: String,
    /// Where the works are.
    #[command(flatten)]
    pub studies: Studies,
}

/// Arguments of `study run`.
#[derive(Debug, Args)]
pub struct StudyRun {
    /// Works or studies.
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<String>,
    /// How many repetitions [default: the work's, 30]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: Option<u32>,
    /// Seed of all random streams [default: the work's]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How many repetitions run at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Where results are kept
    #[arg(long, value_name = "DIR", default_value = "results", value_hint = ValueHint::DirPath)]
    pub out: PathBuf,
    /// Run only part I of N, for `airlane study merge`
    #[arg(long, value_name = "I/N")]
    pub shard: Option<String>,
    /// Changes of every scenario.
    #[arg(long = "set", value_name = "PATH=VALUE", help = STUDY_SET_HELP)]
    pub set: Vec<String>,
    /// Run with another choice where the work is silent, instead of the committed one
    #[arg(long, value_name = "NAME", conflicts_with = "alternatives")]
    pub alternative: Option<String>,
    /// Run with every other choice, too, and show which verdicts move
    #[arg(long)]
    pub alternatives: bool,
    /// Repetitions of alternatives [default: as many as of what is committed]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub alternative_runs: Option<u32>,
    /// How results are shown.
    #[command(flatten)]
    pub show: StudyOutput,
    /// Where the works are.
    #[command(flatten)]
    pub studies: Studies,
}

/// How results of studies are shown.
#[derive(Debug, Args)]
pub struct StudyOutput {
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// Compare with the verdicts in FILE; exit with 1 if one got worse
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub check: Option<PathBuf>,
    /// Write the verdicts to FILE, for --check
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Write the verdicts with their reasons to FILE, as Markdown
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub markdown: Option<PathBuf>,
}

/// Arguments of `study report`.
#[derive(Debug, Args)]
pub struct StudyPage {
    /// The results.
    #[command(flatten)]
    pub report: StudyReport,
    /// Write the HTML pages into OUT [default: `report` in the folder; none with --json]
    ///
    /// The Python package `airlane` writes them. AIRLANE_PYTHON names the interpreter that has it
    /// [default: python3]. Without the package there is a note, and with --html an error.
    #[arg(long, value_name = "OUT", value_hint = ValueHint::DirPath)]
    pub html: Option<PathBuf>,
}

/// Arguments of `study merge` and `study report`.
#[derive(Debug, Args)]
pub struct StudyReport {
    /// Folder with results.
    #[arg(value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// How results are shown.
    #[command(flatten)]
    pub show: StudyOutput,
    /// Where the works are.
    #[command(flatten)]
    pub studies: Studies,
}

/// Arguments of `sim run`.
#[derive(Debug, Args)]
pub struct Run {
    /// The scenario.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// How repetitions are made.
    #[command(flatten)]
    pub repeat: Repeat,
    /// How many repetitions [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: Option<u32>,
    /// Changes of the file.
    #[command(flatten)]
    pub set: Set,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// Replay a recorded link: its losses and delays take the place of the link's errors
    ///
    /// LINK can be left out if one link alone has errors. Can be given several times. Same as
    /// `errors = { kind = "trace", file = "FILE" }` in the file.
    #[arg(long, value_name = "[LINK=]trace:FILE")]
    pub channel: Vec<String>,
    /// Capture a link for Wireshark: LINK is all that goes over it, LINK@NODE the IP packets at one end
    ///
    /// Can be given several times, for one run only. Packets get real headers; what is lost is marked
    /// on the link, and missing at the receiving end.
    #[arg(long, value_name = "LINK[@NODE]=FILE")]
    pub pcap: Vec<String>,
    /// Write what happens to FILE as it happens, one JSON object a line: packets, frames, TCP, pages
    ///
    /// For one run only. docs/events.md says what each event and field is; names carry their unit.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "pcap")]
    pub events: Option<PathBuf>,
    /// Only events of these kinds, such as frame-lost,timeout [default: all]
    #[arg(
        long,
        value_name = "KIND,..",
        value_delimiter = ',',
        requires = "events"
    )]
    pub event: Vec<String>,
    /// Only events of these flows
    #[arg(
        long,
        value_name = "FLOW,..",
        value_delimiter = ',',
        requires = "events"
    )]
    pub event_flow: Vec<String>,
    /// Only events on these links
    #[arg(
        long,
        value_name = "LINK,..",
        value_delimiter = ',',
        requires = "events"
    )]
    pub event_link: Vec<String>,
}

/// Arguments of `sim compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The scenarios; the first is the baseline.
    #[arg(required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Repeat everything for each of these values, such as links.radio.errors.rate=0.01,0.05
    #[arg(long, value_name = "KEY=V1,V2,..")]
    pub vary: Option<String>,
    /// How repetitions are made.
    #[command(flatten)]
    pub repeat: Repeat,
    /// How many repetitions of each scenario
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Changes of the file.
    #[command(flatten)]
    pub set: Set,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// Draw a picture too
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
}

/// How repetitions are made.
#[derive(Debug, Args)]
pub struct Repeat {
    /// Seed of all random streams [default: the scenario's]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How many repetitions run at once [default: one for each core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

/// Assignments on top of a file.
#[derive(Debug, Args)]
pub struct Set {
    /// Values by path, each `KEY=VALUE`.
    #[arg(long = "set", value_name = "KEY=VALUE", help = SET_HELP)]
    pub set: Vec<String>,
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct Explain {
    /// The file.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Changes of the file.
    #[command(flatten)]
    pub set: Set,
}

/// Arguments of the verbs that read the file of a link.
#[derive(Debug, Args)]
pub struct Daemon {
    /// The file.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print what is printed as JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// Changes of the file.
    #[command(flatten)]
    pub set: Set,
}

/// Arguments of the verbs that run until they are stopped.
#[derive(Debug, Args)]
pub struct Running {
    /// The file, and how results are printed.
    #[command(flatten)]
    pub daemon: Daemon,
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

/// Arguments of `top`.
#[derive(Debug, Args)]
pub struct Top {
    /// Name of the link in its file, or path of its control socket [default: the only one running]
    #[arg(value_name = "NAME|SOCKET")]
    pub link: Option<String>,
}

/// Arguments of `test`.
#[derive(Debug, Args)]
pub struct Test {
    /// The link, or the address of its other end; with --serve the link, or this end's address [default:
    /// the only link running]
    #[arg(value_name = "PEER")]
    pub peer: Option<String>,
    /// Which link leads to the address: its name, or path of its control socket
    #[arg(long, value_name = "NAME|SOCKET")]
    pub link: Option<String>,
    /// Measure the plain path alone
    #[arg(long, conflicts_with_all = ["after", "serve"])]
    pub before: bool,
    /// Measure the link alone
    #[arg(long, conflicts_with = "serve")]
    pub after: bool,
    /// Which applications [default: file,pages,voice]
    #[arg(
        long,
        value_name = "APPS",
        value_enum,
        value_delimiter = ',',
        conflicts_with = "serve"
    )]
    pub only: Vec<TestApp>,
    /// How long each run is measured
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10 s",
        conflicts_with = "serve"
    )]
    pub duration: Duration,
    /// Load before that
    #[arg(
        long,
        value_name = "TIME",
        default_value = "2 s",
        conflicts_with = "serve"
    )]
    pub warmup: Duration,
    /// Congestion control of the other end's TCP, such as bbr [default: as its kernel is set]
    #[arg(long, value_name = "NAME", conflicts_with = "serve")]
    pub congestion_control: Option<String>,
    /// Print JSON; every name carries its unit
    #[arg(long, conflicts_with = "serve")]
    pub json: bool,
    /// Answer tests that the other end runs, until Ctrl-C
    ///
    /// Only who is behind the link may begin one; with ADDRESS, whoever reaches that. One test at a time.
    /// On the plain path nothing is answered but what carries the secret of a test that runs.
    #[arg(long)]
    pub serve: bool,
    /// End by itself after so long
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "3600 s",
        requires = "serve"
    )]
    pub lifetime: Duration,
    /// Send at most so much in one test
    #[arg(long, value_name = "SIZE", default_value = "10 GB", requires = "serve")]
    pub max_size: Size,
    /// Control port of the end that serves, in the link
    #[arg(long, value_name = "PORT", default_value_t = airlane_probe::CONTROL_PORT)]
    pub port: u16,
    /// TCP port of the file, UDP port of echoes
    #[arg(long, value_name = "PORT", default_value_t = airlane_probe::FILE_PORT, requires = "serve")]
    pub file_port: u16,
    /// TCP port of the pages: choose one that the link's classes treat as pages
    #[arg(long, value_name = "PORT", default_value_t = airlane_probe::PAGES_PORT, requires = "serve")]
    pub pages_port: u16,
    /// UDP port of voice, at both ends
    #[arg(long, value_name = "PORT", default_value_t = airlane_probe::VOICE_PORT, requires = "serve")]
    pub voice_port: u16,
}

/// Applications of `test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TestApp {
    /// One TCP connection.
    File,
    /// 20 kB each, over TCP connections of their own.
    Pages,
    /// 50 UDP packets a second, both ways.
    Voice,
}

/// Arguments of `record`.
#[derive(Debug, Args)]
pub struct Record {
    /// File for the trace; one that exists is replaced.
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Name of the link in its file, or path of its control socket [default: the only one running]
    #[arg(value_name = "NAME|SOCKET")]
    pub link: Option<String>,
    /// Path of the link's control socket, as the second argument
    #[arg(long, value_name = "SOCKET", conflicts_with = "link", value_hint = ValueHint::FilePath)]
    pub socket: Option<String>,
    /// Which peer of a base station: the link with it is recorded
    #[arg(long, value_name = "NAME")]
    pub peer: Option<String>,
    /// End after so long, such as "60 s" [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME")]
    pub time: Option<Duration>,
    /// End before the file is longer
    #[arg(long, value_name = "SIZE", default_value = "64 MB")]
    pub max_size: Size,
    /// Print what was recorded as JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct Up {
    /// The file, and how the log is written.
    #[command(flatten)]
    pub running: Running,
    /// Keep a journal of everything that goes into the port, packets with what is in them
    ///
    /// Of several peers each port has its own, with the peer's name before the extension.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub journal: Option<PathBuf>,
    /// End a journal, and not the link, before it is longer
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "1 GB",
        requires = "journal"
    )]
    pub journal_size: Size,
}

/// Arguments of `journal replay`.
#[derive(Debug, Args)]
pub struct JournalReplay {
    /// The journal.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `trace show`.
#[derive(Debug, Args)]
pub struct TraceShow {
    /// The trace.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `trace join`.
#[derive(Debug, Args)]
pub struct TraceJoin {
    /// Recording of one end; the directions are named as this end sees them.
    #[arg(value_hint = ValueHint::FilePath)]
    pub near: PathBuf,
    /// Recording of the other end.
    #[arg(value_hint = ValueHint::FilePath)]
    pub far: PathBuf,
    /// File for both; one that exists is replaced.
    #[arg(value_hint = ValueHint::FilePath)]
    pub out: PathBuf,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `keygen`.
#[derive(Debug, Args)]
pub struct Keygen {
    /// File for the private key; one that exists stays as it is.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print the public key of the private key in FILE, and make none
    #[arg(long)]
    pub public: bool,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// Name of the link in its file, or path of its control socket [default: the only one running]
    #[arg(value_name = "NAME|SOCKET")]
    pub link: Option<String>,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
    /// Repeat every second until Ctrl-C
    #[arg(long)]
    pub watch: bool,
}

// Not a doc comment, in which the brackets would be a link.
const SET_HELP: &str = "Change one value of the file, such as links.radio.services[voice].rate=0.5";

const STUDY_SET_HELP: &str = "Change every scenario that has the place, such as links.*.services[*].scheme(kind=rlp).retries=2";

const STUDY_LIST_EXAMPLES: &str = "\
Examples:
  airlane study list";

const STUDY_SHOW_EXAMPLES: &str = "\
Examples:
  airlane study show F4.2";

const STUDY_RUN_EXAMPLES: &str = "\
Examples:
  airlane study run F4.2 F4.8
  airlane study run xylomenos-1999 --runs 3 --json > claims.json
  airlane study run xylomenos-1999 --shard 1/2 --out results
  airlane study run F5.4 --set 'links.*.services[*].scheme(kind=rlp|rlp-oos).timers=tight'
  airlane study run xylomenos-1999 --check studies/xylomenos-1999/verdicts.json

Exit codes: 0 whatever the verdicts are, 1 the run failed or --check found one that got worse, 2 the
input or the command line is wrong.";

const STUDY_MERGE_EXAMPLES: &str = "\
Examples:
  airlane study merge results";

const STUDY_REPORT_EXAMPLES: &str = "\
Examples:
  airlane study report results               # and results/report/WORK.html
  airlane study report results --html pages
  airlane study report results --json > claims.json";

const RUN_EXAMPLES: &str = "\
Examples:
  airlane sim run scenarios/three-applications.toml
  airlane sim run scenarios/three-applications.toml --runs 30 --json > result.json
  airlane sim run scenarios/three-applications.toml --set links.radio.errors.rate=0.1
  airlane sim run scenarios/three-applications.toml --channel trace:hill-top.trace
  airlane sim run scenarios/three-applications-raw.toml --pcap radio@mobile=mobile.pcapng
  airlane sim run scenarios/three-applications.toml --events all.jsonl
  airlane sim run scenarios/three-applications.toml --events tcp.jsonl --event tcp-state,timeout";

const COMPARE_EXAMPLES: &str = "\
Examples:
  airlane sim compare raw.toml services.toml
  airlane sim compare default.toml sr-m2.toml rlp.toml --vary links.radio.errors.rate=0.01,0.02,0.05,0.1
  airlane sim compare raw.toml services.toml --runs 10 --svg comparison.svg";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  airlane explain scenarios/three-applications.toml
  airlane explain hill-top.toml --set 'link.rate=50 Mbit/s'";

const UP_EXAMPLES: &str = "\
Examples:
  airlane up hill-top.toml
  airlane up hill-top.toml --log-format json
  airlane up hill-top.toml --set 'link.rate=50 Mbit/s'
  airlane up hill-top.toml --journal /var/tmp/hill-top.journal --journal-size 200MB";

const JOURNAL_REPLAY_EXAMPLES: &str = "\
Examples:
  airlane journal replay /var/tmp/hill-top.journal

Exit codes: 0 the outputs are the same, 1 they are not, 2 this is no whole journal or the command line is
wrong.";

const TOP_EXAMPLES: &str = "\
Examples:
  airlane top
  airlane top hill-top";

const DOCTOR_EXAMPLES: &str = "\
Examples:
  airlane doctor hill-top.toml
  airlane doctor hill-top.toml --json

Exit codes: 0 the link can come up, 1 it cannot, 2 the file or the command line is wrong.";

const RELOAD_EXAMPLES: &str = "\
Examples:
  airlane reload hill-top.toml
  airlane reload hill-top.toml --set link.underlay.peer=192.0.2.9:7007
  airlane reload base.toml --set peers[farm].weight=3";

const SERVICE_ADD_EXAMPLES: &str = "\
Examples:
  airlane service add games.toml
  airlane service add '{ number = 4, name = \"games\", rate = 0.1, scheme = { kind = \"rlp-oos\" } }'";

const SERVICE_REMOVE_EXAMPLES: &str = "\
Examples:
  airlane service remove games
  airlane service remove games --link hill-top";

const SERVICE_SET_EXAMPLES: &str = "\
Examples:
  airlane service set voice rate=0.2";

const KEYGEN_EXAMPLES: &str = "\
Examples:
  airlane keygen /etc/airlane/hill-top.key
  airlane keygen --public /etc/airlane/hill-top.key";

const AIR_EXAMPLES: &str = "\
Examples:
  airlane air radio.toml
  airlane air radio.toml --set errors.rate=0.1 --set seed=2";

const STATUS_EXAMPLES: &str = "\
Examples:
  airlane status
  airlane status hill-top --watch
  airlane status /run/airlane/hill-top.sock --json";

const TEST_EXAMPLES: &str = "\
Examples:
  airlane test --serve                                # at one end
  airlane test                                        # at the other
  airlane test 10.7.0.2 --only voice,pages --duration 30s
  airlane test hill-top --after --json
  airlane test --serve 192.0.2.7 --for 600s           # before there is a link
  airlane test 192.0.2.7 --before

Exit codes: 0 measured, 1 it could not be, 2 the command line is wrong.";

const RECORD_EXAMPLES: &str = "\
Examples:
  airlane record hill-top.trace
  airlane record hill-top.trace hill-top --for 60s --max-size 10MB
  airlane record farm.trace base --peer farm
  airlane record hill-top.trace --socket /run/airlane/hill-top.sock --json";

const TRACE_SHOW_EXAMPLES: &str = "\
Examples:
  airlane trace show hill-top.trace
  airlane trace show link.trace --json";

const TRACE_JOIN_EXAMPLES: &str = "\
Examples:
  airlane trace join hill-top.trace valley.trace link.trace";
const MANUAL_EXAMPLES: &str = "\
Examples:
  airlane manual /usr/local/share/man/man1";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  airlane completions bash > /etc/bash_completion.d/airlane
  airlane completions fish > ~/.config/fish/completions/airlane.fish";

#[cfg(test)]
mod tests {
    use super::scenario::{FROM_MAHIMAHI_EXAMPLES, FROM_NETEM_EXAMPLES};
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_has_examples() {
        fn check(command: &clap::Command) {
            let verbs: Vec<_> = command.get_subcommands().collect();
            let help = command.get_after_help().map(ToString::to_string);
            if verbs.is_empty() {
                let help = help.unwrap_or_default();
                let name = command.get_name();
                assert!(
                    help.contains(&format!("airlane {name}"))
                        || help.contains(&format!("airlane sim {name}"))
                        || help.contains(&format!("airlane service {name}"))
                        || help.contains(&format!("airlane study {name}"))
                        || help.contains(&format!("airlane scenario {name}"))
                        || help.contains(&format!("airlane trace {name}"))
                        || help.contains(&format!("airlane journal {name}")),
                    "{name}: {help}"
                );
            }
            verbs.into_iter().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn every_example_can_be_parsed() {
        let all = [
            STUDY_LIST_EXAMPLES,
            STUDY_SHOW_EXAMPLES,
            STUDY_MERGE_EXAMPLES,
            STUDY_REPORT_EXAMPLES,
            STUDY_SCENARIO_EXAMPLES,
            FROM_NETEM_EXAMPLES,
            FROM_MAHIMAHI_EXAMPLES,
            STUDY_RUN_EXAMPLES
                .split("\n\n")
                .next()
                .expect("split gives one part at least"),
            RUN_EXAMPLES,
            COMPARE_EXAMPLES,
            EXPLAIN_EXAMPLES,
            UP_EXAMPLES,
            AIR_EXAMPLES,
            STATUS_EXAMPLES,
            TEST_EXAMPLES
                .split("\n\n")
                .next()
                .expect("split gives one part at least"),
            RECORD_EXAMPLES,
            TRACE_SHOW_EXAMPLES,
            TRACE_JOIN_EXAMPLES,
            MANUAL_EXAMPLES,
            SERVICE_ADD_EXAMPLES,
            SERVICE_REMOVE_EXAMPLES,
            SERVICE_SET_EXAMPLES,
            COMPLETIONS_EXAMPLES,
        ];
        for line in all.iter().flat_map(|text| text.lines().skip(1)) {
            let command = line
                .split(['>', '#'])
                .next()
                .expect("split gives one part at least");
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
    }
}
