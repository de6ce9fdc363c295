//! Which service of the link carried each application of a test: the one whose counters show the
//! most delivered while the application ran alone. Classifying a flow beforehand would not do,
//! since some classes depend on a flow's behaviour.

use airlane_live::status::{PeerStatus, ServiceReport, Status};
use airlane_probe::App;
use serde::Serialize;

/// The service that neither repairs nor isolates its traffic.
const RAW: &str = "default";

/// The service of one application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Used {
    pub(super) app: App,
    number: u8,
    service: String,
    scheme: String,
    /// Packets that it delivered at this end meanwhile.
    packets_delivered: u64,
}

/// The link's status at the start of a phase: of one application alone through the link, or of
/// anything else.
pub(super) type Mark = (Option<App>, Status);

/// Finds the service of each application that ran alone, from the counters of this peer.
pub(super) fn used(marks: &[Mark], peer: &str) -> Vec<Used> {
    let of = |status: &Status| -> Vec<ServiceReport> {
        let found = status.peers.iter().find(|p| p.name == peer);
        found.map_or_else(Vec::new, |peer: &PeerStatus| peer.services.clone())
    };
    let runs = marks.windows(2).filter_map(|pair| match pair {
        [(Some(app), begun), (_, ended)] => Some((*app, of(begun), of(ended))),
        _ => None,
    });
    let carried = |(app, begun, ended): (App, Vec<ServiceReport>, Vec<ServiceReport>)| {
        let since = |now: &ServiceReport| {
            let then = begun.iter().find(|then| then.number == now.number);
            let [bytes, packets] = then.map_or([0; 2], |then| {
                [then.ledger.delivered_bytes, then.ledger.packets_delivered]
            });
            (
                now.ledger.delivered_bytes.saturating_sub(bytes),
                now.ledger.packets_delivered.saturating_sub(packets),
            )
        };
        let most = ended.iter().max_by_key(|service| since(service))?;
        let (_, packets_delivered) = since(most);
        (packets_delivered > 0).then(|| Used {
            app,
            number: most.number,
            service: most.name.clone(),
            scheme: most.scheme.clone(),
            packets_delivered,
        })
    };
    runs.filter_map(carried).collect()
}

/// The line below the table.
pub(super) fn line(all: &[Used]) -> String {
    let each: Vec<String> = all
        .iter()
        .map(|used| {
            let app = used.app.name();
            match used.is_raw() {
                true => format!("{app} by service {}, which repairs nothing", used.number),
                false => format!("{app} by \"{}\" ({})", used.service, used.scheme),
            }
        })
        .collect();
    match each.is_empty() {
        true => String::new(),
        false => format!("\nThe link carried {}.\n", each.join(", ")),
    }
}

/// Advice where no service fits an application.
pub(super) fn warnings(all: &[Used]) -> Vec<String> {
    let raw = all.iter().filter(|used| used.is_raw());
    raw.map(|used| {
        let (app, goal) = match used.app {
            App::File => ("the file (TCP)", "bulk"),
            App::Pages => ("pages (TCP)", "web"),
            App::Voice => ("voice (UDP, DSCP EF)", "voice"),
        };
        format!(
            "no service is made for {app}: it went unprotected; give the link one, such as goal = \"{goal}\", and \
             classes that lead to it, such as classes = \"heuristic\""
        )
    })
    .collect()
}

impl Used {
    fn is_raw(&self) -> bool {
        self.scheme == RAW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status of a link in which each service of its peer has delivered this many packets.
    fn status(delivered: &[(u8, &str, u64)]) -> Status {
        let services: Vec<_> = delivered
            .iter()
            .map(|(number, name, packets)| {
                let ledger = airlane_link::ServiceLedger {
                    packets_delivered: *packets,
                    delivered_bytes: packets * 100,
                    ..Default::default()
                };
                let scheme = if *number == 0 { RAW } else { "sr-m2" };
                serde_json::json!({
                    "number": number, "name": name, "scheme": scheme, "rate": 1.0, "draining": false,
                    "queue_packets": 0, "queue_bytes": 0, "srtt_ns": null, "ledger": ledger,
                    "metrics": airlane_link::ServiceMetrics::default(), "peer": null, "effective_goodput": null,
                })
            })
            .collect();
        serde_json::from_value(serde_json::json!({
            "schema": 2, "version": "1", "name": "left", "uptime_ns": 1,
            "tun": { "name": "air0", "mtu_bytes": 1400, "packets_read": 0, "read_bytes": 0, "packets_written": 0,
                     "written_bytes": 0, "mss_clamped": 0 },
            "underlay": { "listen": "0.0.0.0:7", "security": "none", "rate_bps": 1, "frame_overhead_bytes": 42,
                          "datagrams_sent": 0, "sent_bytes": 0, "datagrams_received": 0, "received_bytes": 0 },
            "peers": [{ "name": "farm", "address": null, "keys_age_ns": null, "prefixes": [], "weight": 1.0,
                        "rate_bps": 1, "sending_rate_bps": 1, "path_mtu_bytes": 1500, "path_narrowed": 0,
                        "datagrams_sent": 0, "sent_bytes": 0, "datagrams_received": 0, "received_bytes": 0,
                        "session": { "state": "confirmed", "id": 1, "epoch": "1", "peer_epoch": null, "age_ns": 1,
                                     "sessions": 1, "disconnections": 0, "disconnected_ns": null, "rtt_ns": null,
                                     "refused": null },
                        "services": services, "drops": {} }],
            "drops": {}
        }))
        .unwrap()
    }

    #[test]
    fn an_application_used_the_service_that_delivered_most() {
        let marks = [
            (None, status(&[(0, "default", 0), (1, "files", 0)])),
            (
                Some(App::File),
                status(&[(0, "default", 900), (1, "files", 0)]),
            ),
            (None, status(&[(0, "default", 903), (1, "files", 70)])),
            (
                Some(App::Voice),
                status(&[(0, "default", 903), (1, "files", 90)]),
            ),
            (
                Some(App::Pages),
                status(&[(0, "default", 953), (1, "files", 95)]),
            ),
            (None, status(&[(0, "default", 953), (1, "files", 95)])),
        ];
        let used = used(&marks, "farm");
        let names: Vec<_> = used
            .iter()
            .map(|u| (u.app, u.number, u.packets_delivered))
            .collect();
        // No page was delivered, so no service carried pages.
        assert_eq!(names, [(App::File, 1, 70), (App::Voice, 0, 50)]);
        assert!(super::used(&marks, "mill").is_empty());
    }

    #[test]
    fn unprotected_applications_are_named() {
        let used = |app, number, service: &str, scheme: &str| Used {
            app,
            number,
            service: service.to_owned(),
            scheme: scheme.to_owned(),
            packets_delivered: 1,
        };
        let all = [
            used(App::File, 1, "files", "sr-m2"),
            used(App::Voice, 0, "default", RAW),
        ];
        assert_eq!(
            line(&all),
            "\nThe link carried file by \"files\" (sr-m2), voice by service 0, which repairs nothing.\n"
        );
        let [warning] = &warnings(&all)[..] else {
            panic!("one of them");
        };
        assert!(warning.contains("voice (UDP, DSCP EF)") && warning.contains("goal = \"voice\""));
        assert_eq!(line(&[]), "");
    }
}
