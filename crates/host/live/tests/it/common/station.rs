//! A base station and its stations on one shared wire.

use std::path::Path;
use std::time::{Duration, Instant};

use airlane_live::security::new_key;

use super::{Namespace, PATIENCE, Running};

/// Names of the stations, in the order of their addresses.
pub const NAMES: [&str; 3] = ["farm", "mill", "pier"];

/// A base and three stations: 192.0.2.1 and .2 to .4 on the wire, 10.7.0.1 and .2 to .4 in the tunnel.
pub struct Site {
    pub base: Namespace,
    pub stations: [Namespace; 3],
    pub directory: tempfile::TempDir,
    /// The switch that connects them.
    _switch: Namespace,
    /// Public keys, the base's first.
    keys: [String; 4],
    /// The underlay of the base, and that of the stations.
    underlays: [&'static str; 2],
}

/// An entry of the base's list.
#[derive(Clone, Copy)]
pub struct Entry {
    /// Number of the station.
    pub station: usize,
    pub weight: u32,
    /// More lines.
    pub more: &'static str,
}

impl Entry {
    pub const fn of(station: usize, weight: u32) -> Self {
        Self {
            station,
            weight,
            more: "",
        }
    }
}

const SERVICES: &str = r#"
[[link.services]]
number = 1
name = "files"
rate = 0.9
scheme = { kind = "sr-m2", keepalives = 8, repeat-naks = true }
[[link.services]]
number = 2
name = "talk"
rate = 0.1
scheme = { kind = "rlp-oos", retries = 3 }
queue = { kind = "drop-tail", limit = "1000 packets" }
[[link.classes]]
match = { protocol = "tcp" }
service = "files"
[[link.classes]]
match = { protocol = "udp" }
service = "talk"
"#;

impl Site {
    /// Sets addresses and keys; the caller connects the wires.
    pub fn new(base: Namespace, stations: [Namespace; 3], switch: Namespace) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let keys = [0, 1, 2, 3].map(|end| {
            let file = directory.path().join(format!("{end}.key"));
            new_key(&file).unwrap().to_string()
        });
        for (end, last) in std::iter::once(&base).chain(&stations).zip(1..) {
            end.ip(&format!("addr add 192.0.2.{last}/24 dev wire"));
            end.ip("link set lo up");
        }
        Self {
            base,
            stations,
            directory,
            _switch: switch,
            keys,
            underlays: [
                r#"kind = "udp", listen = "0.0.0.0:7007""#,
                r#"kind = "udp", listen = "0.0.0.0:7007", peer = "192.0.2.1:7007""#,
            ],
        }
    }

    /// The same without IP on the wire; no file has an address.
    pub fn on_ethernet(mut self) -> Self {
        for end in std::iter::once(&self.base).chain(&self.stations) {
            end.ip("addr flush dev wire");
        }
        self.underlays = [r#"kind = "ethernet", interface = "wire""#; 2];
        self
    }

    fn path(&self) -> std::path::Display<'_> {
        Path::display(self.directory.path())
    }

    /// Replaces the key of a station.
    pub fn new_key(&mut self, station: usize) {
        let file = self.directory.path().join(format!("{}.key", station + 1));
        std::fs::remove_file(&file).unwrap();
        self.keys[station + 1] = new_key(&file).unwrap().to_string();
    }

    /// The base's file. It has no addresses of stations, because they call.
    pub fn base_file(&self, rate: &str, entries: &[Entry]) -> String {
        let (directory, underlay) = (self.path(), self.underlays[0]);
        let mut text = format!(
            r#"
schema = 1
name = "base"
[tun]
addresses = ["10.7.0.1/24"]
[control]
socket = "{directory}/base.sock"
[link]
rate = "{rate}"
delay = "10 ms"
underlay = {{ {underlay} }}
security = {{ private-key = "{directory}/0.key" }}
{SERVICES}"#
        );
        for entry in entries {
            let (name, key) = (NAMES[entry.station], &self.keys[entry.station + 1]);
            let (last, weight, more) = (entry.station + 2, entry.weight, entry.more);
            text += &format!(
                "[[peers]]\nname = \"{name}\"\nkey = \"{key}\"\nprefixes = [\"10.7.0.{last}/32\"]\n\
                 weight = {weight}\n{more}\n"
            );
        }
        text
    }

    /// The file of a station: one peer, with every address.
    pub fn station_file(&self, station: usize, rate: &str) -> String {
        let (directory, key) = (self.path(), &self.keys[0]);
        let (end, last) = (station + 1, station + 2);
        format!(
            r#"
schema = 1
name = "{name}"
[tun]
addresses = ["10.7.0.{last}/24"]
[control]
socket = "{directory}/{name}.sock"
[link]
rate = "{rate}"
delay = "10 ms"
underlay = {{ {underlay} }}
security = {{ private-key = "{directory}/{end}.key", peer-key = "{key}" }}
{SERVICES}"#,
            name = NAMES[station],
            underlay = self.underlays[1],
        )
    }

    pub fn start_base(&self, rate: &str, entries: &[Entry]) -> Running {
        Running::start(&self.base, &self.base_file(rate, entries)).unwrap()
    }

    pub fn start_station(&self, station: usize, rate: &str) -> Running {
        let file = self.station_file(station, rate);
        Running::start(&self.stations[station], &file).unwrap()
    }
}

/// Waits until the base has a session with each of these stations. On a link that loses a quarter of its
/// frames half of the handshakes fail, and the retries back off.
pub fn all_confirmed(base: &Running, stations: &[usize]) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = base.status();
        let confirmed = |name: &str| {
            let mut peers = status.peers.iter();
            peers.any(|peer| peer.name == name && peer.session.state == "confirmed")
        };
        if stations.iter().all(|station| confirmed(NAMES[*station])) {
            return;
        }
        assert!(Instant::now() < deadline, "not all: {status:#?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
