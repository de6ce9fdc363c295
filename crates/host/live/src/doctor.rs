//! `airlane doctor`: checks whether a link can come up, and suggests a fix if not. It tries everything as
//! `airlane up` does, and undoes it. For a link that already runs it checks only the sessions.

mod arrivals;
mod causes;
mod ends;
mod findings;
mod peers;
mod running;

use std::net::{IpAddr, SocketAddr, TcpListener};

use airlane_link::Codec;
use airlane_link::pack::contents::FRAGMENT_HEAD;

use crate::clock;
use crate::config::underlay::reaches;
use crate::config::{
    IPV4_MIN_MTU, IPV6_MIN_MTU, LiveConfig, Mtu, PeerConfig, PeerEndpoint, UnderlayConfig,
};
use crate::control::{self, Server};
use crate::daemon::PeersError;
use crate::daemon::ways::mark;
use crate::device::{DeviceError, LISTEN};
use crate::netlink::{Cidr, Interface, Netlink, way_out};
use crate::resolver::{Resolve as _, SystemResolver};
use crate::reverse_path;
use crate::security::{Keys, Security};
use crate::status::Status;
use crate::tun::Tun;
use crate::underlay::Underlay;
use airlane_node::Guard;
use airlane_session::LEAST;
pub use findings::{Check, Grade};
use findings::{Findings, NO_WAY_HELP};

/// The remedy where a peer has the key of this end.
pub const OWN_KEY_HELP: &str = "write the one that `airlane keygen` printed at the other end";

/// Checks everything that `airlane up` needs, and reports each finding at once, because a peer may take long
/// to answer.
pub fn examine(file: &LiveConfig, tell: &mut dyn FnMut(Check)) {
    let mut findings = Findings(tell);
    check_services(file, &mut findings);
    if let Ok(status) = control::status(&file.socket()) {
        return running::check_running(file, status, &mut findings);
    }
    let Some((underlay, keys, peers)) = check_start(file, &mut findings) else {
        return;
    };
    match keys {
        Some(keys) => peers::check_peers(&keys, &underlay, &peers, &mut findings),
        None if matches!(file.link.security, Some(Security::Keys(_))) => {}
        None => findings.add(
            "peer",
            Grade::Warning,
            "not asked: only a peer with keys can prove its identity",
            "",
        ),
    }
}

/// The state of each peer, as the status of a running link shows it.
pub fn standing(status: &Status) -> Vec<Check> {
    let mut all = Vec::new();
    running::check_status(status, &mut Findings(&mut |check| all.push(check)));
    all
}

/// All findings that prevent a start.
pub fn obstacles(file: &LiveConfig) -> Vec<Check> {
    let mut bad = Vec::new();
    let mut tell = |check: Check| {
        if check.verdict == Grade::Bad {
            bad.push(check);
        }
    };
    check_start(file, &mut Findings(&mut tell));
    bad
}

/// Checks this machine. Returns the underlay, keys and peers for the handshakes with peers.
fn check_start(
    file: &LiveConfig,
    findings: &mut Findings<'_>,
) -> Option<(Underlay, Option<Keys>, Vec<PeerConfig>)> {
    let config = &file.link.underlay;
    let mut peers = file.peers();
    for peer in &mut peers {
        check_host(config, peer, findings);
    }
    let secured = matches!(file.link.security, Some(Security::Keys(_)));
    let keys = check_security(file, &peers, findings);
    match Tun::create(&file.tun.name) {
        Ok(_removed_again) => {
            findings.good("interface", format!("{} can be made", file.tun.name));
        }
        Err(error) => findings.bad("interface", error),
    }
    check_control(file, findings);
    check_routes(file, findings);
    if let Some(address) = file.metrics {
        match TcpListener::bind(address) {
            Ok(_closed_again) => {
                findings.good("metrics", format!("TCP port {} is free", address.port()))
            }
            Err(error) => {
                let error = DeviceError::new(&format!("metrics {address}"), LISTEN, error);
                findings.bad("metrics", error);
            }
        }
    }
    for peer in &peers {
        if let Some(ip) = peer.fixed_address().and_then(|address| address.ip()) {
            check_way(file, ip, findings);
        }
    }
    let underlay = match Underlay::open(config) {
        Ok(underlay) => underlay,
        Err(error) => {
            check_missing(config, &error, findings);
            return None;
        }
    };
    let mut addresses = peers.iter().filter_map(PeerConfig::fixed_address);
    if let Err(error) = addresses.try_for_each(|address| underlay.refuse_self(address)) {
        findings.bad("underlay", error);
        return None;
    }
    check_underlay(config, findings);
    let sealing = if secured { Guard::OVERHEAD } else { 0 };
    check_mtu(file, &peers, &underlay, sealing, findings);
    Some((underlay, keys, peers))
}

/// Resolves a peer's host name, if the file has one, and replaces it with the address.
fn check_host(config: &UnderlayConfig, peer: &mut PeerConfig, findings: &mut Findings<'_>) {
    match look_up(config, peer) {
        None => {}
        Some(Ok(address)) => {
            let host = peer.host().map_or_else(String::new, ToString::to_string);
            findings.good("host", format!("{host} is at {}", address.ip()));
            peer.address = Some(PeerEndpoint::Address(address.into()));
        }
        Some(Err(why)) => {
            let found = format!("{why}; the link would come up and retry");
            let help = "is the name right, and does this machine have DNS? \"[::]:PORT\" as link.underlay.listen \
                        reaches both IP versions";
            findings.add("host", Grade::Warning, found, help);
        }
    }
}

/// Looks up the host name that the file has for a peer, or says why the link could not use it now; `None` without
/// a name.
pub fn look_up(config: &UnderlayConfig, peer: &PeerConfig) -> Option<Result<SocketAddr, String>> {
    let (Some(host), UnderlayConfig::Udp { listen, .. }) = (peer.host(), config) else {
        return None;
    };
    let found = match SystemResolver.resolve(host) {
        Ok(all) => {
            let mut all = all.into_iter();
            let why = || format!("none of its addresses is reached from {listen}");
            all.find(|to| reaches(listen, to)).ok_or_else(why)
        }
        Err(error) => Err(error.to_string()),
    };
    Some(found.map_err(|why| format!("{host} cannot be looked up: {why}")))
}

/// Reports an underlay that cannot be opened. `airlane up` waits for an interface that does not exist yet,
/// but fails on other errors.
fn check_missing(config: &UnderlayConfig, error: &DeviceError, findings: &mut Findings<'_>) {
    match Underlay::open_early(clock::now(), config) {
        Err(_) => findings.bad("underlay", error),
        Ok(_closed_again) => findings.add(
            "underlay",
            Grade::Warning,
            format!("{error}: the link would come up and wait for it"),
            "MTU and peers cannot be checked until then",
        ),
    }
}

/// Warns about services that no class refers to, and rules without effect.
fn check_services(file: &LiveConfig, findings: &mut Findings<'_>) {
    for unreached in file.link.unreached() {
        findings.add("services", Grade::Warning, unreached.to_string(), "");
    }
}

/// Checks the keys, and returns them if they are usable.
fn check_security(
    file: &LiveConfig,
    peers: &[PeerConfig],
    findings: &mut Findings<'_>,
) -> Option<Keys> {
    let Some(Security::Keys(keys)) = &file.link.security else {
        findings.add(
            "security",
            Grade::Warning,
            "none: anybody on the path can read and forge frames",
            "make keys with `airlane keygen FILE`, unless the link below is secured",
        );
        return None;
    };
    match crate::security::read_key(&keys.private_key) {
        Ok(key) if peers.iter().any(|peer| peer.key == Some(key.public())) => {
            findings.add(
                "security",
                Grade::Bad,
                PeersError::Own(key.public()).to_string(),
                OWN_KEY_HELP,
            );
            None
        }
        Ok(key) => {
            let public = key.public();
            let found = format!("this end is {public}, which the other end must have as peer-key");
            findings.good("security", found);
            Some(keys.clone())
        }
        Err(error) => {
            findings.bad("security", error);
            None
        }
    }
}

/// Reports the opened underlay.
fn check_underlay(config: &UnderlayConfig, findings: &mut Findings<'_>) {
    let (interface, ether_type) = match config {
        UnderlayConfig::Udp { listen, .. } => {
            let port = match listen.port() {
                0 => "a UDP port".to_owned(),
                port => format!("UDP port {port}"),
            };
            return findings.good("underlay", format!("{port} is free"));
        }
        UnderlayConfig::Ethernet {
            interface,
            ether_type,
            ..
        } => (interface, ether_type),
    };
    match Interface::ask(interface) {
        Ok(facts) if facts.is_port => findings.add(
            "underlay",
            Grade::Bad,
            format!("{interface} is a port of a bridge or bond, which takes its frames"),
            "name the bridge or bond instead, or take the interface out of it",
        ),
        Ok(facts) if !facts.carrier => findings.add(
            "underlay",
            Grade::Warning,
            format!("{interface} is up, but has no carrier"),
            "is the cable plugged in, or the radio associated?",
        ),
        Ok(facts) => findings.good(
            "underlay",
            format!(
                "{interface} is up, EtherType {ether_type}; this end is {}",
                facts.address
            ),
        ),
        Err(error) => findings.bad("underlay", error),
    }
}

/// Checks that the control socket can be created.
fn check_control(file: &LiveConfig, findings: &mut Findings<'_>) {
    let socket = file.socket();
    let folder = socket.parent().filter(|folder| !folder.exists());
    match Server::bind(&socket, file.control.group.as_deref()) {
        Ok(_removed_again) => {}
        Err(error) => findings.bad("control", error),
    }
    if let Some(folder) = folder {
        let _as_it_was = std::fs::remove_dir(folder);
    }
}

/// Checks that the routes can be added, and what default routes need.
fn check_routes(file: &LiveConfig, findings: &mut Findings<'_>) {
    for route in file.routes().iter().filter(|route| !route.is_wide()) {
        let taken = Netlink::open().and_then(|mut netlink| netlink.match_of(route.address));
        // The kernel allows one route for each prefix and metric (ip-route(8)).
        let metric = if route.address.is_ipv4() { 0 } else { 1024 };
        if taken.is_ok_and(|taken| taken == (route.prefix, metric)) {
            findings.add(
                "route",
                Grade::Bad,
                format!("a route to {route} is there already"),
                "`ip route` shows where it leads; remove it, or leave this one out",
            );
        }
    }
    if mark(file) == 0 {
        return;
    }
    let unknown = |peer: &PeerConfig| peer.fixed_address().is_none();
    for interface in reverse_path::strict() {
        if file.peers().iter().any(unknown) {
            let found =
                reverse_path::says(&interface, "peers that only the default route leads to");
            findings.add("route", Grade::Warning, found, reverse_path::HELP);
        }
    }
    if file.peers().iter().any(|peer| peer.host().is_some()) {
        findings.add(
            "route",
            Grade::Warning,
            "a peer's host has a name, which after the start is looked up through the tunnel",
            "write its address where that may change, or have a way to the name server outside",
        );
    }
}

/// Checks that there is a route to the peer that does not lead into the tunnel.
fn check_way(file: &LiveConfig, peer: IpAddr, findings: &mut Findings<'_>) {
    let covering = |cidr: &&Cidr| cidr.covers(peer);
    let routes = file.routes();
    let inside = file.tun.addresses.iter().chain(&routes).filter(covering);
    let narrow = inside.clone().filter(|cidr| !cidr.is_wide());
    let narrow = narrow.max_by_key(|cidr| cidr.prefix);
    // Kernels before 4.13 do not report the matched route.
    let matched = || Netlink::open().and_then(|mut netlink| netlink.match_of(peer));
    let way = way_out(peer, mark(file)).map(|_| matched().map_or(0, |(prefix, _)| prefix));
    match (way, narrow) {
        (Err(why), _) => findings.add(
            "route",
            Grade::Warning,
            format!(
                "there is no way to {peer} yet ({why}): the link would come up and wait for one"
            ),
            NO_WAY_HELP,
        ),
        (Ok(_), None) if inside.count() > 0 => {
            match reverse_path::blocks(peer, &file.tun.name, mark(file)) {
                None => findings.good(
                    "route",
                    format!("there is a way to {peer}, past the default route into the tunnel"),
                ),
                Some(interface) => {
                    let found = reverse_path::says(&interface, peer);
                    findings.add("route", Grade::Bad, found, reverse_path::HELP);
                }
            }
        }
        (Ok(_), None) => findings.good("route", format!("there is a way to {peer}")),
        (Ok(prefix), Some(cidr)) => {
            // Of two networks of one length that are connected, the kernel takes the older, which is outside.
            let is_younger = cidr.prefix == prefix && file.tun.addresses.contains(cidr);
            let (verdict, may) = match cidr.prefix >= prefix && !is_younger {
                true => (Grade::Bad, "would go into the tunnel"),
                false => (Grade::Warning, "go there once the way outside is lost"),
            };
            findings.add(
                "route",
                verdict,
                format!("{cidr}, which leads into the tunnel, covers the peer {peer}: frames {may}"),
                "give the peer a more specific route outside, or leave that one out; \"0.0.0.0/0\" goes past the \
                 peers by itself",
            );
        }
    }
}

/// Checks that a packet fits the paths; the narrowest decides.
fn check_mtu(
    file: &LiveConfig,
    peers: &[PeerConfig],
    underlay: &Underlay,
    sealing: usize,
    findings: &mut Findings<'_>,
) {
    let paths: Result<Vec<_>, _> = peers
        .iter()
        .map(|peer| {
            let to = peer.fixed_address();
            Ok::<_, DeviceError>((underlay.path(to)?.interface, to))
        })
        .collect();
    let (path_mtu, to) = match paths.map(|paths| paths.into_iter().min_by_key(|(mtu, _)| *mtu)) {
        Ok(narrowest) => narrowest.unwrap_or_default(),
        Err(error) => {
            let found = format!("not known until there is a way to the peer: {error}");
            return findings.add("mtu", Grade::Warning, found, "");
        }
    };
    let Ok(facts) = underlay.facts() else { return };
    let around = Codec::new(file.link.header()).header_max() + sealing;
    let fragment = file.link.fragment;
    let datagram = fragment.map_or(path_mtu, |fragment| fragment.datagram(path_mtu));
    let left = datagram.saturating_sub(facts.overhead(to) + around);
    if fragment.is_some() && left > FRAGMENT_HEAD && path_mtu >= LEAST {
        let found = format!("longer packets than {left} B travel in parts of that length");
        return findings.good("mtu", found);
    }
    let routes = file.routes();
    let mut v6 = file.tun.addresses.iter().chain(&routes);
    let least = match v6.any(|cidr| cidr.address.is_ipv6()) {
        true => IPV6_MIN_MTU,
        false => IPV4_MIN_MTU,
    };
    // The kernel names the interface even where there is no host; only a session measures the path.
    let found = format!(
        "the interface takes {path_mtu} B, which leaves packets of {left} B; the path beyond is not measured"
    );
    match file.tun.mtu {
        _ if path_mtu < LEAST => {
            let help = format!("paths of {LEAST} B are needed; widen it");
            findings.add("mtu", Grade::Bad, found, &help);
        }
        _ if left < least => {
            let help = format!("{least} B are needed; widen it");
            findings.add("mtu", Grade::Bad, found, &help);
        }
        Mtu::Fixed(size) if size.as_bytes() as usize > left => {
            let help = "leave tun.mtu out, or write link.fragment = \"auto\": larger packets travel in fragments of IP, \
                        of which none can be repaired alone";
            findings.add("mtu", Grade::Warning, found, help);
        }
        _ => findings.good("mtu", found),
    }
}
