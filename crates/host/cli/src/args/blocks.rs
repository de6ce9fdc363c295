//! Arguments of the verbs that generate, convert and retrace traces of erased blocks.

use std::path::PathBuf;
use std::str::FromStr;

use airlane_base::{Duration, Size};
use airlane_channel::blocks::Generator;
use clap::{Args, ValueEnum, ValueHint};

/// The format of a trace of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BlocksForm {
    /// A character for each block.
    Characters,
    /// Lengths of runs: shorter where erasures are rare.
    Rows,
}

/// The source of a trace of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BlocksSource {
    /// Another trace of blocks, in either form.
    Blocks,
    /// Mahimahi's times of delivery: a block without one is erased.
    Mahimahi,
    /// Seconds and Mbit/s, line by line: times at which a link may send, as Mahimahi reads them.
    Rates,
    /// Sequence numbers of the packets that arrived, in the last column: one block for each packet.
    Sequence,
    /// A capture of one end of a link (pcap, pcapng), the one that sends most; --far has the other
    /// end's. A recording is made.
    Captures,
    /// A recording of `airlane record`: a block is erased if frames were lost in it and none
    /// arrived.
    Recording,
}

/// Arguments of `trace generate`.
#[derive(Debug, Args)]
pub struct TraceGenerateArgs {
    /// The model, such as "gilbert 0.006 0.12" or onoff-c
    pub model: Generator,
    /// How long the trace is
    #[arg(long, value_name = "DURATION", default_value = "3600s")]
    pub duration: Duration,
    /// Length in blocks, instead of a duration
    #[arg(long, value_name = "N", conflicts_with = "duration")]
    pub blocks: Option<u32>,
    /// Duration of a block on the air
    #[arg(long, value_name = "DURATION", default_value = "20ms")]
    pub block: Duration,
    /// Size of a block
    #[arg(long, value_name = "SIZE", default_value = "30B")]
    pub size: Size,
    /// Seed of all random numbers
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,
    /// The format of the trace
    #[arg(long, value_name = "FORM", value_enum, default_value = "rows")]
    pub to: BlocksForm,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

/// Arguments of `trace convert`.
#[derive(Debug, Args)]
pub struct TraceConvertArgs {
    /// The file.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Format of the file
    #[arg(long, value_name = "KIND", value_enum, default_value = "blocks")]
    pub from: BlocksSource,
    /// Format of the trace
    #[arg(long, value_name = "FORM", value_enum, default_value = "characters")]
    pub to: BlocksForm,
    /// Duration of a block; Mahimahi traces and recordings do not contain it
    #[arg(long, value_name = "DURATION")]
    pub block: Option<Duration>,
    /// Use the frames that the recording end sent, not those that it received
    #[arg(long = "outwards")]
    pub out_direction: bool,
    /// The capture of the other end
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub far: Option<PathBuf>,
    /// Output file [default: standard output]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub out: Option<PathBuf>,
}

/// A range of frame lengths, in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLengths {
    /// The shortest.
    pub from: u32,
    /// The longest.
    pub to: u32,
}

impl FromStr for FrameLengths {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let (from, to) = (from.parse(), to.trim_start_matches('=').parse());
        match (from, to) {
            (Ok(from), Ok(to)) if (1..=to).contains(&from) && to <= 100_000 => {
                Ok(Self { from, to })
            }
            _ => Err("write FROM..TO in blocks, such as 1..100, or one length".to_owned()),
        }
    }
}

/// Overhead of a frame, beside user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetraceOverhead {
    /// 6 bytes and one for each block.
    Published,
    /// As before, but 6 bytes in a frame of one block.
    Stated,
    /// This many bytes, whatever the length of the frame.
    Bytes(u32),
}

impl FromStr for RetraceOverhead {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "published" => Ok(Self::Published),
            "stated" => Ok(Self::Stated),
            _ => text
                .parse()
                .map(Self::Bytes)
                .map_err(|_| "write published, stated, or a number of bytes".to_owned()),
        }
    }
}

/// Arguments of `trace retrace`.
#[derive(Debug, Args)]
pub struct TraceRetraceArgs {
    /// The trace of erased blocks.
    #[arg(value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Lengths of frames, in blocks
    #[arg(long, value_name = "FROM..TO", default_value = "1..100")]
    pub frames: FrameLengths,
    /// Overhead of a frame: published (6 bytes and one for each block), stated (6 at one block), or
    /// BYTES
    #[arg(long, value_name = "RULE", default_value = "published")]
    pub overhead: RetraceOverhead,
    /// MTUs of packets without repair below them, in bytes
    #[arg(
        long,
        value_name = "BYTES",
        value_delimiter = ',',
        default_value = "296,576,1500"
    )]
    pub mtu: Vec<u32>,
    /// Average over all places where the first frame may begin
    #[arg(long)]
    pub all_phases: bool,
    /// Print JSON; every name carries its unit
    #[arg(long)]
    pub json: bool,
}

pub(super) const GENERATE_EXAMPLES: &str = "\
Examples:
  airlane trace generate onoff-c --duration 44min --seed 7 -o car.blocks
  airlane trace generate 'gilbert 0.006 0.12' --blocks 100000 --to characters
  airlane trace generate 'on-off 0.4x1.5+0.6x4.8 / 0.9x50+0.1x8000' -o radio.blocks

Models:
  bernoulli P, gilbert GOOD-TO-BAD BAD-TO-GOOD, gilbert-elliott GOOD-TO-BAD BAD-TO-GOOD LOSS-GOOD LOSS-BAD,
  markov TRANSITIONS / LOSSES, on-off BURSTS / GAPS (mixtures WEIGHTxMEAN+...), minutes BAD OF BURSTS MEAN,
  onoff-b, onoff-c, a-literal, a-outage";

pub(super) const CONVERT_EXAMPLES: &str = "\
Examples:
  airlane trace convert radio.blocks --to rows -o short.blocks
  airlane trace convert lte.down --from mahimahi --block 20ms -o lte.blocks
  airlane trace convert link.trace --from recording --block 20ms -o link.blocks
  airlane trace convert rates.csv --from rates -o lte.down
  airlane trace convert received.csv --from sequence --block 20ms -o call.blocks
  airlane trace convert sent.pcap --from captures --far got.pcap -o link.trace";

pub(super) const RETRACE_EXAMPLES: &str = "\
Examples:
  airlane trace retrace car.blocks
  airlane trace retrace car.blocks --frames 1..10 --mtu 576 --json
  airlane trace retrace car.blocks --overhead 0 --all-phases";
