//! Counts what a new epoch throws away in packets, whatever payloads they were in.

use super::contents::FRAGMENT_HEAD;
use super::{Contents, Divisible};
use crate::ledger::ServiceLedger;

/// Packets that a new epoch throws away, in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct EpochLoss {
    packets: u64,
    bytes: u64,
    /// The packet in parts that was counted last.
    cut: Option<u16>,
}

impl EpochLoss {
    /// What a frame carried is lost.
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

    /// So many bytes of a packet in parts are lost.
    pub(crate) fn add_part(&mut self, packet: u16, bytes: usize) {
        self.packets += u64::from(self.cut.replace(packet) != Some(packet));
        self.bytes += bytes as u64;
    }

    /// Puts it into the books.
    pub(crate) fn count(&self, ledger: &mut ServiceLedger) {
        ledger.epoch_lost += self.packets;
        ledger.epoch_lost_bytes += self.bytes;
    }
}
