//! What the stations of nodes say of themselves (Gopal 2007, section 3.3): each interval the node's status daemon reads
//! the counters of its station, and tells the flows that begin there.
//!
//! All daemons are one component with one deadline. Where no flow asks, there are none.

use airlane_base::{Duration, Instant};
use airlane_transport::clap::Status;

use super::radio::RadioEnd;
use crate::app::Flow;

/// Packets that flows of the source have, headers included: how many of them find room where a queue counts bytes.
const USUAL_PACKET: usize = 1_040;

/// The daemon of one station.
#[derive(Clone, Debug)]
pub(crate) struct Daemon {
    pub(crate) radio: u16,
    pub(crate) station: u16,
    /// When it reads the counters next.
    pub(crate) next: Instant,
    pub(crate) interval: Duration,
    /// Flows that begin here.
    pub(crate) flows: Vec<u16>,
    /// What the counters were: packets taken, times without one.
    seen: [u64; 2],
    status: Option<Status>,
}

impl Daemon {
    /// A daemon that reads first at `next`.
    pub(crate) fn new(
        [radio, station]: [u16; 2],
        next: Instant,
        interval: Duration,
        flows: Vec<u16>,
    ) -> Self {
        Self {
            radio,
            station,
            next,
            interval,
            flows,
            seen: [0; 2],
            status: None,
        }
    }

    /// Reads the counters, and begins to count anew.
    fn read(&mut self, end: &RadioEnd) -> Status {
        let station = usize::from(self.station);
        let stats = end.radio.station_stats(station);
        let now = [stats.taken, stats.underflows];
        let [out, underflows] = [0, 1].map(|i| now[i] - self.seen[i]);
        self.seen = now;
        let short = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        // Who had nothing to send all the time has ended no attempt, and had too little all the same (CLAP-Z10).
        let idle = out == 0 && end.radio.backlog(station) == 0;
        let status = Status {
            out: short(out),
            underflows: short(underflows.max(idle.into())),
            room: short(end.radio.room(station, USUAL_PACKET)),
            flows: self.flows.len() as u32,
        };
        self.status = Some(status);
        status
    }
}

/// The daemons of a world, by radio and station.
#[derive(Clone, Debug, Default)]
pub(crate) struct Daemons(pub(crate) Vec<Daemon>);

impl Daemons {
    /// Every daemon whose time has come tells its flows.
    pub(super) fn handle_timeout(&mut self, now: Instant, radios: &[RadioEnd], flows: &mut [Flow]) {
        for daemon in self.0.iter_mut().filter(|daemon| daemon.next <= now) {
            daemon.next = now + daemon.interval;
            let status = daemon.read(&radios[usize::from(daemon.radio)]);
            for flow in &daemon.flows {
                flows[usize::from(*flow)].handle_status(status);
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.0.iter().map(|daemon| daemon.next).min()
    }

    /// What a station did in its last interval, if anybody has read that.
    pub(super) fn status(&self, radio: u16, station: u16) -> Option<Status> {
        let at = |daemon: &&Daemon| (daemon.radio, daemon.station) == (radio, station);
        self.0.iter().find(at)?.status
    }
}
