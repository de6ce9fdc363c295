//! Records the first repetition of the scenarios that a study draws over time, and writes the curves
//! as CSV, a number a line.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::Path;

use airlane_base::{Duration, Instant};
use airlane_sim::Prepared;
use airlane_sim::event::{Event, PacketInfo, Role, Watcher};
use rayon::prelude::*;

use super::{OverTime, OverTimeFile, Series};
use crate::error::StudyError;
use crate::plan::{Plan, PlannedStudy};
use crate::study::Study;

const HEAD: &str = "at,line,quantity,time_s,value\n";

/// The names of what a flow has over time, as the file has them.
const WINDOW: &str = "window_bytes";
const SENT: &str = "sent_bytes";
const SENT_AGAIN: &str = "sent_again_bytes";
const REPAIRED: &str = "repaired_on_link_bytes";
const FAST: &str = "fast_retransmit_bytes";
const TIMEOUT: &str = "timeout_bytes";
const GOODPUT: &str = "goodput_bps";
const DUPLICATES: &str = "duplicates_bps";
const ROUND_TRIP: &str = "round_trip_s";

impl Series {
    /// The quantities of the file that it shows: the curve, then marks.
    pub(super) const fn quantities(self) -> &'static [&'static str] {
        match self {
            Self::Window => &[WINDOW],
            Self::Sequence => &[SENT, SENT_AGAIN, REPAIRED, FAST, TIMEOUT],
            Self::Goodput => &[GOODPUT],
            Self::Duplicates => &[DUPLICATES],
            Self::RoundTrip => &[ROUND_TRIP],
        }
    }
}

impl Plan {
    /// Writes what requested studies draw over time: `WORK/STUDY-time.csv` for each, or
    /// `WORK/STUDY.csv` if it draws nothing else.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn record(&self, folder: &Path) -> Result<(), StudyError> {
        let folder = folder.join(&self.work.id);
        for (name, text) in self.curves() {
            std::fs::create_dir_all(&folder).map_err(StudyError::io(&folder))?;
            let path = folder.join(name + ".csv");
            std::fs::write(&path, text).map_err(StudyError::io(&path))?;
        }
        Ok(())
    }

    /// Simulates the first repetition of what requested studies draw over time once more. Each has the
    /// name of its picture, and its curves as CSV with the columns `at`, `line`, `quantity`, `time_s`,
    /// and `value` in the unit of the [panel](super::outcome::OverTimePanel).
    pub fn curves(&self) -> impl Iterator<Item = (String, String)> {
        let studies = self.variants.first().into_iter().flat_map(|v| &v.studies);
        let asked = studies.filter(|planned| planned.asked);
        asked.filter_map(|planned| {
            let study = self.work.study(&planned.id)?;
            let text = self.recorded(study, planned, study.over_time.as_ref()?);
            Some((study.over_time_name(), text))
        })
    }

    fn recorded(&self, study: &Study, planned: &PlannedStudy, over_time: &OverTime) -> String {
        let worlds: Vec<_> = planned.worlds.iter().enumerate().collect();
        let parts = worlds.into_par_iter().map(|(point, world)| {
            let (column, line) = over_time.place(&study.values(point))?;
            let world = &self.worlds[*world];
            let mut recorder = Recorder::new(world, &over_time.file);
            world.run_watched(self.seed, 0, &mut recorder);
            let at = over_time.columns[column].join(" ");
            let mut text = String::new();
            for mut flow in recorder.flows {
                let points = flow.points(&over_time.file);
                let line = line.unwrap_or(&flow.name);
                for (quantity, points) in &points {
                    for (time, value) in points {
                        let (s, ns) = (time / 1_000_000_000, time % 1_000_000_000);
                        let _ = writeln!(text, "{at},{line},{quantity},{s}.{ns:09},{value}");
                    }
                }
            }
            Some(text)
        });
        let parts: Vec<Option<String>> = parts.collect();
        HEAD.to_owned() + &parts.into_iter().flatten().collect::<String>()
    }
}

/// Watches some flows of a run.
struct Recorder {
    flows: Vec<FlowRecord>,
    until: Instant,
    over: bool,
}

/// What one flow did, which is a file or a stream of datagrams.
struct FlowRecord {
    name: String,
    index: u32,
    /// User bytes of a full packet.
    packet: u64,
    /// The length of a full packet with its headers.
    longest: u32,
    first: Option<Instant>,
    last: Instant,
    /// The segment that the receiver expects, as far as the sender knows.
    expected: u64,
    /// By quantity, times in nanoseconds and values.
    kept: BTreeMap<&'static str, Vec<(u64, f64)>>,
    /// Lengths of the packets that were new, and of the others.
    arrivals: [Vec<(Instant, u32)>; 2],
    held: BTreeSet<u64>,
    /// When the packet that came last left its sender.
    cause: Option<Instant>,
    /// When acknowledgments left the receiver, and when their causes left the sender.
    echoes: VecDeque<[Instant; 2]>,
}

impl Recorder {
    fn new(world: &Prepared, file: &OverTimeFile) -> Self {
        let names = world.names();
        // What still arrives after the end is of no metric either.
        let duration = world.scenario().duration;
        let flows = file.flows.iter().filter_map(|name| {
            let index = names.flows().iter().position(|known| known == name)?;
            let app = &world.scenario().flows[index].app;
            Some(FlowRecord::new(
                name,
                index as u32,
                app.packet().map_or(1, |packet| packet.as_bytes()),
            ))
        });
        Self {
            flows: flows.collect(),
            until: Instant::ORIGIN + file.until.map_or(duration, |until| until.min(duration)),
            over: false,
        }
    }

    fn flow(&mut self, index: u32) -> Option<&mut FlowRecord> {
        self.flows.iter_mut().find(|flow| flow.index == index)
    }
}

impl Watcher for Recorder {
    fn on_event(&mut self, now: Instant, event: &Event) {
        if now > self.until {
            self.over = true;
            return;
        }
        match *event {
            Event::PacketSent(packet) => {
                if let Some(flow) = self.flow(packet.flow) {
                    flow.on_sent(now, &packet);
                }
            }
            Event::PacketReceived(packet) => {
                if let Some(flow) = self.flow(packet.flow) {
                    flow.on_received(now, &packet);
                }
            }
            Event::FrameSent { frame, .. } => {
                let is_repair = frame
                    .header
                    .is_some_and(|header| header.kind.name() == "retransmission");
                if let Some(packet) = frame.packet.filter(|_| is_repair)
                    && packet.role == Role::Data
                    && let Some(flow) = self.flow(packet.flow)
                {
                    flow.keep_sequence(REPAIRED, now, packet.seq);
                }
            }
            Event::TcpState(sender, state) if sender.role == Role::Data => {
                if let Some(flow) = self.flow(sender.flow) {
                    let bytes = state.cwnd_segments * flow.packet as f64;
                    flow.keep(WINDOW, now, bytes);
                }
            }
            Event::Timeout(sender) if sender.role == Role::Data => {
                if let Some(flow) = self.flow(sender.flow) {
                    flow.keep_sequence(TIMEOUT, now, flow.expected);
                }
            }
            Event::FastRetransmit(sender) if sender.role == Role::Data => {
                if let Some(flow) = self.flow(sender.flow) {
                    flow.keep_sequence(FAST, now, flow.expected);
                }
            }
            _ => {}
        }
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

impl FlowRecord {
    fn new(name: &str, index: u32, packet: u64) -> Self {
        Self {
            name: name.to_owned(),
            index,
            packet,
            longest: 0,
            first: None,
            last: Instant::ORIGIN,
            expected: 0,
            kept: BTreeMap::new(),
            arrivals: [vec![], vec![]],
            held: BTreeSet::new(),
            cause: None,
            echoes: VecDeque::new(),
        }
    }

    fn keep(&mut self, name: &'static str, now: Instant, value: f64) {
        let at = now.saturating_since(Instant::ORIGIN).as_nanos();
        self.kept.entry(name).or_default().push((at, value));
    }

    fn keep_sequence(&mut self, name: &'static str, now: Instant, number: u64) {
        self.keep(name, now, (number * self.packet) as f64);
    }

    fn on_sent(&mut self, now: Instant, packet: &PacketInfo) {
        match packet.role {
            Role::Data | Role::Datagram => {
                self.first.get_or_insert(now);
                self.last = now;
                self.longest = self.longest.max(packet.len_bytes);
                if packet.role == Role::Data {
                    let name = match packet.retransmission {
                        true => SENT_AGAIN,
                        false => SENT,
                    };
                    self.keep_sequence(name, now, packet.seq);
                }
            }
            Role::Syn => {
                self.first.get_or_insert(now);
            }
            Role::Ack => self.echoes.extend(self.cause.map(|cause| [now, cause])),
            _ => {}
        }
    }

    fn on_received(&mut self, now: Instant, packet: &PacketInfo) {
        match packet.role {
            Role::Data | Role::Datagram => {
                self.last = now;
                self.cause = Some(packet.created);
                let is_known = !self.held.insert(packet.seq);
                self.arrivals[usize::from(is_known)].push((now, packet.len_bytes));
            }
            Role::Ack => {
                self.expected = self.expected.max(packet.seq);
                // What left before and has not come is lost: a path keeps the order.
                let left = |[left, _]: &[Instant; 2]| *left < packet.created;
                let before = self.echoes.partition_point(left);
                self.echoes.drain(..before);
                if let Some([left, cause]) = self.echoes.front().copied()
                    && left == packet.created
                {
                    self.echoes.pop_front();
                    let round_trip = now.saturating_since(cause);
                    self.keep(ROUND_TRIP, now, round_trip.as_secs_f64());
                }
            }
            _ => {}
        }
    }

    /// The points of everything that is drawn, by quantity.
    fn points(&mut self, file: &OverTimeFile) -> Vec<(&'static str, Vec<(u64, f64)>)> {
        for (name, arrivals) in [GOODPUT, DUPLICATES].into_iter().zip(&self.arrivals) {
            let rates = self.rates(arrivals, file.interval);
            self.kept.insert(name, rates);
        }
        let quantities = file.y.iter().flat_map(|series| series.quantities());
        quantities
            .filter_map(|name| Some((*name, self.kept.remove(name)?)))
            .collect()
    }

    /// User bits per second of each whole interval, at its middle.
    fn rates(&self, arrivals: &[(Instant, u32)], interval: Duration) -> Vec<(u64, f64)> {
        let Some(first) = self.first else {
            return vec![];
        };
        let length = interval.as_nanos();
        let since = |at: Instant| at.saturating_since(first).as_nanos() / length;
        let mut bytes = vec![0; since(self.last) as usize];
        for (at, len) in arrivals {
            if let Some(bytes) = bytes.get_mut(since(*at) as usize) {
                // The last packet may be shorter than the others.
                *bytes += self.packet.saturating_sub(u64::from(self.longest - *len));
            }
        }
        let begin = first.saturating_since(Instant::ORIGIN).as_nanos() + length / 2;
        let rate = |bytes: u64| bytes as f64 * 8.0 / interval.as_secs_f64();
        let points = (0..).zip(bytes);
        points
            .map(|(at, bytes)| (begin + at * length, rate(bytes)))
            .collect()
    }
}
