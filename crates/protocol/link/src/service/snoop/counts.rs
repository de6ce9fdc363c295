//! The counters of a Snoop agent, by application: two hosts and the lower of the ports, because clients use
//! high ones (RFC 6335).
//!
//! Invariant: at most [`ROWS`] rows; once they are taken, further applications are counted in the last one,
//! which then has no hosts.

use std::net::IpAddr;

use serde::Serialize;

use super::connection::{Admission, Verdict};
use crate::flow::FlowKey;

/// Maximum number of applications.
const ROWS: usize = 32;

/// The counters of a Snoop agent for one application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SnoopCounts {
    /// Sender and receiver over the wireless link; none in the row of all further applications.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<[IpAddr; 2]>,
    /// The lower of the ports.
    pub port: u16,
    /// Segments sent to the wireless host, without repairs.
    pub segments: u64,
    /// Segments not cached because one of their number or a later one had been acknowledged, possibly by
    /// another connection of the same state.
    pub not_kept_acknowledged: u64,
    /// Segments not cached for lack of room.
    pub not_kept_full: u64,
    /// Times that the first segment of a connection cleared a state.
    pub cleared: u64,
    /// Acknowledgments below the state's highest, which are forwarded and ignored.
    pub acks_below: u64,
    /// Duplicate acknowledgments forwarded to the sender.
    pub duplicates_passed: u64,
    /// Duplicate acknowledgments withheld from the sender.
    pub duplicates_suppressed: u64,
    /// Repairs caused by duplicates.
    pub repairs_by_duplicates: u64,
    /// Repairs caused by the agent's timer.
    pub repairs_by_timer: u64,
}

impl SnoopCounts {
    pub(super) fn on_data(&mut self, admission: Admission) {
        self.segments += 1;
        match admission {
            Admission::Cached => {}
            Admission::Acknowledged => self.not_kept_acknowledged += 1,
            Admission::Full => self.not_kept_full += 1,
        }
    }

    pub(super) fn on_ack(&mut self, verdict: Verdict, suppress: bool) {
        match verdict {
            Verdict::New => {}
            Verdict::Below => self.acks_below += 1,
            Verdict::Suppress | Verdict::Repair(_) if suppress => self.duplicates_suppressed += 1,
            Verdict::Duplicate | Verdict::Suppress | Verdict::Repair(_) => {
                self.duplicates_passed += 1;
            }
        }
    }

    pub(super) fn on_repair(&mut self, by_timer: bool) {
        if by_timer {
            self.repairs_by_timer += 1;
        } else {
            self.repairs_by_duplicates += 1;
        }
    }
}

/// All applications.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts(Vec<SnoopCounts>);

impl Counts {
    /// The row of a flow towards the wireless host.
    pub(super) fn row(&mut self, flow: &FlowKey) -> usize {
        let hosts = Some([flow.src, flow.dst]);
        let port = flow.src_port.min(flow.dst_port);
        let known = |row: &SnoopCounts| row.hosts == hosts && row.port == port;
        if let Some(at) = self.0.iter().position(known) {
            return at;
        }
        if self.0.len() == ROWS {
            return ROWS - 1;
        }
        let own = self.0.len() + 1 < ROWS;
        self.0.push(SnoopCounts {
            hosts: hosts.filter(|_| own),
            port: if own { port } else { 0 },
            ..SnoopCounts::default()
        });
        self.0.len() - 1
    }

    pub(super) fn at(&mut self, row: usize) -> &mut SnoopCounts {
        &mut self.0[row]
    }

    pub(super) fn rows(&self) -> &[SnoopCounts] {
        &self.0
    }
}
