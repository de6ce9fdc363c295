//! Checks of radio channels, and which stations hear each other.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use airlane_base::config::{Problems, key};
use airlane_channel::ErrorsConfig;
use airlane_link::config::RateLimit;
use airlane_wifi::place::distance_m;
use airlane_wifi::profile::Profile;

use super::ranks::Ranks;
use super::wifi::{WifiErrors, WifiRateControl};
use super::{HandoffConfig, LONGEST_RUN, LinkConfig, MediumConfig, Scenario, WifiConfig};

/// A larger coordinate was probably meant in another unit.
const FARTHEST_M: f64 = 1e6;
/// Ranges of distance; below the minimum, the received power is constant.
const RANGE_M: RangeInclusive<f64> = 0.01..=FARTHEST_M;
/// Limits the tables of all pairs of stations.
const MOST_STATIONS: usize = 256;

/// A noise level outside this range was probably meant in another unit.
const NOISE_DBM: RangeInclusive<f64> = -150.0..=0.0;
/// The largest change of a signal.
const MOST_DB: f64 = 200.0;

/// A hop over a radio channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RadioHop {
    /// Index of the radio in the order of names.
    pub(crate) radio: u16,
    /// Indices of the stations in the order of names.
    pub(crate) from: u16,
    pub(crate) to: u16,
    /// The node of the second station.
    pub(crate) node: usize,
}

/// The routes that radios add.
#[derive(Clone, Debug, Default)]
pub(crate) struct RadioRoutes {
    /// From a node: a neighbour that it reaches.
    pub(crate) hops: Vec<(usize, RadioHop)>,
    /// From a node, to a node: the next hop prescribed by the file.
    pub(crate) fixed: Vec<(usize, usize, RadioHop)>,
}

/// The medium of each link.
#[derive(Debug)]
pub(crate) struct Media<'a> {
    airs: BTreeMap<&'a str, usize>,
    radios: BTreeMap<&'a str, (u16, Ranks<'a>)>,
}

impl Media<'_> {
    /// The index of the medium among `media`, if the link shares its transmitter.
    pub(crate) fn air(&self, link: &LinkConfig) -> Option<usize> {
        self.airs.get(link.medium.as_deref()?).copied()
    }

    /// The radio that a link uses, and the stations of its near and far end; none if it uses no radio.
    pub(crate) fn stations(&self, link: &LinkConfig, down: bool) -> Option<[u16; 3]> {
        let (radio, stations) = self.radios.get(link.medium.as_deref()?)?;
        let [a, b] = link.ends.each_ref().map(|end| stations.at(end));
        let (a, b) = (a? as u16, b? as u16);
        Some(if down { [*radio, a, b] } else { [*radio, b, a] })
    }
}

impl Scenario {
    /// The radio channels, in the order of their names.
    pub(crate) fn wifis(&self) -> impl Iterator<Item = (&String, &WifiConfig)> {
        self.media.iter().filter_map(|(name, medium)| match medium {
            MediumConfig::Wifi(wifi) => Some((name, &**wifi)),
            _ => None,
        })
    }

    /// Media by name, for looking up those of many links.
    pub(crate) fn media_places(&self) -> Media<'_> {
        let airs = self.media.iter().enumerate();
        let airs =
            airs.filter(|(_, (_, medium))| matches!(medium, MediumConfig::HalfDuplex { .. }));
        let radios = (0..).zip(self.wifis());
        let radios = radios
            .map(|(radio, (name, wifi))| (name.as_str(), (radio, Ranks::of(wifi.nodes.keys()))));
        Media {
            airs: airs
                .map(|(place, (name, _))| (name.as_str(), place))
                .collect(),
            radios: radios.collect(),
        }
    }

    /// Checks a link between stations for settings that it cannot have.
    pub(super) fn check_air_link(
        &self,
        wifi: &WifiConfig,
        link: &LinkConfig,
        problems: &mut Problems,
    ) {
        let [a, b] = link.ends.each_ref().map(|end| wifi.station(end));
        let places = wifi.places();
        if !a.zip(b).is_some_and(|(a, b)| places.reach_each_other(a, b)) {
            problems.add(
                "ends",
                format!(
                    "\"{}\" and \"{}\" are no stations of this channel that reach each other{}",
                    link.ends[0],
                    link.ends[1],
                    apart(wifi, &link.ends)
                ),
                "two of its `nodes`, each within the `receive-range-m` of the other",
            );
        }
        if link.services.is_empty() {
            problems.add(
                "medium",
                "stations are joined by their channel, and a link through it has services",
                "[[links.<name>.services]], or no link",
            );
        }
        if link.errors != ErrorsConfig::default() || !link.outages.is_empty() {
            problems.add(
                "errors",
                "which frames are lost through the air, the radio channel says",
                "`noise`, `signal` or `errors` of the medium, and no errors and no outages here",
            );
        }
        if link.police.is_some() || link.jitter.is_some() {
            problems.add(
                "medium",
                "nothing stands between the stations of a radio channel",
                "no police and no jitter here",
            );
        }
        if wifi.source_header.as_bytes() > 0 {
            problems.add(
                "medium",
                "a routing agent's header is not in frames of a link",
                "a medium without source-header",
            );
        }
        if link.rate_limit.unwrap_or_default() != RateLimit::default() {
            problems.add(
                "rate-limit",
                "nothing waits below a port that a station asks for its next frame",
                "leave it out",
            );
        }
        let moves = |handoff: &HandoffConfig| {
            let ends = [&handoff.from, &handoff.to].map(|name| self.links.get(name));
            ends.into_iter()
                .flatten()
                .any(|other| std::ptr::eq(other, link))
        };
        if self.handoffs.iter().any(moves) {
            problems.add(
                "medium",
                "nobody leaves or joins a link between stations that stand still",
                "no handoff to or from this link",
            );
        }
    }

    pub(super) fn check_wifis(&self, problems: &mut Problems) {
        for (name, wifi) in self.wifis() {
            problems.within(&format!("media.{}", key(name)), |p| {
                self.check_wifi(wifi, p)
            });
        }
    }

    /// Which stations reach each other, and the next hops that files prescribe. Nodes that do not exist are ignored:
    /// validation reports them.
    pub(crate) fn radio_routes(&self, nodes: &Ranks<'_>) -> RadioRoutes {
        let mut routes = RadioRoutes::default();
        for (radio, (_, wifi)) in self.wifis().enumerate() {
            let places = wifi.places();
            let nodes: Vec<Option<usize>> = wifi.nodes.keys().map(|name| nodes.at(name)).collect();
            let hop = |from: usize, to: usize| {
                let node = nodes[to]?;
                let near = places.reach_each_other(from, to);
                near.then_some(RadioHop {
                    radio: radio as u16,
                    from: from as u16,
                    to: to as u16,
                    node,
                })
            };
            for (from, node) in nodes.iter().enumerate() {
                let Some(node) = node else { continue };
                let all = (0..nodes.len()).filter_map(|to| hop(from, to));
                routes.hops.extend(all.map(|hop| (*node, hop)));
            }
            for route in &wifi.routes {
                let stations: Option<Vec<usize>> =
                    route.iter().map(|name| wifi.station(name)).collect();
                let Some(stations) = stations else { continue };
                let (Some(first), Some(last)) = (stations.first(), stations.last()) else {
                    continue;
                };
                for pair in stations.windows(2) {
                    for (from, to, end) in [(pair[0], pair[1], last), (pair[1], pair[0], first)] {
                        if let (Some(from_node), Some(end), Some(hop)) =
                            (nodes[from], nodes[*end], hop(from, to))
                        {
                            routes.fixed.push((from_node, end, hop));
                        }
                    }
                }
            }
        }
        routes
    }

    fn check_wifi(&self, wifi: &WifiConfig, problems: &mut Problems) {
        if !(2..=MOST_STATIONS).contains(&wifi.nodes.len()) {
            problems.add(
                "nodes",
                format!("{} stations make no radio channel", wifi.nodes.len()),
                format!("2 to {MOST_STATIONS}, such as {{ a = [0, 0], b = [200, 0] }}"),
            );
        }
        for (name, position) in &wifi.nodes {
            let path = format!("nodes.{}", key(name));
            self.known_node(&path, name, problems);
            if !position.iter().all(|metres| metres.abs() <= FARTHEST_M) {
                problems.add(
                    &path,
                    format!("nobody stands at {position:?}"),
                    format!("metres, at most {FARTHEST_M} each way"),
                );
            }
        }
        for name in wifi.stations.keys() {
            check_station(wifi, &format!("stations.{}", key(name)), name, problems);
        }
        for (i, noise) in wifi.noise.iter().enumerate() {
            if noise.on + noise.off > LONGEST_RUN || noise.on.as_nanos() == 0 {
                problems.add(
                    &format!("noise[{i}]"),
                    format!(
                        "noise of {} on and {} off has no phases",
                        noise.on, noise.off
                    ),
                    format!("`on` above zero, and both together at most \"{LONGEST_RUN}\""),
                );
            }
        }
        check_ranges(wifi, problems);
        check_rates(wifi, problems);
        for (i, errors) in wifi.errors.iter().enumerate() {
            let path = format!("errors[{i}]");
            for (at, name) in errors.between.iter().enumerate() {
                check_station(wifi, &format!("{path}.between[{at}]"), name, problems);
            }
            let same =
                |other: &&WifiErrors| errors.between.iter().all(|n| other.between.contains(n));
            if errors.between[0] == errors.between[1] || wifi.errors[..i].iter().any(|o| same(&o)) {
                problems.add(
                    &format!("{path}.between"),
                    format!(
                        "{:?} are no two stations that have none yet",
                        errors.between
                    ),
                    "each pair once",
                );
            }
            let ErrorsConfig { down, up } = &errors.model;
            if let Err(e) = down.validate().and_then(|()| up.validate()) {
                problems.add(&format!("{path}.model"), e.to_string(), "");
            }
        }
        for (i, route) in wifi.routes.iter().enumerate() {
            let path = format!("routes[{i}]");
            if route.len() < 2 || route.len() > wifi.nodes.len() {
                problems.add(
                    &path,
                    format!("{} nodes are no way", route.len()),
                    "the nodes in order, both ends included, each once",
                );
            }
            for (at, name) in route.iter().enumerate() {
                check_station(wifi, &format!("{path}[{at}]"), name, problems);
                if route[..at].contains(name) {
                    problems.add(
                        &format!("{path}[{at}]"),
                        format!("\"{name}\" is on this way already"),
                        "each node once",
                    );
                }
            }
            let places = wifi.places();
            for (at, pair) in route.windows(2).enumerate() {
                if let (Some(a), Some(b)) = (wifi.station(&pair[0]), wifi.station(&pair[1]))
                    && a != b
                    && !places.reach_each_other(a, b)
                {
                    let far = apart(wifi, &[pair[0].clone(), pair[1].clone()]);
                    problems.add(
                        &format!("{path}[{at}]"),
                        format!(
                            "\"{}\" and \"{}\" do not reach each other{far}",
                            pair[0], pair[1]
                        ),
                        "neighbours, each within the `receive-range-m` of the other",
                    );
                }
            }
        }
    }
}

/// The distance of two stations, and the decoding range of each; empty for other nodes.
fn apart(wifi: &WifiConfig, ends: &[String; 2]) -> String {
    let [Some(a), Some(b)] = ends.each_ref().map(|end| wifi.nodes.get(end)) else {
        return String::new();
    };
    let [first, second] = ends
        .each_ref()
        .map(|end| wifi.ranges(wifi.stations.get(end)).metres()[0]);
    let apart = distance_m(*a, *b);
    format!(
        ": they are {apart:.1} m apart, \"{}\" decodes up to {first} m and \"{}\" up to {second} m",
        ends[0], ends[1]
    )
}

fn check_ranges(wifi: &WifiConfig, problems: &mut Problems) {
    let mut check = |place: &str, [receive, sense]: [Option<f64>; 2], whole: [f64; 2]| {
        for (word, range) in [("receive-range-m", receive), ("sense-range-m", sense)] {
            if let Some(range) = range.filter(|range| !RANGE_M.contains(range)) {
                problems.add(
                    &format!("{place}{word}"),
                    format!("nobody hears up to {range} m"),
                    format!("metres, {} to {}", RANGE_M.start(), RANGE_M.end()),
                );
            }
        }
        let [receives, senses] = whole;
        if (receive.is_some() || sense.is_some()) && senses < receives {
            problems.add(
                &format!("{place}sense-range-m"),
                format!(
                    "a station that decodes up to {receives} m senses no less far, and here up to {senses} m"
                ),
                format!("{receives} or more, or a shorter receive-range-m"),
            );
        }
    };
    let all = [wifi.receive_range_m, wifi.sense_range_m];
    check("", all, wifi.ranges(None).metres());
    for (name, own) in &wifi.stations {
        let place = format!("stations.{}.", key(name));
        let whole = wifi.ranges(Some(own)).metres();
        check(&place, [own.receive_range_m, own.sense_range_m], whole);
    }
}

fn check_rates(wifi: &WifiConfig, problems: &mut Problems) {
    let slot = Profile::named(wifi.profile, None).slot;
    if wifi.sense_delay > slot {
        problems.add(
            "sense-delay",
            format!("nobody is deaf to others for {}", wifi.sense_delay),
            format!("at most a slot, \"{slot}\""),
        );
    }
    let slowest = Profile::ladder(wifi.profile)[0].bits_per_second();
    if wifi.rate_control != WifiRateControl::Fixed
        && let Some(rate) = wifi.rate.filter(|rate| rate.as_bps() < slowest)
    {
        problems.add(
            "rate",
            format!("\"{rate}\" is below the slowest rate of the profile"),
            "a rate of the standard, or rate-control = \"fixed\"",
        );
    }
    let Some(signal) = &wifi.signal else { return };
    if !(NOISE_DBM.contains(&signal.noise_dbm)) {
        problems.add(
            "signal.noise-dbm",
            format!("{} dBm is no noise of a receiver", signal.noise_dbm),
            format!("{} to {}, such as -94", NOISE_DBM.start(), NOISE_DBM.end()),
        );
    }
    for (i, change) in signal.changes.iter().enumerate() {
        let path = format!("signal.changes[{i}]");
        for (at, name) in change.between.iter().enumerate() {
            check_station(wifi, &format!("{path}.between[{at}]"), name, problems);
        }
        let same = |pair: &[String; 2]| change.between.iter().all(|n| pair.contains(n));
        let before = &signal.changes[..i];
        if change.between[0] == change.between[1] || before.iter().any(|o| same(&o.between)) {
            problems.add(
                &format!("{path}.between"),
                format!(
                    "{:?} are no two stations that have none yet",
                    change.between
                ),
                "each pair once",
            );
        }
        let possible = |[seconds, db]: &[f64; 2]| {
            (0.0..=LONGEST_RUN.as_secs_f64()).contains(seconds) && db.abs() <= MOST_DB
        };
        let ordered = change.trace.is_sorted_by(|a, b| a[0] < b[0]);
        if !ordered || !change.trace.iter().all(possible) {
            problems.add(
                &format!("{path}.trace"),
                "is no row of times and decibels",
                format!("[seconds, decibels] in order of time, at most {MOST_DB} dB each way"),
            );
        }
    }
}

fn check_station(wifi: &WifiConfig, path: &str, name: &str, problems: &mut Problems) {
    if wifi.station(name).is_none() {
        let nodes: Vec<&str> = wifi.nodes.keys().map(String::as_str).collect();
        problems.add(
            path,
            format!("there is no station \"{name}\" on this channel"),
            format!("one of: {}", nodes.join(", ")),
        );
    }
}
