//! Writes the scenario file of an imported link.

use std::fmt::Write as _;

use airlane_base::{BothWays, Duration, QueueLimit};
use airlane_channel::LinkJitter;
use serde::Serialize;
use toml::Value;

use super::direction::Direction;
use super::{ImportedApp, ImportedScenario};

/// Duration of an imported scenario if none is given.
pub(super) const USUAL_DURATION: Duration = Duration::from_secs(60);
/// A full IP packet, and its user data: headers take 40 B, timestamps 12 B.
const MTU: u64 = 1_500;
const USER_BYTES: u64 = MTU - 52;

/// A link and everything to write about it.
pub(super) struct Draft<'a> {
    /// Name of the scenario.
    pub(super) name: &'a str,
    /// The command that it was made from.
    pub(super) source: &'a str,
    pub(super) seed: u64,
    /// Senders are at the first end.
    pub(super) ends: [&'a str; 2],
    pub(super) ways: BothWays<Direction>,
    /// Bytes of a full packet as counted there, and a name for what precedes its 1500 B of IP.
    pub(super) packet: (u64, &'a str),
    pub(super) notes: Vec<String>,
    pub(super) duration: Duration,
}

impl Draft<'_> {
    pub(super) fn finish(mut self, apps: &[ImportedApp]) -> ImportedScenario {
        let window = self.window();
        if apps.iter().any(|app| *app != ImportedApp::Voice) {
            self.notes.push(format!(
                "window: TCP keeps at most {window} segments in flight here, which fill the link and as much again of \
                 its queue; raise it to fill a longer queue"
            ));
        }
        let (packet, why) = self.packet;
        // Header bytes around user data: IP and TCP, and the link's.
        let headers = packet - MTU + 40;
        let tcp = format!(
            "{{ kind = \"tcp\", profile = \"modern\", window = {window}, header-size = \"{headers} B\", \
             ack-size = \"{headers} B\" }}"
        );
        let mut text = String::from("# Translated from:\n");
        comment(&mut text, "    ", self.source);
        if !self.notes.is_empty() {
            text.push_str("# Not as it was there, or not as scenarios have it by default:\n");
        }
        for note in &self.notes {
            comment(&mut text, "- ", note);
        }
        let [near, far] = self.ends;
        let (name, seed, duration) = (self.name, self.seed, self.duration);
        let ways = &self.ways;
        let rates = inline(&ways.as_ref().map(|way| way.rate.clone()));
        let delays = inline(&ways.as_ref().map(|way| way.delay));
        let jitter = match (ways.down.jitter, ways.up.jitter) {
            (None, None) => String::new(),
            (down, up) => format!("jitter = {}\n", inline(&LinkJitter::Each { down, up })),
        };
        let queues = inline(&ways.as_ref().map(|way| way.queue));
        let errors = inline(&ways.as_ref().map(|way| way.errors.clone()));
        write!(
            text,
            "schema = 1
name = \"{name}\"
seed = {seed}
duration = \"{duration}\"

[nodes.{near}]
[nodes.{far}]

# \"down\" is from the first end to the second.
[links.link]
ends = [\"{near}\", \"{far}\"]
rate = {rates}
delay = {delays}
{jitter}queue = {queues}
errors = {errors}
# A link that repairs its losses (one queue for both directions, then):
# frame = \"{packet} B\"
# services = [{{ number = 1, name = \"all\", rate = 1, scheme = {{ kind = \"sr-m2\" }} }}]
"
        )
        .expect("writing to a string cannot fail");
        for app in apps {
            let (flow, transport, app) = match app {
                ImportedApp::File => ("file", tcp.as_str(), "kind = \"bulk\"".to_owned()),
                ImportedApp::Web => ("web", tcp.as_str(), "kind = \"web\"".to_owned()),
                ImportedApp::Voice => (
                    "voice",
                    "{ kind = \"udp\" }",
                    "kind = \"conferencing\", rate = \"64 kbit/s\", talk = \"1 s\", \
                     silence = \"1.35 s\""
                        .to_owned(),
                ),
            };
            let voice = flow == "voice";
            let (len, why) = if voice { (200, "") } else { (USER_BYTES, why) };
            write!(
                text,
                "
[[flows]]
name = \"{flow}\"
ends = [\"{near}\", \"{far}\"]
transport = {transport}
app = {{ {app}, packet = \"{len} B\" }}{why}
"
            )
            .expect("writing to a string cannot fail");
        }
        ImportedScenario {
            text,
            notes: self.notes,
            beside: vec![],
        }
    }

    /// Segments that fill the path, plus at most as many again for the queue.
    fn window(&self) -> u64 {
        let (packet, _) = self.packet;
        let usual = |way: &Direction| way.delay + way.jitter.unwrap_or_default().late;
        let round_trip = usual(&self.ways.down) + usual(&self.ways.up);
        let rate = self.ways.down.rate.mean();
        let pipe = rate.map_or(0, |rate| rate.bytes_within(round_trip) as u64);
        let queue = match self.ways.down.queue {
            QueueLimit::Packets(packets) => packets.saturating_mul(packet),
            QueueLimit::Bytes(bytes) => bytes,
        };
        (pipe.saturating_add(queue.min(pipe)) / packet).clamp(20, 65_535)
    }
}

/// Writes comment lines, the first one after `mark`.
fn comment(text: &mut String, mark: &str, content: &str) {
    for (i, line) in content.lines().enumerate() {
        let mark = if i == 0 { mark } else { "    " };
        // TOML allows no other control characters in comments.
        let line: String = line
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        text.push_str(format!("# {mark}{line}").trim_end());
        text.push('\n');
    }
}

/// A value on one line.
fn inline<T: Serialize>(value: &T) -> String {
    let value = Value::try_from(value).expect("values of links have a TOML form");
    value.to_string()
}
