//! Agreement on services: how the service table of a running link changes without a new session.
//!
//! Each end offers its services, and uses only those that the peer offers too. An operator changes one end
//! after the other; in between, the service waits, its classes are inert, and no other service is affected.
//!
//! ```text
//!  left                                   right
//!  add 3 ── offer 3, instance 2 ────────►  (has none)
//!            ...                           add 3
//!  pair ◄─── offer 3, instance 5 ───────── pair with 2
//!  open ◄─── offer 3, instance 5 pair 2 ──
//!   └──────  offer 3, instance 2 pair 5 ─► open
//!  remove 3: drains ── no offer of 3 ───►  drains, then starts anew and waits
//! ```
//!
//! Rules:
//! 1. Every service that is started has an *instance*, a number that no other service with its number had in
//!    this session. At the beginning of a session both ends start all services anew, as instance 1.
//! 2. A service without a partner pairs with the instance that the peer offers, if its terms fit and that
//!    instance has not paired with an earlier one of ours. Only paired services accept frames
//!    ([`Port::is_agreed`]), so no frame of an earlier instance can reach a later one.
//! 3. A service is open, which means that packets are classified to it, once the peer reports that it has
//!    paired with it.
//! 4. A service whose partner is gone or has changed is drained, then started anew. So is one that the
//!    operator replaced.
//! 5. Service 0 takes all remaining traffic: it is open from the beginning to the end of a session, and its
//!    terms must fit for a session to begin.
//!
//! Left out: ports that never receive a peer's offers, as in simulations, keep all services open.

use airlane_base::Instant;
use airlane_base::random::fnv1a;

use super::admin::AdminError;
use super::agreement::{Agreement, FIRST, PeerOffers};
use super::slot::Slot;
use super::{Port, numbers};
use crate::classify::{ClassConfig, differences};
use crate::config::{self, ConfigError, IMPLICIT_NAME, SchemeConfig, ServiceConfig, Viewpoint};
use crate::flow::Packet;
use crate::schedule::Schedule;
use crate::wire::SERVICES;
use airlane_session::{OwnService, ServiceOffer};

impl<P: Packet> Port<P> {
    /// Begins a session, after [`Port::reset`], with the offers that the peer was accepted with.
    pub fn begin_agreement(&mut self, now: Instant, offers: &[ServiceOffer]) {
        let offers = offers.iter().map(|offer| ServiceOffer {
            instance: FIRST,
            partner: FIRST,
            ..*offer
        });
        self.peer = Some(PeerOffers {
            offers: offers.collect(),
            next_instance: FIRST + 1,
        });
        for slot in self.slots.iter_mut().flatten() {
            slot.agreement = Agreement {
                instance: FIRST,
                partner: None,
                open: false,
            };
        }
        self.agree(now);
        // The peer may never have these services, and their frames would be retransmitted for ever.
        let slots = self.slots.iter().enumerate();
        let closed = slots.filter(|(_, slot)| slot.as_ref().is_some_and(|s| !s.agreement.open));
        let closed = closed.fold(0, |closed, (number, _)| closed | 1 << number);
        self.forget(now, closed);
        for number in numbers(closed) {
            if let Some(slot) = &mut self.slots[number] {
                slot.drop_waiting();
            }
        }
        self.hand_over_ready(now);
    }

    /// Takes the peer's new offers in the same session.
    pub fn handle_offers(&mut self, now: Instant, offers: &[ServiceOffer]) {
        if let Some(peer) = &mut self.peer {
            peer.offers = offers.to_vec();
            self.agree(now);
        }
    }

    /// Whether this service accepts frames: it is paired with the peer's.
    pub fn is_agreed(&self, service: u8) -> bool {
        let paired = |slot: &Slot<P>| slot.agreement.partner.is_some();
        service == 0 || self.slot(service).is_some_and(paired)
    }

    /// What this end offers, and what the peer must offer for each service to pair.
    pub fn own_services(&self) -> Vec<OwnService> {
        let live = self.slots.iter().flatten().filter(|slot| !slot.draining);
        let own = live.map(|slot| OwnService {
            offer: ServiceOffer {
                service: slot.config.number,
                instance: slot.agreement.instance,
                partner: slot.agreement.partner.unwrap_or(0),
                terms: self.terms(slot, &slot.config.scheme),
            },
            fits: self.terms(slot, &slot.config.scheme.at_peer()),
        });
        own.collect()
    }

    /// Whether [`Port::own_services`] may have changed since the last call.
    pub fn services_changed(&mut self) -> bool {
        std::mem::take(&mut self.offers_changed)
    }

    /// Replaces the service table and the classes while the port runs. Unchanged services are not affected;
    /// the others are added, drained and removed, or drained and started anew. Returns a description of the
    /// changes.
    ///
    /// # Errors
    /// If the table is invalid, or changes more of service 0 than its rate. A refused call changes nothing.
    pub fn set_services(
        &mut self,
        now: Instant,
        services: &[ServiceConfig],
        classes: &[ClassConfig],
    ) -> Result<Vec<String>, AdminError> {
        let header = self.config.header;
        let mut problems: Vec<ConfigError> = config::check(header, services, classes);
        problems.extend(config::check_ends(Viewpoint::End, services));
        if !problems.is_empty() {
            return Err(AdminError::Config { problems });
        }
        let old = config::resolve(header, &self.config.services);
        let new = config::resolve(header, services);
        let of = |table: &[ServiceConfig], number| {
            table
                .iter()
                .find(|s: &&ServiceConfig| s.number == number)
                .cloned()
        };
        let same_but_rate = |a: &ServiceConfig, b: &ServiceConfig| {
            let rate = b.rate;
            *b == ServiceConfig { rate, ..a.clone() }
        };
        if let (Some(a), Some(b)) = (of(&old, 0), of(&new, 0))
            && !same_but_rate(&a, &b)
        {
            return Err(AdminError::DefaultService);
        }
        let mut changes = Vec::new();
        for number in 0..SERVICES as u8 {
            match (of(&old, number), of(&new, number)) {
                (None, None) => {}
                (Some(a), Some(b)) if a == b => {}
                (Some(a), Some(b)) if same_but_rate(&a, &b) => {
                    let (name, rate) = (&b.name, b.rate);
                    // The implicit raw service always has the smallest of all rates.
                    if name != IMPLICIT_NAME {
                        changes.push(format!(
                            "service \"{name}\" has rate {rate}, was {}",
                            a.rate
                        ));
                    }
                    self.change_rate(&b);
                }
                (Some(a), Some(b)) => {
                    changes.push(format!(
                        "service {number} \"{}\" drains and begins anew as \"{}\"",
                        a.name, b.name
                    ));
                    self.replace(now, number, Some(b));
                }
                (None, Some(b)) => {
                    changes.push(format!("service {number} \"{}\" is added", b.name));
                    self.replace(now, number, Some(b));
                }
                (Some(a), None) => {
                    changes.push(format!("service {number} \"{}\" is removed", a.name));
                    self.replace(now, number, None);
                }
            }
        }
        changes.extend(differences(&self.config.classes, classes));
        // An implicit raw service stays implicit.
        let asked = |s: &&ServiceConfig| {
            let known = self.config.services.iter().any(|old| old.number == 0);
            s.number != 0 || s.name != IMPLICIT_NAME || known
        };
        self.config.services = services.iter().filter(asked).cloned().collect();
        self.config.classes = classes.to_vec();
        self.retire_drained(now);
        self.rebuild_classifier();
        self.update_timer_factors();
        self.offers_changed = true;
        self.agree(now);
        Ok(changes)
    }

    // ---- internal

    /// A hash of the options that both ends of a service with this scheme must agree on.
    fn terms(&self, slot: &Slot<P>, scheme: &SchemeConfig) -> u64 {
        let modulus = self.facts.space(slot.frames.layout).modulus();
        let text = format!("{}{} modulus {modulus}", scheme.kind(), scheme.terms());
        fnv1a(text.as_bytes())
    }

    fn change_rate(&mut self, to: &ServiceConfig) {
        let Some(slot) = &mut self.slots[usize::from(to.number)] else {
            return;
        };
        if let Some(next) = &mut slot.next {
            next.rate = to.rate;
        } else if !slot.draining {
            slot.config.rate = to.rate;
            self.scheduler.set_rate(to.number, to.rate);
        }
    }

    /// Puts `next` in the place of the service with this number, once that has drained.
    fn replace(&mut self, now: Instant, number: u8, next: Option<ServiceConfig>) {
        match (&mut self.slots[usize::from(number)], next) {
            (Some(slot), next) => {
                if !slot.draining {
                    slot.drain(now);
                }
                slot.next = next;
            }
            (None, Some(next)) => self.install(next),
            (None, None) => {}
        }
    }

    /// Brings each service in line with the peer's offers.
    pub(super) fn agree(&mut self, now: Instant) {
        let Some(peer) = &self.peer else { return };
        let fits: Vec<_> = self
            .slots
            .iter()
            .map(|slot| {
                slot.as_deref()
                    .map(|slot| self.terms(slot, &slot.config.scheme.at_peer()))
            })
            .collect();
        let (mut changed, mut leaving) = (false, 0u16);
        for (number, slot) in self.slots.iter_mut().enumerate() {
            let Some(slot) = slot.as_deref_mut().filter(|slot| !slot.draining) else {
                continue;
            };
            let before = (slot.agreement.partner, slot.agreement.open);
            let offer = peer
                .offers
                .iter()
                .find(|o| usize::from(o.service) == number && Some(o.terms) == fits[number]);
            let own = &mut slot.agreement;
            if number == 0 {
                (own.partner, own.open) = (Some(FIRST), true);
            } else if let Some(offer) = offer {
                if own.partner.is_none() && [0, own.instance].contains(&offer.partner) {
                    own.partner = Some(offer.instance);
                }
                own.open = own.partner == Some(offer.instance) && offer.partner == own.instance;
            }
            let gone = own.partner.is_some() && own.partner != offer.map(|o| o.instance);
            if number != 0 && gone {
                leaving |= 1 << number;
            }
            changed |= before != (own.partner, own.open);
        }
        for number in numbers(leaving) {
            if let Some(slot) = &mut self.slots[number] {
                // It keeps its own configuration, which is still what the operator of this end wants.
                let mut next = slot.config.clone();
                if let Some(own) = self
                    .config
                    .services
                    .iter()
                    .find(|s| s.number == next.number)
                {
                    next.rate = own.rate;
                }
                slot.drain(now);
                slot.next = Some(next);
                changed = true;
            }
        }
        if changed {
            self.offers_changed = true;
            self.rebuild_classifier();
            self.update_timer_factors();
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
