//! The paths, each described once: the emulator's file and the scenario get the same lines, and a path's capacity is
//! computed from the same numbers.

use std::time::Duration;

use airlane_probe::Times;
use airlane_testkit::live::GRACE;

/// The rate of one direction of a path.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// Always the same, kbit/s.
    Constant(u32),
    /// Successive rates in kbit/s, each for this many seconds.
    Steps(u32, &'static [u32]),
    /// Packets of 1504 B that may leave in each 20 ms of a minute, one number per line after a heading.
    Recorded(&'static str),
}

/// A policer: kbit/s, and the burst in bytes.
type Police = (u32, u32);

/// The criterion for the share of a path that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// 90 % of the capacity, from the third second of load and the second after each step.
    OfPath,
    /// 85 % of the share used without Airlane: on a radio, the queue decides how much can be sent.
    OfWithout,
}

/// A path, and the duration of its traffic.
#[derive(Clone, Debug)]
pub struct PathWorld {
    /// Its name on the command line, in tables and in JSON.
    pub name: String,
    down: Pace,
    up: Pace,
    /// One way.
    delay_ms: f64,
    queue: &'static str,
    loss: f64,
    police: Option<Police>,
    /// Times without the path, start and end in seconds.
    outages: Vec<[u32; 2]>,
    /// Whether there is a call, which needs 81 kbit/s.
    pub(super) call: bool,
    pub(super) asked: Asked,
    /// Seconds of load before the measurement, in which the rate may be found.
    warmup_s: u32,
    measure_s: u32,
}

/// Seconds within which the rate must be found at the beginning, and after a step up.
const FOUND_WITHIN_S: u32 = 3;
const FOLLOWED_WITHIN: usize = 2_000 / SLOT_MS;
/// The shortest time with a constant rate.
const SLOT_MS: usize = 20;
const PACKET_BITS: f64 = 1504.0 * 8.0;

macro_rules! recorded {
    ($network:literal, $way:literal) => {
        Pace::Recorded(include_str!(concat!(
            "../../../../../world/sim/tests/data/cellular/",
            $network,
            ".",
            $way,
            ".csv"
        )))
    };
}

const CELLULAR: [(&str, Pace, Pace); 5] = [
    (
        "att-lte",
        recorded!("ATT-LTE-driving-2016", "down"),
        recorded!("ATT-LTE-driving-2016", "up"),
    ),
    (
        "tmobile-lte",
        recorded!("TMobile-LTE-short", "down"),
        recorded!("TMobile-LTE-short", "up"),
    ),
    (
        "tmobile-umts",
        recorded!("TMobile-UMTS-driving", "down"),
        recorded!("TMobile-UMTS-driving", "up"),
    ),
    (
        "verizon-evdo",
        recorded!("Verizon-EVDO-driving", "down"),
        recorded!("Verizon-EVDO-driving", "up"),
    ),
    (
        "verizon-lte",
        recorded!("Verizon-LTE-short", "down"),
        recorded!("Verizon-LTE-short", "up"),
    ),
];

impl PathWorld {
    /// 20 Mbit/s, 25 ms, without losses.
    fn usual(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            down: Pace::Constant(20_000),
            up: Pace::Constant(20_000),
            delay_ms: 25.0,
            queue: "125 kB",
            loss: 0.0,
            police: None,
            outages: Vec::new(),
            call: true,
            asked: Asked::OfPath,
            warmup_s: FOUND_WITHIN_S,
            measure_s: 10,
        }
    }

    fn both(self, pace: Pace) -> Self {
        Self {
            down: pace,
            up: pace,
            ..self
        }
    }

    /// All paths.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (mbps, burst) in [(2, 30_000), (30, 60_000)] {
            for round_trip_ms in [1, 50, 600] {
                all.push(Self {
                    delay_ms: f64::from(round_trip_ms) / 2.0,
                    queue: "1000 packets",
                    police: Some((mbps * 1_000, burst)),
                    ..Self::usual(format!("police-{mbps}-{round_trip_ms}"))
                        .both(Pace::Constant(1_000_000))
                });
            }
        }
        let outages: Vec<_> = (1..=9).map(|cut| [2 * cut, 2 * cut + 1]).collect();
        all.push(Self {
            loss: 0.02,
            // TCP itself retries up to a second after the last outage.
            warmup_s: outages[8][1] + 2,
            outages,
            ..Self::usual("outages")
        });
        let steps: [(u32, &[u32]); 3] = [
            (2, &[20_000, 10_000]),
            (6, &[20_000, 3_333]),
            (20, &[20_000, 1_000]),
        ];
        for (times, rates) in steps {
            all.push(Self {
                queue: "500 kB",
                // Two rounds of all rates.
                measure_s: 20,
                ..Self::usual(format!("steps-{times}")).both(Pace::Steps(5, rates))
            });
        }
        all.push(Self {
            queue: "500 kB",
            loss: 0.005,
            measure_s: 30,
            ..Self::usual("starlink").both(Pace::Steps(15, &[100_000, 50_000]))
        });
        all.push(Self {
            down: Pace::Constant(40_000),
            up: Pace::Constant(5_000),
            delay_ms: 300.0,
            queue: "3 MB",
            loss: 0.003,
            ..Self::usual("geo")
        });
        all.push(Self {
            delay_ms: 50.0,
            queue: "16 kB",
            call: false,
            measure_s: 20,
            ..Self::usual("64k").both(Pace::Constant(64))
        });
        all.extend(CELLULAR.into_iter().map(|(name, down, up)| Self {
            down,
            up,
            queue: "500 kB",
            asked: Asked::OfWithout,
            ..Self::usual(name)
        }));
        all
    }

    /// The paths with these names, or, if no path has a name, those that begin with it; all if no name is given.
    ///
    /// # Errors
    /// Names the one that no path has.
    pub fn named(names: &[String]) -> Result<Vec<Self>, String> {
        let all = Self::all();
        let mut wanted: Vec<&str> = Vec::new();
        for name in names {
            let known = all.iter().map(|world| world.name.as_str());
            match known.clone().find(|known| known == name) {
                Some(known) => wanted.push(known),
                None => wanted.extend(known.clone().filter(|known| known.starts_with(name))),
            }
            if !wanted.iter().any(|wanted| wanted.starts_with(name)) {
                let known = known.collect::<Vec<_>>().join(", ");
                return Err(format!(
                    "--paths: {name} is none of {known}, nor how one begins"
                ));
            }
        }
        let is_wanted = |world: &&Self| names.is_empty() || wanted.contains(&world.name.as_str());
        Ok(all.iter().filter(is_wanted).cloned().collect())
    }

    /// The times of its traffic; `measure` overrides the duration of the measurement.
    pub(super) fn times(&self, measure: Option<Duration>) -> Times {
        let s = |seconds: u32| Duration::from_secs(seconds.into());
        Times {
            warmup: s(self.warmup_s),
            measure: measure.unwrap_or_else(|| s(self.measure_s)),
            grace: GRACE,
        }
    }

    /// One way, ms.
    pub(super) const fn delay_ms(&self) -> f64 {
        self.delay_ms
    }

    /// The lines that the emulator's file and the scenario's link have in common.
    pub(super) fn lines(&self) -> String {
        let Self {
            delay_ms,
            queue,
            loss,
            ..
        } = self;
        let [down, up] = [(self.down, "down"), (self.up, "up")].map(|(pace, way)| pace.toml(way));
        let mut lines = format!(
            "rate = {{ down = {down}, up = {up} }}\n\
             delay = \"{delay_ms} ms\"\n\
             queue = \"{queue}\"\n\
             errors = {{ kind = \"uniform\", rate = {loss} }}\n"
        );
        if let Some((kbps, burst)) = self.police {
            lines += &format!("police = {{ rate = \"{kbps} kbit/s\", burst = \"{burst} B\" }}\n");
        }
        if !self.outages.is_empty() {
            let outages = self.outages.iter();
            let outages: Vec<_> = outages
                .map(|[from, to]| format!("{{ from = \"{from} s\", to = \"{to} s\" }}"))
                .collect();
            lines += &format!("outages = [{}]\n", outages.join(", "));
        }
        lines
    }

    /// Files that these lines name, with their contents.
    pub(super) fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        let ways = [("down", self.down), ("up", self.up)];
        let files = ways.into_iter().filter_map(|(way, pace)| match pace {
            Pace::Recorded(counts) => Some((way, opportunities(counts))),
            Pace::Constant(_) | Pace::Steps(..) => None,
        });
        files.collect()
    }

    /// The capacity down in each 20 ms until the end of the measurement, bit/s.
    fn slots(&self, times: &Times) -> Vec<f64> {
        let count = (times.warmup + times.measure).as_millis() as usize / SLOT_MS;
        let recorded = match self.down {
            Pace::Recorded(counts) => counted(counts).collect(),
            Pace::Constant(_) | Pace::Steps(..) => Vec::new(),
        };
        let slot = |slot: usize| {
            let kbps = match self.down {
                Pace::Constant(kbps) => f64::from(kbps),
                Pace::Steps(every_s, rates) => {
                    let step = slot * SLOT_MS / (every_s as usize * 1_000);
                    f64::from(rates[step % rates.len()])
                }
                Pace::Recorded(_) => {
                    let packets = recorded[slot % recorded.len()];
                    f64::from(packets) * PACKET_BITS / SLOT_MS as f64
                }
            };
            let kbps = match self.police {
                Some((most, _)) => kbps.min(f64::from(most)),
                None => kbps,
            };
            let s = slot * SLOT_MS / 1_000;
            let out = |[from, to]: &[u32; 2]| (*from as usize..*to as usize).contains(&s);
            match self.outages.iter().any(out) {
                true => 0.0,
                false => kbps * 1e3 * (1.0 - self.loss),
            }
        };
        (0..count).map(slot).collect()
    }

    /// The mean capacity down during the measurement, bit/s.
    pub(super) fn carries_bps(&self, times: &Times) -> f64 {
        mean(&self.slots(times)[begun(times)..])
    }

    /// The share of it that must be used: nine tenths, and for two seconds after a step up only of the previous rate.
    pub(super) fn asked_part(&self, times: &Times) -> f64 {
        let slots = self.slots(times);
        let followed = |at: usize| {
            let since = at.saturating_sub(FOLLOWED_WITHIN);
            slots[since..=at].iter().copied().fold(f64::MAX, f64::min)
        };
        let followed: Vec<f64> = (begun(times)..slots.len()).map(followed).collect();
        0.9 * mean(&followed) / self.carries_bps(times)
    }
}

/// The slot in which the measurement begins.
const fn begun(times: &Times) -> usize {
    times.warmup.as_millis() as usize / SLOT_MS
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl Pace {
    /// The value of `rate` for one direction.
    fn toml(self, way: &str) -> String {
        match self {
            Self::Constant(kbps) => format!("\"{kbps} kbit/s\""),
            Self::Steps(every_s, rates) => {
                let rates: Vec<_> = rates
                    .iter()
                    .map(|kbps| format!("\"{kbps} kbit/s\""))
                    .collect();
                let rates = rates.join(", ");
                format!("{{ kind = \"steps\", every = \"{every_s} s\", rates = [{rates}] }}")
            }
            Self::Recorded(_) => format!("{{ kind = \"opportunities\", file = \"{way}\" }}"),
        }
    }
}

/// Packets in each slot of a recording. Lines that are not numbers, such as the heading, are skipped.
fn counted(counts: &str) -> impl Iterator<Item = u32> {
    counts.lines().filter_map(|line| line.trim().parse().ok())
}

/// Sending opportunities in ms, in Mahimahi's format.
fn opportunities(counts: &str) -> Vec<u8> {
    let mut text = String::new();
    for (slot, count) in counted(counts).enumerate() {
        let count = count as usize;
        for at in 0..count {
            text += &format!("{}\n", slot * SLOT_MS + at * SLOT_MS / count);
        }
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(name: &str) -> PathWorld {
        let all = PathWorld::all().into_iter();
        all.into_iter().find(|world| world.name == name).unwrap()
    }

    fn carries(name: &str) -> f64 {
        let world = world(name);
        world.carries_bps(&world.times(None)) / 1e6
    }

    #[test]
    fn path_names_are_unique_and_every_path_has_capacity() {
        let all = PathWorld::all();
        for world in &all {
            let of_this_name = all.iter().filter(|other| other.name == world.name);
            assert_eq!(of_this_name.count(), 1, "{}", world.name);
            let carried = world.carries_bps(&world.times(None));
            assert!(carried > 50e3, "{}: {carried}", world.name);
        }
    }

    #[test]
    fn capacity_is_computed_from_the_path() {
        assert!((carries("police-2-50") - 2.0).abs() < 1e-9);
        assert!((carries("geo") - 40.0 * 0.997).abs() < 1e-9);
        // Whole rounds.
        assert!((carries("steps-20") - 10.5).abs() < 1e-9);
        // The measurement begins after the last of them.
        assert!((carries("outages") - 20.0 * 0.98).abs() < 1e-9);
        assert!((carries("64k") - 0.064).abs() < 1e-9);
        assert!((1.0..20.0).contains(&carries("verizon-lte")));
    }

    #[test]
    fn the_required_share_allows_two_seconds_after_a_step_up() {
        let asked = |name: &str| {
            let world = world(name);
            world.asked_part(&world.times(None))
        };
        assert!((asked("geo") - 0.9).abs() < 1e-9);
        // Of 20 and 10 Mbit/s for 5 s each: 2 s at 10 and 3 s at 20 after each step up.
        let steps = 0.9 * (2.0 * 10.0 + 3.0 * 20.0 + 5.0 * 10.0) / 150.0;
        assert!(
            (asked("steps-2") - steps).abs() < 0.01,
            "{}",
            asked("steps-2")
        );
    }

    #[test]
    fn paths_are_selected_by_the_beginning_of_their_names() {
        let named = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            PathWorld::named(&names).map(|worlds| worlds.len())
        };
        assert_eq!(named(&[]), Ok(PathWorld::all().len()));
        assert_eq!(named(&["police-2", "geo"]), Ok(4));
        assert_eq!(named(&["steps-2"]), Ok(1));
        let error = named(&["geo", "mars"]).unwrap_err();
        assert!(
            error.contains("mars") && error.contains("starlink"),
            "{error}"
        );
    }
}
