//! `airlane doctor`: whether a link can come up, and what to do where it cannot. Everything is tried as
//! `airlane up` does it and undone again.

use std::net::{IpAddr, TcpListener};
use std::os::fd::AsFd as _;

use airlane_base::{Duration, Instant};
use airlane_link::Codec;
use airlane_link::pack::contents::FRAGMENT_HEAD;
use rustix::event::{PollFd, PollFlags};
use serde::Serialize;

use crate::clock;
use crate::config::{IPV4_MIN_MTU, IPV6_MIN_MTU, LiveConfig, Mtu, PeerConfig, UnderlayConfig};
use crate::control;
use crate::netlink::{Cidr, Interface, Netlink};
use crate::node::Guard;
use crate::security::{Keys, Security};
use crate::tun::Tun;
use crate::underlay::Underlay;

/// How long the peers have for an answer: two attempts of a handshake.
const PATIENCE: Duration = Duration::from_secs(8);
/// Longer than any message of a handshake.
const DATAGRAM: usize = 2048;

/// How one check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It may work all the same.
    Warning,
    /// The link will not come up.
    Bad,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub what: &'static str,
    /// How it ended.
    pub verdict: Verdict,
    /// What was found.
    pub found: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Where findings go, in order.
struct Findings<'a>(&'a mut dyn FnMut(Check));

impl Findings<'_> {
    fn add(&mut self, what: &'static str, verdict: Verdict, found: impl Into<String>, help: &str) {
        (self.0)(Check {
            what,
            verdict,
            found: found.into(),
            help: (!help.is_empty()).then(|| help.to_owned()),
        });
    }

    fn good(&mut self, what: &'static str, found: impl Into<String>) {
        self.add(what, Verdict::Good, found, "");
    }

    fn bad(&mut self, what: &'static str, found: impl ToString) {
        self.add(what, Verdict::Bad, found.to_string(), "");
    }
}

/// Checks everything that `airlane up` needs, and tells each finding as soon as there is one: the
/// peer may take its time.
pub fn examine(file: &LiveConfig, tell: &mut dyn FnMut(Check)) {
    let mut findings = Findings(tell);
    if let Ok(status) = control::status(&file.socket()) {
        let states: Vec<_> = status
            .peers
            .iter()
            .map(|peer| format!("with {} is {}", peer.name, peer.session.state))
            .collect();
        let states = states.join(", ");
        let found = format!("the link is up already, its session {states}");
        findings.add(
            "running",
            Verdict::Good,
            found,
            "`airlane status` tells more; stop it to check the rest",
        );
        return;
    }
    let config = &file.link.underlay;
    let peers = file.peers();
    let secured = matches!(file.link.security, Some(Security::Keys(_)));
    let keys = check_security(file, &peers, &mut findings);
    match Tun::create(&file.tun.name) {
        Ok(_removed_again) => {
            findings.good("interface", format!("{} can be made", file.tun.name));
        }
        Err(error) => findings.bad("interface", error),
    }
    if let Some(address) = file.metrics {
        match TcpListener::bind(address) {
            Ok(_closed_again) => {
                findings.good("metrics", format!("TCP port {} is free", address.port()))
            }
            Err(error) => findings.bad("metrics", format!("{address}: {error}")),
        }
    }
    for peer in &peers {
        if let Some(ip) = peer.address.and_then(|address| address.ip()) {
            check_way(file, ip, &mut findings);
        }
    }
    let opened = Underlay::open(config).and_then(|underlay| {
        let mut addresses = peers.iter().filter_map(|peer| peer.address);
        addresses.try_for_each(|address| underlay.refuse_self(address))?;
        Ok(underlay)
    });
    let underlay = match opened {
        Ok(underlay) => underlay,
        Err(error) => return findings.bad("underlay", error),
    };
    check_underlay(config, &mut findings);
    let sealing = if secured { Guard::OVERHEAD } else { 0 };
    check_mtu(file, &peers, &underlay, sealing, &mut findings);
    match keys {
        Some(keys) => check_peers(&keys, &underlay, &peers, &mut findings),
        None if secured => {}
        None => findings.add(
            "peer",
            Verdict::Warning,
            "not asked: only a peer with keys can prove that it is the one",
            "",
        ),
    }
}

/// The keys, if they are of use.
fn check_security(
    file: &LiveConfig,
    peers: &[PeerConfig],
    findings: &mut Findings<'_>,
) -> Option<Keys> {
    let Some(Security::Keys(keys)) = &file.link.security else {
        findings.add(
            "security",
            Verdict::Warning,
            "none: whoever is on the path can read and forge frames",
            "make keys with `airlane keygen FILE`, unless the link below is secured",
        );
        return None;
    };
    match crate::security::read_key(&keys.private_key) {
        Ok(key) if peers.iter().any(|peer| peer.key == Some(key.public())) => {
            findings.add(
                "security",
                Verdict::Bad,
                "a peer's key is the public key of this end",
                "write the one that `airlane keygen` printed at the other end",
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

/// What was opened.
fn check_underlay(config: &UnderlayConfig, findings: &mut Findings<'_>) {
    let (interface, ether_type) = match config {
        UnderlayConfig::Udp { listen, .. } => {
            return findings.good("underlay", format!("UDP port {} is free", listen.port()));
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
            Verdict::Bad,
            format!("{interface} is a port of a bridge or bond, which takes its frames"),
            "name the bridge or bond instead, or take the interface out of it",
        ),
        Ok(facts) if !facts.carrier => findings.add(
            "underlay",
            Verdict::Warning,
            format!("{interface} is up, but has nobody to send to"),
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

/// Whether there is a way to the peer, and not into the tunnel.
fn check_way(file: &LiveConfig, peer: IpAddr, findings: &mut Findings<'_>) {
    let covering = |cidr: &&Cidr| cidr.covers(peer);
    let routes = file.routes();
    let mut inside = file.tun.addresses.iter().chain(&routes);
    match Netlink::open().and_then(|mut netlink| netlink.way_to(peer)) {
        Err(error) => findings.add(
            "route",
            Verdict::Bad,
            format!("there is no way to {peer}: {error}"),
            "`ip route get` shows what the kernel knows",
        ),
        Ok(_) => match inside.find(covering) {
            None => findings.good("route", format!("there is a way to {peer}")),
            Some(cidr) => findings.add(
                "route",
                Verdict::Warning,
                format!("{cidr}, which leads into the tunnel, covers the peer {peer}: frames may go into the tunnel"),
                "give the peer a more specific route outside, or leave that one out",
            ),
        },
    }
}

/// Whether a packet fits the paths; the narrowest decides.
fn check_mtu(
    file: &LiveConfig,
    peers: &[PeerConfig],
    underlay: &Underlay,
    sealing: usize,
    findings: &mut Findings<'_>,
) {
    let paths: Result<Vec<usize>, _> = peers
        .iter()
        .map(|peer| underlay.path_mtu(peer.address))
        .collect();
    let path_mtu = match paths.map(|paths| paths.into_iter().min()) {
        Ok(path_mtu) => path_mtu.unwrap_or_default(),
        Err(error) => return findings.bad("mtu", error),
    };
    let around = Codec::new(file.link.header()).header_max() + sealing;
    let fragment = file.link.fragment;
    let datagram = fragment.map_or(path_mtu, |fragment| fragment.datagram(path_mtu));
    let left = datagram.saturating_sub(underlay.overhead() + around);
    if fragment.is_some() && left > FRAGMENT_HEAD {
        let found = format!("longer packets than {left} B travel in parts of that length");
        return findings.good("mtu", found);
    }
    let routes = file.routes();
    let mut v6 = file.tun.addresses.iter().chain(&routes);
    let least = match v6.any(|cidr| cidr.address.is_ipv6()) {
        true => IPV6_MIN_MTU,
        false => IPV4_MIN_MTU,
    };
    let found = format!("the path takes {path_mtu} B, which leaves packets of {left} B");
    match file.tun.mtu {
        _ if left < least => {
            let help = format!("{least} B are needed; widen the path");
            findings.add("mtu", Verdict::Bad, found, &help);
        }
        Mtu::Fixed(size) if size.as_bytes() as usize > left => {
            let help = "leave tun.mtu out, or write link.fragment = \"auto\": larger packets travel in fragments of IP, \
                        of which none can be repaired alone";
            findings.add("mtu", Verdict::Warning, found, help);
        }
        _ => findings.good("mtu", found),
    }
}

/// Whether the peers answer, and are those with the keys. All are asked at the same time.
fn check_peers(
    keys: &Keys,
    underlay: &Underlay,
    peers: &[PeerConfig],
    findings: &mut Findings<'_>,
) {
    let begun = clock::now();
    let mut guard = match Guard::new(begun, keys, peers, underlay.anyone()) {
        Ok(guard) => guard,
        Err(error) => return findings.bad("peer", error),
    };
    let everywhere = underlay.anyone().is_some();
    let (calling, mut asked): (Vec<_>, Vec<_>) = peers
        .iter()
        .partition(|peer| peer.address.is_none() && !everywhere);
    for peer in calling {
        let found = format!("{} calls, from wherever it is", peer.name);
        findings.good("peer", found);
    }
    shake_hands(&mut guard, underlay, begun, &mut asked, findings);
    let refused = guard.report().refused;
    for peer in asked {
        let (found, help) = match refused {
            0 => (
                format!("no answer from {} in {PATIENCE}", who(peer)),
                match everywhere {
                    false => {
                        "is `airlane up` running there, with this end's public key as peer-key, and \
                         do firewalls let UDP through in both directions?"
                    }
                    true => {
                        "is `airlane up` running there, with this end's public key as peer-key, on \
                         the same segment and with the same ether-type?"
                    }
                },
            ),
            n => (
                format!(
                    "no answer from {} in {PATIENCE}, and {n} datagrams came that are of no peer \
                     with a key in this file",
                    who(peer)
                ),
                "compare its key here with what `airlane keygen --public` prints there",
            ),
        };
        findings.add("peer", Verdict::Warning, found, help);
    }
}

fn who(peer: &PeerConfig) -> String {
    match peer.address {
        Some(address) => format!("{} at {address}", peer.name),
        None => format!("{} (wherever it is)", peer.name),
    }
}

/// Takes each peer that answers out of `asked`, and tells how long that took.
fn shake_hands(
    guard: &mut Guard,
    underlay: &Underlay,
    begun: Instant,
    asked: &mut Vec<&PeerConfig>,
    findings: &mut Findings<'_>,
) {
    let (mut received, mut plain) = (underlay.room(), [0; DATAGRAM]);
    let end = begun + PATIENCE;
    loop {
        let now = clock::now();
        asked.retain(|peer| {
            let session = peer.key.and_then(|key| guard.peer(&key));
            let age = session.and_then(|session| guard.keys_age(now, session));
            if age.is_some() {
                let after = now.saturating_since(begun);
                let found = format!("{} answered in {after}, with the right key", who(peer));
                findings.good("peer", found);
            }
            age.is_none()
        });
        if asked.is_empty() || now >= end {
            return;
        }
        if guard.poll_timeout().is_some_and(|due| due <= now) {
            guard.handle_timeout(now);
        }
        while let Some(message) = guard.poll_transmit() {
            let Err(error) = underlay.send_to(message.to, message.bytes()) else {
                continue;
            };
            // What an earlier datagram met: nobody listens there, now.
            let refused = error.kind() == std::io::ErrorKind::ConnectionRefused;
            let anyone = underlay.anyone();
            let to = |p: &&&PeerConfig| p.address.or(anyone) == Some(message.to);
            let at = asked.iter().position(|p| to(&p));
            if let Some(at) = at.filter(|_| !refused) {
                let peer = who(asked.remove(at));
                findings.bad("peer", format!("{peer}: {error}"));
            }
        }
        let wait = guard.poll_timeout().unwrap_or(end).min(end);
        let mut fds = [PollFd::from_borrowed_fd(underlay.as_fd(), PollFlags::IN)];
        let timeout = clock::timeout(clock::now(), wait);
        let _woken = rustix::event::poll(&mut fds, Some(&timeout));
        while underlay.receive(&mut received).is_ok() {
            received.for_each(|datagram, source, _| {
                let _counted = guard.open(clock::now(), source, datagram, &mut plain);
            });
        }
    }
}
