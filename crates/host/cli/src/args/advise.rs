//! Arguments of `airlane advise` and `airlane check`.

use std::path::PathBuf;

use airlane_advise::{Apps, Goals, WhatIfs};
use airlane_base::Duration;
use clap::{Args, ValueHint};

/// The applications that use a link, its file, and the simulation.
#[derive(Clone, Debug, Args)]
pub struct QuestionArgs {
    /// Applications on the link: some of file, upload, pages and call; :bbr after a sender that
    /// uses BBR, *N for N of them
    ///
    /// A file goes from the first end to the second, an upload back; pages are fetched by the second end.
    #[arg(long, value_name = "APPS", default_value_t)]
    pub apps: Apps,
    /// The file that the link has now; both ends are taken to have it [default: the shortest file]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// The round trip of the link, where one end was recorded
    #[arg(long, value_name = "TIME")]
    pub round_trip: Option<Duration>,
    /// Most runs of each candidate; three suffice where they are clear
    #[arg(long, value_name = "N", default_value_t = Self::RUNS, value_parser = clap::value_parser!(u64).range(3..=100))]
    pub runs: u64,
    /// How long a run is; applications begin after 2 s of it
    #[arg(long = "for", value_name = "TIME", default_value_t = Self::LENGTH)]
    pub length: Duration,
    /// Seed of all random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Threads; 0: one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub threads: usize,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

impl QuestionArgs {
    /// Runs of each candidate.
    pub const RUNS: u64 = 5;
    /// How long each takes.
    pub const LENGTH: Duration = Duration::from_secs(12);
}

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// The recording: both ends joined, or one end, or one of each end
    #[arg(value_name = "TRACE", required = true, num_args = 1..=2, value_hint = ValueHint::FilePath)]
    pub traces: Vec<PathBuf>,
    /// Who uses it, and how to simulate it.
    #[command(flatten)]
    pub question: QuestionArgs,
    /// Search settings as well, 200 or N: shares, copies, requests, ages, queues, how packets
    /// share frames, and the rate
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "200",
          value_parser = clap::value_parser!(u16).range(1..=2000))]
    pub search: Option<u16>,
    /// Goals that must be met, such as pages<=300ms,call-loss<=1%: their price may then be paid
    #[arg(long, value_name = "GOALS")]
    pub want: Option<Goals>,
    /// Other links and traffic to look at as well, such as loss=2x,rate=0.5x,call=10
    #[arg(long, value_name = "CHANGES")]
    pub what_if: Option<WhatIfs>,
    /// Write the advised file here, for `airlane reload --dry-run`; it is made from --file
    #[arg(long, value_name = "FILE", requires = "file", value_hint = ValueHint::FilePath)]
    pub write: Option<PathBuf>,
    /// Draw the candidates, each application with its intervals, as SVG
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub picture: Option<PathBuf>,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The recording: both ends joined, or one end, or one of each end; or a running link to
    /// record: its name, its file, or its control socket
    #[arg(value_name = "TRACE|LINK", required = true, num_args = 1..=2, value_hint = ValueHint::FilePath)]
    pub traces: Vec<PathBuf>,
    /// How long a running link is recorded; someone must use it meanwhile [default: 60 s]
    #[cfg(feature = "live")]
    #[arg(long, value_name = "TIME")]
    pub record_for: Option<Duration>,
    /// Which peer of a running base station
    #[cfg(feature = "live")]
    #[arg(long, value_name = "NAME")]
    pub peer: Option<String>,
    /// Who uses it, and how to simulate it.
    #[command(flatten)]
    pub question: QuestionArgs,
    /// Goals that must be met: file>=10Mbit/s, upload>=2Mbit/s, pages<=300ms, pages-p95<=800ms,
    /// call-loss<=1%, call-delay<=150ms
    #[arg(long, value_name = "GOALS")]
    pub want: Goals,
}

pub(super) const ADVISE_EXAMPLES: &str = "\
Examples:
  airlane advise link.trace
  airlane advise left.trace right.trace --file left.toml --write advised.toml
  airlane advise link.trace --apps file:bbr,pages,call*3 --want 'pages<=300ms'
  airlane advise link.trace --what-if loss=2x,rate=0.5x,call=10
  airlane advise link.trace --search --picture link.svg

Exit codes: 0 there is advice, also that nothing is to be changed; 2 the recording says too little, or the command line is wrong.";

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  airlane check link.trace --want 'pages<=300ms,call-delay<=150ms'
  airlane check left.trace right.trace --file left.toml --want 'call-loss<=1%'
  airlane check /etc/airlane/hill-top.toml --record-for 2min --want 'pages-p95<=800ms'

Exit codes: 0 all goals are met, 1 one is missed or too near to tell or the link is not running, 2 the recording says too little, or the command line is wrong.";
