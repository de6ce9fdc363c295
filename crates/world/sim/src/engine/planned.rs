//! Carries out planned changes: hints, moves, weight policies.

use super::Engine;
use super::agenda::{Planned, Policy};
use super::observe::Observer;
use crate::error::ScenarioError;

impl Engine {
    pub(super) fn on_agenda<O: Observer>(&mut self, observer: &mut O) {
        match self.agenda.next(self.now) {
            Some(Planned::Hint(hint)) => {
                self.flows[hint.flow].handle_hint(self.now, hint.end, hint.hint);
                observer.on_flow(self.now, hint.flow, &self.flows[hint.flow]);
                self.drain_flow(hint.flow, observer);
            }
            Some(Planned::Move(moved)) => {
                self.next_hops = moved.next_hops;
                self.move_circuits(&moved.left, &moved.carried);
                for port in moved.disconnected {
                    self.ports[port].port.disconnect(self.now);
                    self.drain_port(port, observer);
                }
            }
            Some(Planned::Policies) => self.on_policies(observer),
            None => {}
        }
        self.schedule_agenda();
    }

    fn on_policies<O: Observer>(&mut self, observer: &mut O) {
        for index in 0..self.agenda.policies.len() {
            let Policy {
                next,
                interval,
                ports,
                link,
                policy,
            } = &mut self.agenda.policies[index];
            if *next > self.now {
                continue;
            }
            *next = self.now + *interval;
            let ports = *ports;
            for (port, down) in ports.into_iter().zip([true, false]) {
                let port = &mut self.ports[port].port;
                let services: Vec<_> = port.services().collect();
                for (number, weight) in policy.weights(self.now, down, &services) {
                    if let Err(error) = port.set_rate(number, weight) {
                        self.refused = Some(ScenarioError::Weights {
                            link: link.clone(),
                            reason: error.to_string(),
                        });
                        return;
                    }
                }
            }
            for port in ports {
                self.drain_port(port, observer);
            }
        }
    }

    pub(super) fn schedule_agenda(&mut self) {
        self.deadlines
            .set(self.slots.agenda, self.agenda.poll_timeout());
    }

    /// Weights from a policy that no port can apply; the run ended there.
    pub(crate) fn refused(&mut self) -> Option<ScenarioError> {
        self.refused.take()
    }
}
