//! Stations of 802.11b that send to one receiver, as a scenario of Airlane and as arguments of `ns3/one_hop.cc` and
//! `ns2/one_hop.tcl`. What all three share by value is listed at the head of `ns3/one_hop.cc`.

use airlane_sim::Scenario;

/// When counting begins, seconds: queues are full and backoffs mixed.
pub(super) const FROM_S: u32 = 1;
/// How long packets are counted, seconds.
pub(super) const SECONDS: u32 = 4;
/// User bits of a packet, headers of IP and UDP included.
const PACKET_BITS: f64 = 8_000.0;
/// Metres from the receiver to each station of a ring: Gopal 2007, section 2.2.
const RING_M: f64 = 7.2;
/// Power from which on a frame is sensed, watts: ns-2's thresholds at 730.4 m, and at 250 m, where a frame is decoded.
const SENSE_W: [&str; 2] = ["5.011872e-12", "3.652e-10"];

/// Where the stations stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// So many in a ring around the receiver.
    Ring(u32),
    /// Two on opposite sides of the receiver, which do not hear each other.
    Hidden,
    /// Two that hear each other, at these distances from the receiver, metres.
    Unequal(u32, u32),
}

/// How ns-3's receivers decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// By the rule of ns-2 and Airlane: a frame survives if what overlaps it is 10 dB weaker.
    Threshold,
    /// By ns-3's own preamble detection and error model.
    Own,
}

impl Reception {
    /// Its name for `one_hop.cc`.
    pub(super) const fn argument(self) -> &'static str {
        match self {
            Self::Threshold => "threshold",
            Self::Own => "own",
        }
    }
}

/// One world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Where the stations stand.
    pub places: Places,
    /// Whether an RTS precedes each data frame.
    pub rts: bool,
}

/// The worlds that are compared.
pub fn settings() -> Vec<Setting> {
    let rings = [1, 2, 3, 5, 10, 20].map(Places::Ring);
    let pairs = [
        Places::Hidden,
        Places::Unequal(50, 100),
        Places::Unequal(50, 200),
    ];
    let places = rings.into_iter().chain(pairs);
    let both = places.flat_map(|places| [false, true].map(|rts| Setting { places, rts }));
    both.collect()
}

impl Setting {
    /// A description for the report.
    pub fn label(&self) -> String {
        let places = match self.places {
            Places::Ring(1) => "1 station".to_owned(),
            Places::Ring(count) => format!("{count} stations"),
            Places::Hidden => "hidden pair".to_owned(),
            Places::Unequal(near, far) => format!("pair at {near} m and {far} m"),
        };
        match self.rts {
            true => format!("{places}, RTS"),
            false => places,
        }
    }

    /// The positions of the stations, metres; the receiver stands at the origin.
    fn positions(&self) -> Vec<[f64; 2]> {
        let on_axis = |distance: u32| [f64::from(distance), 0.0];
        match self.places {
            Places::Ring(count) => (0..count)
                .map(|i| {
                    let angle = std::f64::consts::TAU * f64::from(i) / f64::from(count);
                    [RING_M * libm::cos(angle), RING_M * libm::sin(angle)]
                })
                .collect(),
            Places::Hidden => vec![[-200.0, 0.0], [200.0, 0.0]],
            Places::Unequal(near, far) => [near, far].map(on_axis).to_vec(),
        }
    }

    /// What each station is given to send, kbit/s: more than the channel carries.
    fn kbps(&self) -> usize {
        (12_000 / self.positions().len()).min(8_000)
    }

    /// The arguments of `one_hop.cc` and `one_hop.tcl`, without reception and repetition.
    pub(super) fn arguments(&self) -> Vec<String> {
        let positions = self.positions();
        let stations: Vec<String> = positions
            .iter()
            .map(|[x, y]| format!("{x:.3}:{y:.3}"))
            .collect();
        let sense_w = SENSE_W[usize::from(self.places == Places::Hidden)];
        vec![
            format!("stations={}", stations.join(",")),
            format!("kbps={}", self.kbps()),
            format!("rts={}", u8::from(self.rts)),
            format!("sense_w={sense_w}"),
            format!("from={FROM_S}"),
            format!("seconds={SECONDS}"),
        ]
    }

    /// Parses the output of either: the goodput of each station, bit/s.
    pub(super) fn read(&self, text: &str) -> Option<Vec<f64>> {
        let found = text
            .lines()
            .filter_map(|line| line.strip_prefix("packets="));
        let packets: Vec<f64> = found.map(|n| n.parse().ok()).collect::<Option<_>>()?;
        let bps = packets.iter().map(|n| n * PACKET_BITS / f64::from(SECONDS));
        (packets.len() == self.positions().len()).then(|| bps.collect())
    }

    /// The same world for Airlane.
    ///
    /// # Panics
    /// Never, because the text is a valid scenario.
    pub fn scenario(&self) -> Scenario {
        let text = self.scenario_text();
        Scenario::from_toml(&text, "one hop").expect("a setting describes a world")
    }

    fn scenario_text(&self) -> String {
        let mut text = format!(
            "schema = 1\nname = \"one hop\"\nduration = \"{} s\"\ndrain = \"0 s\"\n[media.air]\nkind = \"wifi\"\n\
             profile = \"802.11b\"\nsource-header = \"20 B\"\n",
            FROM_S + SECONDS
        );
        if self.rts {
            text += "rts-threshold = \"0 B\"\n";
        }
        if self.places == Places::Hidden {
            text += "sense-range-m = 250\nreceive-range-m = 250\n";
        }
        text += "[media.air.nodes]\nreceiver = [0, 0]\n";
        let positions = self.positions();
        for (i, [x, y]) in positions.iter().enumerate() {
            text += &format!("s{i:02} = [{x:.3}, {y:.3}]\n");
        }
        text += "[nodes.receiver]\n";
        for i in 0..positions.len() {
            text += &format!("[nodes.s{i:02}]\n");
        }
        for i in 0..positions.len() {
            text += &format!(
                "[[flows]]\nname = \"s{i:02}\"\nends = [\"s{i:02}\", \"receiver\"]\ntransport = {{ kind = \"udp\" }}\n\
                 app = {{ kind = \"conferencing\", rate = \"{} kbit/s\", packet = \"1000 B\", talk = \"1000 s\", \
                 silence = \"0 s\" }}\nprogress = {{ windows = {{ measured = {{ from = \"{FROM_S} s\" }} }} }}\n",
                self.kbps()
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_a_scenario_with_a_name_of_its_own() {
        let all = settings();
        let mut labels: Vec<String> = all.iter().map(Setting::label).collect();
        for setting in &all {
            let stations = setting.positions().len();
            assert_eq!(setting.scenario().flows.len(), stations, "{setting:?}");
        }
        labels.sort();
        labels.dedup();
        assert_eq!(labels.len(), all.len());
    }

    #[test]
    fn arguments_are_those_of_the_programs() {
        let setting = Setting {
            places: Places::Hidden,
            rts: true,
        };
        let expected = [
            "stations=-200.000:0.000,200.000:0.000",
            "kbps=6000",
            "rts=1",
            "sense_w=3.652e-10",
            "from=1",
            "seconds=4",
        ];
        assert_eq!(setting.arguments(), expected);
    }

    #[test]
    fn output_is_one_line_for_each_station() {
        let setting = Setting {
            places: Places::Unequal(50, 200),
            rts: false,
        };
        let text = "num_nodes is set 3\npackets=2000\npackets=1000\n";
        assert_eq!(setting.read(text), Some(vec![4e6, 2e6]));
        assert_eq!(setting.read("packets=2000\n"), None);
        assert_eq!(setting.read("packets=2000\npackets=many\n"), None);
    }
}
