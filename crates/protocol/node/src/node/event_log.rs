//! Log entries about the events of a link's services.

use airlane_base::Instant;
use airlane_link::ServiceEvent;

use super::quiet::Quiet;
use crate::journal::JournaledPort;

/// The last log entry for each kind of event.
#[derive(Debug, Default)]
pub(crate) struct EventLog(Vec<(u8, &'static str, Quiet)>);

impl EventLog {
    /// Logs an event of this peer's port, at most once a minute for each kind.
    pub(crate) fn mention(
        &mut self,
        now: Instant,
        peer: &str,
        port: &JournaledPort,
        event: ServiceEvent,
    ) {
        let ServiceEvent {
            service: number,
            name,
            reset,
        } = event;
        let known = self
            .0
            .iter()
            .position(|(n, e, _)| (*n, *e) == (number, name));
        let at = known.unwrap_or_else(|| {
            self.0.push((number, name, Quiet::NEW));
            self.0.len() - 1
        });
        let mut service = None;
        let count = || {
            service = port.services().find(|service| service.number == number);
            let mut own = service.iter().flat_map(|service| &service.events);
            own.find(|event| event.name == name)
                .map_or(0, |event| event.count)
        };
        if let Some([total, new]) = self.0[at].2.speak(now, count) {
            let service = service.map(|service| service.name);
            tracing::info!(
                peer,
                service,
                event = name,
                reset,
                new,
                total,
                "service event"
            );
        }
    }
}
