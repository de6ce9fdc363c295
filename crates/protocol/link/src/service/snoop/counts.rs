//! What a Snoop agent did, by the application whose connections it watched: two hosts and the lower of
//! the ports, as those that clients take are high (RFC 6335).
//!
//! Invariant: at most [`ROWS`] rows; what comes when they are taken counts in the last one, which then
//! has no hosts.

use std::net::IpAddr;

use serde::Serialize;

use super::connection::{Admission, Verdict};
use crate::flow::FlowKey;

/// Applications told apart.
const ROWS: usize = 32;

/// What a Snoop agent did for the connections of one application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SnoopCounts {
    /// Who sends and who receives over the wireless link; none where there were too many to tell apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<[IpAddr; 2]>,
    /// The lower of the ports.
    pub port: u16,
    /// Segments on their way to the wireless host, repairs not counted.
    pub segments: u64,
    /// Of these segments, those that were not kept, as a segment of their number or a later one had been
    /// acknowledged, be it by another connection of the same state.
    pub not_kept_acknowledged: u64,
    /// Of these segments, those that were not kept for lack of room.
    pub not_kept_full: u64,
    /// Times that the first segment of a connection cleared a state.
    pub cleared: u64,
    /// Acknowledgments below what the state knows as acknowledged, which go on unread.
    pub acks_below: u64,
    /// Duplicate acknowledgments that went on to the sender.
    pub duplicates_passed: u64,
    /// Duplicate acknowledgments kept from it.
    pub duplicates_suppressed: u64,
    /// Repairs that left because duplicates asked for them.
    pub repairs_by_duplicates: u64,
    /// Repairs that left because the agent's timer ran out.
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
