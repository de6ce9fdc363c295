//! Which service of the link each application of a test used: what this end's classes say of its packets.

use std::net::IpAddr;

use airlane_link::flow::{TCP, UDP};
use airlane_link::{Classifier, FlowKey};
use airlane_live::status::{PeerStatus, ServiceReport, Status};
use airlane_probe::{App, PathReport, ServerPorts, VOICE_DSCP};
use serde::Serialize;

/// What is neither repaired nor kept from the others.
const RAW: &str = "default";
/// A port that the kernel may choose for a client.
const CLIENT: u16 = 49_152;

/// The service of one application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Used {
    pub(super) app: App,
    number: u8,
    service: String,
    scheme: String,
}

/// Finds the services of everything that ran through the link, between these addresses in it.
pub(super) fn used(link: &Status, peer: &PeerStatus, path: &PathReport, here: IpAddr) -> Vec<Used> {
    // What waits for the peer carries nothing.
    let open = || peer.services.iter().filter(|s| !s.waiting && !s.draining);
    let number = |name: &str| open().find(|s| s.name == name).map(|s| s.number);
    let classifier = Classifier::new(&link.classes, number, 0);
    let of = |(app, run): (&App, &airlane_probe::TrafficReport)| {
        let flow = flow(*app, run.ports, path.address, here);
        let number = classifier.classify(&flow);
        let service = open().find(|service| service.number == number);
        let text = |of: fn(&ServiceReport) -> &String, raw: &str| {
            service.map_or_else(|| raw.to_owned(), |service| of(service).clone())
        };
        Used {
            app: *app,
            number,
            service: text(|service| &service.name, RAW),
            scheme: text(|service| &service.scheme, RAW),
        }
    };
    path.alone.iter().map(of).collect()
}

/// What the server sends.
fn flow(app: App, ports: ServerPorts, server: IpAddr, here: IpAddr) -> FlowKey {
    let (protocol, src_port, dst_port, dscp) = match app {
        App::File => (TCP, ports.file, CLIENT, 0),
        App::Pages => (TCP, ports.pages, CLIENT, 0),
        App::Voice => (UDP, ports.voice, ports.voice, VOICE_DSCP),
    };
    FlowKey {
        dscp,
        protocol,
        src: server,
        dst: here,
        src_port,
        dst_port,
    }
}

/// A line below the table.
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
        false => format!("\nThrough the link went {}.\n", each.join(", ")),
    }
}

/// What to do where no service is made for an application.
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
    use airlane_live::config::LiveConfig;

    use super::*;

    /// As the daemon would classify the applications with these services, by the README's classes.
    fn classified(services: &str) -> Vec<(u8, App)> {
        let text = format!(
            "schema = 1\nname = \"left\"\ntun = {{ addresses = [\"10.7.0.1/24\"] }}\n[link]\nrate = \"20 Mbit/s\"\n\
             underlay = {{ kind = \"udp\", listen = \"0.0.0.0:7\", peer = \"192.0.2.7:7\" }}\n\
             security = \"none\"\nclasses = \"heuristic\"\n{services}"
        );
        let file: LiveConfig = airlane_base::config::load(&text, "up.toml").unwrap();
        let services = file.link.services.clone();
        let number = |name: &str| services.iter().find(|s| s.name == name).map(|s| s.number);
        let rules = file.link.classes.rules(&services);
        let classifier = Classifier::new(&rules, number, 0);
        let (server, here) = ([10, 7, 0, 2].into(), [10, 7, 0, 1].into());
        let of = |app| {
            let flow = flow(app, ServerPorts::default(), server, here);
            (classifier.classify(&flow), app)
        };
        App::ALL.map(of).to_vec()
    }

    const FILES: &str = "[[link.services]]\nnumber = 1\nname = \"files\"\ngoal = \"bulk\"\n";
    const CALLS: &str = "[[link.services]]\nnumber = 2\nname = \"calls\"\ngoal = \"voice\"\n";

    #[test]
    fn the_tests_voice_gets_the_service_for_voice_where_there_is_one() {
        let both = classified(&format!("{FILES}{CALLS}"));
        assert_eq!(both, [(1, App::File), (1, App::Pages), (2, App::Voice)]);
        assert_eq!(classified(FILES)[2], (0, App::Voice));
    }

    #[test]
    fn what_goes_unprotected_is_said() {
        let used = |app, number, service: &str, scheme: &str| Used {
            app,
            number,
            service: service.to_owned(),
            scheme: scheme.to_owned(),
        };
        let all = [
            used(App::File, 1, "files", "sr-m2"),
            used(App::Voice, 0, "default", RAW),
        ];
        assert_eq!(
            line(&all),
            "\nThrough the link went file by \"files\" (sr-m2), voice by service 0, which repairs nothing.\n"
        );
        let [warning] = &warnings(&all)[..] else {
            panic!("one of them");
        };
        assert!(warning.contains("voice (UDP, DSCP EF)") && warning.contains("goal = \"voice\""));
        assert_eq!(line(&[]), "");
    }
}
