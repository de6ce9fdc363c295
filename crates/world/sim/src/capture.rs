//! Captures of the traffic on a simulated link, as pcapng files for Wireshark.
//!
//! A capture point is one of these:
//!
//! | place | written as | what is in it, and when |
//! |---|---|---|
//! | a node's end of a link | `LINK@NODE` | IP packets: those sent when the node hands them to the link, those received when IP gets them |
//! | on a link without services | `LINK` | IP packets, when their first bit leaves, both directions |
//! | on a link with services | `LINK` | the frames of its services, likewise |
//! | on a link between live nodes | `LINK` | their datagrams in UDP, sealed, likewise |
//! | on a radio channel | `MEDIUM` | all frames of its stations, with radiotap headers, when their first bit leaves |
//!
//! So a lost packet is in the sender's capture and missing in the receiver's. On the link itself it has the comment
//! `lost on the air` and the flag for a bad checksum. A packet that a full queue refuses is in the node's capture,
//! also with a comment.
//!
//! The simulator carries no bytes; [`headers`](crate::headers) says how packets get them. A frame is its header, as
//! the codec writes it, followed by the packet; redundancy is zeros. Such captures have link type USER0.
//!
//! Left out: frames before the scheduler, and the names of services.

mod air;
mod file;

use std::collections::VecDeque;
use std::io::Write;
use std::str::FromStr;

use airlane_base::Instant;
use airlane_link::{Frame, Port};
use airlane_wifi::Aired;

use crate::engine::medium::Datagram;
use crate::engine::observe::{Departure, Observer};
use crate::engine::radio::Carried;
use crate::error::ScenarioError;
use crate::event::{Typed, Watcher};
use crate::headers::{CaptureHeaders, LARGEST_PACKET, write_datagram};
use crate::packet::Packet;
use crate::result::RunResult;
use crate::run::Prepared;
use crate::scenario::{LinkConfig, Scenario};
use crate::world::mean_rate;
use air::AirCapture;
use file::{CaptureFile, LinkType, Mark};

/// Where a capture is taken: `radio` on a link or a radio channel, `radio@mobile` at a node's end of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePoint {
    /// The link, or the medium of kind "wifi".
    pub link: String,
    /// The node at one end of it; none for the link itself.
    pub node: Option<String>,
}

impl CapturePoint {
    /// Checks that the scenario has this point, and packets that can be captured there.
    ///
    /// # Errors
    /// What is wrong with the point, and what would be right.
    pub fn check(&self, scenario: &Scenario) -> Result<(), ScenarioError> {
        self.find(&scenario.resolved()).map(drop)
    }

    /// Finds the point. The scenario must be resolved.
    fn find(&self, scenario: &Scenario) -> Result<Place, ScenarioError> {
        let refuse = |reason: String| {
            Err(ScenarioError::NoCapture {
                point: self.to_string(),
                reason,
            })
        };
        let link = scenario.links.keys().position(|name| *name == self.link);
        let radio = scenario.wifis().position(|(name, _)| *name == self.link);
        let place = match (link, radio, &self.node) {
            (Some(link), _, None) => Place::Link(link, None),
            (Some(link), _, Some(node)) => {
                let [a, b] = &scenario.links[&self.link].ends;
                let Some(end) = [a, b].iter().position(|end| *end == node) else {
                    return refuse(format!(
                        "\"{node}\" is no end of \"{}\"; its ends are {a} and {b}",
                        self.link
                    ));
                };
                Place::Link(link, Some(end))
            }
            (None, Some(radio), None) => Place::Air(radio),
            (None, Some(_), Some(node)) => {
                return refuse(format!(
                    "all stations of \"{}\" are in one capture; leave out \"@{node}\"",
                    self.link
                ));
            }
            (None, None, _) => {
                let wifis = scenario.wifis().map(|(name, _)| name);
                let all: Vec<&str> = scenario
                    .links
                    .keys()
                    .chain(wifis)
                    .map(String::as_str)
                    .collect();
                return refuse(format!(
                    "there is no link or radio channel \"{}\"; there are: {}",
                    self.link,
                    all.join(", ")
                ));
            }
        };
        if let Some(flow) = scenario.flows.iter().find(|flow| {
            let packet = flow.app.packet();
            packet.is_some_and(|packet| packet.as_bytes() > LARGEST_PACKET)
        }) {
            return refuse(format!(
                "with their headers the packets of \"{}\" are longer than IP packets can be; \
                 at most packet = \"{LARGEST_PACKET} B\"",
                flow.name
            ));
        }
        Ok(place)
    }
}

/// What a capture point refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A link, and which end of it.
    Link(usize, Option<usize>),
    /// A radio channel, by its index in the order of names.
    Air(usize),
}

impl std::fmt::Display for CapturePoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.node {
            Some(node) => write!(f, "{}@{node}", self.link),
            None => f.write_str(&self.link),
        }
    }
}

impl FromStr for CapturePoint {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        let (link, node) = match text.split_once('@') {
            Some((link, node)) => (link, Some(node)),
            None => (text, None),
        };
        if link.is_empty() || node.is_some_and(str::is_empty) {
            return Err(ScenarioError::NoCapture {
                point: text.to_owned(),
                reason: "write LINK, or LINK@NODE for one end of it".to_owned(),
            });
        }
        Ok(Self {
            link: link.to_owned(),
            node: node.map(str::to_owned),
        })
    }
}

/// [`run`](crate::run()) with captures: the packets at each point are written to its writer.
///
/// The result is that of the run without captures.
///
/// # Errors
/// As [`run`](crate::run()), if a point does not exist, and if a writer fails. The run continues after a writer has
/// failed, but its result is not returned.
pub fn run_captured<W: Write>(
    scenario: &Scenario,
    seed: u64,
    run: u64,
    captures: Vec<(CapturePoint, W)>,
) -> Result<RunResult, ScenarioError> {
    let prepared = Prepared::new(scenario)?;
    let mut captures = Captures::new(prepared.scenario(), captures)?;
    let result = prepared.run_observed(seed, run, &mut captures);
    captures.finish()?;
    Ok(result)
}

impl Prepared {
    /// [`run_captured`] with an observer, as [`run_watched`](Self::run_watched).
    ///
    /// # Errors
    /// As [`run_captured`].
    pub fn run_captured<W: Write>(
        &self,
        seed: u64,
        run: u64,
        captures: Vec<(CapturePoint, W)>,
        watcher: &mut impl Watcher,
    ) -> Result<RunResult, ScenarioError> {
        let captures = Captures::new(self.scenario(), captures)?;
        let typed = Typed::new(watcher, self.scenario().flows.len());
        let mut both = (captures, typed);
        let result = self.run_observed(seed, run, &mut both);
        both.0.finish()?;
        Ok(result)
    }
}

/// All captures of a run.
struct Captures<W: Write> {
    captures: Vec<Capture<W>>,
    airs: Vec<AirCapture<W>>,
}

impl<W: Write> Captures<W> {
    fn new(scenario: &Scenario, points: Vec<(CapturePoint, W)>) -> Result<Self, ScenarioError> {
        let (mut captures, mut airs) = (vec![], vec![]);
        for (point, writer) in points {
            match point.find(scenario)? {
                Place::Link(link, end) => {
                    captures.push(Capture::new(scenario, point, (link, end), writer));
                }
                Place::Air(radio) => {
                    let found = scenario.wifis().nth(radio);
                    let which = found.map(|(name, wifi)| (radio, name.as_str(), wifi));
                    airs.extend(which.map(|which| AirCapture::new(scenario, which, writer)));
                }
            }
        }
        Ok(Self { captures, airs })
    }

    fn finish(self) -> Result<(), ScenarioError> {
        self.captures.into_iter().try_for_each(Capture::finish)?;
        for air in self.airs {
            let point = air.name.clone();
            let finished = air.finish();
            finished.map_err(|reason| ScenarioError::CaptureFailed { point, reason })?;
        }
        Ok(())
    }

    fn of(&mut self, direction: usize) -> impl Iterator<Item = &mut Capture<W>> {
        let link = direction / 2;
        self.captures.iter_mut().filter(move |c| c.link == link)
    }
}

/// Even directions are "down": from a link's first end to its second.
const fn is_down(direction: usize) -> bool {
    direction.is_multiple_of(2)
}

impl<W: Write> Observer for Captures<W> {
    fn on_packet(&mut self, now: Instant, direction: usize, packet: &Packet, what: Departure) {
        let down = is_down(direction);
        for capture in self.of(direction) {
            match (capture.end, what) {
                (None, Departure::Sent { start, lost, .. }) => {
                    capture.expect(now, start, down, packet, lost.is_some());
                }
                (None, Departure::Dropped) => {}
                (Some(end), _) if end == Capture::<W>::near(down) => {
                    let mark = match what {
                        Departure::Dropped => Mark::QueueFull,
                        Departure::Sent { .. } => Mark::None,
                    };
                    capture.packet(now, true, packet, mark);
                }
                (Some(_), _) => {}
            }
        }
    }

    fn on_port(&mut self, now: Instant, direction: usize, _service: u8, packet: &Packet) {
        let near = Capture::<W>::near(is_down(direction));
        for capture in self.of(direction).filter(|c| c.end == Some(near)) {
            capture.packet(now, true, packet, Mark::None);
        }
    }

    fn on_frame(
        &mut self,
        _: Instant,
        direction: usize,
        port: &Port<Packet>,
        frame: &Frame<Packet>,
        what: Departure,
    ) {
        let Departure::Sent { start, lost, .. } = what else {
            return;
        };
        for capture in self.of(direction).filter(|c| c.end.is_none()) {
            capture.frame(start, is_down(direction), port, frame, lost.is_some());
        }
    }

    fn on_datagram(&mut self, direction: usize, datagram: &Datagram, what: Departure) {
        let Departure::Sent { start, lost, .. } = what else {
            return;
        };
        for capture in self.of(direction).filter(|c| c.end.is_none()) {
            capture.datagram(start, is_down(direction), datagram, lost.is_some());
        }
    }

    fn on_air(&mut self, radio: usize, aired: &Aired<Carried>, port: Option<&Port<Packet>>) {
        for air in self.airs.iter_mut().filter(|air| air.radio == radio) {
            air.frame(aired, port);
        }
    }

    fn on_arrival(&mut self, now: Instant, direction: usize, packet: &Packet) {
        let far = Capture::<W>::near(!is_down(direction));
        for capture in self.of(direction).filter(|c| c.end == Some(far)) {
            capture.packet(now, false, packet, Mark::None);
        }
    }
}

/// A packet whose first bit has yet to leave.
#[derive(Clone, Copy, Debug)]
struct Expected {
    start: Instant,
    packet: Packet,
    lost: bool,
}

/// One capture.
struct Capture<W: Write> {
    point: CapturePoint,
    link: usize,
    /// Which end of the link; none for the link itself.
    end: Option<usize>,
    headers: CaptureHeaders,
    file: CaptureFile<W>,
    /// For up and down: packets whose first bit has yet to leave, in order. At most as many as the link's queues
    /// hold.
    expected: [VecDeque<Expected>; 2],
    /// The bytes of one packet.
    bytes: Vec<u8>,
}

impl<W: Write> Capture<W> {
    fn new(
        scenario: &Scenario,
        point: CapturePoint,
        (link, end): (usize, Option<usize>),
        writer: W,
    ) -> Self {
        let config: &LinkConfig = &scenario.links[&point.link];
        let medium = if end.is_none() && !config.services.is_empty() {
            LinkType::Frames
        } else {
            LinkType::Ip
        };
        Self {
            link,
            end,
            headers: CaptureHeaders::new(scenario),
            file: CaptureFile::new(writer, medium, &point.to_string(), mean_rate(config, true)),
            expected: [VecDeque::new(), VecDeque::new()],
            bytes: Vec::new(),
            point,
        }
    }

    /// The end of the link from which a direction leads.
    const fn near(down: bool) -> usize {
        if down { 0 } else { 1 }
    }

    fn packet(&mut self, at: Instant, outbound: bool, packet: &Packet, mark: Mark) {
        self.bytes.clear();
        self.headers.write(packet, &mut self.bytes);
        self.file.write(at, outbound, &self.bytes, mark);
    }

    /// Keeps a packet until its first bit leaves: packets of the other direction may come before it.
    fn expect(&mut self, now: Instant, start: Instant, down: bool, packet: &Packet, lost: bool) {
        self.flush(now);
        self.expected[usize::from(down)].push_back(Expected {
            start,
            packet: *packet,
            lost,
        });
    }

    /// Writes, in order of time, the packets whose first bit leaves before `until`.
    fn flush(&mut self, until: Instant) {
        loop {
            let starts = [0, 1].map(|way| self.expected[way].front().map(|e| e.start));
            let way = match starts {
                [Some(up), Some(down)] => usize::from(down <= up),
                [None, Some(_)] => 1,
                [Some(_), None] => 0,
                [None, None] => return,
            };
            let Some(head) = self.expected[way].pop_front_if(|e| e.start < until) else {
                return;
            };
            let mark = if head.lost { Mark::Lost } else { Mark::None };
            self.packet(head.start, way == 1, &head.packet, mark);
        }
    }

    fn frame(
        &mut self,
        at: Instant,
        down: bool,
        port: &Port<Packet>,
        frame: &Frame<Packet>,
        lost: bool,
    ) {
        self.bytes.clear();
        self.headers.write_frame(port, frame, &mut self.bytes);
        let mark = if lost { Mark::Lost } else { Mark::None };
        self.file.write(at, down, &self.bytes, mark);
    }

    fn datagram(&mut self, at: Instant, down: bool, datagram: &Datagram, lost: bool) {
        self.bytes.clear();
        write_datagram(datagram, &mut self.bytes);
        let mark = if lost { Mark::Lost } else { Mark::None };
        self.file.write(at, down, &self.bytes, mark);
    }

    fn finish(mut self) -> Result<(), ScenarioError> {
        self.flush(Instant::FAR_FUTURE);
        self.file
            .finish()
            .map_err(|reason| ScenarioError::CaptureFailed {
                point: self.point.to_string(),
                reason,
            })
    }
}
