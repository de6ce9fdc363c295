//! Counts the packets that a new epoch discards, in whole packets for any kind of payload.

use super::contents::FRAGMENT_HEAD;
use super::{Contents, Divisible};
use crate::ledger::ServiceLedger;

/// The packets that a new epoch discards, in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct EpochLoss {
    packets: u64,
    bytes: u64,
    /// The fragmented packet that was counted last.
    cut: Option<u16>,
}

impl EpochLoss {
    /// Counts what a frame carried as lost.
    pub(crate) fn add<P: Divisible>(&mut self, payload: &P) {
        match payload.contents() {
            Contents::Aggregate => payload.packets(&mut |packet| self.add(&packet)),
            Contents::Fragment(which) => {
                self.add_part(which.packet, payload.len().saturating_sub(FRAGMENT_HEAD));
            }
            Contents::Packet | Contents::Short | Contents::Malformed => {
                self.packets += 1;
                self.bytes += payload.len() as u64;
            }
        }
    }

    /// Counts bytes of a fragmented packet as lost.
    pub(crate) fn add_part(&mut self, packet: u16, bytes: usize) {
        self.packets += u64::from(self.cut.replace(packet) != Some(packet));
        self.bytes += bytes as u64;
    }

    /// Adds the totals to the ledger.
    pub(crate) fn count(&self, ledger: &mut ServiceLedger) {
        ledger.epoch_lost += self.packets;
        ledger.epoch_lost_bytes += self.bytes;
    }
}
