//! The events that services report by name, and the resets that their schemes demand.

use airlane_base::Instant;

use super::Port;
use crate::context::ServiceEvent;
use crate::flow::Packet;
use crate::ledger::EventCount;

/// Capacity for events that the driver has not taken; further ones are only counted.
const KEPT: usize = 1024;

impl<P: Packet> Port<P> {
    /// Keeps the services' events from now on. Call [`take_events`](Self::take_events) after each input;
    /// beyond a thousand, events are only counted.
    pub fn keep_events(&mut self) {
        self.events.get_or_insert_default();
    }

    /// The services' events since the last call, in order. Nothing before [`keep_events`](Self::keep_events).
    pub fn take_events(&mut self) -> impl Iterator<Item = ServiceEvent> + '_ {
        self.events.iter_mut().flat_map(|events| events.drain(..))
    }

    /// Processes the events of the service that has just been called, and resets it if it demands that.
    /// Returns whether it did.
    #[inline]
    pub(super) fn process_events(&mut self, now: Instant, number: usize) -> bool {
        !self.out.events.is_empty() && self.process_reported(now, number)
    }

    #[cold]
    fn process_reported(&mut self, now: Instant, number: usize) -> bool {
        let reset = self.count_events(number);
        if reset {
            if let Some(slot) = &mut self.slots[number] {
                slot.ledger.resets += 1;
            }
            self.forget(now, 1 << number);
        }
        reset
    }

    /// Counts a service's events, and keeps them if the driver wants them. Returns whether one demands a
    /// reset.
    pub(super) fn count_events(&mut self, number: usize) -> bool {
        let mut resets = false;
        for reported in self.out.events.drain(..) {
            let (name, reset) = (reported.event, reported.reset);
            resets |= reset;
            if let Some(slot) = &mut self.slots[number] {
                match slot.events.iter_mut().find(|event| event.name == name) {
                    Some(event) => event.count += 1,
                    None => slot.events.push(EventCount { name, count: 1 }),
                }
            }
            if let Some(events) = self.events.as_mut().filter(|events| events.len() < KEPT) {
                let service = number as u8;
                events.push(ServiceEvent {
                    service,
                    name,
                    reset,
                });
            }
        }
        resets
    }
}

#[cfg(test)]
mod tests {
    use airlane_base::{Duration, Rate};

    use super::super::agree::tests::To;
    use super::*;
    use crate::config::{PortConfig, SchedulerConfig};
    use crate::context::Context;
    use crate::departure::Outcome;
    use crate::ledger::ServiceLedger;
    use crate::wire::{FrameKind, HeaderProfile};

    /// Services 1 and 2 use Go-Back-N and have ten packets each; of each, one frame is under way and others
    /// wait for the link.
    fn port(scheduler: SchedulerConfig) -> Port<To> {
        let service = |number: u8| {
            let text = format!(
                "number = {number}\nname = \"s{number}\"\nrate = 0.5\nscheme = {{ kind = \"gbn\", window = 4 }}"
            );
            toml::from_str(&text).unwrap()
        };
        let class = |number: u8| {
            let text = format!("match = {{ dst-port = {number} }}\nservice = \"s{number}\"");
            toml::from_str(&text).unwrap()
        };
        let (rate, delay) = (Rate::from_bps(1_000_000).unwrap(), Duration::from_millis(5));
        let config = PortConfig {
            scheduler,
            services: [1, 2].map(service).to_vec(),
            classes: [1, 2].map(class).to_vec(),
            ..PortConfig::new(HeaderProfile::Study, rate, delay, 1400)
        };
        let mut port = Port::new(config).unwrap();
        port.keep_events();
        for number in [1, 2].repeat(10) {
            port.handle_packet(Instant::ORIGIN, To(number));
        }
        port
    }

    fn demand(port: &mut Port<To>, number: usize) {
        let mut books = ServiceLedger::default();
        let mut cx = Context::new(Instant::ORIGIN, &mut port.out, &mut books);
        cx.tell("slow");
        cx.demand_reset("lost-step");
        assert!(port.process_events(Instant::ORIGIN, number));
        port.hand_over_ready(Instant::ORIGIN);
    }

    #[test]
    fn a_service_begins_anew_alone_when_its_scheme_demands_it() {
        for scheduler in [SchedulerConfig::Scfq, SchedulerConfig::Fifo] {
            let now = Instant::ORIGIN;
            let mut port = port(scheduler);
            let under_way = [(); 2].map(|()| port.poll_frame(now).unwrap());
            let numbers = under_way.each_ref().map(|(frame, _)| frame.header.service);
            assert_eq!(numbers, [1, 2]);
            let other = *port.ledger(2).unwrap();
            demand(&mut port, 1);

            let ledger = *port.ledger(1).unwrap();
            assert_eq!((ledger.resets, ledger.packets_dropped()), (1, 0));
            assert!(ledger.epoch_lost > 0);
            assert_eq!(port.ledger(2), Some(&other));
            let told: Vec<_> = port
                .take_events()
                .map(|e| (e.service, e.name, e.reset))
                .collect();
            assert_eq!(told, [(1, "slow", false), (1, "lost-step", true)]);

            // Frames of the previous epoch are ignored; those of the other service count.
            for (_, token) in under_way {
                port.frame_done(token, now, Outcome::Sent(now));
            }
            assert_eq!(port.ledger(1).unwrap().frames_sent, 0);
            assert_eq!(port.ledger(2).unwrap().frames_sent, 1);
            let mut next = [vec![], vec![]];
            while let Some((frame, token)) = port.poll_frame(now) {
                assert_eq!(frame.header.kind, FrameKind::Data);
                next[usize::from(frame.header.service) - 1].push(frame.header.seq);
                port.frame_done(token, now, Outcome::Sent(now));
            }
            assert_eq!(next, [vec![0, 1, 2, 3], vec![1, 2, 3]]);
            let ledger = port.ledger(1).unwrap();
            let status = port.services().find(|s| s.number == 1).unwrap();
            let waits = status.queue_packets as u64;
            assert_eq!(ledger.packets_offered, ledger.packets_sent + waits);
            assert_eq!(ledger.epoch_lost + 4, ledger.packets_sent);
            let counts: Vec<_> = status.events.iter().map(|e| (e.name, e.count)).collect();
            assert_eq!(counts, [("slow", 1), ("lost-step", 1)]);
        }
    }
}
