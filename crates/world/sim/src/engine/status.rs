//! Status reports of stations (Gopal 2007, section 3.3): at each interval the node's status daemon reads the counters
//! of its station, and reports to the flows that begin there.
//!
//! All daemons are one component with one deadline. If no flow uses them, there are none.

use std::collections::BTreeSet;

use airlane_base::{Duration, Instant};
use airlane_transport::clap::Status;

use super::radio::RadioEnd;
use crate::app::Flow;

/// Length of a packet of Gopal's flows, headers included; converts the room of a byte-limited queue into packets.
const USUAL_PACKET: usize = 1_040;

/// The daemon of one station.
#[derive(Clone, Debug)]
pub(crate) struct Daemon {
    pub(crate) radio: u16,
    pub(crate) station: u16,
    /// When it first reads the counters.
    pub(crate) first: Instant,
    pub(crate) interval: Duration,
    /// Flows that begin here.
    pub(crate) flows: Vec<u16>,
    /// Counters at the last reading: packets taken, underflows.
    seen: [u64; 2],
    status: Option<Status>,
}

impl Daemon {
    /// A daemon whose first reading is at `first`.
    pub(crate) fn new(
        [radio, station]: [u16; 2],
        first: Instant,
        interval: Duration,
        flows: Vec<u16>,
    ) -> Self {
        Self {
            radio,
            station,
            first,
            interval,
            flows,
            seen: [0; 2],
            status: None,
        }
    }

    /// Reads the counters, as differences from the last reading.
    fn read(&mut self, end: &RadioEnd) -> Status {
        let station = usize::from(self.station);
        let stats = end.radio.station_stats(station);
        let now = [stats.taken, stats.underflows];
        let [out, underflows] = [0, 1].map(|i| now[i] - self.seen[i]);
        self.seen = now;
        let short = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        // A station that was idle all the time has ended no attempt, but has underflowed all the same (CLAP-Z10).
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
pub(crate) struct Daemons {
    all: Vec<Daemon>,
    /// When each is due next.
    due: BTreeSet<(Instant, usize)>,
}

impl Daemons {
    /// `all` is in the order of radios and stations.
    pub(crate) fn new(all: Vec<Daemon>) -> Self {
        let due = all.iter().enumerate().map(|(i, daemon)| (daemon.first, i));
        Self {
            due: due.collect(),
            all,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Every daemon that is due reports to its flows.
    pub(super) fn handle_timeout(&mut self, now: Instant, radios: &[RadioEnd], flows: &mut [Flow]) {
        while let Some((at, index)) = self.due.first().copied()
            && at <= now
        {
            self.due.pop_first();
            let daemon = &mut self.all[index];
            self.due.insert((now + daemon.interval, index));
            let status = daemon.read(&radios[usize::from(daemon.radio)]);
            for flow in &daemon.flows {
                flows[usize::from(*flow)].handle_status(status);
            }
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// A station's last report, if a daemon reads its counters.
    pub(super) fn status(&self, radio: u16, station: u16) -> Option<Status> {
        let place = |daemon: &Daemon| (daemon.radio, daemon.station);
        let at = self.all.binary_search_by_key(&(radio, station), place);
        self.all[at.ok()?].status
    }
}
