//! Arguments of what measures links and reads what was measured.

use std::path::PathBuf;

use airlane_base::{Duration, Size};
use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::blocks::{self, TraceConvertArgs, TraceGenerateArgs, TraceRetraceArgs};

/// The verbs of journals.
#[derive(Debug, Subcommand)]
pub enum JournalVerb {
    /// Put everything in a journal into a new port and compare what comes out
    ///
    /// `airlane up --journal PATH` keeps one. The same version of airlane gives the same outputs, bit for
    /// bit; where it does not, the moment is named.
    #[command(after_help = JOURNAL_REPLAY_EXAMPLES)]
    Replay(JournalReplayArgs),
}

/// The verbs of traces.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Show how many frames a trace has, how many were lost, and how late the others were; or the statistics of erased blocks
    #[command(after_help = TRACE_SHOW_EXAMPLES)]
    Show(TraceShowArgs),
    /// Make one trace of the recordings of the two ends of a link
    ///
    /// Clocks need not agree: a frame's delay is measured from that of the fastest one, and drift is taken
    /// out.
    #[command(after_help = TRACE_JOIN_EXAMPLES)]
    Join(TraceJoinArgs),
    /// Show how erased blocks are distributed: each minute, bursts and gaps, and what frames of each length would lose
    #[command(after_help = TRACE_STATS_EXAMPLES)]
    Stats(TraceShowArgs),
    /// Make a trace of erased blocks by a model
    #[command(after_help = blocks::GENERATE_EXAMPLES)]
    Generate(TraceGenerateArgs),
    /// Make a trace of erased blocks of another file
    #[command(after_help = blocks::CONVERT_EXAMPLES)]
    Convert(TraceConvertArgs),
    /// Compute what a link layer would have made of a trace of erased blocks at best
    ///
    /// The link is never idle, nothing that arrived is sent again, no window stalls and feedback is free (Ludwig et al. 1999, section 4).
    #[command(after_help = blocks::RETRACE_EXAMPLES)]
    Retrace(TraceRetraceArgs),
    /// Find which model made a trace of erased blocks, and say whether any did
    ///
    /// Each family of models is fitted by maximum likelihood; then the trace is held against traces that the model makes: losses
    /// of frames of many lengths, tails of bursts and gaps, and how the rate swings. `p` is the share of the model's own traces
    /// that are further from it; `held out` says how much better than Bernoulli the first half foretells the second.
    #[command(after_help = TRACE_FIT_EXAMPLES)]
    Fit(TraceFitArgs),
}

/// Arguments of `test`.
#[derive(Debug, Args)]
pub struct TestArgs {
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
pub struct RecordArgs {
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

/// Arguments of `trace show`.
#[derive(Debug, Args)]
pub struct TraceShowArgs {
    /// The trace.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `trace join`.
#[derive(Debug, Args)]
pub struct TraceJoinArgs {
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

/// Families of models that are fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FitFamily {
    /// No memory.
    Bernoulli,
    /// Two states, one of which erases.
    Gilbert,
    /// Two hidden states.
    GilbertElliott,
    /// A hidden chain of `--states`.
    Markov,
    /// Independent bursts and gaps of mixed lengths.
    OnOff,
}

/// Arguments of `trace fit`.
#[derive(Debug, Args)]
pub struct TraceFitArgs {
    /// The trace of erased blocks.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Which families [default: all]
    #[arg(long, value_name = "FAMILIES", value_enum, value_delimiter = ',')]
    pub models: Vec<FitFamily>,
    /// States of the hidden chain
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub states: usize,
    /// Traces of each model that the trace is held against
    #[arg(long, value_name = "N", default_value_t = 99, value_parser = clap::value_parser!(u32).range(99..=9999))]
    pub samples: u32,
    /// What they are drawn from
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

const TRACE_STATS_EXAMPLES: &str = "\
Examples:
  airlane trace stats car.blocks
  airlane trace stats car.blocks --json";

const TRACE_FIT_EXAMPLES: &str = "\
Examples:
  airlane trace fit radio.blocks
  airlane trace fit radio.blocks --models gilbert,on-off --json

Exit codes: 0 the models were fitted, 2 this is no trace of blocks, or no model can be fitted to it.";

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
  airlane record hill-top.trace --socket /run/airlane/hill-top.sock --json";

const TRACE_SHOW_EXAMPLES: &str = "\
Examples:
  airlane trace show hill-top.trace
  airlane trace show link.trace --json";

const TRACE_JOIN_EXAMPLES: &str = "\
Examples:
  airlane trace join hill-top.trace valley.trace link.trace";
