//! `errors = { kind = "blocks", ... }`: a frame is lost if any block that it overlaps is erased.

use std::sync::Arc;

use airlane_base::random::fnv1a;
use airlane_base::{Duration, Instant, Rng, Streams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Blocks, Generator, Process};
use crate::trace::{TraceFileError, TraceStart};

/// Erased blocks, from a file or from a model.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub struct BlocksConfig {
    /// This file has the trace. Give either `file` or `model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"radio.blocks")]
    pub file: Option<String>,
    /// This model draws blocks without end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Generator>,
    /// The run begins at this place in the file's trace, which repeats after its end. Left out: at the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<TraceStart>,
    /// Each block of the model is on the air for this long; a file has its own. Left out: 20 ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<Duration>,
    #[serde(skip)]
    loaded: Option<Loaded>,
}

/// The block duration of GSM circuit-switched data.
const BLOCK: Duration = Duration::from_millis(20);

#[derive(Clone, Debug)]
struct Loaded {
    blocks: Arc<Blocks>,
    digest: u64,
}

/// Compared by digest.
impl PartialEq for Loaded {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl BlocksConfig {
    /// A trace that is not loaded yet.
    pub const fn of_file(file: String, start: Option<TraceStart>) -> Self {
        Self {
            file: Some(file),
            model: None,
            start,
            block: None,
            loaded: None,
        }
    }

    /// Blocks drawn from a model.
    pub const fn of_model(model: Generator, block: Option<Duration>) -> Self {
        Self {
            file: None,
            model: Some(model),
            start: None,
            block,
            loaded: None,
        }
    }

    /// Parses the bytes of the file.
    pub(crate) fn load(&mut self, bytes: &[u8]) -> Result<(), TraceFileError> {
        let file = self.file.clone().unwrap_or_default();
        let wrong = |reason: String| TraceFileError { file, reason };
        let blocks = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned());
        let blocks = blocks.and_then(|text| Blocks::read(text).map_err(|error| error.to_string()));
        self.loaded = Some(Loaded {
            blocks: Arc::new(blocks.map_err(wrong)?),
            digest: fnv1a(bytes),
        });
        Ok(())
    }

    /// Whether no file is left to be loaded.
    pub const fn is_loaded(&self) -> bool {
        self.file.is_none() || self.loaded.is_some()
    }

    /// Digest of the file, equal for equal files; `None` without a file.
    pub fn digest(&self) -> Option<u64> {
        self.file.as_ref()?;
        Some(self.loaded.as_ref().map_or(0, |loaded| loaded.digest))
    }

    /// Probability that a frame on the air for `on_air` is lost, if it is sent at a random time.
    pub(crate) fn loss(&self, on_air: Duration) -> f64 {
        let of = |block: Duration, rate: &dyn Fn(u32) -> f64| {
            let blocks = on_air.as_nanos() as f64 / block.as_nanos().max(1) as f64;
            let whole = libm::floor(blocks);
            let rest = blocks - whole;
            // The remainder makes it overlap one more block, with a probability equal to the remainder.
            let n = whole as u32 + 1;
            if rest == 0.0 && n > 1 {
                // If aligned it overlaps exactly its own blocks, else one more.
                return rate(n - 1);
            }
            (1.0 - rest) * rate(n) + rest * rate(n + 1)
        };
        match (&self.loaded, &self.model) {
            (Some(Loaded { blocks, .. }), _) => {
                of(blocks.header.block, &|n| blocks.frame_erasure_rate(n))
            }
            (None, Some(model)) => of(self.block.unwrap_or(BLOCK), &|n| {
                model.frame_erasure_rate(n)
            }),
            (None, None) => 0.0,
        }
    }

    /// Starts the replay.
    ///
    /// # Panics
    /// If the file was not loaded; the caller checks that.
    pub(crate) fn replay(&self, streams: Streams, fades: &mut Rng) -> BlocksReplay {
        if let Some(model) = &self.model {
            let process = Process::new(model.clone(), fades);
            return BlocksReplay {
                block: self.block.unwrap_or(BLOCK),
                source: Source::Model(Box::new(process)),
                row: (false, 0, 0),
            };
        }
        let loaded = self.loaded.as_ref();
        let blocks = &loaded
            .expect("checked: a trace is read before it is replayed")
            .blocks;
        let block = blocks.header.block;
        let len = u64::from(blocks.len());
        let first = match self.start.unwrap_or_default() {
            TraceStart::At(start) => start.as_nanos() / block.as_nanos() % len,
            TraceStart::Random => {
                let name = self.file.as_deref().unwrap_or_default();
                let mut places = streams.stream(&format!("trace.{name}"));
                ((places.uniform() * len as f64) as u64).min(len - 1)
            }
        };
        BlocksReplay {
            block,
            source: Source::File {
                blocks: Arc::clone(blocks),
                first,
            },
            row: (false, 0, 0),
        }
    }
}

/// Blocks in real time.
#[derive(Debug)]
pub struct BlocksReplay {
    block: Duration,
    source: Source,
    /// The model's current run: whether it is erased, its first block, and the first block after it.
    row: (bool, u64, u64),
}

#[derive(Debug)]
enum Source {
    Model(Box<Process>),
    File {
        blocks: Arc<Blocks>,
        /// The block on the air at the origin.
        first: u64,
    },
}

impl BlocksReplay {
    /// Whether any block on the air during `[start, end)` is erased; for a frame of zero duration, the block at `start`.
    /// Starts must not go back.
    pub(crate) fn erases(&mut self, start: Instant, end: Instant, fades: &mut Rng) -> bool {
        let block = self.block.as_nanos().max(1);
        let [from, last] = [
            start.as_nanos() / block,
            end.as_nanos().saturating_sub(1).max(start.as_nanos()) / block,
        ];
        match &mut self.source {
            Source::File { blocks, first } => {
                let len = u64::from(blocks.len());
                if last - from + 1 >= len {
                    return blocks.erased() > 0;
                }
                let (a, b) = ((from + *first) % len, (last + *first) % len);
                let hits = |a: u64, b: u64| {
                    // The first burst that ends after a is the only one that may begin before b and reach a.
                    let bursts = blocks.bursts();
                    let at = bursts.partition_point(|burst| u64::from(burst.end()) <= a);
                    bursts
                        .get(at)
                        .is_some_and(|burst| u64::from(burst.start) <= b)
                };
                if a <= b {
                    hits(a, b)
                } else {
                    hits(a, len - 1) || hits(0, b)
                }
            }
            Source::Model(process) => {
                let (mut erased, mut begin, mut end) = self.row;
                let mut lost = false;
                loop {
                    // The run overlaps the frame.
                    lost |= erased && end > from && begin <= last;
                    if end > last {
                        break;
                    }
                    let (is, len) = process.next_row(fades);
                    (erased, begin, end) = (is, end, end + u64::from(len));
                }
                self.row = (erased, begin, end);
                lost
            }
        }
    }
}

impl Serialize for Generator {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Generator {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

airlane_base::schema_of!(Generator, "BlocksModel", {
    "type": "string",
    "examples": ["onoff-c", "bernoulli 0.047", "gilbert 0.006 0.12", "on-off 0.4x1.5+0.6x4.8 / 0.9x50+0.1x8000"],
});
