//! Classifies traffic at both ends of a link, and counts the results.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use airlane_base::random::Streams;
use airlane_base::{Duration, Instant};
use airlane_link::classify::{Behaviour, ClassProfile, Classifier};
use airlane_link::config::by_goal;
use airlane_link::{ClassesConfig, FlowKey};

use super::traffic::{Kind, Sample};
use super::{BYTES, CALLS};

/// Delay and loss of the link: the receiving end sees the flow after these.
const DELAY: Duration = Duration::from_millis(25);
const LOST: f64 = 0.02;

/// Where the packets of a kind went.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Packets and bytes by service, named after the goals.
    pub services: BTreeMap<String, (u64, u64)>,
    /// All of them.
    pub all: (u64, u64),
    /// Those that got a wrong service.
    pub wrong: (u64, u64),
    /// Whether only the class of calls is right.
    pub is_call: bool,
}

/// Whether a kind got the right services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did.
    Held,
    /// More than the bound got others.
    Missed,
}

impl Line {
    /// Share of the packets, and of the bytes, that got a wrong service.
    pub fn wrong_share(&self) -> (f64, f64) {
        let share = |part: u64, all: u64| part as f64 / all.max(1) as f64;
        let ((packets, bytes), (all, all_bytes)) = (self.wrong, self.all);
        (share(packets, all), share(bytes, all_bytes))
    }

    /// The verdict by the bounds.
    pub fn verdict(&self) -> Verdict {
        let (packets, bytes) = self.wrong_share();
        match bytes > BYTES || (self.is_call && packets > CALLS) {
            true => Verdict::Missed,
            false => Verdict::Held,
        }
    }
}

/// One end of the link.
struct End {
    classifier: Classifier,
    names: Vec<(u8, String)>,
}

impl End {
    fn new() -> Self {
        let services = by_goal();
        let rules = ClassesConfig::Profile(ClassProfile::Behaviour).rules(&services);
        let number = |name: &str| Some(services.iter().find(|s| s.name == name)?.number);
        Self {
            classifier: Classifier::new(&rules, number, 0),
            names: services
                .iter()
                .map(|s| (s.number, s.name.clone()))
                .collect(),
        }
    }

    fn name(&self, number: u8) -> &str {
        let found = self.names.iter().find(|(known, _)| *known == number);
        found.map_or("default", |(_, name)| name)
    }
}

fn service(behaviour: Behaviour) -> &'static str {
    match behaviour {
        Behaviour::Call => "calls",
        Behaviour::Interactive => "interactive",
        Behaviour::Page => "pages",
        Behaviour::File => "files",
        Behaviour::Paced => "paced",
        Behaviour::Video => "video",
    }
}

/// Each kind on a link of its own.
pub fn alone(kinds: &[Kind]) -> Vec<Line> {
    let each = |kind| run(std::slice::from_ref(kind));
    kinds.iter().flat_map(each).collect()
}

/// All kinds at once on one link.
pub fn together(kinds: &[Kind]) -> Vec<Line> {
    run(kinds)
}

fn run(kinds: &[Kind]) -> Vec<Line> {
    let mut lost = Streams::new(19, 0).stream("lost");
    // The packets that each end sees: sent ones at once, received ones after the delay.
    let mut seen: Vec<(u64, bool, [usize; 2], &Sample)> = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        // The kinds start at slightly different times.
        let begins = 1_000_000 + at as u64 * 37_137;
        for (nth, sample) in kind.samples.iter().enumerate() {
            let (sent, at) = (begins + sample.at_us, [at, nth]);
            seen.push((sent, true, at, sample));
            if !lost.chance(LOST) {
                seen.push((sent + DELAY.as_nanos() / 1_000, false, at, sample));
            }
        }
    }
    seen.sort_by_key(|(when, ..)| *when);
    let mut ends = [End::new(), End::new()];
    // The service of each packet.
    let mut went: Vec<Vec<u8>> = kinds
        .iter()
        .map(|kind| vec![0; kind.samples.len()])
        .collect();
    let mut lines: Vec<Line> = kinds.iter().map(|_| Line::default()).collect();
    for (line, kind) in lines.iter_mut().zip(kinds) {
        line.is_call = kind
            .samples
            .iter()
            .all(|sample| sample.may_be == [Behaviour::Call]);
    }
    for (when, sends, [at, nth], sample) in seen {
        let now = Instant::from_nanos(when * 1_000);
        let flow = flow(&kinds[at], at, sample);
        // The end that opened the flow is the first.
        let end = &mut ends[usize::from(sample.up != sends)];
        if !sends {
            end.classifier
                .note_received(now, went[at][nth], &flow, sample.len, || &sample.head);
            continue;
        }
        let choice = end
            .classifier
            .classify_packet(now, &flow, sample.len, || &sample.head);
        went[at][nth] = choice.service;
        let name = end.name(choice.service);
        let line = &mut lines[at];
        let len = sample.len as u64;
        let add =
            |(packets, bytes): &mut (u64, u64)| (*packets, *bytes) = (*packets + 1, *bytes + len);
        add(line.services.entry(name.to_owned()).or_default());
        add(&mut line.all);
        if !sample
            .may_be
            .iter()
            .any(|behaviour| service(*behaviour) == name)
        {
            add(&mut line.wrong);
        }
    }
    lines
}

fn flow(kind: &Kind, at: usize, sample: &Sample) -> FlowKey {
    let host = |last: usize| IpAddr::V4(Ipv4Addr::new(10, 0, (at / 200) as u8, last as u8));
    let (port, own) = match kind.port {
        0 => (0, 0),
        port => (port, 20_000 + sample.connection),
    };
    let up = FlowKey {
        dscp: 0,
        protocol: kind.protocol,
        src: host(1 + at % 200),
        dst: host(250),
        src_port: own,
        dst_port: port,
    };
    if sample.up { up } else { up.reversed() }
}
