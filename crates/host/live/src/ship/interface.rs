//! The link of this machine that leads to the other end, if there is one: it reports what the interfaces on
//! the path offer (Gopal 2007, section 3.3). A report counts while probes come back from the node that has
//! the other end's address: the interfaces know nothing about a path that continues after the last node.

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

/// Age up to which a probe describes the offer of the whole path (CLAP-P3).
const FRESH: Duration = Duration::from_millis(200);
/// Age up to which a probe proves that the path exists.
const KNOWN: Duration = Duration::from_secs(2);
const INTERVAL: Duration = Duration::from_nanos(Offer::INTERVAL_NS);

/// A link that is polled.
pub(super) struct Interface {
    registration: Registration,
    next: Instant,
    name: String,
    used: bool,
}

impl Interface {
    /// Registers with the link of this control socket, or with the running link that leads to `to`; `None` if
    /// there is none, or it refuses this user.
    ///
    /// # Errors
    /// If the named link does not lead there.
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

    /// Whether a report was used.
    pub(super) const fn has_counted(&self) -> bool {
        self.used
    }

    /// Asks once in each interval, and returns the reports that count.
    ///
    /// # Errors
    /// If the connection to the node is lost.
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

/// The part of a report that counts.
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
    fn a_path_offer_counts_only_while_fresh_and_complete() {
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
