//! Radio channels with contention: stations at nodes, packets from station to station.
//!
//! A radio is one component with one deadline, however many stations and frames it holds. Nothing waits in the engine: a
//! packet goes into the queue of its node's station at once, and what comes out stands at the next node.

use std::collections::VecDeque;

use airlane_base::{Instant, Payload as _};
use airlane_wifi::Radio;

use crate::packet::Packet;

/// A radio channel and where its stations are.
#[derive(Clone, Debug)]
pub(crate) struct RadioEnd {
    pub(crate) radio: Radio<Packet>,
    /// The node of each station.
    pub(crate) nodes: Vec<u16>,
    /// What packets carry more that start at one of these nodes, bytes.
    pub(crate) source_header: usize,
}

impl RadioEnd {
    /// Hands a packet that entered the network at `origin` to a station; a full queue drops and counts it.
    /// Whether it was taken.
    pub(super) fn send(
        &mut self,
        now: Instant,
        from: u16,
        to: u16,
        origin: u16,
        packet: Packet,
    ) -> bool {
        let extra = match self.nodes.contains(&origin) {
            true => self.source_header,
            false => 0,
        };
        let len = packet.len() + extra;
        // The station counts what it cannot take.
        let sent = self.radio.enqueue(now, from.into(), to.into(), len, packet);
        sent.is_ok()
    }

    /// Carries out what is due, and puts down what has come at which node.
    pub(super) fn handle_timeout(&mut self, now: Instant, delivered: &mut VecDeque<(u16, Packet)>) {
        self.radio.handle_timeout(now);
        while let Some(delivery) = self.radio.poll_deliver() {
            delivered.push_back((self.nodes[delivery.to], delivery.packet));
        }
        // The station has counted them.
        while self.radio.poll_drop().is_some() {}
    }
}
