//! Arguments of `airlane trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::blocks::{self, TraceConvertArgs, TraceGenerateArgs, TraceRetraceArgs};

/// The verbs of traces.
#[derive(Debug, Subcommand)]
pub enum TraceVerb {
    /// Show how many frames a trace has, how many were lost, and how late the others were; or the statistics of erased blocks
    #[command(after_help = TRACE_SHOW_EXAMPLES)]
    Show(TraceShowArgs),
    /// Make one trace from the recordings of the two ends of a link
    ///
    /// Clocks need not agree: a frame's delay is measured from that of the fastest one, and drift is taken
    /// out.
    #[command(after_help = TRACE_JOIN_EXAMPLES)]
    Join(TraceJoinArgs),
    /// Show how erased blocks are distributed: each minute, bursts and gaps, and what frames of each length would lose
    #[command(after_help = TRACE_STATS_EXAMPLES)]
    Stats(TraceShowArgs),
    /// Make a trace of erased blocks from a model
    #[command(after_help = blocks::GENERATE_EXAMPLES)]
    Generate(TraceGenerateArgs),
    /// Make a trace of erased blocks from another file
    #[command(after_help = blocks::CONVERT_EXAMPLES)]
    Convert(TraceConvertArgs),
    /// Compute what a link layer could at best have made of a trace of erased blocks
    ///
    /// The link is never idle, no frame that arrived is retransmitted, no window stalls and
    /// feedback is free (Ludwig et al. 1999, section 4).
    #[command(after_help = blocks::RETRACE_EXAMPLES)]
    Retrace(TraceRetraceArgs),
    /// Find which model made a trace of erased blocks, and say whether any did; or which link a
    /// recording shows
    ///
    /// Each family of models is fitted by maximum likelihood; then the trace is compared with
    /// traces that the model makes: losses of frames of many lengths, tails of bursts and gaps, and
    /// how the rate varies. `p` is the share of the model's own traces that are further from it;
    /// `held out` says how much better than Bernoulli the first half predicts the second.
    ///
    /// From a recording, a link is fitted as a scenario describes it: losses in one state or two,
    /// without the drops of a full queue, and the rate from the frames that arrived while there was
    /// a queue. What a recording cannot show is named.
    #[command(after_help = TRACE_FIT_EXAMPLES)]
    Fit(TraceFitArgs),
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
    /// File for both; a recording that exists is replaced.
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
    /// The trace of erased blocks, or the recording.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Which families [default: all]
    #[arg(long, value_name = "FAMILIES", value_enum, value_delimiter = ',')]
    pub models: Vec<FitFamily>,
    /// States of the hidden chain
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub states: usize,
    /// Number of traces from each model to compare the trace with
    #[arg(long, value_name = "N", default_value_t = 99, value_parser = clap::value_parser!(u32).range(99..=9999))]
    pub samples: u32,
    /// Seed of all random numbers
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
  airlane trace fit link.trace

Exit codes: 0 the models were fitted, 2 this is no trace, or nothing can be fitted to it.";

const TRACE_SHOW_EXAMPLES: &str = "\
Examples:
  airlane trace show hill-top.trace
  airlane trace show link.trace --json";

const TRACE_JOIN_EXAMPLES: &str = "\
Examples:
  airlane trace join hill-top.trace valley.trace link.trace";
