//! Compares the two ends of an established session: addresses, services and versions.

use super::findings::{Findings, Grade};
use crate::config::LiveConfig;
use crate::config::peers::NoWay;
use crate::netlink::Cidr;
use crate::status::{PeerStatus, Status, build};

pub(super) fn compare(
    file: &LiveConfig,
    status: &Status,
    peer: &PeerStatus,
    findings: &mut Findings<'_>,
) {
    check_services(peer, findings);
    let Some(theirs) = &peer.version else {
        return;
    };
    let ours = build(&status.version, status.commit.as_deref());
    if *theirs != ours {
        findings.add(
            "versions",
            Grade::Warning,
            format!("this end runs {ours}; {} runs {theirs}", peer.name),
            "the protocol is the same; what else differs, the changelog says",
        );
    }
    check_addresses(file, status, peer, findings);
}

/// Warns about services that the other end lacks, which are therefore unused.
fn check_services(peer: &PeerStatus, findings: &mut Findings<'_>) {
    let waiting = peer.services.iter().filter(|service| service.waiting);
    let names: Vec<_> = waiting.map(|service| &*service.name).collect();
    if !names.is_empty() {
        findings.add(
            "services",
            Grade::Warning,
            format!(
                "{} has no {}: their packets travel as those without a class",
                peer.name,
                names.join(", ")
            ),
            "write the same link.services in both files, then `airlane reload`",
        );
    }
}

/// Checks that the ends' addresses differ, and that this end has a route to the peer's.
fn check_addresses(
    file: &LiveConfig,
    status: &Status,
    peer: &PeerStatus,
    findings: &mut Findings<'_>,
) {
    let addresses = |peer: &PeerStatus| -> Vec<Cidr> {
        let all = peer.tunnel_addresses.iter();
        all.filter_map(|address| address.parse().ok()).collect()
    };
    let theirs = addresses(peer);
    let no_way = file.no_way(&theirs);
    let others = status.peers.iter().filter(|other| other.name != peer.name);
    let mut others = others.flat_map(|other| {
        addresses(other)
            .into_iter()
            .map(|at| (&*other.name, at.address))
    });
    let taken = match no_way {
        Some(NoWay::SameAddress(address)) => Some(("this end", address)),
        _ => others.find(|(_, taken)| theirs.iter().any(|at| at.address == *taken)),
    };
    if let Some((who, address)) = taken {
        return findings.add(
            "addresses",
            Grade::Bad,
            format!("{} and {who} both have {address} under [tun]", peer.name),
            "give each end an address of its own in tun.addresses",
        );
    }
    if no_way.is_none() {
        return;
    }
    let routes = file.routes();
    let mut inside = file.tun.addresses.iter().chain(&routes);
    let list = |all: &mut dyn Iterator<Item = &Cidr>| {
        let all: Vec<_> = all.map(ToString::to_string).collect();
        all.join(", ")
    };
    // An end with routes may not need to reach the peer itself.
    let grade = if routes.is_empty() {
        Grade::Bad
    } else {
        Grade::Warning
    };
    findings.add(
        "addresses",
        grade,
        format!(
            "{} has {}, to which nothing here leads: this end has {}",
            peer.name,
            list(&mut theirs.iter()),
            list(&mut inside)
        ),
        "give both ends addresses of one network in tun.addresses, or write a route to the other's under tun.routes",
    );
}
