//! The link of this machine that leads to the other end, where there is one: it tells what the interfaces on the way
//! offer (Gopal 2007, section 3.3). That counts for as long as probes come back from the node that has the other end's
//! address: of a way that goes on behind the last node, interfaces say nothing.

use std::net::SocketAddr;
use std::path::Path;

use airlane_base::{Duration, Instant};
use airlane_session::Offer;
use airlane_ship::Offered;

use crate::clock;
use crate::control::registration::{Registration, register};
use crate::control::{self, ControlError};
use crate::netlink::leads_to;
use crate::status::FlowOffer;

/// So old a probe may be that has come back, to tell what the path offers (CLAP-P3).
const FRESH: Duration = Duration::from_millis(200);
/// So old, for the way to be known at all.
const KNOWN: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_nanos(Offer::INTERVAL_NS);

/// A link that is asked.
pub(super) struct Interface {
    registration: Registration,
    next: Instant,
    name: String,
    used: bool,
}

impl Interface {
    /// The link with this control socket, or the running one that leads to `to`; none if there is none, or it does not
    /// answer those who ask.
    ///
    /// # Errors
    /// If the link that is named does not lead there.
    pub(super) fn find(
        link: Option<&Path>,
        port: u16,
        to: SocketAddr,
    ) -> Result<Option<Self>, ControlError> {
        if let Some(link) = link {
            return Self::register(link, port, to).map(Some);
        }
        let address = to.ip().to_canonical();
        let running = control::sockets().unwrap_or_default();
        let found = running.iter().find_map(|socket| {
            let status = control::status(socket).ok()?;
            let leads = leads_to(&status.tun.name, address).unwrap_or(false);
            leads.then(|| Self::register(socket, port, to).ok())?
        });
        Ok(found)
    }

    fn register(socket: &Path, port: u16, to: SocketAddr) -> Result<Self, ControlError> {
        let name = control::status(socket)?.name;
        let registration = register(socket, port, to)?;
        registration.set_nonblocking()?;
        Ok(Self {
            registration,
            next: clock::now(),
            name,
            used: false,
        })
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has told something that counted.
    pub(super) const fn has_counted(&self) -> bool {
        self.used
    }

    /// Asks each interval, and gives what the answer says.
    ///
    /// # Errors
    /// If it is gone.
    pub(super) fn poll(&mut self, now: Instant) -> Result<Option<Offered>, ControlError> {
        if now >= self.next {
            self.next = now + INTERVAL;
            self.registration.ask()?;
        }
        let offered = self
            .registration
            .answer()?
            .and_then(|offer| offered(&offer));
        self.used |= offered.is_some();
        Ok(offered)
    }
}

/// What counts of it.
fn offered(offer: &FlowOffer) -> Option<Offered> {
    let route = offer.route.as_ref().filter(|route| route.complete)?;
    let age = Duration::from_nanos(route.age_ns);
    let counts = match age {
        fresh if fresh <= FRESH => route.least,
        known if known <= KNOWN => offer.local?,
        _ => return None,
    };
    Some(Offered {
        interval: Duration::from_nanos(offer.interval_ns),
        out_bytes: counts.out_bytes,
        underflows: counts.underflows,
        room_bytes: counts.room_bytes,
        flows: offer.flows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::RouteOffer;

    fn offer(out_bytes: u32) -> Offer {
        Offer {
            out_packets: 1,
            out_bytes,
            underflows: 0,
            room_bytes: 9,
        }
    }

    #[test]
    fn a_path_counts_before_its_first_node_while_it_is_fresh_and_only_to_its_end() {
        let told = |age_ms: u64, complete: bool| {
            let offer = FlowOffer {
                peer: "farm".to_owned(),
                service: "files".to_owned(),
                flows: 2,
                interval_ns: 100_000_000,
                local: Some(offer(70)),
                route: Some(RouteOffer {
                    least: offer(50),
                    least_out_node: 1,
                    least_room_node: 0,
                    complete,
                    age_ns: age_ms * 1_000_000,
                }),
            };
            offered(&offer).map(|offered| (offered.out_bytes, offered.flows))
        };
        assert_eq!(told(10, true), Some((50, 2)));
        assert_eq!(told(300, true), Some((70, 2)));
        assert_eq!(told(3_000, true), None);
        assert_eq!(told(10, false), None);
    }
}
