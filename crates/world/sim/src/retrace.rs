//! Retrace analyses beside simulations: what a link layer would have made of blocks of a radio at best (Ludwig, Konrad,
//! Joseph and Katz 1999, section 4).
//!
//! An analysis is part of a scenario, so that it has a content hash, repetitions and seeds as a simulation has, and studies
//! can ask for it. Blocks of one model are the same in all analyses of a run, whatever is asked of them.

use airlane_base::{Duration, Size, Streams};
use airlane_channel::blocks::adaptive::{LENGTHS, LOOP};
use airlane_channel::blocks::comparators::Mta;
use airlane_channel::blocks::retrace::{END_TO_END, Overhead};
use airlane_channel::blocks::statistics::share_above;
use airlane_channel::blocks::{Blocks, BlocksHeader, Generator};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Frames are at most so long, as in the work.
const LONGEST: u32 = 100;
/// TCP and IP around the data of a packet.
const HEADERS: u64 = 40;
/// PPP around a packet.
const PPP: u64 = 7;

/// A retrace analysis over as many blocks as the scenario lasts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RetraceConfig {
    /// This model draws the blocks.
    pub model: Generator,
    /// A second model, whose blocks come in turn with those of the first, for so long each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_turn: Option<InTurn>,
    /// What is made of these blocks before they are analysed. Left out: `none`.
    #[serde(default, skip_serializing_if = "Arrangement::is_none")]
    pub arrange: Arrangement,
    /// What carries user data.
    #[serde(default)]
    pub unit: RetraceUnit,
    /// What a frame has beside user data; packets have 47 bytes.
    #[serde(default)]
    pub overhead: RetraceOverhead,
    /// Goodput is multiplied by this, for what the link loses whatever is erased.
    #[serde(default = "one")]
    pub factor: f64,
}

const fn one() -> f64 {
    1.0
}

/// Blocks that come in turn with others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InTurn {
    /// This model draws them.
    pub model: Generator,
    /// Each model has so long before it is the other's turn.
    pub every: Duration,
}

/// What is made of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// They stay as they are.
    #[default]
    None,
    /// The same erasures stand alone, as far apart as can be (Ludwig et al. 1999, section 4.1).
    Even,
    /// The same erasures stand in one row.
    SingleBurst,
    /// Others are drawn by the model that Markov-based trace analysis makes of them (Konrad et al. 2003).
    Mta,
}

impl Arrangement {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

/// What is sent again when one of its blocks is erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetraceUnit {
    /// Frames of so many blocks.
    Frame(u32),
    /// Frames of the length, up to 100 blocks, that carries most over the whole trace.
    #[default]
    Best,
    /// Frames of 1 to 47 blocks, whose length follows the link.
    Adaptive,
    /// As before, with the best length of each minute known.
    Oracle,
    /// Packets of this MTU end to end, of whole blocks.
    Packet(Size),
    /// Packets of this MTU end to end, back to back over the bytes of blocks.
    Stream(Size),
}

/// What a frame has beside user data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetraceOverhead {
    /// 6 bytes and one for each block: what the printed numbers have.
    #[default]
    Published,
    /// 6 bytes, from two blocks on one more for each block: what the text says.
    Stated,
    /// Nothing.
    Zero,
}

/// What an analysis found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RetraceResult {
    /// Its name.
    pub name: String,
    /// User data, in bytes per second; none where the trace has no room for one frame.
    pub goodput: Option<f64>,
    /// Share of transmissions that failed; none where the length changes.
    pub lost_ratio: Option<f64>,
    /// The length of frames, up to 100 blocks, that carries most over the whole trace.
    pub best_frame: Option<u32>,
    /// Share of erased blocks.
    pub erased_ratio: f64,
    /// Share of minutes with less than one erasure in a hundred blocks; none in less than a minute.
    pub clean_minutes_ratio: Option<f64>,
    /// Share of minutes without an erasure.
    pub spotless_minutes_ratio: Option<f64>,
    /// Of the minute with most.
    pub worst_minute_ratio: Option<f64>,
    /// Share of bursts longer than 2, 18 and 26 blocks.
    pub bursts_above_2_ratio: f64,
    /// See above.
    pub bursts_above_18_ratio: f64,
    /// See above.
    pub bursts_above_26_ratio: f64,
    /// Of rows of lost packets those that have two or more; none for frames.
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
                    let [now, behind] = rest[first].split(every.min(len - mixed.len()));
                    rest[first] = behind;
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
                // Without an erasure, or without a clean block, there is nothing to model.
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
    /// Names and values of what was found; NaN for what was not.
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
