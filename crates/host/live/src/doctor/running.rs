//! Checks the peers of a running link by its status: their sessions, ports, packets and ways.

use std::net::IpAddr;
use std::path::Path;

use airlane_base::Duration;
use airlane_node::{Reason, rounded};
use airlane_secure::PeerAddress;
use airlane_session::LEAST;

use super::arrivals::{Arrivals, CALLS};
use super::causes::{Look, called, cause, is_kept_in, kept_in, look, who};
use super::ends;
use super::findings::{Findings, Grade, NO_WAY_HELP};
use super::peers::PATIENCE;
use crate::clock;
use crate::config::{LiveConfig, PeerConfig};
use crate::control::{self, ControlError};
use crate::netlink::{Netlink, way_out};
use crate::reverse_path;
use crate::status::{CallerReport, PROTOCOL, PeerStatus, SharedKey, Status};

/// Interval of looking while a link that has just started may still reach its peers.
const AGAIN: std::time::Duration = std::time::Duration::from_millis(500);
/// Time for the answers of a running link's peers, and the polling interval.
const ANSWER: Duration = Duration::from_secs(3);
const LOOK: std::time::Duration = std::time::Duration::from_millis(50);

/// Checks the sessions of a running link, which may have started a moment ago.
pub(super) fn check_running(file: &LiveConfig, first: Status, findings: &mut Findings<'_>) {
    let found = "the link is up already: stop it to check what a start needs";
    findings.good("running", found);
    compare_file(file, findings);
    let mut status = first;
    let pending = |peer: &PeerStatus| matches!(&*peer.session.state, "waiting" | "accepted");
    while status.uptime_ns < PATIENCE.as_nanos() && status.peers.iter().any(pending) {
        std::thread::sleep(AGAIN);
        match control::status(&file.socket()) {
            Ok(newer) => status = newer,
            Err(error) => return findings.bad("running", error),
        }
    }
    let asked = match ask(file, &mut status) {
        Ok(asked) => Some(asked),
        // The node is older than this program, or accepts the command only from its own user.
        Err(error @ ControlError::Refused { .. }) => {
            let found = format!("whether peers answer cannot be asked: {error}");
            let help = "restart it, if it is older than this program, or ask as root";
            findings.add("running", Grade::Warning, found, help);
            None
        }
        Err(error) => return findings.bad("running", error),
    };
    let is_deaf = |peer: &PeerStatus| {
        let is_silent = !matches!(&*peer.session.state, "confirmed" | "unheard" | "accepted");
        is_silent || asked.is_some_and(|asked| !was_reached(peer, asked))
    };
    let deaf = status.peers.iter().any(is_deaf);
    let mut arrivals = deaf
        .then(|| arrivals_in_vain(&file.socket(), &status))
        .flatten();
    let ours = status.underlay.secure.as_ref().map(|secure| &*secure.key);
    check_interface(&file.tun.name, findings);
    check_port(&status, findings);
    let listed = file.peers();
    for peer in &status.peers {
        let who = who(&peer.name, peer.address);
        let kept = match (is_deaf(peer), peer.address) {
            (true, Some(address)) if is_kept_in(address) => Some(kept_in(&who)),
            (true, address) => {
                let arrivals = arrivals.as_mut();
                arrivals.and_then(|arrivals| arrivals.kept_out(&who, address))
            }
            (false, _) => None,
        };
        match kept {
            Some((found, help)) => findings.add("peer", Grade::Bad, found, &help),
            None => check_session(peer, asked, (&status.callers, ours), &look, findings),
        }
        let file_says = listed.iter().find(|listed| listed.name == peer.name);
        check_place(peer, file_says, findings);
        check_sources(peer, findings);
        if peer.session.state == "confirmed" {
            ends::compare(file, &status, peer, findings);
        }
        if let Some(ip) = peer.address.and_then(|address| address.ip()) {
            check_running_way(file, (&peer.name, ip), findings);
        }
    }
}

/// Waits for datagrams of peers from which the node hears nothing, and returns those that arrive at this machine, if
/// none is delivered to the node.
fn arrivals_in_vain(socket: &Path, status: &Status) -> Option<Arrivals> {
    let mut arrivals = Arrivals::at(status.underlay.listen)?;
    let before = control::status(socket).ok()?.underlay.datagrams_received;
    let end = clock::now() + CALLS;
    loop {
        let arrived = arrivals.from(None);
        // What has just arrived gets the time to be delivered.
        std::thread::sleep(AGAIN);
        if control::status(socket).ok()?.underlay.datagrams_received > before {
            return None;
        }
        if arrived > 0 || clock::now() >= end {
            return Some(arrivals);
        }
    }
}

/// Examines the status of a running link, and sends nothing.
pub(super) fn check_status(status: &Status, findings: &mut Findings<'_>) {
    let ours = status.underlay.secure.as_ref().map(|secure| &*secure.key);
    check_port(status, findings);
    for peer in &status.peers {
        let callers = (&*status.callers, ours);
        check_session(peer, None, callers, &|_, _| None, findings);
        check_sources(peer, findings);
    }
}

/// Makes the running node test its peers, and waits until all peers in a session have answered. Returns the
/// time since the request.
fn ask(file: &LiveConfig, status: &mut Status) -> Result<Duration, ControlError> {
    let socket = file.socket();
    control::ask_peers(&socket)?;
    let begun = clock::now();
    loop {
        *status = control::status(&socket)?;
        let since = clock::now().saturating_since(begun);
        let waits = |peer: &PeerStatus| {
            let is_in_session = matches!(&*peer.session.state, "confirmed" | "unheard");
            is_in_session && !was_reached(peer, since)
        };
        let round_trips = status.peers.iter().filter_map(|peer| peer.session.rtt_ns);
        let longest = Duration::from_nanos(round_trips.max().unwrap_or(0));
        if since >= ANSWER.max(longest * 3) || !status.peers.iter().any(waits) {
            return Ok(since);
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether the peer has received something that was sent within this time.
fn was_reached(peer: &PeerStatus, within: Duration) -> bool {
    let ago = peer.session.reached_ns;
    ago.is_some_and(|ago| ago <= within.as_nanos())
}

/// Reports that this end has left its port.
fn check_port(status: &Status, findings: &mut Findings<'_>) {
    if let Some(port) = status.underlay.left_port {
        findings.add(
            "port",
            Grade::Warning,
            format!(
                "nothing sent from port {port}, which the file names, was answered: this end now uses {}",
                status.underlay.listen
            ),
            "if peers answer there, the path drops the port's datagrams, or they were away: a restart takes it again; \
             port 0 takes a free one at every start",
        );
    }
}

/// Checks that a peer's address is the one in the file.
fn check_place(peer: &PeerStatus, file: Option<&PeerConfig>, findings: &mut Findings<'_>) {
    let is_heard = matches!(&*peer.session.state, "confirmed" | "unheard");
    let fixed = file.and_then(PeerConfig::fixed_address);
    if let (true, Some(PeerAddress::Udp(fixed)), Some(PeerAddress::Udp(is))) =
        (is_heard, fixed, peer.address)
        && fixed.ip() == is.ip()
        && fixed.port() != is.port()
    {
        findings.add(
            "port",
            Grade::Warning,
            format!(
                "{} calls from port {}, and not from {} as the file says",
                peer.name,
                is.port(),
                fixed.port()
            ),
            "a NAT is in front of it, or it changed its port because the path drops datagrams to that: `airlane doctor` \
             at that end tells",
        );
    }
}

/// Reports packets that were dropped because their source addresses are outside of the peer's prefixes.
fn check_sources(peer: &PeerStatus, findings: &mut Findings<'_>) {
    let Some(count) = peer.drops.get(Reason::WrongSource.name()) else {
        return;
    };
    let delivers = peer.services.iter().any(|s| s.ledger.packets_delivered > 0);
    findings.add(
        "peer",
        match delivers {
            true => Grade::Warning,
            false => Grade::Bad,
        },
        format!(
            "{count} packets of {} were dropped: they came from addresses outside of its prefixes, {}",
            peer.name,
            peer.prefixes.join(", ")
        ),
        "which addresses does it have in the tunnel, and which networks? They belong into its `prefixes` here",
    );
}

/// Checks that the interface is up.
fn check_interface(tun: &str, findings: &mut Findings<'_>) {
    let is_up = Netlink::open().and_then(|mut netlink| {
        let index = netlink.link_index(tun)?;
        netlink.is_up(index)
    });
    let (grade, found, help) = match is_up {
        Ok(true) => return,
        Ok(false) => (
            Grade::Bad,
            format!("{tun} is down: nothing gets into the tunnel or out of it"),
            format!("`ip link set {tun} up`; addresses and routes come back by themselves"),
        ),
        Err(error) => (
            Grade::Warning,
            format!("{tun} is not visible from here: {error}"),
            "does the node run in another network namespace? Then run doctor there, too".to_owned(),
        ),
    };
    findings.add("interface", grade, found, &help);
}

/// Compares the file with the running node, as `airlane reload --dry-run` does.
fn compare_file(file: &LiveConfig, findings: &mut Findings<'_>) {
    let (found, help) = match control::reload(&file.socket(), file, true) {
        Ok(changes) if changes.is_empty() => return,
        Ok(changes) => (
            format!(
                "the file differs from the running node: {}",
                changes.join("; ")
            ),
            "`airlane reload` applies the file; what follows concerns the running node",
        ),
        Err(error) => (
            format!("the file cannot be compared with the running node: {error}"),
            "what follows concerns the running node",
        ),
    };
    findings.add("file", Grade::Warning, found, help);
}

/// Checks that datagrams to a peer are not routed into the tunnel that they carry.
fn check_running_way(file: &LiveConfig, (peer, ip): (&str, IpAddr), findings: &mut Findings<'_>) {
    let (tun, mark) = (&file.tun.name, crate::daemon::ways::mark(file));
    match way_out(ip, mark) {
        Ok(by) if by != *tun => match reverse_path::blocks(ip, tun, mark) {
            None => findings.good("route", format!("there is a way to {peer} at {ip}")),
            Some(interface) => {
                let found = reverse_path::says(&interface, ip);
                findings.add("route", Grade::Bad, found, reverse_path::HELP);
            }
        },
        Ok(_) => findings.add(
            "route",
            Grade::Bad,
            format!("the way to {peer} at {ip} leads into {tun} itself: what is sent there comes back (own-datagram)"),
            "make a route to it outside; \"0.0.0.0/0\" under tun.routes goes past the peers by itself",
        ),
        Err(why) => {
            let found = format!("there is no way to {peer} at {ip}: {why}");
            findings.add("route", Grade::Bad, found, NO_WAY_HELP);
        }
    }
}

fn check_session(
    peer: &PeerStatus,
    asked: Option<Duration>,
    (callers, ours): (&[CallerReport], Option<&str>),
    look: Look<'_>,
    findings: &mut Findings<'_>,
) {
    let (session, who) = (&peer.session, who(&peer.name, peer.address));
    if let Some(shared) = &session.shared_key {
        return findings.add("peer", Grade::Bad, shared.says(&peer.name), SharedKey::HELP);
    }
    let mut bad = |found: String, help: &str| findings.add("peer", Grade::Bad, found, help);
    match (&*session.state, &session.refused) {
        ("confirmed" | "unheard", _) if peer.path_too_narrow => bad(
            format!("the path to {who} takes datagrams of less than {LEAST} B: nothing is sent"),
            "what stands between both ends, and which MTU does it have?",
        ),
        ("unheard", _) => bad(
            format!(
                "the peer does not hear us: {who} is heard, and has missed all that was sent for {}",
                rounded(Duration::from_nanos(session.unheard_ns.unwrap_or_default()))
            ),
            "the path works in one direction: what drops datagrams on the way there, a firewall or a route?",
        ),
        ("confirmed", _) if let Some(asked) = asked.filter(|asked| !was_reached(peer, *asked)) => {
            // What called before the peer was last reached has been mended.
            let reached = session.reached_ns.unwrap_or(u64::MAX);
            let since = callers.iter().filter(|caller| caller.ago_ns < reached);
            let since: Vec<_> = since.cloned().collect();
            match called(peer.address, &since, ours) {
                Some((why, help)) => bad(format!("{who} does not answer: {why}"), &help),
                None => bad(
                    format!(
                        "{who} does not answer: it was asked for {}, and heard last what left {} ago; its session counts \
                         as confirmed until it is silent for long",
                        rounded(asked),
                        rounded(Duration::from_nanos(session.reached_ns.unwrap_or_default()))
                    ),
                    "does the other end still run, and is there still a way in both directions?",
                ),
            }
        }
        ("confirmed", _) => findings.good(
            "peer",
            match asked {
                Some(_) => format!("the session with {who} is confirmed: it answers"),
                None => format!("the session with {who} is confirmed"),
            },
        ),
        ("accepted", _) => {
            let found = format!("the session with {who} has begun, and is not confirmed yet");
            findings.add("peer", Grade::Warning, found, "");
        }
        (_, Some(tables)) => {
            let [here, there] = tables.unlike();
            let found = format!(
                "{who} refuses the session, as services of one number differ; here: {here}; there: {there}"
            );
            bad(found, tables.remedy());
        }
        _ if session.other_protocol.is_some() => bad(
            format!(
                "{who} speaks protocol {}, this end {PROTOCOL}",
                session.other_protocol.unwrap_or_default()
            ),
            "install one version of airlane at both ends; `airlane version` prints its protocol",
        ),
        ("disconnected", _) => {
            let silent = rounded(Duration::from_nanos(
                session.disconnected_ns.unwrap_or_default(),
            ));
            let found = format!("nothing was heard from {who} for {silent}");
            match called(peer.address, callers, ours) {
                Some((why, help)) => bad(format!("{found}: {why}"), &help),
                None => bad(
                    found,
                    "does the other end run, and is there a way in both directions?",
                ),
            }
        }
        _ if peer.unresolved.is_some() => bad(
            format!(
                "the host of {} cannot be looked up: {}",
                peer.name,
                peer.unresolved.as_deref().unwrap_or_default()
            ),
            "is the name right, and does this machine have DNS?",
        ),
        _ if peer.keys_age_ns.is_some() => bad(
            format!("{who} has the right key, and no session has begun"),
            "do both ends run the same version? The log has what is dropped",
        ),
        _ => {
            let (found, help) = cause(&who, peer.address, callers, ours, look);
            bad(found, &help);
        }
    }
}
