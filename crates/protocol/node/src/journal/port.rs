//! A port that can record its inputs.

use std::io;
use std::ops::Deref;

use airlane_base::{Instant, Rate, varint};
use airlane_link::config::ConfigError;
use airlane_link::wire::LIVE_HEADER_ROOM;
use airlane_link::{AdminError, ClassConfig, Frame, Port, PortConfig, ServiceConfig, ServiceEvent};
use airlane_session::ServiceOffer;
use serde::Serialize;

use super::format::{Input, header_of};
use super::write::{Journal, Sink};
use crate::packet::LivePacket;

/// A port and the journal of its inputs. Methods that change nothing come from the port by `Deref`; every
/// method that changes something is here, so that no input bypasses the journal.
#[derive(Debug)]
pub(crate) struct JournaledPort {
    port: Port<LivePacket>,
    journal: Option<Box<Journal>>,
    /// Configuration for the head of the journal.
    config: PortConfig,
}

impl JournaledPort {
    /// Creates a port without a journal.
    pub(crate) fn new(config: PortConfig) -> Result<Self, Vec<ConfigError>> {
        let mut port = Port::new(config.clone())?;
        port.keep_events();
        Ok(Self {
            port,
            journal: None,
            config,
        })
    }

    /// The configuration, as in the journal's head.
    pub(crate) const fn config(&self) -> &PortConfig {
        &self.config
    }

    /// Starts a journal. The port must not have had any input yet.
    pub(crate) fn keep_journal(&mut self, sink: Box<dyn Sink>) -> io::Result<()> {
        self.journal = Some(Box::new(Journal::begin(sink, &self.config)?));
        Ok(())
    }

    /// Whether a journal was started and has ended early.
    pub(crate) fn has_lost_journal(&self) -> bool {
        let journal = self.journal.as_ref();
        journal.is_some_and(|journal| !journal.is_open())
    }

    fn journal(&mut self) -> Option<&mut Journal> {
        let journal = self.journal.as_deref_mut();
        journal.filter(|journal| journal.is_open())
    }

    pub(crate) fn handle_packet(&mut self, now: Instant, packet: LivePacket) {
        if let Some(journal) = self.journal() {
            let block = journal.input(now, Input::Packet);
            block.bytes([packet.bytes(), &[]]);
        }
        self.port.handle_packet(now, packet);
    }

    pub(crate) fn handle_frame(&mut self, now: Instant, frame: Frame<LivePacket>) {
        let Self { port, journal, .. } = self;
        if let Some(journal) = journal.as_mut().filter(|journal| journal.is_open()) {
            let mut header = [0; LIVE_HEADER_ROOM];
            let length = header_of(port, &frame, &mut header);
            let payload = frame.packet().map_or(&[][..], LivePacket::bytes);
            let block = journal.input(now, Input::Frame);
            block.bytes([&header[..length], payload]);
        }
        port.handle_frame(now, frame);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let Some(journal) = self.journal() {
            journal.input(now, Input::Timeout);
        }
        self.port.handle_timeout(now);
    }

    pub(crate) fn reset(&mut self, now: Instant) {
        if let Some(journal) = self.journal() {
            journal.input(now, Input::Reset);
        }
        self.port.reset(now);
    }

    /// See [`Port::set_services`].
    pub(crate) fn set_services(
        &mut self,
        now: Instant,
        services: &[ServiceConfig],
        classes: &[ClassConfig],
    ) -> Result<Vec<String>, AdminError> {
        self.keep_json(now, Input::Services, &(services, classes));
        self.port.set_services(now, services, classes)
    }

    /// See [`Port::begin_agreement`].
    pub(crate) fn begin_agreement(&mut self, now: Instant, offers: &[ServiceOffer]) {
        self.keep_json(now, Input::Agreement, &offers);
        self.port.begin_agreement(now, offers);
    }

    /// See [`Port::handle_offers`].
    pub(crate) fn handle_offers(&mut self, now: Instant, offers: &[ServiceOffer]) {
        self.keep_json(now, Input::Offers, &offers);
        self.port.handle_offers(now, offers);
    }

    /// See [`Port::set_frame_room`].
    pub(crate) fn set_frame_room(&mut self, now: Instant, room: usize) {
        if let Some(journal) = self.journal() {
            let block = journal.input(now, Input::Room);
            varint::write(&mut block.records, room as u64);
        }
        self.port.set_frame_room(room);
    }

    /// See [`Port::set_link_rate`].
    pub(crate) fn set_link_rate(&mut self, now: Instant, rate: Rate) {
        if let Some(journal) = self.journal() {
            let block = journal.input(now, Input::Rate);
            varint::write(&mut block.records, rate.as_bps());
        }
        self.port.set_link_rate(rate);
    }

    /// See [`Port::shift_found`].
    pub(crate) fn shift_found(&mut self, now: Instant, bps: u64) {
        if let Some(journal) = self.journal() {
            let block = journal.input(now, Input::Share);
            varint::write(&mut block.records, bps);
        }
        self.port.shift_found(bps);
    }

    /// See [`Port::doubts_path`].
    pub(crate) fn doubts_path(&mut self) -> bool {
        self.port.doubts_path()
    }

    /// See [`Port::path_changed`].
    pub(crate) fn path_changed(&mut self, now: Instant) {
        if let Some(journal) = self.journal() {
            journal.input(now, Input::Path);
        }
        self.port.path_changed();
    }

    /// See [`Port::services_changed`], a query that affects no output.
    pub(crate) fn services_changed(&mut self) -> bool {
        self.port.services_changed()
    }

    /// See [`Port::take_events`], which affects no output.
    pub(crate) fn take_events(&mut self) -> impl Iterator<Item = ServiceEvent> + '_ {
        self.port.take_events()
    }

    /// Records a rare input with many fields.
    fn keep_json(&mut self, now: Instant, what: Input, input: &impl Serialize) {
        if let Some(journal) = self.journal() {
            let json = serde_json::to_vec(input).unwrap_or_default();
            journal.input(now, what).bytes([&json, &[]]);
        }
    }

    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<Frame<LivePacket>> {
        if let Some(journal) = self.journal() {
            journal.input(now, Input::Transmit);
        }
        let frame = self.port.poll_transmit(now);
        let Self { port, journal, .. } = self;
        if let Some(journal) = journal.as_mut().filter(|journal| journal.is_open()) {
            journal.outputs.transmitted(port, frame.as_ref());
        }
        frame
    }

    /// See [`Port::poll_deliver`]. The journal needs the time for the order of its records.
    pub(crate) fn poll_deliver(&mut self, now: Instant) -> Option<LivePacket> {
        // Most of many ports have nothing to deliver, and polls without a result are not recorded.
        if self.port.deliveries() == 0 {
            return None;
        }
        if let Some(journal) = self.journal() {
            journal.input(now, Input::Deliver);
        }
        let packet = self.port.poll_deliver();
        if let Some(journal) = self.journal() {
            journal.outputs.delivered(packet.as_ref());
        }
        packet
    }
}

impl Deref for JournaledPort {
    type Target = Port<LivePacket>;

    fn deref(&self) -> &Port<LivePacket> {
        &self.port
    }
}
