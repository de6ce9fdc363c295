//! Snoop and web settings of Xylomenos 1999: his links and error levels, in both simulators.

use super::grid::{KnownSetting, label};
use super::setting::{Errors, Load, Setting, Topology, Variant, WirelessLink};

/// The links of tables 3.1 to 3.3 with their four levels, mildest first.
const LEVELS: [(WirelessLink, [Errors; 4]); 3] = [
    (
        WirelessLink::Cellular,
        [
            Errors::Uniform(0.01),
            Errors::Uniform(0.02),
            Errors::Uniform(0.05),
            Errors::Uniform(0.1),
        ],
    ),
    (
        WirelessLink::Pcs,
        [fades(0.1), fades(0.2), fades(0.5), fades(1.0)],
    ),
    (
        WirelessLink::Wlan,
        [
            Errors::Bytes(131_072),
            Errors::Bytes(65_536),
            Errors::Bytes(32_768),
            Errors::Bytes(16_384),
        ],
    ),
];

/// Outside of fades, one bit in a million is wrong.
const fn fades(bad_s: f64) -> Errors {
    let byte_errors = 8e-6;
    Errors::Fades { bad_s, byte_errors }
}

const WINDOW: u32 = 20;
const QUEUE: u32 = 50;

fn all(load: Load, topologies: &[Topology], levels: &[usize]) -> Vec<KnownSetting> {
    let mut all = Vec::new();
    for (link, errors) in LEVELS {
        for topology in topologies {
            for level in levels {
                let setting = Setting {
                    link,
                    topology: *topology,
                    window: WINDOW,
                    queue: QUEUE,
                    errors: errors[*level],
                    segments: 5_000,
                    tcp: Variant::Reno,
                    load,
                };
                all.push(KnownSetting {
                    label: label(&setting),
                    setting,
                    figures: None,
                });
            }
        }
    }
    all
}

/// Files with Snoop, over one wireless link.
pub fn behind_snoop() -> Vec<KnownSetting> {
    let topologies = [Topology::Lan1, Topology::Wan1];
    all(Load::FileBehindSnoop, &topologies, &[0, 1, 2, 3])
}

/// Pages without repair. At high error levels, two wireless links complete no page in a repetition, so there is
/// nothing to compare.
pub fn pages() -> Vec<KnownSetting> {
    let topologies = [
        Topology::Lan1,
        Topology::Wan1,
        Topology::Lan2,
        Topology::Wan2,
    ];
    all(Load::Pages, &topologies, &[0, 1])
}
