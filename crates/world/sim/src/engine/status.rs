//! What the stations of nodes say of themselves (Gopal 2007, section 3.3): each interval the node's status daemon reads
//! the counters of its station, and tells the flows that begin there.
//!
//! All daemons are one component with one deadline. Where no flow asks, there are none.

use std::collections::BTreeSet;

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
    /// When it reads the counters first.
    pub(crate) first: Instant,
    pub(crate) interval: Duration,
    /// Flows that begin here.
    pub(crate) flows: Vec<u16>,
    /// What the counters were: packets taken, times without one.
    seen: [u64; 2],
    status: Option<Status>,
}

impl Daemon {
    /// A daemon that reads first at `first`.
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
pub(crate) struct Daemons {
    all: Vec<Daemon>,
    /// When each reads next.
    due: BTreeSet<(Instant, usize)>,
}

impl Daemons {
    /// These, in the order of their radios and stations.
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

    /// Every daemon whose time has come tells its flows.
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

    /// What a station did in its last interval, if anybody has read that.
    pub(super) fn status(&self, radio: u16, station: u16) -> Option<Status> {
        let place = |daemon: &Daemon| (daemon.radio, daemon.station);
        let at = self.all.binary_search_by_key(&(radio, station), place);
        self.all[at.ok()?].status
    }
}
