//! `errors = { kind = "trace", file = "hill-top.trace" }`: a recorded link in a configuration file.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use airlane_base::random::fnv1a;
use airlane_base::{Duration, Streams, UnitError};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Trace;
use super::path::Way;
use super::replay::Replay;

/// Losses and delays of a recorded link.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(deny_unknown_fields)]
pub struct TraceConfig {
    /// This file has the recording.
    #[schemars(example = &"hill-top.trace")]
    pub file: String,
    /// This recorded direction is replayed. Left out: `in` downwards and `out` upwards, as if it was recorded at the
    /// second end of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Way>,
    /// The run begins at this place in the recording.
    #[schemars(default)]
    pub start: TraceStart,
    /// Whether frames are as late as the recorded ones were.
    #[schemars(default = "late")]
    pub delays: bool,
    #[serde(skip)]
    loaded: Option<Loaded>,
}

/// The place in a recording at which a replay begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceStart {
    /// At this time after the beginning of the recording.
    At(Duration),
    /// At a random place, drawn for each run; all directions that replay one file begin at the same place.
    Random,
}

/// At the beginning of the recording.
impl Default for TraceStart {
    fn default() -> Self {
        Self::At(Duration::ZERO)
    }
}

/// The default of `delays`.
const fn late() -> bool {
    true
}

/// The decoded file.
#[derive(Clone, Debug)]
struct Loaded {
    replay: Arc<Replay>,
    way: Way,
    /// Offset into the recording. If only one direction was recorded, the other replays it half a recording later, so
    /// that the two do not lose frames at the same moments.
    shift: Duration,
    /// Digest of the file, equal for equal files.
    digest: u64,
}

/// Compared by origin: a recording may have millions of points.
impl PartialEq for Loaded {
    fn eq(&self, other: &Self) -> bool {
        (self.way, self.shift, self.digest) == (other.way, other.shift, other.digest)
    }
}

/// Why a configured trace cannot be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {reason}")]
pub struct TraceFileError {
    /// The file.
    pub file: String,
    /// The problem, and what would be right.
    pub reason: String,
}

impl TraceConfig {
    /// A replay that is not loaded yet: see [`load_traces`](crate::load_traces).
    pub fn new(
        file: String,
        direction: Option<Way>,
        start: Option<TraceStart>,
        delays: Option<bool>,
    ) -> Self {
        Self {
            file,
            direction,
            start: start.unwrap_or_default(),
            delays: delays.unwrap_or(late()),
            loaded: None,
        }
    }

    /// Parses the bytes of the file. `usual` is the direction to replay if none is configured; if only the other one was
    /// recorded, that one is replayed, half a recording later.
    ///
    /// # Errors
    /// If the bytes are not a trace, or record nothing for the direction.
    pub(crate) fn load(&mut self, bytes: &[u8], usual: Way) -> Result<(), TraceFileError> {
        let wrong = |reason: String| TraceFileError {
            file: self.file.clone(),
            reason,
        };
        let trace = Trace::read(bytes).map_err(|error| wrong(error.to_string()))?;
        let mut way = self.direction.unwrap_or(usual);
        let mut shift = Duration::ZERO;
        let mut path = trace.path(way);
        if path.is_none() && self.direction.is_none() {
            way = Way::In;
            path = trace.path(way);
            shift = trace.span() / 2;
        }
        let known = path.filter(|path| path.received + path.lost > 0);
        let path = known.ok_or_else(|| {
            let of = match way {
                Way::In => "received by",
                Way::Out => "sent by",
            };
            let name = &trace.header.name;
            wrong(format!(
                "what became of the frames {of} \"{name}\" is not in it; record both ends at the same \
                 time and join them: `airlane trace join`"
            ))
        })?;
        let replay = Arc::new(Replay::new(&path, trace.span()));
        self.loaded = Some(Loaded {
            replay,
            way,
            shift,
            digest: fnv1a(bytes),
        });
        Ok(())
    }

    /// Whether the file has been loaded.
    pub const fn is_loaded(&self) -> bool {
        self.loaded.is_some()
    }

    /// Digest of the recording, equal for equal ones; zero before it is loaded.
    pub fn digest(&self) -> u64 {
        self.loaded.as_ref().map_or(0, |loaded| loaded.digest)
    }

    /// The share of recorded frames that were lost.
    pub(crate) fn loss(&self) -> f64 {
        let loaded = self.loaded.as_ref();
        loaded.map_or(0.0, |loaded| loaded.replay.loss())
    }

    /// The recording to replay, and the place to begin at.
    ///
    /// # Panics
    /// If the file was not loaded; the caller checks that.
    pub(crate) fn replay(&self, streams: Streams) -> (Arc<Replay>, Duration) {
        let loaded = self.loaded.as_ref();
        let loaded = loaded.expect("checked: a trace is read before it is replayed");
        let span = loaded.replay.span();
        let start = match self.start {
            TraceStart::At(start) => start,
            TraceStart::Random => {
                let mut places = streams.stream(&format!("trace.{}", self.file));
                span.mul_f64(places.uniform())
            }
        };
        // Reduced to the recording's length, both are far within the range of nanoseconds.
        let within = |time: Duration| Duration::from_nanos(time.as_nanos() % span.as_nanos());
        let start = within(within(start) + within(loaded.shift));
        (Arc::clone(&loaded.replay), start)
    }
}

impl FromStr for TraceStart {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text {
            "random" => Ok(Self::Random),
            text => text.parse().map(Self::At),
        }
    }
}

impl fmt::Display for TraceStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(start) => start.fmt(f),
            Self::Random => f.write_str("random"),
        }
    }
}

impl Serialize for TraceStart {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

airlane_base::schema_of!(TraceStart, "TraceStart", {
    "type": "string",
    "pattern": r"^(random|\s*[+]?[0-9._]+\s*(ns|us|ms|s|min)\s*)$",
    "examples": ["10 s", "random"],
    "x-unit": "ns, us, ms, s, min, or \"random\"",
});

impl<'de> Deserialize<'de> for TraceStart {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        text.parse().map_err(|error| {
            serde::de::Error::custom(format!(
                "{error}; a trace starts at such a time, or \"random\""
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{FrameId, TraceHeader, TraceRecord};
    use crate::{Channel, ChannelConfig, ErrorModel, ErrorModelConfig, ErrorsConfig, load_traces};
    use airlane_base::{Instant, Rate};

    const MS: Duration = Duration::from_millis(1);

    /// A recording at the receiver: a frame per millisecond, of which every twentieth is lost.
    fn recording() -> Vec<u8> {
        let received = (0..10_000u64)
            .filter(|number| number % 20 != 7)
            .map(|number| TraceRecord::Received {
                at: MS * number,
                frame: FrameId { key: 3, number },
                len: 1_000,
            });
        let trace = Trace {
            header: TraceHeader {
                name: "right".to_owned(),
                ..TraceHeader::default()
            },
            near: received.collect(),
            ..Trace::default()
        };
        trace.to_bytes()
    }

    #[derive(Debug, Deserialize)]
    struct File {
        errors: ErrorsConfig,
    }

    fn errors(text: &str) -> ErrorsConfig {
        toml::from_str::<File>(text).unwrap().errors
    }

    fn loaded(text: &str) -> Result<ErrorsConfig, TraceFileError> {
        let mut errors = errors(text);
        load_traces(&mut errors, |file| match file {
            "right.trace" => Ok(recording()),
            _ => Err("no such file".to_owned()),
        })?;
        Ok(errors)
    }

    fn lost(config: &ErrorModelConfig, run: u64, frames: u64) -> Vec<u64> {
        let rate = Rate::from_bps(8_000_000).unwrap();
        let mut model = ErrorModel::new(config, rate, Streams::new(1, run), "link.radio.down");
        let at = |ms| Instant::ORIGIN + MS * ms;
        let lost = (0..frames).filter(|ms| model.loses(at(*ms), at(ms + 1), 1_000));
        lost.collect()
    }

    #[test]
    fn a_recording_loses_the_recorded_frames() {
        let errors = loaded("errors = { kind = 'trace', file = 'right.trace' }").unwrap();
        let expected: Vec<u64> = (0..10_000).filter(|n| n % 20 == 7).collect();
        assert_eq!(lost(&errors.down, 0, 9_900), expected[..495]);
        assert_eq!(
            errors.down.loss_probability(Rate::from_bps(1).unwrap(), 1),
            0.05
        );
        // The other direction was not recorded; it loses as many frames, half a recording apart.
        let up = lost(&errors.up, 0, 4_000);
        // Half a millisecond off the recorded frames: 200, with a standard deviation of 10.
        assert!((160..=240).contains(&up.len()), "{}", up.len());
        assert_ne!(up[..100], expected[..100]);

        let later = "errors = { kind = 'trace', file = 'right.trace', start = '3 ms' }";
        assert_eq!(lost(&loaded(later).unwrap().down, 0, 50), [4, 24, 44]);
        let random = "errors = { kind = 'trace', file = 'right.trace', start = 'random' }";
        let random = loaded(random).unwrap().down;
        assert_eq!(lost(&random, 1, 5_000), lost(&random, 1, 5_000));
        assert_ne!(lost(&random, 1, 5_000), lost(&random, 2, 5_000));
    }

    /// Frames sent at other times than the recorded ones have the same loss rate.
    #[test]
    fn other_frames_lose_as_many() {
        let errors = loaded("errors = { kind = 'trace', file = 'right.trace' }").unwrap();
        let rate = Rate::from_bps(8_000_000).unwrap();
        for (run, ns) in [(0, 120_000u64), (1, 1_234_567), (2, 7_654_321)] {
            let mut model = ErrorModel::new(&errors.down, rate, Streams::new(1, run), "x");
            let frames = 60_000;
            let at = |i: u64| Instant::from_nanos(i * ns);
            let lost = (0..frames)
                .filter(|i| model.loses(at(*i), at(i + 1), 99))
                .count();
            let ratio = lost as f64 / frames as f64;
            // 0.05 with a standard error of at most 0.0009; four of them.
            assert!((ratio - 0.05).abs() < 0.0036, "{ratio} every {ns} ns");
        }
    }

    #[test]
    fn frames_are_as_late_as_recorded_and_in_order() {
        let mut records = [Vec::new(), Vec::new()];
        for number in 0..100 {
            let (frame, len) = (FrameId { key: 1, number }, 10);
            let (at, late) = (
                MS * 10 * number,
                if number == 50 {
                    MS * 15
                } else {
                    Duration::ZERO
                },
            );
            let queue = 0;
            records[0].push(TraceRecord::Sent {
                at,
                frame,
                len,
                queue,
            });
            let at = at + late;
            records[1].push(TraceRecord::Received { at, frame, len });
        }
        let [near, far] = records.map(|near| Trace {
            near,
            ..Trace::default()
        });
        let bytes = Trace::join(near, far).unwrap().to_bytes();
        let arrivals = |text: &str| {
            let mut errors = errors(text);
            load_traces(&mut errors, |_| Ok(bytes.clone())).unwrap();
            let rate = Rate::from_bps(8_000_000_000).unwrap();
            let model = ErrorModel::new(&errors.down, rate, Streams::new(1, 0), "x");
            let config = ChannelConfig {
                rate,
                delay: MS,
                queue: "9 packets".parse().unwrap(),
            };
            let mut channel = Channel::new(config, model);
            let mut late = Vec::new();
            for number in 0..100 {
                let now = Instant::ORIGIN + MS * 10 * number;
                channel.send(now, 1, number).unwrap();
            }
            while let Some(at) = channel.poll_timeout() {
                let number = channel.poll_deliver(at).unwrap();
                let delay = at.saturating_since(Instant::ORIGIN + MS * 10 * number);
                late.push(delay.as_nanos() / 1_000_000);
            }
            late
        };
        let text = "errors.down = { kind = 'trace', file = 'x', direction = 'out' }";
        let mut expected = vec![1; 100];
        expected[50] = 16;
        // The next frame waited for it.
        expected[51] = 6;
        assert_eq!(arrivals(text), expected);
        let without = text.replace("'out'", "'out', delays = false");
        assert_eq!(arrivals(&without), vec![1; 100]);
    }

    #[test]
    fn unreplayable_traces_are_refused() {
        let refusal = |text: &str| loaded(text).unwrap_err().to_string();
        let said = refusal("errors = { kind = 'trace', file = 'left.trace' }");
        assert_eq!(said, "left.trace: no such file");
        let said =
            refusal("errors.up = { kind = 'trace', file = 'right.trace', direction = 'out' }");
        assert!(
            said.contains("sent by \"right\"") && said.contains("trace join"),
            "{said}"
        );
        let mut other = errors("errors = { kind = 'trace', file = 'x' }");
        let said = load_traces(&mut other, |_| Ok(b"text".to_vec())).unwrap_err();
        assert!(said.to_string().contains("no trace"), "{said}");

        let read = |text: &str| toml::from_str::<File>(text).unwrap_err().to_string();
        let said = read("errors = { kind = 'trace' }");
        assert!(
            said.contains("need `file`") && said.contains("start"),
            "{said}"
        );
        let said = read("errors = { kind = 'trace', file = 'x', start = 'soon' }");
        assert!(said.contains("random"), "{said}");
        let said = read("errors = { kind = 'trace', file = 'x', rate = 1 }");
        assert!(said.contains("`rate` does not belong"), "{said}");
    }

    #[test]
    fn what_is_written_out_is_read_back() {
        let text = "errors = { kind = 'trace', file = 'a', direction = 'out', start = 'random', delays = false }";
        for text in [
            text,
            "errors = { kind = 'trace', file = 'b', start = '3 s' }",
        ] {
            let errors = errors(text);
            let json = serde_json::to_string(&errors).unwrap();
            assert_eq!(serde_json::from_str::<ErrorsConfig>(&json).unwrap(), errors);
        }
    }
}
