//! Retrace analyses: the best that a link layer could have made of a radio's blocks (Ludwig, Konrad, Joseph and Katz
//! 1999, section 4).
//!
//! An analysis is part of a scenario, so that it has a content hash, repetitions and seeds as a simulation does, and
//! studies can include it. All analyses of a run get the same blocks from the same model.

use airlane_base::{Duration, Size, Streams};
use airlane_channel::blocks::adaptive::{LENGTHS, LOOP};
use airlane_channel::blocks::comparators::Mta;
use airlane_channel::blocks::retrace::{END_TO_END, Overhead};
use airlane_channel::blocks::statistics::share_above;
use airlane_channel::blocks::{Blocks, BlocksHeader, Generator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest frame, in blocks, as in the paper.
const LONGEST: u32 = 100;
/// Bytes of the TCP and IP headers of a packet.
const HEADERS: u64 = 40;
/// Bytes of PPP framing of a packet.
const PPP: u64 = 7;

/// A retrace analysis over as many blocks as fit into the scenario's duration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RetraceConfig {
    /// This model draws the blocks.
    pub model: Generator,
    /// A second model whose blocks alternate with those of the first, each for this long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_turn: Option<InTurn>,
    /// How the blocks are rearranged before the analysis. Left out: `none`.
    #[serde(default, skip_serializing_if = "Arrangement::is_none")]
    pub arrange: Arrangement,
    /// What is sent, and repeated as a whole.
    #[serde(default)]
    pub unit: RetraceUnit,
    /// The overhead of a frame; packets have 47 bytes.
    #[serde(default)]
    pub overhead: RetraceOverhead,
    /// Goodput is multiplied by this factor, for losses on the link that do not depend on erasures.
    #[serde(default = "one")]
    pub factor: f64,
}

const fn one() -> f64 {
    1.0
}

/// Blocks of a second model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InTurn {
    /// This model draws them.
    pub model: Generator,
    /// How long each model lasts before it is the other's turn.
    pub every: Duration,
}

/// How blocks are rearranged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// They are kept as they are.
    #[default]
    None,
    /// The same number of erasures, isolated and spaced as evenly as possible (Ludwig et al. 1999, section 4.1).
    Even,
    /// The same number of erasures in a single burst.
    SingleBurst,
    /// New blocks, drawn from the model that Markov-based trace analysis fits to them (Konrad et al. 2003).
    Mta,
}

impl Arrangement {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// What is retransmitted when one of its blocks is erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetraceUnit {
    /// Frames of this many blocks.
    Frame(u32),
    /// Frames of the one length, up to 100 blocks, with the highest goodput over the whole trace.
    #[default]
    Best,
    /// Frames of 1 to 47 blocks, whose length adapts to the link.
    Adaptive,
    /// Likewise, with the best length of each minute known in advance.
    Oracle,
    /// Packets of this MTU end to end, each padded to whole blocks.
    Packet(Size),
    /// Packets of this MTU end to end, back to back in the bytes of the blocks.
    Stream(Size),
}

/// The overhead of a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetraceOverhead {
    /// 6 bytes and one for each block, as in the published figures.
    #[default]
    Published,
    /// 6 bytes, and with two or more blocks one more for each, as in the text of the paper.
    Stated,
    /// None.
    Zero,
}

/// The result of an analysis.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RetraceResult {
    /// Its name.
    pub name: String,
    /// User data, in bytes per second; none if the trace is too short for one frame.
    pub goodput: Option<f64>,
    /// Share of transmissions that failed; none if the length changes.
    pub lost_ratio: Option<f64>,
    /// The length, up to 100 blocks, with the highest goodput over the whole trace.
    pub best_frame: Option<u32>,
    /// Share of erased blocks.
    pub erased_ratio: f64,
    /// Share of minutes in which less than 1 % of the blocks are erased; none for traces shorter than a minute.
    pub clean_minutes_ratio: Option<f64>,
    /// Share of minutes without an erasure.
    pub spotless_minutes_ratio: Option<f64>,
    /// Share of erased blocks in the minute that has the most.
    pub worst_minute_ratio: Option<f64>,
    /// Share of erasure bursts longer than 2 blocks.
    pub bursts_above_2_ratio: f64,
    /// Share of erasure bursts longer than 18 blocks.
    pub bursts_above_18_ratio: f64,
    /// Share of erasure bursts longer than 26 blocks.
    pub bursts_above_26_ratio: f64,
    /// Share of bursts of lost packets with two or more of them; none for frames.
    pub loss_rows_above_1_ratio: Option<f64>,
}

impl RetraceConfig {
    /// What is wrong with it, and what would be right.
    pub(crate) fn problem(
        &self,
        duration: Duration,
    ) -> Option<(&'static str, String, &'static str)> {
        let frames = duration.as_nanos() / BlocksHeader::default().block.as_nanos();
        if !(1..=u64::from(airlane_channel::blocks::MOST_BLOCKS)).contains(&frames) {
            let wrong = format!("{frames} blocks of 20 ms in {duration} cannot be analysed");
            return Some(("model", wrong, "1 to 100000000 blocks"));
        }
        if !(self.factor > 0.0 && self.factor <= 1.0) {
            return Some((
                "factor",
                format!("factor = {}", self.factor),
                "above 0 and at most 1",
            ));
        }
        if let Some(turn) = &self.in_turn
            && turn.every < BlocksHeader::default().block
        {
            return Some((
                "in-turn.every",
                format!("every = {}", turn.every),
                "at least one block, 20 ms",
            ));
        }
        let fits = match self.unit {
            RetraceUnit::Frame(blocks) => (1..=10_000).contains(&blocks),
            RetraceUnit::Packet(mtu) | RetraceUnit::Stream(mtu) => {
                (HEADERS + PPP + 1..=65_535).contains(&mtu.as_bytes())
            }
            _ => true,
        };
        (!fits).then(|| {
            (
                "unit",
                format!("{:?} cannot be sent", self.unit),
                "frames of 1 to 10000 blocks, packets of 48 to 65535 B",
            )
        })
    }

    fn blocks(&self, duration: Duration, streams: Streams) -> Blocks {
        let header = BlocksHeader::default();
        let len = (duration.as_nanos() / header.block.as_nanos()) as u32;
        let of = |model: &Generator, len: u32| {
            let mut random = streams.stream(&format!("blocks.{model}"));
            model.generate(len, header.clone(), &mut random)
        };
        let blocks = match &self.in_turn {
            None => of(&self.model, len),
            Some(turn) => {
                let every = (turn.every.as_nanos() / header.block.as_nanos()) as u32;
                let mut rest = [&self.model, &turn.model].map(|model| of(model, len));
                let mut mixed = Blocks::new(header.clone());
                let mut first = 0;
                while mixed.len() < len {
                    let [now, tail] = rest[first].split(every.min(len - mixed.len()));
                    rest[first] = tail;
                    now.rows()
                        .flatten()
                        .for_each(|(erased, len)| mixed.push(erased, len));
                    first = 1 - first;
                }
                mixed
            }
        };
        match self.arrange {
            Arrangement::None => blocks,
            Arrangement::Even => blocks.even(),
            Arrangement::SingleBurst => blocks.single_burst(),
            Arrangement::Mta => match Mta::extract(&blocks) {
                Some(mta) => mta.generate(&blocks, &mut streams.stream("blocks.mta")),
                // Without an erasure, or without a received block, there is nothing to fit.
                None => blocks,
            },
        }
    }

    pub(crate) fn analyse(
        &self,
        name: &str,
        duration: Duration,
        streams: Streams,
    ) -> RetraceResult {
        let blocks = self.blocks(duration, streams);
        let overhead = match self.overhead {
            RetraceOverhead::Published => Overhead::Published,
            RetraceOverhead::Stated => Overhead::Stated,
            RetraceOverhead::Zero => Overhead::Fixed(0.0),
        };
        let best = blocks.best_frame(1..=LONGEST, overhead);
        let whole = |n: u64, overhead| {
            let frames = blocks.frames(u32::try_from(n).unwrap_or(u32::MAX), overhead, 0);
            frames.map(|frames| (frames.goodput, Some(frames.erasure_rate())))
        };
        let size = blocks.header.size.as_bytes();
        let mut rows = None;
        let mut run_of = |len: u64| {
            let lengths = blocks.packet_loss_rows(u32::try_from(len).unwrap_or(u32::MAX));
            rows = Some(share_above(&lengths, 1));
        };
        let found = match self.unit {
            RetraceUnit::Frame(n) => whole(u64::from(n), overhead),
            RetraceUnit::Best => best.map(|best| (best.goodput, Some(best.erasure_rate()))),
            RetraceUnit::Adaptive => Some((blocks.adaptive(LENGTHS, overhead, LOOP), None)),
            RetraceUnit::Oracle => {
                let minute = Duration::from_secs(60).as_nanos() / blocks.header.block.as_nanos();
                Some((blocks.oracle(minute as u32, LENGTHS, overhead), None))
            }
            RetraceUnit::Packet(mtu) => {
                let n = mtu.as_bytes().div_ceil(size);
                run_of(n * size);
                whole(n, Overhead::Fixed(END_TO_END))
            }
            RetraceUnit::Stream(mtu) => {
                let len = mtu.as_bytes() + PPP;
                run_of(len);
                let data = (mtu.as_bytes() - HEADERS) as u32;
                let packets = blocks.packets(len as u32, data);
                packets.map(|packets| (packets.goodput, Some(packets.erasure_rate())))
            }
        };
        let minutes = blocks.minutes();
        let share = |below: f64| {
            let few = minutes.iter().filter(|rate| **rate < below).count();
            (!minutes.is_empty()).then(|| few as f64 / minutes.len() as f64)
        };
        let bursts = blocks.burst_lengths();
        RetraceResult {
            name: name.to_owned(),
            goodput: found.map(|(goodput, _)| goodput * self.factor),
            lost_ratio: found.and_then(|(_, lost)| lost),
            best_frame: best.map(|best| best.blocks),
            erased_ratio: blocks.erasure_rate(),
            clean_minutes_ratio: share(0.01),
            spotless_minutes_ratio: share(f64::MIN_POSITIVE),
            worst_minute_ratio: minutes.iter().copied().reduce(f64::max),
            bursts_above_2_ratio: share_above(&bursts, 2),
            bursts_above_18_ratio: share_above(&bursts, 18),
            bursts_above_26_ratio: share_above(&bursts, 26),
            loss_rows_above_1_ratio: rows,
        }
    }
}

impl RetraceResult {
    /// Names and values of the metrics; NaN for those that could not be measured.
    pub fn metrics(&self) -> [(&'static str, f64); 11] {
        let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
        [
            ("goodput", or_nan(self.goodput)),
            ("lost_ratio", or_nan(self.lost_ratio)),
            ("best_frame", or_nan(self.best_frame.map(f64::from))),
            ("erased_ratio", self.erased_ratio),
            ("clean_minutes_ratio", or_nan(self.clean_minutes_ratio)),
            (
                "spotless_minutes_ratio",
                or_nan(self.spotless_minutes_ratio),
            ),
            ("worst_minute_ratio", or_nan(self.worst_minute_ratio)),
            ("bursts_above_2_ratio", self.bursts_above_2_ratio),
            ("bursts_above_18_ratio", self.bursts_above_18_ratio),
            ("bursts_above_26_ratio", self.bursts_above_26_ratio),
            (
                "loss_rows_above_1_ratio",
                or_nan(self.loss_rows_above_1_ratio),
            ),
        ]
    }
}
