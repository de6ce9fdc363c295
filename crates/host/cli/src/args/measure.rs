//! Arguments of the verbs that measure links.

use std::path::PathBuf;

use airlane_base::{Duration, Size};
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::NodeArg;

/// The verbs of journals.
#[derive(Debug, Subcommand)]
pub enum JournalVerb {
    /// Feed everything in a journal into a new port and compare the outputs
    ///
    /// `airlane up --journal PATH` keeps one. The same version of airlane gives the same outputs,
    /// bit for bit; where they differ, the moment is named.
    #[command(after_help = JOURNAL_REPLAY_EXAMPLES)]
    Replay(JournalReplayArgs),
}

/// Arguments of `test`.
#[derive(Debug, Args)]
pub struct TestArgs {
    /// The link, or the address of its other end; with --serve the link, or this end's address [default:
    /// the only link running]
    #[arg(value_name = "PEER")]
    pub peer: Option<String>,
    /// Which link leads to the address: its name, its file, or its control socket
    #[arg(long, value_name = "NODE")]
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
    /// How long to load the path before measuring
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
    /// Only hosts that come through the link may start one; with ADDRESS, any host that reaches it.
    /// One test runs at a time. On the plain path only datagrams with the secret of a running test
    /// are answered.
    #[arg(long)]
    pub serve: bool,
    /// End by itself after this time
    #[arg(
        long = "for",
        value_name = "TIME",
        default_value = "3600 s",
        requires = "serve"
    )]
    pub lifetime: Duration,
    /// Send at most this much in one test
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
pub struct RecordArgs {
    /// File for the trace; a recording that exists is replaced.
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Which link.
    #[command(flatten)]
    pub node: NodeArg,
    /// Which peer of a base station: the link with it is recorded
    #[arg(long, value_name = "NAME")]
    pub peer: Option<String>,
    /// End after this time, such as "60 s" [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME")]
    pub time: Option<Duration>,
    /// End before the file exceeds this size
    #[arg(long, value_name = "SIZE", default_value_t = Self::MOST)]
    pub max_size: Size,
    /// Print what was recorded as JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

impl RecordArgs {
    /// The longest recording, unless the user says otherwise.
    pub const MOST: Size = Size::from_bytes(64_000_000);
}

/// Arguments of `journal replay`.
#[derive(Debug, Args)]
pub struct JournalReplayArgs {
    /// The journal.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

const JOURNAL_REPLAY_EXAMPLES: &str = "\
Examples:
  airlane journal replay /var/tmp/hill-top.journal

Exit codes: 0 the outputs are the same, 1 they are not, 2 this is no whole journal or the command line is
wrong.";

pub(super) const TEST_EXAMPLES: &str = "\
Examples:
  airlane test --serve                                # at one end
  airlane test                                        # at the other
  airlane test 10.7.0.2 --only voice,pages --duration 30s
  airlane test hill-top --after --json
  airlane test --serve 192.0.2.7 --for 600s           # before there is a link
  airlane test 192.0.2.7 --before

Exit codes: 0 measured, 1 it could not be, 2 the command line is wrong.";

pub(super) const RECORD_EXAMPLES: &str = "\
Examples:
  airlane record hill-top.trace
  airlane record hill-top.trace hill-top --for 60s --max-size 10MB
  airlane record farm.trace base --peer farm
  airlane record hill-top.trace /run/airlane/hill-top.sock --json";
