//! Radio channels of 802.11: stations by node, and their common settings.

use std::collections::BTreeMap;

use airlane_base::{Duration, Instant, QueueLimit, Rate, Size};
use airlane_channel::ErrorsConfig;
use airlane_wifi::RadioConfig;
use airlane_wifi::noise::NoiseConfig;
use airlane_wifi::place::{Places, Position, SignalChange, Thresholds, received_w, watts};
use airlane_wifi::profile::{Modulation, Profile, ProfileName};
use airlane_wifi::signal::SignalConfig;
use airlane_wifi::station::{self, Retries};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A radio channel whose stations contend for it with 802.11's distributed coordination function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WifiConfig {
    /// These nodes have a station, at these positions in metres.
    #[schemars(extend("examples" = [{ "a": [0, 0], "b": [200, 0] }], "x-unit" = "metres"))]
    pub nodes: BTreeMap<String, Position>,
    /// The largest distance at which a station decodes frames. Stations are neighbours if each decodes the other,
    /// regardless of `signal`. Left out: 250 m. Source: ns-2's threshold, which Gopal 2007 uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [250], "x-unit" = "metres"))]
    pub receive_range_m: Option<f64>,
    /// The largest distance at which a station senses frames, not less than the decoding distance: it does not send
    /// meanwhile, and they may destroy others (`interference`). `signal.changes` count. Left out: 730.4 m. Source:
    /// ns-2's threshold, which Gopal 2007 uses; other works with ns-2 have 550 m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [550], "x-unit" = "metres"))]
    pub sense_range_m: Option<f64>,
    /// The name of the channel's timing parameters. Source: Gopal 2007, sections 5.3 and 7.2, for 802.11b.
    #[serde(default)]
    pub profile: ProfileName,
    /// The rate of data frames. Left out: 11 Mbit/s, 54 Mbit/s or 65 Mbit/s, by the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The rate of ACK, CTS and RTS frames. Left out: 1 or 2 Mbit/s, or 24 Mbit/s, by the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_rate: Option<Rate>,
    /// Whether stations wait for EIFS after a frame that they could not decode.
    #[serde(default = "yes")]
    pub eifs: bool,
    /// How often a station sends a frame. Source: Gopal 2007, section 5.4.
    #[serde(default)]
    pub retries: Retries,
    /// The limit of a station's queue, in addition to the frame that it is trying to send.
    #[serde(default = "default_queue")]
    pub queue: QueueLimit,
    /// Longer frames, MAC header included, are preceded by RTS and CTS.
    #[serde(default = "default_rts_threshold")]
    pub rts_threshold: Size,
    /// Whether a frame survives later frames that are at least 10 dB weaker, as in ns-2.
    #[serde(default = "yes")]
    pub capture: bool,
    /// Which overlapping frames destroy each other.
    #[serde(default)]
    pub interference: WifiInterference,
    /// Bytes added on the air to packets that start at one of the stations: the header of a routing agent. Source:
    /// Gopal 2007, figure 2.2, has 20 B.
    #[serde(default)]
    pub source_header: Size,
    /// Loss of frames to noise, whose phases are the same at all stations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{ "loss": 0.4, "on": "1 s", "off": "1 s" }]]))]
    pub noise: Vec<NoiseConfig>,
    /// Loss of frames whose signal is too weak for their rate. Left out: every signal in range is strong enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<WifiSignal>,
    /// Additional losses between two stations, with the error models of links, recordings included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<WifiErrors>,
    /// How stations choose the rate of data frames. Left out: it is fixed.
    #[serde(default, skip_serializing_if = "WifiRateControl::is_fixed")]
    pub rate_control: WifiRateControl,
    /// How long the start of a frame goes unnoticed, at most a slot. Source: Gopal 2007 has none; cards take up to
    /// 15 us.
    #[serde(default, skip_serializing_if = "is_none")]
    pub sense_delay: Duration,
    /// Settings of individual stations, by node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("examples" = [{ "a": { "retries": "off", "sense-range-m": 300 } }]))]
    pub stations: BTreeMap<String, StationConfig>,
    /// Packets between the ends of each of these lists of nodes take this path, in both directions, instead of a
    /// shortest one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[["a", "b", "c"]]]))]
    pub routes: Vec<Vec<String>>,
}

/// Which overlapping frames destroy each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WifiInterference {
    /// All frames that a receiver senses, as in ns-2.
    #[default]
    Sense,
    /// Only frames that a receiver could decode. Source: Gopal 2007, section 5.1.2.
    Receive,
}

/// How stations choose the rate of data frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WifiRateControl {
    /// They do not: all data frames have the rate `rate`.
    #[default]
    Fixed,
    /// For each neighbour, between the lowest rate of the standard and `rate`: up after ten acknowledgments in a row,
    /// down after two frames without one, or after the first at a higher rate. Source: Kamerman and Monteban 1997.
    Arf,
}

impl WifiRateControl {
    fn is_fixed(&self) -> bool {
        *self == Self::Fixed
    }
}

/// Losses of frames between two stations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WifiErrors {
    /// The two stations; down is from the first to the second.
    #[schemars(extend("examples" = [["a", "b"]]))]
    pub between: [String; 2],
    /// The error model, which also applies to ACK and CTS frames; of a trace, its losses and not its delays.
    #[schemars(extend("examples" = [{ "kind": "trace", "file": "hill-top.trace" }]))]
    pub model: ErrorsConfig,
}

/// Signal strength.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WifiSignal {
    /// Power of the constant noise, dBm. -94 for a receiver with a noise figure of 7 dB.
    #[schemars(extend("x-unit" = "dBm"))]
    pub noise_dbm: f64,
    /// Changes of the signal between two stations against the power at their distance. Carrier sense, capture and
    /// noise use the value at the start of a frame. A frame that is too weak to be sensed is not decoded; a stronger
    /// signal does not extend the decoding distance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<WifiSignalChange>,
}

/// Changes of the signal between two stations, in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WifiSignalChange {
    /// The two stations.
    #[schemars(extend("examples" = [["a", "b"]]))]
    pub between: [String; 2],
    /// Seconds, and the change in decibels from then on against the power at their distance; in order of time.
    #[schemars(extend("examples" = [[[0, 0], [2.5, -12]]]))]
    pub trace: Vec<[f64; 2]>,
}

/// Settings of one station.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StationConfig {
    /// How often it sends a frame. Left out: as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// The limit of its queue, in addition to the frame that it is trying to send. Left out: as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueLimit>,
    /// The largest distance at which it decodes frames. Left out: as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [250], "x-unit" = "metres"))]
    pub receive_range_m: Option<f64>,
    /// The largest distance at which it senses frames. Left out: as the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [550], "x-unit" = "metres"))]
    pub sense_range_m: Option<f64>,
}

/// The distances at which a station decodes and senses frames; none for ns-2's thresholds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ranges {
    receive_m: Option<f64>,
    sense_m: Option<f64>,
}

impl Ranges {
    /// In metres, also for ns-2's thresholds.
    pub(super) fn metres(self) -> [f64; 2] {
        [
            self.receive_m.unwrap_or(250.0),
            self.sense_m.unwrap_or(730.4),
        ]
    }

    fn thresholds(self) -> Thresholds {
        let usual = Thresholds::default();
        Thresholds {
            receive_w: self.receive_m.map_or(usual.receive_w, received_w),
            sense_w: self.sense_m.map_or(usual.sense_w, received_w),
        }
    }
}

fn is_none(delay: &Duration) -> bool {
    *delay == Duration::ZERO
}

fn yes() -> bool {
    true
}

/// Gopal 2007, sections 5.3 and 7.2.
fn default_queue() -> QueueLimit {
    QueueLimit::Packets(100)
}

/// Above every packet that 802.11 carries: no RTS.
fn default_rts_threshold() -> Size {
    Size::from_bytes(3_000)
}

impl WifiConfig {
    /// The stations in order, and their radio.
    pub(crate) fn radio(&self) -> (RadioConfig, Vec<station::StationConfig>) {
        let config = RadioConfig {
            profile: self.timing(),
            rts_threshold: usize::try_from(self.rts_threshold.as_bytes()).unwrap_or(usize::MAX),
            capture: self.capture,
            sensed_destroys: self.interference == WifiInterference::Sense,
            noise: self.noise.clone(),
            ladder: self.ladder(),
            signal: self.signal.as_ref().map(|signal| self.powers(signal)),
            sense_delay: self.sense_delay,
        };
        let station = |(name, position): (&String, &Position)| {
            let own = self.stations.get(name);
            station::StationConfig {
                position: *position,
                hears: self.ranges(own).thresholds(),
                retries: own.and_then(|own| own.retries).unwrap_or(self.retries),
                queue: own.and_then(|own| own.queue).unwrap_or(self.queue),
            }
        };
        (config, self.nodes.iter().map(station).collect())
    }

    fn timing(&self) -> Profile {
        let mut profile = Profile::named(self.profile, self.rate);
        profile.has_eifs = self.eifs;
        match self.answer_rate {
            Some(rate) => profile.answering_at(rate),
            None => profile,
        }
    }

    /// The rates to choose from; empty if the rate is fixed.
    fn ladder(&self) -> Vec<Modulation> {
        if self.rate_control == WifiRateControl::Fixed {
            return vec![];
        }
        let most = Profile::named(self.profile, self.rate)
            .data
            .bits_per_second();
        let mut ladder = Profile::ladder(self.profile);
        ladder.retain(|modulation| modulation.bits_per_second() <= most);
        ladder
    }

    fn powers(&self, signal: &WifiSignal) -> SignalConfig {
        let at = |seconds: f64| Instant::ORIGIN + Duration::from_secs_f64(seconds);
        let changes = signal.changes.iter().map(|change| SignalChange {
            // Validation has checked that they exist.
            between: change
                .between
                .each_ref()
                .map(|name| self.station(name).unwrap_or(0)),
            trace: change.trace.iter().map(|[s, db]| (at(*s), *db)).collect(),
        });
        SignalConfig {
            noise_w: watts(signal.noise_dbm),
            changes: changes.collect(),
        }
    }

    /// The rate of data frames; with rate control, the highest.
    pub(crate) fn data_rate(&self) -> Rate {
        let bps = Profile::named(self.profile, self.rate)
            .data
            .bits_per_second();
        Rate::from_bps(bps.max(1)).expect("above zero")
    }

    /// Which stations hear each other if no signal changes.
    pub(super) fn places(&self) -> Places {
        let station = |(name, at): (&String, &Position)| {
            (*at, self.ranges(self.stations.get(name)).thresholds())
        };
        Places::new(&self.nodes.iter().map(station).collect::<Vec<_>>(), &[])
    }

    /// The ranges of a station with its own settings.
    pub(super) fn ranges(&self, own: Option<&StationConfig>) -> Ranges {
        let own = |of: fn(&StationConfig) -> Option<f64>| own.and_then(of);
        Ranges {
            receive_m: own(|own| own.receive_range_m).or(self.receive_range_m),
            sense_m: own(|own| own.sense_range_m).or(self.sense_range_m),
        }
    }

    /// The index of a node's station, in order of names.
    pub(crate) fn station(&self, name: &str) -> Option<usize> {
        self.nodes.keys().position(|node| node == name)
    }
}
