//! Administration of a running port (Xylomenos 1999, section 6.2.6): its rate, its epochs, the status of its
//! services, and the changes that [`Port::set_services`] makes to them.

use airlane_base::{Instant, Rate};
use serde::Serialize;

use super::agreement::Agreement;
use super::slot::{Interface, Slot};
use super::{Port, numbers};
use crate::classify::{Classifier, FlowStatus};
use crate::config::{
    ConfigError, IMPLICIT_NAME, Multiplier, MultiplierHeuristic, SchemeConfig, ServiceConfig,
};
use crate::departure::DepartingFrame;
use crate::flow::{FlowKey, Packet};
use crate::ledger::{EventCount, ServiceLedger};
use crate::measure::ServiceMetrics;
use crate::queue::{DropReason, Pacer};
use crate::schedule::Schedule;
use crate::service::SnoopCounts;
use crate::wire::{Layout, SERVICES};

/// Removed services whose ledgers are kept.
const RETIRED: usize = 64;

/// Why an administrative call was refused. A refused call changes nothing.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AdminError {
    /// No service has this number.
    #[error("there is no service with number {number}")]
    NoSuchService {
        /// The requested number.
        number: u8,
    },
    /// The default service can be neither removed nor replaced.
    #[error(
        "service 0 takes unrecognised traffic: it cannot be removed, nor changed but for its rate, while \
         the port runs"
    )]
    DefaultService,
    /// The rate is not a valid share.
    #[error("a rate of {rate} gives the service nothing; a rate is a share above 0")]
    BadRate {
        /// The requested rate.
        rate: f64,
    },
    /// The new table is invalid.
    #[error("{}", .problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Config {
        /// Its problems.
        problems: Vec<ConfigError>,
    },
}

/// The status of a service.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceStatus {
    /// Service number.
    pub number: u8,
    /// Name from the configuration.
    pub name: String,
    /// The scheme's name, as in configuration files: `sr-m2`.
    pub scheme: &'static str,
    /// Configured share of the link.
    pub rate: f64,
    /// Whether it is being removed.
    pub draining: bool,
    /// Whether it is unused, because the peer has no such service, or a different one with its number.
    pub waiting: bool,
    /// Packets in its queue, or waiting for it at IP.
    pub queue_packets: usize,
    /// Bytes of these packets.
    pub queue_bytes: usize,
    /// Smoothed round trip of the link, where the service measures it, seconds.
    pub srtt_s: Option<f64>,
    /// Its counters.
    pub ledger: ServiceLedger,
    /// Counts of its scheme's events, in the order of their first occurrence.
    pub events: Vec<EventCount>,
    /// Counters of a Snoop agent at this end, by application.
    pub snoop: Vec<SnoopCounts>,
    /// Its metrics.
    pub metrics: ServiceMetrics,
}

impl<P: Packet> Port<P> {
    /// Changes the share of a service, for frames handed over from now on.
    ///
    /// # Errors
    /// If there is no such service, or the rate is not above zero.
    pub fn set_rate(&mut self, number: u8, rate: f64) -> Result<(), AdminError> {
        if !(rate > 0.0 && rate.is_finite()) {
            return Err(AdminError::BadRate { rate });
        }
        let slot = self.slots.get_mut(usize::from(number));
        let slot = slot.and_then(Option::as_deref_mut);
        slot.ok_or(AdminError::NoSuchService { number })?
            .config
            .rate = rate;
        self.scheduler.set_rate(number, rate);
        self.update_timer_factors();
        Ok(())
    }

    /// Changes the rate of the link: later frames leave at it, and timers, budgets and pacing become what
    /// they would be had the rate been so from the start. Nothing is lost or reset; measurements stay.
    pub fn set_link_rate(&mut self, rate: Rate) {
        self.config.rate = rate;
        if let Some(pacer) = &mut self.pacer {
            pacer.set_rate(rate);
        }
        if let Some(estimator) = &mut self.estimator {
            estimator.set_most(rate);
        }
        let found = self.estimator.as_ref().map(|estimator| estimator.carries());
        self.retime(found.unwrap_or(rate));
    }

    /// Applies this rate to timers, budgets and bounds.
    pub(super) fn retime(&mut self, rate: Rate) {
        self.facts.rate = rate;
        self.next_timer.set(None);
        for slot in self.slots.iter_mut().flatten() {
            slot.retime(&self.facts);
        }
    }

    /// Begins a new epoch: every service is reset; queued packets stay, those in flight are counted as lost.
    pub fn reset(&mut self, now: Instant) {
        self.forget_all(now);
        // While the link is busy no frame is requested, and with an empty scheduler there is no deadline.
        self.hand_over_ready(now);
    }

    /// Begins a new epoch, without handing over frames.
    fn forget_all(&mut self, now: Instant) {
        self.forget(now, u16::MAX);
        self.scheduler.link_idle();
        if let Some(estimator) = &mut self.estimator {
            estimator.reset();
        }
        (self.answer, self.speaks) = (None, false);
    }

    /// Begins a new epoch of these services, one bit each.
    pub(super) fn forget(&mut self, now: Instant, services: u16) {
        self.open_all();
        self.next_timer.set(None);
        for number in numbers(services) {
            self.epochs[number] = self.epochs[number].wrapping_add(1);
            if let Some(slot) = &mut self.slots[number] {
                let forget = &mut |departing: DepartingFrame<P>| slot.forget(&departing.frame);
                self.scheduler.remove(number as u8, forget);
                slot.reset(now, &mut self.out);
            }
            self.count_events(number);
        }
        self.ready |= services;
    }

    /// Disconnects the link, as for a handoff: every service is reset, and queued packets are dropped and
    /// counted. The port can be used again once there is a link.
    pub fn disconnect(&mut self, now: Instant) {
        self.forget_all(now);
        for slot in self.slots.iter_mut().flatten() {
            slot.drop_waiting();
        }
        for flow in self.moving.take() {
            let number = usize::from(flow.to) % SERVICES;
            if let Some(slot) = &mut self.slots[number] {
                for packet in flow.packets {
                    slot.offer(&packet);
                    slot.discard(DropReason::Disconnected, packet);
                }
            }
        }
        self.next_timer.set(None);
        let paced = self.pacer.as_mut().map(Pacer::take);
        for (number, packet, _) in paced.into_iter().flatten() {
            if let Some(slot) = &mut self.slots[number] {
                slot.leaves_ip(now, packet.len());
                slot.discard(DropReason::Disconnected, packet);
            }
        }
    }

    /// The status of all services.
    pub fn services(&self) -> impl Iterator<Item = ServiceStatus> + '_ {
        self.slots.iter().flatten().map(|slot| ServiceStatus {
            number: slot.config.number,
            name: slot.config.name.clone(),
            scheme: slot.config.scheme.kind(),
            rate: slot.config.rate,
            draining: slot.draining,
            waiting: !slot.draining && !slot.agreement.open,
            queue_packets: slot.waiting_packets(),
            queue_bytes: slot.waiting_bytes(),
            srtt_s: slot.service.scheme().srtt().map(|d| d.as_secs_f64()),
            ledger: slot.ledger,
            events: slot.events.clone(),
            snoop: slot.service.snoop().to_vec(),
            metrics: slot.meter.metrics(),
        })
    }

    /// The ledger of one service.
    pub fn ledger(&self, number: u8) -> Option<&ServiceLedger> {
        self.slot(number).map(|slot| &slot.ledger)
    }

    /// Names and ledgers of recently removed services.
    pub fn retired(&self) -> &[(String, ServiceLedger)] {
        &self.retired
    }

    /// Keeps dropped packets from now on. Call [`take_dropped`](Self::take_dropped) after each input, or they
    /// pile up.
    pub fn keep_dropped(&mut self) {
        self.keeps_dropped = true;
        self.slots
            .iter_mut()
            .flatten()
            .for_each(|slot| slot.keep_dropped());
    }

    /// Packets dropped since the last call, with the number of their service: by service, oldest first. None
    /// before [`keep_dropped`](Self::keep_dropped).
    pub fn take_dropped(&mut self) -> impl Iterator<Item = (u8, DropReason, P)> + '_ {
        self.slots.iter_mut().flatten().flat_map(|slot| {
            let number = slot.config.number;
            slot.take_dropped()
                .map(move |(reason, packet)| (number, reason, packet))
        })
    }

    /// The service chosen for the last packet from IP.
    #[inline]
    pub fn chosen(&self) -> u8 {
        self.chosen
    }

    /// The interface that the service with this number exports; none if there is no such service.
    pub fn interface(&self, number: u8) -> Option<Interface> {
        let (rate, longest) = (self.rate(), self.config.max_payload);
        self.slot(number).map(|slot| slot.interface(rate, longest))
    }

    /// The service for packets of a flow, by what is known of it.
    pub fn service_of_flow(&self, flow: &FlowKey) -> u8 {
        self.classifier.service_of(flow)
    }

    /// Every service that packets of a flow may get, whatever its behaviour.
    pub fn services_of_flow(&self, flow: &FlowKey) -> impl Iterator<Item = u8> {
        self.classifier.services_of(flow)
    }

    /// The name of a service.
    pub fn service_name(&self, number: u8) -> Option<&str> {
        self.slot(number).map(|slot| &*slot.config.name)
    }

    /// The known flows, where the classifier learns their behaviour.
    pub fn flows(&self, now: Instant) -> Vec<FlowStatus> {
        let name = |number| self.service_name(number).map(str::to_owned);
        self.classifier.flows(now, name)
    }

    /// The part of the service table that both ends of a link must share to deliver correctly, one line per
    /// service. Shares and timers may differ between the ends.
    pub fn service_table(&self) -> String {
        self.table(SchemeConfig::clone)
    }

    /// [`service_table`](Self::service_table) as the other end must have it.
    pub fn peer_service_table(&self) -> String {
        self.table(SchemeConfig::at_peer)
    }

    fn table(&self, view: impl Fn(&SchemeConfig) -> SchemeConfig) -> String {
        let mut table = String::new();
        for slot in self.slots.iter().flatten().filter(|slot| !slot.draining) {
            let (number, scheme) = (slot.config.number, view(&slot.config.scheme));
            table.push_str(&format!("{number} {}{}\n", scheme.kind(), scheme.terms()));
        }
        let modulus = self.facts.space(&Layout::BARE).modulus();
        table.push_str(&format!("modulus {modulus}\n"));
        table
    }

    // ---- internal

    /// The slot of the service with this number.
    pub(super) fn slot(&self, number: u8) -> Option<&Slot<P>> {
        self.slots.get(usize::from(number))?.as_deref()
    }

    pub(super) fn install(&mut self, service: ServiceConfig) {
        let number = usize::from(service.number) % SERVICES;
        self.scheduler.set_rate(number as u8, service.rate);
        let agreement = Agreement::new(self.peer.as_mut());
        let mut slot = Slot::new(service, &self.facts, &self.config, self.room, agreement);
        if self.estimator.is_some() {
            slot.fit_queue(self.facts.rate, self.fitted);
        }
        if self.keeps_dropped {
            slot.keep_dropped();
        }
        self.slots[number] = Some(Box::new(slot));
        self.installed |= 1 << number;
        self.offers_changed = true;
    }

    pub(super) fn rebuild_classifier(&mut self) {
        let slots = &self.slots;
        let number_of = |name: &str| {
            let used = |slot: &&Slot<P>| !slot.draining && slot.agreement.open;
            let live = slots.iter().filter_map(Option::as_deref).filter(used);
            live.map(|slot| &slot.config)
                .find(|config| config.name == name)
                .map(|config| config.number)
        };
        let next = Classifier::new(&self.config.classes, number_of, 0);
        let before = std::mem::replace(&mut self.classifier, Classifier::new(&[], |_| None, 0));
        self.classifier = next.succeeding(before, self.config.flow_salt);
    }

    /// The two heuristics of Xylomenos 1999, section 6.2.2. The raw service that is added by default counts
    /// for neither.
    pub(super) fn update_timer_factors(&mut self) {
        self.next_timer.set(None);
        let counts = |slot: &Slot<P>| {
            !slot.draining
                && (self
                    .config
                    .services
                    .iter()
                    .any(|s| s.number == slot.config.number)
                    || slot.config.name != IMPLICIT_NAME)
        };
        let (mut services, mut rates) = (0u32, 0.0);
        for slot in self.slots.iter().flatten().filter(|slot| counts(slot)) {
            services += 1;
            rates += slot.config.rate;
        }
        for slot in self.slots.iter_mut().flatten() {
            let Some(multiplier) = slot.config.scheme.multiplier() else {
                continue;
            };
            let factor = match multiplier {
                Multiplier::Factor(factor) => factor,
                Multiplier::Heuristic(MultiplierHeuristic::Services) => f64::from(services.max(1)),
                Multiplier::Heuristic(MultiplierHeuristic::Share) => rates / slot.config.rate,
            };
            slot.service.scheme_mut().set_timer_factor(factor);
        }
    }

    /// Removes drained services; returns whether any was removed.
    pub(super) fn retire_drained(&mut self, now: Instant) -> bool {
        let mut retired = false;
        for number in numbers(self.installed) {
            let gone = |slot: &Slot<P>| slot.retires_at().is_some_and(|at| at <= now);
            if self.slots[number].as_deref().is_some_and(gone) {
                self.open_all();
                let Some(slot) = self.slots[number].take() else {
                    continue;
                };
                self.installed &= !(1 << number);
                let next = slot.next.clone();
                if self.retired.len() == RETIRED {
                    self.retired.remove(0);
                }
                self.retired.push(slot.retire(now, &mut self.out));
                if let Some(next) = next {
                    self.install(next);
                    self.agree(now);
                    self.rebuild_classifier();
                }
                self.update_timer_factors();
                retired = true;
            }
        }
        retired
    }
}
