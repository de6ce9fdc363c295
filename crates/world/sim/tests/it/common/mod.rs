//! Worlds for the tests: the shipped scenarios, and the grid of links and topologies in sections 2 and 3 of
//! docs/spec/multi-service.md.

use std::fmt::Write as _;
use std::path::PathBuf;

use airlane_sim::{RunResult, Scenario, Summary, repeat, summary};

pub(crate) const SEED: u64 = 1999;

/// All shipped scenarios: name of the file, text.
pub(crate) fn shipped() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// A shipped scenario with some assignments.
pub(crate) fn load(name: &str, assignments: &[&str]) -> Scenario {
    let file = format!("{name}.toml");
    let (_, text) = shipped()
        .into_iter()
        .find(|(found, _)| *found == file)
        .unwrap_or_else(|| panic!("{file} is not shipped"));
    Scenario::from_toml_with(&text, &file, assignments).unwrap_or_else(|e| panic!("{e}"))
}

/// A wireless link of docs/spec/multi-service.md, section 2.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Cellular,
    Pcs,
    Wlan,
}

impl Link {
    fn parameters(self) -> &'static str {
        match self {
            Self::Cellular => "rate = \"14.4 kbit/s\"\ndelay = \"100 ms\"\nframe = \"50 B\"\n",
            Self::Pcs => "rate = \"64 kbit/s\"\ndelay = \"50 ms\"\nframe = \"250 B\"\n",
            Self::Wlan => "rate = \"2 Mbit/s\"\ndelay = \"3 ms\"\nframe = \"1000 B\"\n",
        }
    }

    /// The payload of a frame, which is also the packet length of the conferencing source (5.3).
    fn frame(self) -> &'static str {
        match self {
            Self::Cellular => "50 B",
            Self::Pcs => "250 B",
            Self::Wlan => "1000 B",
        }
    }

    /// Rate of the conferencing source while it talks (5.3).
    fn talk_rate(self) -> &'static str {
        match self {
            Self::Cellular => "9.6 kbit/s",
            Self::Pcs => "32 kbit/s",
            Self::Wlan => "1 Mbit/s",
        }
    }
}

/// The settings of the wireless links: errors, queue, services.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Air<'a> {
    pub(crate) errors: Option<&'a str>,
    pub(crate) queue: Option<u32>,
    /// The scheme of the only service; none for a link without services.
    pub(crate) scheme: Option<&'a str>,
}

/// A world without flows: `topology` is LAN1, WAN1, LAN2 or WAN2 (section 3).
fn world(link: Link, topology: &str, air: Air) -> String {
    let (rate, delay) = match &topology[..3] {
        "LAN" => ("10 Mbit/s", "1 ms"),
        _ => ("2 Mbit/s", "50 ms"),
    };
    let mut text = String::from("schema = 1\nname = \"test\"\n");
    let wireless = |text: &mut String, name: &str, a: &str, b: &str| {
        writeln!(text, "[links.{name}]\nends = [\"{a}\", \"{b}\"]").unwrap();
        text.push_str(link.parameters());
        if let Some(errors) = air.errors {
            writeln!(text, "errors = {errors}").unwrap();
        }
        if let Some(queue) = air.queue {
            writeln!(text, "queue = \"{queue} packets\"").unwrap();
        }
        if let Some(scheme) = air.scheme {
            writeln!(
                text,
                "header = \"study\"\nservices = [{{ number = 0, name = \"all\", rate = 1, scheme = {scheme} }}]"
            )
            .unwrap();
        }
    };
    if topology.ends_with('1') {
        wireless(&mut text, "radio", "base", "b");
        text.push_str("[links.wired]\nends = [\"a\", \"base\"]\n");
        text.push_str("[nodes.a]\n[nodes.base]\n[nodes.b]\n");
    } else {
        wireless(&mut text, "radio-1", "a", "base-1");
        wireless(&mut text, "radio-2", "base-2", "b");
        text.push_str("[links.wired]\nends = [\"base-1\", \"base-2\"]\n");
        text.push_str("[nodes.a]\n[nodes.base-1]\n[nodes.base-2]\n[nodes.b]\n");
    }
    text.replace(
        "[links.wired]\n",
        &format!(
            "[links.wired]\nrate = \"{rate}\"\ndelay = \"{delay}\"\nqueue = \"1000 packets\"\n"
        ),
    )
}

fn scenario(text: &str) -> Scenario {
    Scenario::from_toml(text, "test.toml").unwrap_or_else(|e| panic!("{e}"))
}

/// A file transfer of `size` with this TCP window.
pub(crate) fn file(link: Link, topology: &str, air: Air, size: &str, window: u32) -> Scenario {
    let text = world(link, topology, air).replace(
        "name = \"test\"\n",
        "name = \"test\"\nduration = \"100000000 s\"\nuntil = \"file\"\n",
    ) + &format!(
        "[[flows]]\nname = \"file\"\nends = [\"a\", \"b\"]\n\
         transport = {{ kind = \"tcp\", profile = \"ns2-1999\", window = {window} }}\n\
         app = {{ kind = \"bulk\", size = \"{size}\" }}\n"
    );
    scenario(&text)
}

/// On/off speech (5.3) for so many seconds.
pub(crate) fn talk(link: Link, topology: &str, air: Air, seconds: u32) -> Scenario {
    let text = world(link, topology, air).replace(
        "name = \"test\"\n",
        &format!("name = \"test\"\nduration = \"{seconds} s\"\n"),
    ) + &format!(
        "[[flows]]\nname = \"talk\"\nends = [\"a\", \"b\"]\ntransport = {{ kind = \"udp\" }}\n\
         app = {{ kind = \"conferencing\", rate = \"{}\", packet = \"{}\", talk = \"1 s\", \
         silence = \"1.35 s\" }}\n",
        link.talk_rate(),
        link.frame()
    );
    scenario(&text)
}

/// Repetitions on all cores.
pub(crate) fn runs(scenario: &Scenario, n: u64) -> Vec<RunResult> {
    repeat(scenario, SEED, n, 0, |_, _| {}).unwrap()
}

/// The summary of several repetitions.
pub(crate) fn sums(scenario: &Scenario, n: u64) -> Summary {
    summary(&runs(scenario, n)).unwrap()
}
